"""Strategies of hypothesis: what a policy may meet."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

try:
    from hypothesis import strategies as st
except ImportError:
    raise ImportError("generated workloads need hypothesis: pip install hypothesis") from None

from batsched_py.outside.closures import Closure
from batsched_py.protocol.events import HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.testing.runs import JobSpec

GB = 1024**2

#: What drawn nodes may be called for, and the partitions that they are in.
FEATURES = ("big", "new")
PARTITIONS = ("long", "short")


@st.composite
def workloads(draw: st.DrawFn, hosts: int, max_jobs: int = 15) -> list[JobSpec]:
    """Workloads with queues: ties, jobs of no length, killed ones, ones without walltime, too wide ones.

    Times are halves of seconds, and identifiers sort as text in the order of submission.
    """
    jobs = []
    submission = 0.0
    for number in range(draw(st.integers(1, max_jobs))):
        submission += draw(st.integers(0, 6)) / 2
        run_time = draw(st.integers(0, 20)) / 2
        walltime = draw(st.one_of(st.just(inf), st.integers(1, 40).map(lambda halves: halves / 2)))
        jobs.append(JobSpec(f"{number:03}", submission, draw(st.integers(1, hosts + 1)), run_time, walltime))
    return jobs


def uneven(jobs: list[JobSpec]) -> list[JobSpec]:
    """The same jobs, with times that lie between microseconds: thirds of what they were."""
    return [
        replace(job, submission=job.submission / 3, run_time=job.run_time / 3, walltime=job.walltime / 3)
        for job in jobs
    ]


@st.composite
def outages(draw: st.DrawFn, hosts: int) -> list[HostsAvailable | HostsUnavailable]:
    """Hosts that go and come back, some of them more than once."""
    events: list[HostsAvailable | HostsUnavailable] = []
    for host in draw(st.sets(st.integers(0, hosts - 1))):
        time = 0.0
        for _ in range(draw(st.integers(1, 2))):
            time += draw(st.integers(1, 16)) / 2
            events.append(HostsUnavailable(HostSet.of([host]), time=time))
            time += draw(st.integers(1, 16)) / 2
            events.append(HostsAvailable(HostSet.of([host]), time=time))
    return sorted(events, key=lambda event: event.time)


@st.composite
def closures(draw: st.DrawFn, hosts: int) -> list[Closure]:
    """Hosts that are closed for a while, some of them to all users but one."""
    drawn = []
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, 60)) / 2
        closed = HostSet.of(draw(st.sets(st.integers(0, hosts - 1), min_size=1)))
        users = draw(st.sampled_from((frozenset[str](), frozenset(["1"]))))
        drawn.append(Closure(start, start + draw(st.integers(1, 20)) / 2, closed, users))
    return drawn


@st.composite
def dependent_workloads(draw: st.DrawFn, hosts: int, max_jobs: int = 15) -> list[JobSpec]:
    """Like :func:`workloads`, of jobs that wait for others, and of tasks of arrays with a limit."""
    jobs: list[JobSpec] = []
    for job in draw(workloads(hosts, max_jobs)):
        ways = [{}, {"array": "sweep%2"}, {"after": "singleton"}]
        if jobs:
            kind = draw(st.sampled_from(("afterok", "afterany", "afternotok", "after")))
            ways += 2 * [{"after": f"{kind}:{draw(st.sampled_from(jobs)).id}"}]
        jobs.append(replace(job, fields=draw(st.sampled_from(ways))))
    return jobs


@st.composite
def sized_workloads(draw: st.DrawFn, hosts: int, max_jobs: int = 15) -> list[JobSpec]:
    """Like :func:`workloads`, of jobs of which many are moldable or malleable."""
    jobs = []
    for job in draw(workloads(hosts, max_jobs)):
        sizes = {str(size): job.size * max(job.run_time, 0.5) / size for size in (1, job.size, job.size + 1)}
        malleable = {"min": draw(st.integers(1, job.size)), "max": job.size + draw(st.integers(0, 2))}
        ways: list[dict[str, Any]] = [{}, {"sizes": sizes}, {"malleable": malleable}]
        jobs.append(replace(job, fields=draw(st.sampled_from(ways))))
    return jobs


@st.composite
def machines(draw: st.DrawFn, max_nodes: int = 4) -> Platform:
    """Machines of nodes of one to three kinds; some have memory, GPUs, features or licences."""
    kinds, number = [], 0
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, max(1, max_nodes // 2)))
        resources = {
            name: most
            for name, most in (
                ("memory", draw(st.sampled_from((2, 4, 8))) * GB),
                ("gpu", draw(st.integers(1, 3))),
            )
            if draw(st.booleans())
        }
        names = [f"n{place}" for place in range(number, number + count)]
        features = sorted(draw(st.sets(st.sampled_from(FEATURES))))
        partitions = [draw(st.sampled_from(PARTITIONS))]
        kinds.append(NodeKind(names, draw(st.integers(1, 4)), resources, features, (), partitions))
        number += count
    return platform_of(kinds, draw(st.sampled_from(({}, {"tool": 1}, {"tool": 2}))), "a drawn machine")


@st.composite
def node_workloads(draw: st.DrawFn, hosts: int, max_jobs: int = 12) -> list[JobSpec]:
    """Like :func:`workloads`, of jobs that ask for nodes in all ways; some ask for what no machine has."""
    return [replace(job, request=draw(_requests(job.size))) for job in draw(workloads(hosts, max_jobs))]


@st.composite
def _requests(draw: st.DrawFn, size: int) -> dict[str, Any]:
    """What a job of a size may ask for; most ask for one or two things."""
    cores = draw(st.sampled_from([each for each in (1, 1, 1, 2, 3) if size % each == 0]))
    tasks = size // cores
    ways: dict[str, st.SearchStrategy[Any]] = {
        "per_task": st.sampled_from(({"memory": "1 GB"}, {"gpu": 1}, {"memory": "500 MB", "gpu": 1})),
        "per_node": st.sampled_from(({"memory": "2 GB"}, {"gpu": 1})),
        "nodes": st.integers(1, tasks) | st.integers(1, tasks).map(lambda least: [least, least + 1]),
        "tasks_per_node": st.integers(1, 3),
        "exclusive": st.just(True),
        "features": st.sampled_from((*FEATURES, f"!{FEATURES[0]}", " | ".join(FEATURES))),
        "partitions": st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=2, unique=True),
        "one_switch": st.just(True),
        "licences": st.just({"tool": 1}),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(ways)), max_size=2, unique=True))
    return {"cores": cores} | {name: draw(ways[name]) for name in chosen}


def exact(jobs: Sequence[JobSpec]) -> list[JobSpec]:
    """The same jobs, with walltimes that say how long they run; those of no length are left out.

    So no policy can be deceived about when jobs end: ``workloads(4).map(exact)``.
    """
    return [replace(job, walltime=job.run_time) for job in jobs if job.run_time]
