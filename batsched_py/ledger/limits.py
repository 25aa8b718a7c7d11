"""Limits: what narrows a machine from outside, beside what is free of it.

A cap on power is one (`batsched_py/schedulers/power.py`); so many jobs for each user would be another. A
policy puts it beside the machine with ``cluster.put_beside(limit)``. From then on it is asked by whatever
looks at the machine: whether a job fits, when it can start, how jobs may grow, and which hosts may switch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from batsched_py.ledger.profile import Ahead, AvailabilityProfile
from batsched_py.ledger.running import RunningJob
from batsched_py.ledger.trials import Resizing
from batsched_py.protocol.hosts import MOST_HOSTS, HostSet
from batsched_py.protocol.jobs import Job


class Limit(ABC):
    """What a job needs beside hosts. A subclass says what it keeps from whom; the rest it need not."""

    @abstractmethod
    def allows(self, job: Job, run_time: float) -> bool:
        """Whether a job may start now, to run for so long."""

    def ahead(self, job: Job) -> Ahead:
        """What the job has to wait for, as running jobs end; for reservations.

        Without another answer, a job that may not start now is expected to start as soon as any job ends.
        """
        return _Now(self, job)

    def narrow(self, profile: AvailabilityProfile) -> None:  # noqa: B027
        """Take from a profile of free hosts what may not be used."""

    def started(self, running: RunningJob) -> None:  # noqa: B027
        """A job was started. If it was not allowed to, this says so with ``RuleBroken``."""

    def resized(self, before: RunningJob, after: RunningJob) -> None:  # noqa: B027
        """A running job has other hosts. If it was not allowed to, this says so with ``RuleBroken``."""

    def ended(self, running: RunningJob) -> None:  # noqa: B027
        """A job has ended."""

    def resizing(self, inside: Resizing) -> Resizing:
        """Other sizes of running jobs, as far as they are allowed."""
        return inside

    def switchable(self, hosts: HostSet, pstate: int) -> HostSet:
        """Those of some hosts that may be put into a power state now."""
        return hosts


class _Now:
    """For a limit that cannot tell what will be: a job may start now, or else when any job ends."""

    def __init__(self, limit: Limit, job: Job) -> None:
        self._suffices = limit.allows(job, job.walltime)

    def job_ends(self, running: RunningJob) -> None:
        """The limit may let the job start then."""
        self._suffices = True

    def suffices(self, time: float) -> bool:
        """Whether the job may start."""
        return self._suffices

    def extra(self, time: float) -> int:
        """Any number: it takes nothing from other jobs."""
        return MOST_HOSTS

    def changes(self) -> Sequence[float]:
        """Only ends of jobs change anything."""
        return ()
