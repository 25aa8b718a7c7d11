"""How many hosts will be free, and when: the profile, a reservation, and the plan of all reservations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from math import inf
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from batsched_py.ledger import kinds
from batsched_py.ledger.kinds import Live, expected, number
from batsched_py.ledger.queue import JobQueue
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job


class AvailabilityProfile:
    """The number of free hosts as a step function of time, from now on.

    >>> profile = AvailabilityProfile(now=0, free=4)
    >>> profile.take(10, 20, 3)
    >>> profile.earliest(size=2, duration=10)
    0.0
    >>> profile.earliest(size=2, duration=11)
    20.0
    >>> profile
    AvailabilityProfile(0.0: 4, 10.0: 1, 20.0: 4)
    """

    __slots__ = ("_free", "_times")

    def __init__(self, now: float, free: int) -> None:
        self._times = [number(now)]
        self._free = [kinds.count(free)]

    @classmethod
    def _of_steps(cls, times: list[float], free: list[int]) -> AvailabilityProfile:
        """A profile that has these steps."""
        profile = cls(0.0, 0)
        profile._times, profile._free = times, free
        return profile

    def __reduce__(self) -> tuple[Any, ...]:
        return AvailabilityProfile._of_steps, (list(self._times), list(self._free))

    def __repr__(self) -> str:
        steps = zip(self._times, self._free, strict=True)
        return f"AvailabilityProfile({', '.join(f'{time}: {free}' for time, free in steps)})"

    def free_at(self, time: float) -> int:
        """How many hosts are free at a time."""
        return self._free[max(bisect_right(self._times, number(time)) - 1, 0)]

    def earliest(self, size: int, duration: float) -> float:
        """The earliest time from which so many hosts are free for so long; infinite if there is none."""
        return self._earlier(kinds.count(size), number(duration), inf, inf)

    def earlier(self, size: int, duration: float, reserved: float, before: float) -> float:
        """The earliest time to which a reservation can move, if there is one ``before`` some time.

        Otherwise it stays where it is. Its own hosts are among those that it can have when it moves.
        """
        return self._earlier(kinds.count(size), number(duration), number(reserved), number(before))

    def _earlier(self, size: int, duration: float, reserved: float, before: float) -> float:
        times, free = self._times, self._free
        start, last = times[0], len(times) - 1
        for step, nb_free in enumerate(free):
            end = times[step + 1] if step < last else inf
            if nb_free < size:
                start = end
                if start >= before or start >= reserved:
                    break
            elif end >= start + duration or end >= reserved:
                return start
        return reserved

    def take(self, start: float, end: float, count: int) -> None:
        """Let ``count`` hosts fewer be free from ``start`` until ``end``."""
        self._change(number(start), number(end), -kinds.count(count))

    def _change(self, start: float, end: float, more: int) -> None:
        """Let so many hosts more be free from ``start`` until ``end``."""
        start = max(start, self._times[0])
        if not start < end:
            return
        first = self._step(start)
        last = self._step(end) if end < inf else len(self._times)
        free = self._free
        for step in range(first, last):
            free[step] += more
        for step in (last, first):
            if 0 < step < len(free) and free[step] == free[step - 1]:
                del self._times[step], free[step]

    def give(self, start: float, end: float, count: int) -> None:
        """Let ``count`` hosts more be free from ``start`` until ``end``."""
        self._change(number(start), number(end), kinds.count(count))

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""
        now = number(now)
        past = max(bisect_right(self._times, now) - 1, 0)
        del self._times[:past], self._free[:past]
        self._times[0] = now

    def _most_before(self, time: float) -> int:
        """The most hosts that are free at any moment before a time."""
        return max(self._free[: max(bisect_left(self._times, time), 1)])

    def _step(self, time: float) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._free.insert(step, self._free[step - 1])
        return step


class Limit(Protocol):
    """What a job has to wait for beside hosts, such as power; running jobs give it back when they end."""

    def suffices(self, time: float) -> bool:
        """Whether there is enough of it for a job that starts then."""

    def job_ends(self, running: RunningJob) -> None:
        """A running job gives back what it has of it."""

    def extra(self, time: float) -> int:
        """For how many hosts more it suffices then."""

    def changes(self) -> Sequence[float]:
        """When there will be more or less of it, although no job ends."""


def what_comes(
    now: float, running: Iterable[RunningJob], times: Iterable[float]
) -> Iterator[RunningJob | float]:
    """The jobs that will end and the times at which other things change, in order."""
    later: Sequence[RunningJob | float] = sorted(time for time in times if time > now)
    return merge(running, later, key=_time_of) if later else iter(running)


def _time_of(coming: RunningJob | float) -> float:
    return coming.expected_end if isinstance(coming, RunningJob) else coming


class Reservation(Struct, frozen=True, gc=False, eq=False):
    """The promise to a job that it starts at the *shadow time* at the latest.

    At that time it leaves so many hosts free, the *extra* ones. A job that starts now does not delay it if it
    ends by the shadow time or needs no other hosts than extra ones. ``shadow_time, extra = reservation``
    gives both numbers.
    """

    job: Job
    now: float
    shadow_time: float
    """Infinite if the job can never start."""
    extra: int

    def __iter__(self) -> Iterator[float]:
        return iter((self.shadow_time, self.extra))

    def allows(self, size: int, estimate: float) -> bool:
        """Whether a job of this size that starts now and runs for so long would not delay it."""
        return self._allows(kinds.count(size), number(estimate))

    def _allows(self, size: int, estimate: float) -> bool:
        return self.now + estimate <= self.shadow_time or size <= self.extra

    def _allows_each(self, sizes: Any, estimates: Any) -> Any:
        """The same for whole columns of jobs."""
        return (self.now + estimates <= self.shadow_time) | (sizes <= self.extra)

    def admit(self, running: RunningJob) -> None:
        """A job was started beside it: one that does not end by the shadow time has taken extra hosts."""
        if not isinstance(running, RunningJob):
            raise expected("a RunningJob", running)
        if running.expected_end > self.shadow_time:
            force_setattr(self, "extra", self.extra - running.nb_hosts)


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
