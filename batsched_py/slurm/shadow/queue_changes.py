"""What changes of the configuration would do to the jobs that wait now."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.slurm.changes import changed
from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.forecast.advice import Entrance
from batsched_py.slurm.forecast.forecast import Simulator
from batsched_py.slurm.forecast.live import RunTime
from batsched_py.slurm.reading import Findings
from batsched_py.slurm.sbatch import Submission

#: Starts that differ by less than this are the same, in seconds.
SAME = 60.0


class Tried(Struct, frozen=True, kw_only=True):
    """What comes of a change, for the jobs that wait."""

    change: str
    before: float
    """The mean time until they start, of those that start on both sides, in seconds."""
    after: float
    earlier: int
    """How many start earlier."""
    later: int
    no_more: int
    """How many start without the change, and not with it."""


def tried(
    cluster: Cluster, jobs: Sequence[Submission], now: float, run_time: RunTime, changes: Sequence[str]
) -> list[Tried]:
    """Simulate the queue without and with each of some changes, with the same run times."""
    if not changes:
        return []
    before = _starts(cluster, jobs, now, run_time)
    waiting = [job.id for job in jobs if not job.runs and job.id in before]
    found = []
    for change in changes:
        other = Cluster(changed(cluster.configuration, change), cluster.machine, cluster.licences)
        after = _starts(other, _with_priorities(cluster, other, jobs, now), now, run_time)
        both = [(before[name], after[name]) for name in waiting if name in after]
        found.append(
            Tried(
                change=change,
                before=sum(one for one, _ in both) / max(len(both), 1),
                after=sum(other for _, other in both) / max(len(both), 1),
                earlier=sum(one - other > SAME for one, other in both),
                later=sum(other - one > SAME for one, other in both),
                no_more=len(waiting) - len(both),
            )
        )
    return found


def _starts(cluster: Cluster, jobs: Sequence[Submission], now: float, run_time: RunTime) -> dict[str, float]:
    with TemporaryDirectory(prefix="shadow-") as room:
        return Simulator(cluster, now, Path(room), Findings()).starts(jobs, run_time)


def _with_priorities(old: Cluster, new: Cluster, jobs: Sequence[Submission], now: float) -> list[Submission]:
    """The jobs with the priorities that they would have then, as far as the configuration tells."""
    one, other = old.configuration, new.configuration
    if (one.priority, one.qos, one.partitions, one.associations) == (
        other.priority,
        other.qos,
        other.partitions,
        other.associations,
    ) or other.priority.type == "basic":
        return list(jobs)
    before, after = Entrance(old, now), Entrance(new, now)
    found = []
    for job in jobs:
        if not job.runs and not job.is_held:
            gain = after.of(job, aged=True)[0] - before.of(job, aged=True)[0]
            job = replace(job, fields={**job.fields, "priority": max(job.fields["priority"] + gain, 1)})
        found.append(job)
    return found
