"""What will be free, and when: the availability profile, a reservation, and the plan of all reservations.

The classes with ``Host`` in their names are for one pool of hosts, where what is free is a number. Those for
nodes are in :mod:`batsched_py.ledger.node_profile`. A plan, and the search for a reservation, know neither.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, takewhile
from math import inf
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from batsched_py.ledger import kinds
from batsched_py.ledger.kinds import Live, expected, number
from batsched_py.ledger.queue import JobQueue
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job

Amount = TypeVar("Amount")
Time = TypeVar("Time", bound=float)


class Steps(Generic[Time, Amount]):
    """What is free as a step function of time, from now on."""

    __slots__ = ("_free", "_times")

    _free: list[Amount]
    """From each time on, until the next one."""
    _times: list[Time]

    def advance(self, now: Time) -> None:
        """Forget what was before ``now``."""
        self._forget(self._at(now))
        self._times[0] = now

    def _at(self, time: Time) -> int:
        """The step that some time belongs to."""
        return max(bisect_right(self._times, time) - 1, 0)

    def _forget(self, past: int) -> None:
        """The first steps, so many, are over."""
        del self._times[:past], self._free[:past]

    def _range(self, start: Time, end: Time) -> range:
        """The steps from one time to another, which begin and end just then; none if there is no time."""
        start = max(start, self._times[0])
        if not start < end:
            return range(0)
        first = self._step(start)
        return range(first, self._step(end) if end < inf else len(self._times))

    def _step(self, time: Time) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._split(step)
        return step

    def _split(self, step: int) -> None:
        """A new step begins with what was free before."""
        self._free.insert(step, self._free[step - 1])

    def _join(self, *steps: int) -> None:
        """Some steps, of which the last one comes first, may be none any more."""
        for step in steps:
            if 0 < step < len(self._times) and self._is_no_step(step):
                self._remove(step)

    def _is_no_step(self, step: int) -> bool:
        """Whether nothing changes when a step begins."""
        return self._free[step] == self._free[step - 1]

    def _remove(self, step: int) -> None:
        del self._times[step], self._free[step]


class AvailabilityProfile(Steps[float, int]):
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

    __slots__ = ()

    def __init__(self, now: float, free: int) -> None:
        self._times = [number(now)]
        self._free = [kinds.count(free)]

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""
        super().advance(number(now))

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
        return self._free[self._at(number(time))]

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

    def give(self, start: float, end: float, count: int) -> None:
        """Let ``count`` hosts more be free from ``start`` until ``end``."""
        self._change(number(start), number(end), kinds.count(count))

    def _change(self, start: float, end: float, more: int) -> None:
        """Let so many hosts more be free from ``start`` until ``end``."""
        steps, free = self._range(start, end), self._free
        for step in steps:
            free[step] += more
        self._join(steps.stop, steps.start)

    def _least(self, start: float, end: float) -> int:
        """The fewest hosts that are free at any moment between two times."""
        first = max(bisect_right(self._times, start) - 1, 0)
        return min(self._free[first : max(bisect_left(self._times, end), first + 1)])

    def _most_before(self, time: float) -> int:
        """The most hosts that are free at any moment before a time."""
        return max(self._free[: max(bisect_left(self._times, time), 1)])


# --- reservations ----------------------------------------------------------------------------------------


class Ahead(Protocol):
    """What a job has to wait for, as running jobs end: hosts, nodes, power, licences."""

    def job_ends(self, running: RunningJob) -> None:
        """A running job gives back what it has of it."""

    def suffices(self, time: float) -> bool:
        """Whether there is enough of it for a job that starts then."""

    def extra(self, time: float) -> int:
        """For how many hosts more it suffices then."""

    def changes(self) -> Sequence[float]:
        """When there will be more or less of it, although no job ends."""


class MachineAhead(Ahead, Protocol):
    """What a job has to wait for of the machine itself."""

    @property
    def at_shadow_time(self) -> NodesAtShadowTime | None:
        """What a reservation has to keep of it, where that is more than a number of hosts."""


class NodesAtShadowTime(Protocol):
    """What will be free on each node at the shadow time."""

    def take(self, running: RunningJob) -> None:
        """A job was started that will still run then."""


class HostsAhead:
    """The hosts of one pool that a job has to wait for."""

    __slots__ = ("_extra", "_unavailable")

    at_shadow_time = None

    def __init__(self, nb_free: int, size: int, unavailable: HostSet) -> None:
        self._extra = nb_free - size
        self._unavailable = unavailable

    def job_ends(self, running: RunningJob) -> None:
        """Its hosts are free, but for those that were taken away."""
        self._extra += len(running.hosts - self._unavailable)

    def suffices(self, time: float) -> bool:
        """Whether the job has enough."""
        return self._extra >= 0

    def extra(self, time: float) -> int:
        """How many are left over."""
        return self._extra

    def changes(self) -> Sequence[float]:
        """Only ends of jobs change anything."""
        return ()


class Reservation(Struct, frozen=True, gc=False, eq=False):
    """The promise to a job that it starts at the *shadow time* at the latest.

    At that time it leaves so many hosts free, the *extra* ones. A job that starts now does not delay it if it
    ends by the shadow time or needs no other hosts than extra ones; on a machine of nodes, if the place that
    it takes leaves another one for the job with the reservation. ``shadow_time, extra = reservation`` gives
    both numbers.
    """

    job: Job
    now: float
    shadow_time: float
    """Infinite if the job can never start."""
    extra: int
    _nodes: Any = None
    """What will be free on each node then, on a machine of nodes."""

    def __iter__(self) -> Iterator[float]:
        return iter((self.shadow_time, self.extra))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__[:4])
        return f"Reservation({shown})"

    def __reduce__(self) -> Any:
        return Reservation, (self.job, self.now, self.shadow_time, self.extra)

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
        check_running(running)
        if running.expected_end > self.shadow_time:
            force_setattr(self, "extra", self.extra - running.nb_hosts)
            if self._nodes is not None:
                self._nodes.take(running)


def reserve(
    job: Job,
    now: float,
    running: Iterable[RunningJob],
    machine: MachineAhead,
    limits: Sequence[Ahead] = (),
    all_ends: bool = False,
) -> Reservation:
    """When a job can start at the latest, if the running ones end as expected.

    They are gone through in the order of their expected ends, until the machine has what the job asks for and
    all limits let it start; with ``all_ends``, on to the last one that ends by then.
    """
    waits_for = (machine, *limits)
    times = [time for each in waits_for for time in each.changes()]
    time, comings = now, what_comes(now, running, times)
    for coming in chain((None,), comings):
        if isinstance(coming, RunningJob):
            for each in waits_for:
                each.job_ends(coming)
            time = max(coming.expected_end, now)
        elif coming is not None:
            time = coming
        if all(each.suffices(time) for each in waits_for):
            if all_ends:
                _end_all(comings, time, waits_for)
            extra = min(each.extra(time) for each in waits_for)
            return Reservation(job, now, time, extra, machine.at_shadow_time)
    return Reservation(job, now, inf, 0, machine.at_shadow_time)


def _end_all(comings: Iterable[RunningJob | float], time: float, waits_for: Sequence[Ahead]) -> None:
    """Let jobs that end by a time give back what they have, and see what there is of it then."""
    for coming in takewhile(lambda coming: _time_of(coming) <= time, comings):
        if isinstance(coming, RunningJob):
            for each in waits_for:
                each.job_ends(coming)
    for each in waits_for:
        each.suffices(time)


def what_comes(
    now: float, running: Iterable[RunningJob], times: Iterable[float]
) -> Iterator[RunningJob | float]:
    """The jobs that will end and the times at which other things change, in order."""
    later: Sequence[RunningJob | float] = sorted(time for time in times if time > now)
    return merge(running, later, key=_time_of) if later else iter(running)


def _time_of(coming: RunningJob | float) -> float:
    return coming.expected_end if isinstance(coming, RunningJob) else coming


# --- the plan --------------------------------------------------------------------------------------------


class Slot(Struct, frozen=True, gc=False, eq=False):
    """The place of one job in a profile: what it has from when to when."""

    start: float
    """Infinite if the job will never have a place, as long as hosts are unavailable."""
    end: float
    amount: Any
    """A number of hosts, or what it takes of which nodes."""


class JobProfile(Protocol):
    """A profile as a plan needs it: of slots for jobs, on whatever machine."""

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""

    def most_before(self, time: float) -> int:
        """The most hosts that are free at any moment before a time; no larger job can move there."""

    def earliest(self, job: Job) -> Slot:
        """The earliest slot for a job."""

    def moved(self, job: Job, slot: Slot, before: float) -> Slot | None:
        """The earliest slot to which a job moves that has one already, if it starts ``before`` some time."""

    def take(self, slot: Slot) -> None:
        """What a slot has is not free."""

    def give(self, slot: Slot) -> None:
        """It is free again."""

    def start(self, running: RunningJob) -> None:
        """A job has started: it takes what it has."""

    def held_by(self, ended: RunningJob) -> Slot | None:
        """What a job had that has ended, and until when."""

    def choose(self, job: Job, slot: Slot | None) -> None:
        """If a job is started now, it goes to the place of its slot, or wherever there is one."""


class HostProfile:
    """The slots of jobs on one pool of hosts."""

    __slots__ = ("_available", "_steps")

    def __init__(self, steps: AvailabilityProfile, available: HostSet) -> None:
        self._steps = steps
        self._available = available

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""
        self._steps.advance(now)

    def most_before(self, time: float) -> int:
        """The most hosts that are free at any moment before a time."""
        return self._steps._most_before(time)

    def earliest(self, job: Job) -> Slot:
        """The earliest slot for a job."""
        start = self._steps._earlier(job.size, job.walltime, inf, inf)
        return Slot(start, start + job.walltime, job.size)

    def moved(self, job: Job, slot: Slot, before: float) -> Slot | None:
        """The slot to which a job moves, if it can; its own hosts are among those that it can have."""
        earlier = self._steps._earlier(job.size, job.walltime, slot.start, before)
        if not earlier < slot.start:
            return None
        self.give(slot)
        slot = Slot(earlier, earlier + job.walltime, job.size)
        self.take(slot)
        return slot

    def take(self, slot: Slot) -> None:
        """So many hosts are not free."""
        self._steps._change(slot.start, slot.end, -slot.amount)

    def give(self, slot: Slot) -> None:
        """So many hosts are free again."""
        self._steps._change(slot.start, slot.end, slot.amount)

    def start(self, running: RunningJob) -> None:
        """A job has started: it takes its hosts."""
        self._steps._change(running.start, running.expected_end, -running.nb_hosts)

    def held_by(self, ended: RunningJob) -> Slot | None:
        """The hosts that a job had and that are available, until it was expected to end."""
        return Slot(ended.start, ended.expected_end, len(ended.hosts & self._available))

    def choose(self, job: Job, slot: Slot | None) -> None:
        """Any hosts will do."""


class Narrowing(Protocol):
    """A limit, as far as a plan looks at it."""

    def narrow(self, profile: AvailabilityProfile) -> None:
        """Take from a profile of free hosts what may not be used."""


class Seen(Protocol):
    """A cluster, as far as a plan and what is free look at it."""

    @property
    def now(self) -> float:
        """What time it is."""

    @property
    def queue(self) -> JobQueue:
        """The waiting jobs."""

    @property
    def running(self) -> Running:
        """The running jobs."""

    @property
    def hosts(self) -> HostSet:
        """Those that compute."""

    @property
    def available(self) -> HostSet:
        """The hosts that have not been taken away."""

    @property
    def limits(self) -> Sequence[Narrowing]:
        """What narrows the machine beside what is free of it."""

    @property
    def to_wake(self) -> HostSet:
        """Hosts that are not free, but will be as soon as a job needs them."""

    def profile(self) -> AvailabilityProfile:
        """How many hosts will be free, and when."""

    def reservation(self, job: Job) -> Reservation:
        """When a job can start at the latest."""


class Plan(Live):
    """Reservations in an availability profile, in the order in which the jobs were submitted.

    A job gets the earliest reservation that those of all jobs before it leave when it is submitted. When jobs
    have ended, each waiting job in turn gives its reservation up for the earliest one that all others leave,
    so that it can only move forward.
    """

    __slots__ = ("_cluster", "_freed_until", "_last", "_profile", "_reserved", "_some_ended")

    def __init__(self, cluster: Seen, profile: JobProfile) -> None:
        self._cluster = cluster
        self._profile = profile
        self._reserved: dict[Job, Slot] = {}
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
        slot = self._profile.held_by(ended)
        if slot is not None:
            self._profile.give(Slot(self._cluster.now, slot.end, slot.amount))
            self._freed_until = max(self._freed_until, slot.end)
            self._some_ended = True

    def move_forward(self) -> None:
        """Let each job in turn have the earliest reservation that all others leave, if jobs have ended.

        Only where something has become free can it be earlier than before. What a job leaves behind when it
        moves may serve those after it at once, and those before it the next time.
        """
        if not self._some_ended:
            return
        freed_until, self._freed_until, self._some_ended = self._freed_until, 0.0, False
        profile, reserved = self._profile, self._reserved
        most = profile.most_before(freed_until)
        for job, slot in reserved.items():
            if job.size > most and slot.start < inf:
                continue
            if (moved := profile.moved(job, slot, freed_until)) is None:
                continue
            reserved[job] = moved
            self._freed_until = max(self._freed_until, slot.end)
            freed_until = max(freed_until, self._freed_until)
            most = profile.most_before(freed_until)

    def reserve_new(self) -> None:
        """Give the jobs that have none a reservation."""
        for arrival, job in self._cluster.queue._behind(self._last):
            self._reserved[job] = slot = self._profile.earliest(job)
            self._profile.take(slot)
            self._last = arrival

    def due(self) -> list[Job]:
        """The jobs whose time has come; each goes to the place that is reserved for it."""
        now, profile = self._cluster.now, self._profile
        jobs = [job for job, slot in self._reserved.items() if slot.start <= now]
        for job in jobs:
            profile.choose(job, self._reserved[job])
        return jobs

    def job_started(self, running: RunningJob) -> None:
        """A job was started: it has its hosts in place of a reservation."""
        check_running(running)
        if running.job in self._reserved:
            self._give_up(running.job)
        self._profile.start(running)

    def reservations(self) -> list[tuple[Job, float]]:
        """When each job is to start."""
        return [(job, slot.start) for job, slot in self._reserved.items()]

    def _give_up(self, job: Job) -> None:
        self._profile.choose(job, None)
        self._profile.give(self._reserved.pop(job))


def check_running(running: object) -> None:
    """A running job is handed over."""
    if not isinstance(running, RunningJob):
        raise expected("a RunningJob", running)
