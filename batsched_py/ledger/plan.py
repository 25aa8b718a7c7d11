"""A plan: a reservation for each waiting job."""

from __future__ import annotations

from math import inf
from typing import Protocol

from batsched_py.ledger.availability import AvailabilityProfile
from batsched_py.ledger.kinds import Live, expected
from batsched_py.ledger.queue import JobQueue
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job


class Planned(Protocol):
    """What a plan is made for."""

    @property
    def now(self) -> float:
        """What time it is."""

    @property
    def hosts(self) -> HostSet:
        """Those that compute."""

    @property
    def queue(self) -> JobQueue:
        """The waiting jobs."""

    @property
    def running(self) -> Running:
        """The running jobs."""

    @property
    def available(self) -> HostSet:
        """The hosts that have not been taken away."""

    def profile(self) -> AvailabilityProfile:
        """How many hosts will be free, and when."""


class Plan(Live):
    """Reservations in an availability profile, in the order in which the jobs were submitted.

    A job gets the earliest reservation that those of all jobs before it leave when it is submitted. When jobs
    have ended, each waiting job in turn gives its reservation up for the earliest one that all others leave,
    so that it can only move forward.
    """

    __slots__ = ("_available", "_cluster", "_freed_until", "_last", "_profile", "_reserved", "_some_ended")

    def __init__(self, cluster: Planned) -> None:
        self._cluster = cluster
        self._profile = cluster.profile()
        self._available = cluster.available
        self._reserved: dict[Job, float] = {}
        self._last = 0
        """The arrival of the last job that got a reservation."""
        self._some_ended = False
        self._freed_until = 0.0

    def advance(self) -> None:
        """Time has passed, and jobs may have left the queue; their reservations are free again."""
        self._profile.advance(self._cluster.now)
        queue = self._cluster.queue
        if len(queue) != len(self._reserved) + len(queue._behind(self._last)):
            for job in [job for job in self._reserved if job not in queue]:
                self._give_up(job)

    def job_ended(self, ended: RunningJob) -> None:
        """A job has ended: what it leaves of its time is free."""
        check_running(ended)
        now, end = self._cluster.now, ended.expected_end
        self._profile._change(now, end, len(ended.hosts & self._available))
        self._freed_until = max(self._freed_until, end)
        self._some_ended = True

    def move_forward(self) -> None:
        """Let each job in turn have the earliest reservation that all others leave, if jobs have ended.

        Only where hosts have become free can it be earlier than before. What a job leaves behind when it
        moves may serve those after it at once, and those before it the next time.
        """
        if not self._some_ended:
            return
        freed_until, self._freed_until, self._some_ended = self._freed_until, 0.0, False
        most = self._profile._most_before(freed_until)
        for job, start in self._reserved.items():
            if job.size > most:
                continue
            earlier = self._profile._earlier(job.size, job.walltime, start, freed_until)
            if earlier < start:
                self._profile._change(start, start + job.walltime, job.size)
                self._reserve(job, earlier)
                self._freed_until = max(self._freed_until, start + job.walltime)
                freed_until = max(freed_until, self._freed_until)
                most = self._profile._most_before(freed_until)

    def reserve_new(self) -> None:
        """Give the jobs that have none a reservation."""
        for arrival, job in self._cluster.queue._behind(self._last):
            self._reserve(job, self._profile._earlier(job.size, job.walltime, inf, inf))
            self._last = arrival

    def due(self) -> list[Job]:
        """The jobs whose time has come."""
        now = self._cluster.now
        return [job for job, start in self._reserved.items() if start <= now]

    def job_started(self, running: RunningJob) -> None:
        """A job was started: it has its hosts in place of a reservation."""
        check_running(running)
        if running.job in self._reserved:
            self._give_up(running.job)
        self._profile._change(running.start, running.expected_end, -running.nb_hosts)

    def reservations(self) -> list[tuple[Job, float]]:
        """When each job is to start."""
        return list(self._reserved.items())

    def _reserve(self, job: Job, start: float) -> None:
        self._profile._change(start, start + job.walltime, -job.size)
        self._reserved[job] = start

    def _give_up(self, job: Job) -> None:
        start = self._reserved.pop(job)
        self._profile._change(start, start + job.walltime, job.size)


def check_running(running: object) -> None:
    """A running job is handed over."""
    if not isinstance(running, RunningJob):
        raise expected("a RunningJob", running)
