"""What policies promise, checked on a schedule as the sequence of instants at which they could decide.

The promises are about machines of any kind, which tell what is free and make plans.
Whether two printed times are the same is decided here only: times that differ by less than the printing
error are one instant, and from then on instants are compared by their number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import repeat, takewhile
from math import inf
from operator import attrgetter
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.conditions import Absence
from batsched_py.analysis.schedule import INSTANT, SLACK, has_resizes
from batsched_py.analysis.validator.rows import Rows, blocks, name_of, one_by_one
from batsched_py.analysis.validator.rules import Violation
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet

#: What is free of a machine, and a place for a job on it.
F = TypeVar("F")
P = TypeVar("P")


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
    held: int
    """How many hosts it was given."""
    row: int
    rows: Rows
    """Where its hosts are found."""

    @property
    def hosts(self) -> HostSet:
        """The hosts that it was given."""
        return self.rows.hosts(self.row)

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


class Timeline:
    """The executed jobs of a schedule, and the instants of their submissions, starts and ends.

    Both are made as they are gone through. A column ``turn`` tells more of the order in which jobs of one
    instant join the queue: the lowest turn is first.
    Instants of a job never go backwards, even if a wrong schedule starts it before it is submitted.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows, executed = rows, rows.executed
        starts = rows["starting_time"][executed]
        submissions = np.minimum(rows["submission_time"][executed], starts)
        passing = rows["execution_time"][executed] <= INSTANT
        finishes = np.where(passing, starts, np.maximum(rows["finish_time"][executed], starts))
        times = np.concatenate([submissions, starts, finishes], dtype=np.float64)
        times.sort()
        self._times = times[np.diff(times, prepend=-inf) > SLACK]
        del times
        at = [
            (np.searchsorted(self._times, each, "right") - 1).astype(np.int32)
            for each in (submissions, starts, finishes)
        ]
        turns = rows["turn"][executed] if "turn" in rows else np.zeros(len(executed), np.int8)
        order = np.lexsort((rows.names[executed], turns, at[0]))
        self._places = executed[order]
        self._arrives, self._begins, self._leaves = (each[order] for each in at)

    def lives(self) -> Iterator[Life]:
        """The jobs in the order of submission; at one instant by turns, then by identifiers, as in Batsim."""
        rows, done = self._rows, 0
        for places in blocks(self._places):
            part, done = slice(done, done + len(places)), done + len(places)
            limits = rows["requested_time"][places].astype(np.float64)
            for fields in zip(
                map(name_of, rows.names[places].tolist()),
                *(each[part].tolist() for each in (self._arrives, self._begins, self._leaves)),
                rows["starting_time"][places].astype(np.float64).tolist(),
                rows["requested_number_of_resources"][places].tolist(),
                np.where(limits < 0, inf, limits).tolist(),
                rows["held"][places].tolist(),
                places.tolist(),
                repeat(rows, len(places)),
                strict=True,
            ):
                yield Life(*fields)

    def instants(self) -> Iterator[Instant]:
        """All instants, one after another; in each, jobs are in the order of submission."""
        lives, there = enumerate(self.lives()), dict[int, Life]()
        begins, leaves = _in_turn(self._begins), _in_turn(self._leaves, self._leaves > self._begins)
        arriving, begin, leave = next(lives, None), next(begins), next(leaves)
        for number, time in enumerate(one_by_one(self._times)):
            instant = Instant(time)
            while arriving is not None and arriving[1].arrives == number:
                there[arriving[0]] = arriving[1]
                instant.arriving.append(arriving[1])
                arriving = next(lives, None)
            while begin[0] == number:
                life = there[begin[1]]
                instant.beginning.append(life)
                if life.passing:
                    del there[begin[1]]
                begin = next(begins)
            while leave[0] == number:
                instant.leaving.append(there.pop(leave[1]))
                leave = next(leaves)
            yield instant


def _in_turn(
    instants: NDArray[np.int32], which: NDArray[np.bool_] | None = None
) -> Iterator[tuple[float, int]]:
    """Instants in order, with their places; at last one that never comes."""
    order = np.argsort(instants, kind="stable").astype(np.int32)
    if which is not None:
        order = order[which[order]]
    for places in blocks(order):
        yield from zip(instants[places].tolist(), places.tolist(), strict=True)
    yield inf, -1


class Room(Protocol):
    """What is free at a moment."""

    def copy(self) -> Self:
        """One of its own."""

    def change(self, life: Life, sign: int) -> None:
        """A job takes what it was given (-1), or gives it back (1)."""

    def holds(self, life: Life) -> bool:
        """Whether a job would find a place."""

    def told(self, life: Life) -> tuple[str, str]:
        """What a job waits for although it is free, and what others may not take of it, in words."""


class FreeHosts(Room):
    """A number of free hosts."""

    def __init__(self, hosts: int) -> None:
        self._free = hosts

    def copy(self) -> FreeHosts:
        return FreeHosts(self._free)

    def change(self, life: Life, sign: int) -> None:
        self._free += sign * life.held

    def holds(self, life: Life) -> bool:
        return life.size <= self._free

    def told(self, life: Life) -> tuple[str, str]:
        """How many a job waits for, and how many it leaves."""
        waits = f" for {life.size} hosts, but {self._free} are free"
        return waits, f"more than the {self._free - life.size} hosts that are extra then"


class Plan(ABC, Generic[F, P]):
    """Who will have which place when: what is free in each step of time. What is not planned is free."""

    def __init__(self, free: F) -> None:
        self._times = [-inf]
        self._free = [free]

    def same(self, time: float) -> float:
        """A time of a schedule, as the plan has it."""
        return time

    def forget(self, now: float) -> None:
        """Forget what was before ``now``."""
        past = bisect_right(self._times, now) - 1
        del self._times[:past], self._free[:past]
        self._times[0] = now

    def change(self, start: float, end: float, life: Life, place: P, sign: int) -> None:
        """A job has a place between two times (-1), or gives it back for this time (1)."""
        start = max(start, self._times[0])
        if start < end:
            first, last = self._step(start), self._step(end) if end < inf else len(self._times)
            self._take(slice(first, last), life, place, sign)
            for step in (last, first):
                if 0 < step < len(self._times) and self._free[step] == self._free[step - 1]:
                    del self._times[step], self._free[step]

    def _step(self, time: float) -> int:
        """The step that begins at a time, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._free.insert(step, copy(self._free[step - 1]))
        return step

    @abstractmethod
    def _take(self, steps: slice, life: Life, place: P, sign: int) -> None:
        """A job has a place in some steps (-1), or gives it back (1)."""

    @abstractmethod
    def earliest(self, now: float, life: Life) -> tuple[float, P | None]:
        """The earliest time from which there is a place for a job for its walltime; infinite if never."""

    @abstractmethod
    def place(self, life: Life) -> P:
        """Where a job was, and what it had there."""


class HostPlan(Plan[int, int]):
    """A plan of the number of free hosts; a place is a number, too.

    It may be negative for a moment, because its times come from a file that rounds them.
    """

    def place(self, life: Life) -> int:
        return life.held

    def _take(self, steps: slice, life: Life, place: int, sign: int) -> None:
        self._free[steps] = [free + sign * place for free in self._free[steps]]

    def earliest(self, now: float, life: Life) -> tuple[float, int]:
        """A step that is shorter than the printing error is ignored."""
        times, free = self._times, self._free
        start = now
        for step in range(bisect_right(times, now), len(times) + 1):
            step_end = times[step] if step < len(times) else inf
            if free[step - 1] < life.size and step_end - max(start, times[step - 1]) > SLACK:
                start = step_end
            elif step_end >= start + life.walltime - SLACK:
                break
        return start, life.size


def fcfs(timeline: Timeline) -> Iterator[Violation]:
    """First come, first served: no job starts before one that was submitted earlier."""
    last_before: Life | None = None
    last: Life | None = None
    arrival = -1
    for life in timeline.lives():
        if life.arrives > arrival:
            arrival, last_before = life.arrives, last
        if last_before is not None and life.begins < last_before.begins:
            text = f"job {life.id} starts before {last_before.id}, which was submitted earlier"
            yield Violation("fcfs-order", (life.id, last_before.id), life.start, text)
        if last is None or life.begins > last.begins:
            last = life


def easy(timeline: Timeline, empty: Room) -> Iterator[Violation]:
    """EASY backfilling on a machine, of which all is free at first: no job delays the head of the queue.

    * The head starts as soon as it fits.
    * It starts no later than at the shadow time that it had when it became the head: the earliest time at
      which, by the walltimes of the running jobs, there is a place for it.
    * A job that overtakes the head ends by the head's shadow time, by its walltime, or leaves a place for the
      head then.

    The order of jobs that were submitted at the same instant is not in the file. As long as the head may be
    one of several jobs, a violation counts only if it is one for each of them. At an instant at which a job
    of no length runs, the scheduler decides more than once, and the file does not show what it knew;
    overtaking is not checked there.
    """
    idle: Life | None = None
    promised: Life | None = None
    for waiting in _waiting_instants(timeline, empty):
        now, head, room = waiting.instant.time, waiting.heads[0], waiting.room
        if head is not idle and all(room.holds(life) for life in waiting.heads):
            idle = head
            text = f"job {head.id} at the head of the queue waits{room.told(head)[0]}"
            yield Violation("easy-idle", (head.id,), now, text)

        overtaking = [life for life in waiting.instant.beginning if life.arrives > head.arrives]
        if any(life.passing for life in waiting.instant.beginning):
            overtaking = []
        first_sight = len(waiting.heads) == 1 and head is not promised
        if not overtaking and not first_sight:
            continue
        reservations = [_reservation(life, waiting, overtaking) for life in waiting.heads]
        shadow, then = reservations[0]
        beyond = [
            _beyond(life, overtaking, now, *reservation)
            for life, reservation in zip(waiting.heads, reservations, strict=True)
        ]
        if all(beyond):
            jobs = tuple(life.id for life in beyond[0])
            text = (
                f"job {', '.join(jobs)} overtakes {head.id}, but may run beyond its shadow time "
                f"{shadow:.6f} on {then.told(head)[1]}"
            )
            yield Violation("easy-backfill", (*jobs, head.id), now, text)
        if first_sight:
            promised = head
            if head.start > shadow + SLACK:
                text = f"job {head.id} starts at {head.start:.6f}, but its shadow time was {shadow:.6f}"
                yield Violation("easy-reservation", (head.id,), now, text)


@dataclass(slots=True)
class _Waiting:
    """An instant after which jobs are left in the queue."""

    instant: Instant
    heads: list[Life]
    """Those of them that were submitted first."""
    running: list[Life]
    """By their expected ends."""
    room: Room
    """What is free."""


def _waiting_instants(timeline: Timeline, room: Room) -> Iterator[_Waiting]:
    """The instants after which jobs wait, one after another."""
    queue, expected_end = deque[Life](), attrgetter("expected_end")
    running: list[Life] = []
    for number, instant in enumerate(timeline.instants()):
        for life in instant.leaving:
            del running[running.index(life, bisect_left(running, life.expected_end, key=expected_end))]
            room.change(life, 1)
        for life in instant.beginning:
            if not life.passing:
                insort(running, life, key=expected_end)
                room.change(life, -1)
        queue.extend(instant.arriving)
        while queue and queue[0].begins <= number:
            queue.popleft()
        first = list(takewhile(lambda life: life.arrives == queue[0].arrives, queue))
        heads = [life for life in first if life.begins > number]
        if heads:
            yield _Waiting(instant, heads, running, room)


def _reservation(head: Life, waiting: _Waiting, overtaking: Sequence[Life]) -> tuple[float, Room]:
    """The shadow time of a job without those that overtake it, and what is free then."""
    room = waiting.room.copy()
    for life in overtaking:
        room.change(life, 1)
    shadow = waiting.instant.time if room.holds(head) else inf
    for life in waiting.running:
        if life.expected_end > shadow + SLACK:
            break
        if life not in overtaking:
            room.change(life, 1)
            if shadow == inf and room.holds(head):
                shadow = life.expected_end
    return shadow, room


def _beyond(head: Life, overtaking: Sequence[Life], now: float, shadow: float, room: Room) -> list[Life]:
    """The jobs that may run beyond the shadow time, if they leave no place for the head then."""
    beyond = [life for life in overtaking if now + life.walltime > shadow + SLACK]
    left = room.copy()
    for life in beyond:
        left.change(life, -1)
    return [] if left.holds(head) else beyond


def conservative(timeline: Timeline, plan: Plan[F, P]) -> Iterator[Violation]:
    """Conservative backfilling: every job starts no later than at the reservation it gets on arrival.

    A reservation is the earliest time from which there is a place for the job beside the running jobs and the
    reservations of all jobs that wait already, for as long as their walltimes last, and that place. When jobs
    have ended, each waiting job in the order of submission moves to an earlier time, if the others leave one,
    and keeps its place otherwise. The schedule does not show places that jobs gave up, so the plan is made
    again, on an empty machine. Jobs that were submitted at the same instant are assumed to be in the order in
    which Batsim submits them, that of their identifiers as text.
    """
    same, reserved = plan.same, dict[Life, tuple[float, P | None]]()

    def change(life: Life, start: float, end: float, place: P | None, sign: int) -> None:
        if place is not None:
            plan.change(same(start), same(end), life, place, sign)

    def reserve(life: Life, now: float, before: tuple[float, P | None] = (inf, None)) -> None:
        found = plan.earliest(now, life)
        reserved[life] = start, place = found if found[0] < before[0] else before
        change(life, start, start + life.walltime, place, -1)

    def release(life: Life) -> tuple[float, P | None]:
        start, place = reserved.pop(life)
        change(life, start, start + life.walltime, place, 1)
        return start, place

    for instant in timeline.instants():
        now = same(instant.time)
        plan.forget(now)
        for life in instant.leaving:
            change(life, now, life.expected_end, plan.place(life), 1)
        ended, arriving, beginning = bool(instant.leaving), instant.arriving, instant.beginning
        while ended or arriving or beginning:
            if ended:
                for life in list(reserved):
                    reserve(life, now, release(life))
            for life in arriving:
                reserve(life, now)
                if same(life.start) > reserved[life][0] + SLACK:
                    text = (
                        f"job {life.id} starts at {life.start:.6f}, "
                        f"but its reservation was for {reserved[life][0]:.6f}"
                    )
                    yield Violation("conservative-reservation", (life.id,), instant.time, text)
            due = [life for life in beginning if reserved[life][0] <= now + SLACK] or beginning
            for life in due:
                release(life)
                if not life.passing:
                    change(life, now, life.expected_end, plan.place(life), -1)
            ended = any(life.passing for life in due)
            arriving, beginning = [], [life for life in beginning if life not in due]


def check_hosts(policy: str, schedule: pd.DataFrame, absences: Collection[Absence]) -> None:
    """Promises are about jobs that keep their hosts, and those of backfilling about hosts that are there."""
    about = f"what {policy} promises is about"
    if has_resizes(schedule):
        raise InputError(f"{about} jobs that keep their hosts, and some here grow or shrink")
    if policy != "fcfs" and absences:
        raise InputError(f"{about} hosts that are always there, and some here were away or closed")
