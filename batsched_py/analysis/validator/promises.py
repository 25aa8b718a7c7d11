"""A schedule as the sequence of instants at which a scheduler could decide.

Whether two printed times are the same is decided here only: times that differ by less than the printing
error are one instant, and from then on instants are compared by their number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import inf
from operator import attrgetter

import numpy as np
import pandas as pd

from batsched_py.analysis.absences import Absence
from batsched_py.analysis.schedule import INSTANT, SLACK, started
from batsched_py.analysis.validator.rules import Violation
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet


@dataclass(slots=True, eq=False)
class Life:
    """A job from its submission to its end; the instants are numbers of :attr:`Timeline.instants`."""

    id: str
    arrives: int
    begins: int
    leaves: int
    """Its beginning, for a job of no length."""
    start: float
    size: int
    """How many hosts it asked for."""
    walltime: float
    hosts: HostSet
    """Those that it was given."""
    turn: float = 0.0
    """Of jobs that arrive at one instant, the lowest turn is first in the queue."""

    @property
    def held(self) -> int:
        """How many hosts it was given."""
        return len(self.hosts)

    @property
    def expected_end(self) -> float:
        """When it ends at the latest, as a scheduler knows when the job has begun."""
        return self.start + self.walltime

    @property
    def passing(self) -> bool:
        """Whether it has no length: its hosts are free again at the instant at which it begins."""
        return self.leaves == self.begins


@dataclass(slots=True)
class Instant:
    """All that happens at one time."""

    time: float
    arriving: list[Life] = field(default_factory=list)
    beginning: list[Life] = field(default_factory=list)
    leaving: list[Life] = field(default_factory=list)
    """Without those of no length."""


@dataclass(slots=True)
class Timeline:
    """The executed jobs of a schedule, and the instants of their submissions, starts and ends."""

    lives: list[Life]
    """In the order of submission; at one instant by turns, and then by identifiers, as Batsim submits."""
    instants: list[Instant]


def timeline(schedule: pd.DataFrame) -> Timeline:
    """The timeline of a schedule with the columns ``id`` and ``hosts``, without rejected jobs.

    A column ``turn`` tells more of the order in which jobs of one instant join the queue.
    Instants of a job never go backwards, even if a wrong schedule starts it before it is submitted.
    """
    executed = started(schedule)
    starts = executed["starting_time"].to_numpy()
    submissions = np.minimum(executed["submission_time"].to_numpy(), starts)
    passing = executed["execution_time"].to_numpy() <= INSTANT
    finishes = np.where(passing, starts, np.maximum(executed["finish_time"].to_numpy(), starts))
    times = np.sort(np.concatenate([submissions, starts, finishes]))
    firsts = times[np.diff(times, prepend=-inf) > SLACK]
    limits = executed["requested_time"].to_numpy()
    lives = [
        Life(*fields)
        for fields in zip(
            executed["id"],
            *(_numbers(firsts, column) for column in (submissions, starts, finishes)),
            starts.tolist(),
            executed["requested_number_of_resources"].to_list(),
            np.where(limits < 0, inf, limits).tolist(),
            executed["hosts"],
            executed["turn"] if "turn" in executed else repeat(0.0, len(executed)),
            strict=True,
        )
    ]
    lives.sort(key=lambda life: (life.arrives, life.turn, life.id))
    instants = [Instant(time) for time in firsts.tolist()]
    for life in lives:
        instants[life.arrives].arriving.append(life)
        instants[life.begins].beginning.append(life)
        if not life.passing:
            instants[life.leaves].leaving.append(life)
    return Timeline(lives, instants)


def _numbers(firsts: np.ndarray, times: np.ndarray) -> list[int]:
    """For each time the instant it belongs to, given the first time of each instant."""
    return (np.searchsorted(firsts, times, side="right") - 1).tolist()


class Forecast:
    """A step function of time: the number of free hosts.

    It may be negative for a moment, because its times come from a file that rounds them.
    """

    def __init__(self, hosts: int) -> None:
        self._times = [-inf]
        self._free = [hosts]

    def forget(self, now: float) -> None:
        """Drop everything before ``now``."""
        past = bisect_right(self._times, now) - 1
        del self._times[:past], self._free[:past]

    def take(self, start: float, end: float, count: int) -> None:
        """Make ``count`` fewer hosts free from ``start`` until ``end``."""
        if not self._times[0] < end or not start < end:
            return
        first = self._step(max(start, self._times[0]))
        last = self._step(end) if end < inf else len(self._times)
        for step in range(first, last):
            self._free[step] -= count
        for step in (last, first):
            if 0 < step < len(self._times) and self._free[step] == self._free[step - 1]:
                del self._times[step], self._free[step]

    def _step(self, time: float) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._free.insert(step, self._free[step - 1])
        return step

    def earliest(self, now: float, count: int, duration: float) -> float:
        """The earliest time from which ``count`` hosts are free for so long, infinite if there is none.

        A step that is shorter than the printing error is ignored.
        """
        times, free = self._times, self._free
        start = now
        for step in range(bisect_right(times, now), len(times) + 1):
            step_end = times[step] if step < len(times) else inf
            if free[step - 1] < count and step_end - max(start, times[step - 1]) > SLACK:
                start = step_end
            elif step_end >= start + duration - SLACK:
                break
        return start


def fcfs(timeline: Timeline) -> Iterator[Violation]:
    """First come, first served: no job starts before one that was submitted earlier."""
    last_before: Life | None = None
    last: Life | None = None
    arrival = -1
    for life in timeline.lives:
        if life.arrives > arrival:
            arrival, last_before = life.arrives, last
        if last_before is not None and life.begins < last_before.begins:
            text = f"job {life.id} starts before {last_before.id}, which was submitted earlier"
            yield Violation("fcfs-order", (life.id, last_before.id), life.start, text)
        if last is None or life.begins > last.begins:
            last = life


def easy(timeline: Timeline, hosts: int) -> Iterator[Violation]:
    """EASY backfilling: no job delays the head of the queue.

    * The head starts as soon as it fits.
    * It starts no later than at the shadow time that it had when it became the head: the earliest time at
      which, by the walltimes of the running jobs, enough hosts are free.
    * A job that overtakes the head ends by the head's shadow time, by its walltime, or takes hosts that the
      head will not need then.

    The order of jobs that were submitted at the same instant is not in the file. As long as the head may be
    one of several jobs, a violation counts only if it is one for each of them. At an instant at which a job
    of no length runs, the scheduler decides more than once, and the file does not show what it knew;
    overtaking is not checked there.
    """
    idle, promised = set[Life](), set[Life]()
    for waiting in waiting_instants(timeline):
        now, head = waiting.instant.time, waiting.heads[0]
        free = hosts - sum(life.held for life in waiting.running)
        if max(life.size for life in waiting.heads) <= free and head not in idle:
            idle.add(head)
            text = f"job {head.id} at the head of the queue waits for {head.size} hosts, but {free} are free"
            yield Violation("easy-idle", (head.id,), now, text)

        overtaking = [life for life in waiting.instant.beginning if life.arrives > head.arrives]
        if any(life.passing for life in waiting.instant.beginning):
            overtaking = []
        first_sight = len(waiting.heads) == 1 and head not in promised
        if not overtaking and not first_sight:
            continue
        others = [life for life in waiting.running if life not in overtaking]
        reservations = [_reservation(life.size, others, hosts, now) for life in waiting.heads]
        shadow, extra = reservations[0]
        if all(_beyond(overtaking, now, *reservation) for reservation in reservations):
            beyond = tuple(life.id for life in _beyond(overtaking, now, shadow, extra))
            text = (
                f"job {', '.join(beyond)} overtakes {head.id}, but may run beyond its shadow time "
                f"{shadow:.6f} on more than the {extra} hosts that are extra then"
            )
            yield Violation("easy-backfill", (*beyond, head.id), now, text)
        if first_sight:
            promised.add(head)
            if head.start > shadow + SLACK:
                text = f"job {head.id} starts at {head.start:.6f}, but its shadow time was {shadow:.6f}"
                yield Violation("easy-reservation", (head.id,), now, text)


@dataclass(slots=True)
class Waiting:
    """An instant after which jobs are left in the queue."""

    instant: Instant
    heads: list[Life]
    """Those of them that were submitted first."""
    running: list[Life]
    """By their expected ends."""


def waiting_instants(timeline: Timeline) -> Iterator[Waiting]:
    """The instants after which jobs wait, one after another."""
    queue, first, expected_end = timeline.lives, 0, attrgetter("expected_end")
    running: list[Life] = []
    for number, instant in enumerate(timeline.instants):
        for life in instant.leaving:
            del running[running.index(life, bisect_left(running, life.expected_end, key=expected_end))]
        for life in instant.beginning:
            if not life.passing:
                insort(running, life, key=expected_end)
        while first < len(queue) and queue[first].begins <= number:
            first += 1
        heads, last = [], first
        while last < len(queue) and queue[last].arrives == queue[first].arrives <= number:
            if queue[last].begins > number:
                heads.append(queue[last])
            last += 1
        if heads:
            yield Waiting(instant, heads, running)


def _reservation(size: int, running: Sequence[Life], hosts: int, now: float) -> tuple[float, int]:
    """The shadow time of a job of this size, and how many hosts are free then beyond its need."""
    free = hosts - sum(life.held for life in running)
    shadow = now if free >= size else inf
    for life in running:
        if life.expected_end > shadow + SLACK:
            break
        free += life.held
        if free >= size:
            shadow = min(shadow, life.expected_end)
    return shadow, free - size


def _beyond(overtaking: Sequence[Life], now: float, shadow: float, extra: int) -> list[Life]:
    """The jobs that may run beyond the shadow time, if they take more hosts than the extra ones."""
    beyond = [life for life in overtaking if now + life.walltime > shadow + SLACK]
    return beyond if sum(life.held for life in beyond) > extra else []


def conservative(timeline: Timeline, hosts: int) -> Iterator[Violation]:
    """Conservative backfilling: every job starts no later than at the reservation it gets on arrival.

    A reservation is the earliest time from which the job fits beside the running jobs and the reservations
    of all jobs that wait already, for as long as their walltimes last. When jobs have ended, each waiting
    job in the order of submission gives up its reservation for the earliest one that the others leave.
    Jobs that were submitted at the same instant are assumed to be in the order in which Batsim submits them,
    that of their identifiers as text.
    """
    forecast = Forecast(hosts)
    reserved: dict[Life, float] = {}

    def reserve(life: Life, now: float) -> None:
        start = forecast.earliest(now, life.size, life.walltime)
        forecast.take(start, start + life.walltime, life.size)
        reserved[life] = start

    def release(life: Life) -> None:
        forecast.take(reserved[life], reserved[life] + life.walltime, -life.size)

    for instant in timeline.instants:
        now = instant.time
        forecast.forget(now)
        for life in instant.leaving:
            forecast.take(now, life.expected_end, -life.held)
        ended, arriving, beginning = bool(instant.leaving), instant.arriving, instant.beginning
        while ended or arriving or beginning:
            if ended:
                for life in reserved:
                    release(life)
                    reserve(life, now)
            for life in arriving:
                reserve(life, now)
                if life.start > reserved[life] + SLACK:
                    text = (
                        f"job {life.id} starts at {life.start:.6f}, "
                        f"but its reservation was for {reserved[life]:.6f}"
                    )
                    yield Violation("conservative-reservation", (life.id,), now, text)
            due = [life for life in beginning if reserved[life] <= now + SLACK] or beginning
            for life in due:
                release(life)
                del reserved[life]
                if not life.passing:
                    forecast.take(now, life.expected_end, life.held)
            ended = any(life.passing for life in due)
            arriving, beginning = [], [life for life in beginning if life not in due]


def check_hosts(policy: str, absences: Collection[Absence]) -> None:
    """What backfilling promises is about hosts that are always there."""
    if policy != "fcfs" and absences:
        raise InputError(
            f"what {policy} promises is about hosts that are always there, and some here were away or closed"
        )
