"""Strategies of hypothesis: what a policy may meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

try:
    from hypothesis import strategies as st
except ImportError:
    raise ImportError("generated workloads need hypothesis: pip install hypothesis") from None

from batsched_py.protocol.events import HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.testing.jobs import JobSpec


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


def exact(jobs: Sequence[JobSpec]) -> list[JobSpec]:
    """The same jobs, with walltimes that say how long they run; those of no length are left out.

    So no policy can be deceived about when jobs end: ``workloads(4).map(exact)``.
    """
    return [replace(job, walltime=job.run_time) for job in jobs if job.run_time]
