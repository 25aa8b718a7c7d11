"""The jobs of a live cluster as a workload that begins now.

Jobs that run come first: they have the highest priorities, and each may only be on the nodes that it is on,
which is told by a feature that each node has for itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from msgspec.structs import replace

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.protocol.shown import shown
from batsched_py.simulator.machine_files import NodeKind
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.forecast.live import LiveJob
from batsched_py.slurm.jobs import WORKLOAD, JobMaker
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.scenario import words_of
from batsched_py.slurm.values import Clock
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import profile_name

#: How long a job without a time limit is taken to run.
FOR_EVER = 365 * 86400.0

#: Above every priority of Slurm.
FIRST = 1 << 33

_ENDS = ("afterok", "afternotok", "aftercorr")
_TARGET = re.compile(r"([0-9]+(?:_[0-9]+)?)(?:\+([0-9]{1,9}))?")
"""A job, and how many minutes must have passed since its start."""

#: The whole run time of a job that has run for so long.
RunTime = Callable[[LiveJob, float], float]


def pinned(kinds: Iterable[NodeKind]) -> list[NodeKind]:
    """The nodes, each with a feature of its own."""
    return [
        replace(
            kind,
            names=[name],
            switches=[kind.switches[place]] if kind.switches else (),
            features=[*kind.features, _feature(name)],
        )
        for kind in kinds
        for place, name in enumerate(kind.names)
    ]


def workload_of(
    jobs: Sequence[LiveJob],
    now: float,
    configuration: Configuration,
    machine: Sequence[NodeKind],
    run_time: RunTime,
    findings: Findings,
) -> Workload:
    """The jobs that run or may start, as a workload that begins at a moment; held ones are left out."""
    maker = JobMaker(configuration, words_of(machine), Clock(now), findings)
    known: set[str] = set()
    """The jobs so far, for a job can wait for earlier ones only."""
    stuck: set[str] = set()
    """Those of them that are held, or wait for one that is."""
    started: dict[str, float] = {}
    """How long those of them run that run."""
    namesakes: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    """The jobs of one user and name so far."""
    nodes = {name for kind in machine for name in kind.names}
    made: list[Job] = []
    profiles = {}
    for place, job in enumerate(jobs):
        if job.is_held or (not job.runs and _waits_for(job.dependency, stuck)):
            stuck.add(job.name)
            continue
        ran = 0.0
        if job.runs:
            ran = 0.0 if job.started is None else max(now - job.started, 0.0)
            started[job.id] = ran
            _check_nodes(job, nodes, findings)
        left = max(round(run_time(job, ran) - ran), 1)
        alike = namesakes[job.user, job.fields.get("name", "")]
        others = [each for each in alike if each != job.name]
        alike[job.name] = None
        submission = _from_now_on(job, now, ran, FIRST - place)
        submission.run_time = left
        submission.dependency = _still_open(job.dependency, known, started, others)
        profiles[profile_name(left)] = Delay(seconds=left)
        found = list(maker.jobs(submission))
        known |= {job.name, *(each.name for each in found)}
        made += found
    return Workload(WORKLOAD, made, profiles, sum(len(kind.names) * kind.cores for kind in machine))


def _check_nodes(job: LiveJob, nodes: set[str], findings: Findings) -> None:
    """Note a running job on nodes that are not there."""
    if unknown := [name for name in job.node_names if name not in nodes]:
        findings.left_out(job.where, f"job {job.id} runs on {shown(unknown[0])}, which has no NodeName")


def limit_of(job: LiveJob) -> float:
    """The time limit of a job; one without a limit runs for very long."""
    return FOR_EVER if job.time is None or job.time == inf else job.time


def _from_now_on(job: LiveJob, now: float, ran: float, first: int) -> LiveJob:
    """What would have to be submitted now for the rest of a job that ran for a while already."""
    fields, features, (least, most) = dict(job.fields), job.features, job.nodes
    if job.runs:
        fields["priority"] = first
        fields.pop("node_list", None)
        features = "|".join(map(_feature, job.node_names))
    elif job.eligible is not None and job.eligible > now:
        fields["begin"] = job.eligible - now
    return replace(
        job,
        nodes=(least, most or (least if job.runs or least > 1 else None)),
        time=max(limit_of(job) - ran, 60.0),
        features=features,
        fields=fields,
    )


def _waits_for(dependency: str, jobs: set[str]) -> bool:
    """Whether all of a dependency must be met, and it names one of some jobs."""
    targets = [target for target, _ in _TARGET.findall(dependency)]
    named = {*targets, *(target.partition("_")[0] for target in targets)}
    return "?" not in dependency and not jobs.isdisjoint(named)


def _still_open(dependency: str, known: set[str], ran: Mapping[str, float], alike: Iterable[str]) -> str:
    """A dependency without the jobs that are over; whether the others will succeed is not known.

    Some jobs ``ran`` for a while already: their starts are less far away. A singleton waits for all jobs
    ``alike`` that came before.
    """
    dependency = dependency.replace("singleton", ":".join(["afterany", *alike]))
    parts = []
    for part in re.split("[,?]", dependency):
        kind, *targets = part.replace("_*", "").split(":")
        still = []
        for target in targets:
            match = _TARGET.fullmatch(target)
            if match is not None and match[1] in known:
                delay = max(int(match[2] or 0) * 60 - ran.get(match[1], 0.0), 0.0)
                still.append(match[1] + (f"+{delay:.0f}s" if delay else ""))
        if still:
            parts.append(":".join(["afterany" if kind in _ENDS else kind, *still]))
    return ("?" if "?" in dependency else ",").join(parts)


def _feature(node: str) -> str:
    return f"node:{node}"
