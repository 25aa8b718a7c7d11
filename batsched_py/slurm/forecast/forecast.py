"""When each waiting job of a live cluster will start: by time limits, and by how much of them jobs use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.terminal import shown
from batsched_py.errors import InputError
from batsched_py.simulator.machine_files import NodeKind
from batsched_py.slurm.changes import with_partitions
from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.forecast.advice import computed_again
from batsched_py.slurm.forecast.intervals import TAIL
from batsched_py.slurm.forecast.likely import Likely, ahead, lowest_last
from batsched_py.slurm.forecast.live import RunTime, limit_of, pinned, workload_of
from batsched_py.slurm.forecast.waiting import SETTLED, Resumed
from batsched_py.slurm.jobs import task_names
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.prepared import Prepared
from batsched_py.slurm.reading import Findings
from batsched_py.slurm.sbatch import Submission
from batsched_py.slurm.scenario import CONFIGURATION, PLATFORM, WORKLOAD_FILE, platform_text
from batsched_py.workload.swf.log import Floats


def settled(configuration: Configuration) -> Configuration:
    """The configuration, under which all jobs that run at a moment are started again at once."""
    scheduling = replace(
        configuration.scheduling,
        default_queue_depth=1 << 30,
        partition_job_depth=0,
        sched_max_job_start=0,
        batch_sched_delay=0.0,
        defer=False,
    )
    return replace(configuration, scheduling=scheduling)


class Start(Struct, frozen=True, kw_only=True):
    """When a job will start, in seconds from now."""

    by_limits: float | None
    """If every job runs as long as it may; none if the job does not start."""
    median: float | None = None
    """Over run times that are like those of a log, as the two others."""
    early: float | None = None
    late: float | None = None


class Expected(Struct, frozen=True, kw_only=True):
    """What is expected for a job that waits."""

    id: str
    user: str
    account: str
    partition: str
    nodes: int
    cpus: int
    time_limit: float
    priority: int
    start: Start
    waits_for: str = ""
    """What it waits for now, as Slurm calls it; nothing if it starts at once."""


class Advice(Struct, frozen=True, kw_only=True):
    """What comes of asking for something else. A gain is by how many seconds the job starts earlier."""

    option: str
    """What to tell ``sbatch``."""
    expected: Expected
    gain_by_limits: float | None
    """None if the job does not start, here or as it is."""
    gain: float | None = None
    """The median over run times like those of a log, each taken for both, as the two others."""
    least_gain: float | None = None
    most_gain: float | None = None
    too_short: float | None = None
    """The share of the jobs alike that ran longer than such a time limit."""


class Proof(Struct, frozen=True, kw_only=True):
    """What forecasts for some earlier moments were worth, by the starts that are known now."""

    moments: int
    forecasts: int
    """Of jobs that have started since."""
    covered_as_drawn: float | None
    """The share of these starts within the intervals as they were drawn."""
    early: float
    """How many halves before the median that was drawn intervals begin; negative if they begin behind it."""
    late: float
    """How many halves behind it intervals end."""
    is_enough: bool
    """Whether these are enough to stretch intervals by; if not, they hold 80 % of the draws only."""


class Forecast(Struct, frozen=True, kw_only=True):
    """All waiting jobs, those that start first come first."""

    now: str
    """The date and time in UTC."""
    running: int
    held: int
    repetitions: int
    """How many times run times were drawn; 0 without a log."""
    jobs: list[Expected]
    instead: Expected | None = None
    """The job that was asked about, if it asked for less."""
    about: str = ""
    """The job that advice is for; ``new`` is one that is not submitted yet."""
    advice: list[Advice] = []
    """What gains most comes first."""
    proof: Proof | None = None
    """What intervals are stretched by; none without a log."""
    misplaced: int = 0
    """Running jobs that do not fit on their nodes, as it seems; they wait there until they do."""
    not_modelled: list[str] = []
    """What was left out or assumed, each with its place."""


class Wish(Struct, frozen=True):
    """What a job might ask for instead."""

    job: str
    time: float | None = None
    nodes: int | None = None

    def applied(self, jobs: Sequence[Submission]) -> Submission:
        """The job as it would be then."""
        job = waiting_job(jobs, self.job)
        least, most = job.nodes
        changed = replace(job, time=self.time or job.time)
        if self.nodes is not None:
            tasks = job.tasks if most is None else job.tasks * self.nodes // least
            changed.nodes, changed.tasks = (self.nodes, self.nodes), max(tasks, self.nodes)
        return changed


def waiting_job(jobs: Sequence[Submission], name: str) -> Submission:
    """A job that waits, by its number."""
    found = [job for job in jobs if job.id == name and job.state == "waiting"]
    if not found:
        raise InputError(f"there is no waiting job {name!r}")
    if found[0].is_held:
        raise InputError(f"job {name!r} is held, and has no forecast")
    return found[0]


INSTEAD = "instead"
"""What a change is called that was asked about."""


def forecast(
    cluster: Cluster,
    jobs: Sequence[Submission],
    now: float,
    likely: Likely | None,
    repetitions: int,
    changes: Mapping[str, Submission],
    findings: Findings,
    computes_priorities: bool = False,
) -> Forecast:
    """Simulate the queue from now on, by time limits, and with run times and further jobs that are drawn.

    The same is done with each of some changes of a job. With such run times, priorities may be computed again
    as time passes; by limits they stay, as in what Slurm plans.
    """
    repetitions = 0 if likely is None else repetitions
    variants = [list(jobs)]
    variants += [[change if job.id == change.id else job for job in jobs] for change in changes.values()]
    found: list[list[dict[str, float]]] = []
    with (
        TemporaryDirectory(prefix="forecast-") as room,
        shown("simulations", lambda: (sum(map(len, found)), len(variants) * (1 + repetitions))),
    ):
        simulator = Simulator(cluster, now, Path(room), findings)
        length = 0.0
        for variant in variants:
            found.append([simulator.starts(variant, by_limits, asks_why=not length)])
            length = length or ahead(waits(variant, found[0][0]))
            if likely is not None:
                draws = starts_drawn(simulator, variant, likely, repetitions, length, computes_priorities)
                found[-1].extend(draws)
    as_it_is, *changed = found
    answers = [
        _advice(option, jobs, change, as_it_is, of_change, likely)
        for (option, change), of_change in zip(changes.items(), changed, strict=True)
    ]
    instead = next((each.expected for each in answers if each.option == INSTEAD), None)
    advice = [] if instead is not None else sorted(answers, key=_worst_last)
    return Forecast(
        now=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        running=sum(job.runs for job in jobs),
        held=sum(job.is_held for job in jobs),
        repetitions=repetitions,
        jobs=_first_come_first(jobs, as_it_is, simulator.waits_for),
        instead=instead,
        about=advice[0].expected.id if advice else "",
        advice=advice,
        misplaced=simulator.misplaced,
    )


def by_limits(job: Submission, ran: float) -> float:
    """The run time of a job that runs as long as it may."""
    return limit_of(job)


def waits(jobs: Sequence[Submission], starts: Mapping[str, float]) -> Floats:
    """How long the waiting ones of some jobs wait; those that do not start are infinite."""
    return np.array([starts.get(job.id, inf) for job in jobs if not job.runs], dtype=np.float64)


def starts_drawn(
    simulator: Simulator,
    jobs: Sequence[Submission],
    likely: Likely,
    repetitions: int,
    length: float,
    computes_priorities: bool,
) -> Iterator[dict[str, float]]:
    """When jobs start in each draw, while others come for such a time."""
    grows = computes_priorities and simulator.cluster.configuration.priority.type == "multifactor"
    present = computed_again(simulator.cluster, jobs, simulator.now) if grows else list(jobs)
    for seed in range(repetitions):
        run_time, further = likely.drawn(seed, length)
        yield simulator.starts(present, run_time, further if grows else lowest_last(jobs, further))


def _first_come_first(
    jobs: Sequence[Submission], starts: Sequence[Mapping[str, float]], waits_for: Mapping[str, str]
) -> list[Expected]:
    """What is expected for all jobs that may start, in the order of their starts by limits."""
    expected = [
        _expected(job, start_of(job.id, *starts), waits_for.get(job.id, ""))
        for job in jobs
        if not job.runs and not job.is_held
    ]
    return sorted(expected, key=lambda job: (job.start.by_limits is None, job.start.by_limits or 0.0, job.id))


def _advice(
    option: str,
    jobs: Sequence[Submission],
    change: Submission,
    as_it_is: Sequence[Mapping[str, float]],
    changed: Sequence[Mapping[str, float]],
    likely: Likely | None,
) -> Advice:
    name, limit = change.id, limit_of(next(job for job in jobs if job.id == change.id))
    gains = [
        before[name] - after[name] if name in before and name in after else None
        for before, after in zip(as_it_is, changed, strict=True)
    ]
    by_limits, *rest = gains
    drawn = [gain for gain in rest if gain is not None]
    least, median, most = np.quantile(drawn, (TAIL, 0.5, 1 - TAIL)).tolist() if drawn else (None,) * 3
    share = limit_of(change) / limit
    return Advice(
        option=option,
        expected=_expected(change, start_of(name, *changed)),
        gain_by_limits=by_limits,
        gain=median,
        least_gain=least,
        most_gain=most,
        too_short=likely.longer(change.user, share) if likely is not None and share < 1 else None,
    )


def _worst_last(advice: Advice) -> tuple[bool, float, float]:
    gain = advice.gain if advice.gain is not None else advice.gain_by_limits
    return gain is None, -(gain or 0.0), -(advice.gain_by_limits or 0.0)


class Simulator:
    """Simulates queues of a cluster from one moment on, under which all running jobs start at once."""

    def __init__(self, cluster: Cluster, now: float, room: Path, findings: Findings) -> None:
        self._machine: list[NodeKind] = pinned(cluster.machine)
        self._configuration = settled(cluster.configuration)
        self.cluster, self.now = cluster, now
        self._findings = findings
        self.misplaced = 0
        self.waits_for: dict[str, str] = {}
        """What jobs waited for as soon as all running jobs were on their nodes, as far as that was asked."""
        self._prepared = Prepared(room / PLATFORM, room / WORKLOAD_FILE, room / CONFIGURATION, room)
        platform, partitions = platform_text(self._machine, cluster.licences), self._configuration.partitions
        self._prepared.platform.write_text(with_partitions(platform, partitions) if partitions else platform)
        self._prepared.configure(self._configuration)

    def starts(
        self,
        jobs: Sequence[Submission],
        run_time: RunTime,
        further: Sequence[Submission] = (),
        asks_why: bool = False,
    ) -> dict[str, float]:
        """When each job starts, while further ones come; of an array, its first task.

        What jobs wait for is kept if asked for.
        """
        present = [*jobs, *further]
        workload = workload_of(
            present, self.now, self._configuration, self._machine, run_time, self._findings
        )
        self._findings.check()
        self._prepared.submit(workload)
        policy = Resumed(configuration_file=str(self._prepared.configuration))
        tasks = {job.id: task_names(job.name, job.array)[0] for job in jobs}
        policy.asked = [name for names in tasks.values() for name in names]
        policy.tells = asks_why
        result = self._prepared.simulated("rigid", {}, scheduler=policy)
        table = result.jobs.dropna(subset=["starting_time"])
        ids = {name: job.id for job in jobs if job.array for name in tasks[job.id]}
        firsts = table["starting_time"].groupby([ids.get(name, name) for name in table["job_id"].astype(str)])
        found: dict[str, float] = firsts.min().to_dict()
        if asks_why:
            self._keep_why(policy.waits_for, jobs, ids, found)
        running = {job.id for job in jobs if job.runs}
        self.misplaced = max(self.misplaced, sum(found.get(name, inf) > SETTLED for name in running))
        return found

    def _keep_why(
        self,
        waits_for: Mapping[str, str],
        jobs: Sequence[Submission],
        ids: Mapping[str, str],
        starts: Mapping[str, float],
    ) -> None:
        told: dict[str, str] = {}
        for name, why in waits_for.items():
            told.setdefault(ids.get(name, name), why)
        for job in jobs:
            if not job.runs and starts.get(job.id, inf) > SETTLED:
                refused = "" if job.id in starts else "BadConstraints"
                self.waits_for[job.id] = told.get(job.id, "Dependency" if job.dependency else refused)


def start_of(name: str, by_limits: Mapping[str, float], *drawn: Mapping[str, float]) -> Start:
    """The start of a job, of which some draws tell."""
    known = [starts[name] for starts in drawn if name in starts]
    early, median, late = np.quantile(known, (TAIL, 0.5, 1 - TAIL)).tolist() if known else (None,) * 3
    return Start(by_limits=by_limits.get(name), median=median, early=early, late=late)


def _expected(job: Submission, start: Start, waits_for: str = "") -> Expected:
    return Expected(
        id=job.id,
        user=job.user,
        account=job.fields.get("account", ""),
        partition=",".join(job.partitions),
        nodes=job.nodes[0],
        cpus=(job.tasks or job.nodes[0] * (job.tasks_per_node or 1)) * job.cpus_per_task,
        time_limit=inf if job.time is None else job.time,
        priority=job.fields["priority"],
        start=start,
        waits_for=waits_for,
    )
