"""The plan of a backfill cycle: which nodes no waiting job needs, and when.

Nodes, selection and plans take nearly all the time. The classes in Python are the specification. Those of the
native library do the same; they are used where it was built.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from batsched_py.ledger.profile import Steps
from batsched_py.native import library
from batsched_py.slurm.policy.future import Future
from batsched_py.slurm.policy.job import Asked, WaitingRecord
from batsched_py.slurm.policy.nodes import Machine, Share, Usage
from batsched_py.slurm.policy.selection import Selector

#: What reservations leave to a job from a time on: nodes, when it may begin, and when to try again, or 0.
Allowed = Callable[[int], tuple[int, int, int] | None]


class Found(NamedTuple):
    """When and where a job could start."""

    start: int | None
    """Nothing if it cannot start."""
    share: Share | None
    """What it would get if it starts within the window."""
    cpus: int
    """How many processors were found for it last, 0 if none were."""
    is_put_off: bool
    """Whether it was tried later than it could start if nobody else waited."""
    make_way_on: int
    """The nodes on which jobs have to make way so that it can start now."""
    was_tried: bool
    """Whether enough nodes were left at some time."""


class Looks(NamedTuple):
    """What became of jobs that were looked at in turn."""

    last: WaitingRecord | None
    """The last of them, if any."""
    found: Found | None
    """When and where that one could start."""
    kept: int
    """The nodes that are kept for jobs that will start later."""
    is_full: bool
    """Whether the plan had no room for the last one."""


@dataclass(eq=False)
class Plan(Steps[int, int]):
    """Spans of time from now to the end of the window, each with the nodes that are not kept for a job.

    All times are on a grid, to which they are rounded down. A plan remembers the jobs that it has looked at,
    so that it can go back to any of them.
    """

    _machine: Machine
    _now: int
    _window: int
    _resolution: int
    _nodes: int
    _most_jobs: int
    """So many jobs are tried at most, and there is room for so many spans."""
    _origin: int = 0
    """How far time 0 is from the beginning of a step of the grid."""

    def __post_init__(self) -> None:
        self._tried: list[bool] = []
        """Which of the jobs were tried: for any other, too few nodes were left. Only these count."""
        self._nb_tried = 0
        self._kept: list[tuple[int, Share, int, int]] = []
        """What is kept: after how many jobs that was decided, for what share, from when, and until when."""
        self._lengths: set[int] = set()
        """How long the jobs may run."""
        self._too_late: float = inf
        """When a start will be within the window that is not yet."""
        self.puts_off = False
        """Whether a job was tried later than it could start if nobody else waited."""
        self._clear()

    def _clear(self) -> None:
        """Keep nothing. The last step begins where the window ends: all nodes are kept for nobody then."""
        self._times = [self._rounded(self._now), self._rounded(self._now + self._window)]
        self._free = [self._nodes, -1]
        self._nb_spans = 1
        """How many spans were ever made: there is room for so many only."""

    @property
    def begins(self) -> list[int]:
        """When the spans begin."""
        return self._times[:-1]

    def _rounded(self, time: int) -> int:
        """A time on the grid."""
        return time - (time + self._origin) % self._resolution

    @property
    def is_full(self) -> bool:
        """Whether no more spans can be added."""
        return self._nb_spans >= self._most_jobs

    @property
    def has_tried_enough(self) -> bool:
        """Whether no more jobs are to be tried."""
        return self._nb_tried >= self._most_jobs

    def go_back(self, nb_jobs: int) -> None:
        """Make the plan again that so many jobs have led to."""
        del self._tried[nb_jobs:]
        self._nb_tried = sum(self._tried)
        kept, self._kept = self._kept, []
        self._clear()
        for step in kept:
            if step[0] <= nb_jobs:
                self._kept.append(step)
                self._change(*step[1:])

    def next_change(self, now: int) -> float:
        """When the jobs that it has looked at may be planned in another way, if nothing else changes.

        A plan depends on the time in a few ways: its spans begin and end, a job that starts now reaches into
        the next span, a start comes within the window, or nodes come back within it.
        """
        times = [self._too_late]
        for _, _, _, end in self._kept:
            if self._rounded(end) >= self._times[-1]:
                times.append(self._rounded(end) + self._resolution - self._window)
        for length in (0, *self._lengths):
            following = self._at(now + length) + 1
            if following < len(self._times) - 1:
                times.append(self._times[following] - length)
        return min(times)

    def keep(self, share: Share, start: int, end: int) -> None:
        """Keep the nodes of a share from one time to another, on the grid; at least for one step of it."""
        self._kept.append((len(self._tried), share, start, end))
        self._change(share, start, end)

    def _change(self, share: Share, start: int, end: int) -> None:
        times, free = self._times, self._free
        start = max(self._rounded(start), times[0])
        end = min(max(self._rounded(end), start + self._resolution), times[-1])
        if start >= end:
            return
        # the first span of a plan takes room although there is none before it
        self._nb_spans += start == times[0] and free[0] == self._nodes
        self._nb_spans -= len(times)
        steps = self._range(start, end)
        self._nb_spans += len(times)
        for step in steps:
            free[step] &= ~share.nodes
        self._join(*reversed(range(steps.start, steps.stop + 1)))

    def _is_kept(self, nodes: int, start: int, end: int) -> bool:
        """Whether some of these nodes are kept at some time of a span."""
        spans = self._free[self._at(start) : bisect_left(self._times, end)]
        return any(nodes & ~free for free in spans)

    def _left(self, nodes: int, start: int, end: int) -> tuple[int, int]:
        """Those of some nodes that are kept for nobody in a span, and when to try again if they are too few.

        That is the first time after the start at which nodes come back that are not among those of before;
        0 if there is none.
        """
        times, free = self._times, self._free
        left, later, last = nodes, 0, len(times) - 2
        for step in range(self._at(start), last + 1):
            if not later and step < last and nodes & free[step + 1] & ~(left & free[step]):
                later = times[step + 1]
            if times[step] > end:
                break
            left &= free[step]
        return left, later

    def plan_starts(
        self,
        future: Future,
        records: Iterator[WaitingRecord],
        seen: list[WaitingRecord],
        now: int,
        completing: int,
    ) -> Looks:
        """Keep nodes for jobs in turn, until one can start now, enough were tried, or the plan is full.

        Those that were looked at are added to the ones that were ``seen``.
        """
        kept = 0
        last = found = None
        while not self.has_tried_enough and (record := next(records, None)) is not None:
            last = record
            seen.append(record)
            length = record.least_limit * 60
            found = self.find_start(future, None, record.asked, length, now, False, completing, None)
            if found.cpus:
                record.cpus = found.cpus
            if found.start is None or found.share is None:
                continue
            if found.start <= now:
                break
            kept |= found.share.nodes
            if self.is_full:
                return Looks(last, found, kept, True)
            self.keep(found.share, found.start, found.start + length)
        return Looks(last, found, kept, False)

    def find_start(
        self,
        future: Future,
        without: Future | None,
        asked: Asked,
        length: int,
        now: int,
        only_now: bool,
        completing: int,
        allowed: Allowed | None,
    ) -> Found:
        """When and where a job of some length could start beside the jobs that nodes are kept for.

        ``without`` is the future if the jobs were gone that may have to make way for this one. ``only_now``
        is for a job that is not planned for later. Nobody starts now on nodes that are ``completing``. What a
        job would get after the end of the window is not told. What is found is remembered.
        """
        later, cpus = now, 0
        is_put_off = was_tried = False
        self._lengths.add(length)

        def found(start: int | None = None, share: Share | None = None, make_way_on: int = 0) -> Found:
            return self._remembered(Found(start, share, cpus, is_put_off, make_way_on, was_tried))

        while True:
            left = self._nodes_from(asked, later, now, length, allowed)
            if left is None:
                return found()
            nodes, begin, later = left
            was_tried |= nodes.bit_count() >= asked.least_nodes and not asked.required & ~nodes
            first = future.earliest(asked, nodes, now, only_now or without is not None)
            makes_way = first is None
            if first is None and without is not None:
                first = without.earliest(asked, nodes, now, only_now)
            if first is None:
                if later and not only_now:
                    continue
                return found()
            start, share = max(first[0], begin), first[1]
            is_put_off |= begin > first[0]
            cpus = self._machine.cpus_of(share)
            if start <= now:
                if not share.nodes & completing:
                    if makes_way and only_now:
                        return found(make_way_on=nodes)
                    return found(start, share, nodes if makes_way else 0)
                start, later = now + 1, 0
            if only_now:
                return found()
            if later and start > later:
                continue
            if start > now + self._window:
                return found(start)
            if not self._is_kept(share.nodes, self._rounded(start), self._rounded(start + length)):
                return found(start, share)
            later = start

    def _remembered(self, found: Found) -> Found:
        self._tried.append(found.was_tried)
        self._nb_tried += found.was_tried
        self.puts_off = self.puts_off or found.is_put_off
        if found.start is not None and found.share is None:
            self._too_late = min(self._too_late, found.start - self._window)
        return found

    def _nodes_from(
        self, asked: Asked, time: int, now: int, length: int, allowed: Allowed | None
    ) -> tuple[int, int, int] | None:
        """The nodes that are left to a job from a time on, when it may begin, and when to try again, or 0."""
        nodes, begin, end_of_reservation = asked.partition, time, 0
        if allowed is not None:
            left = allowed(time)
            if left is None:
                return None
            nodes, begin, end_of_reservation = nodes & left[0], left[1], left[2]
        nodes, later = self._left(nodes, begin, max(begin, now) + length)
        if 0 < end_of_reservation < self._times[-1] and (not later or end_of_reservation < later):
            later = end_of_reservation
        return nodes & asked.nodes, begin, later


MOST_CPUS = 1 << 12
"""The native library does not know larger nodes."""


class Kernel(NamedTuple):
    """The classes that belong together."""

    usage: type[Usage]
    selector: type[Selector]
    future: type[Future]
    plan: type[Plan]


PYTHON = Kernel(Usage, Selector, Future, Plan)

NATIVE = None if library is None else Kernel(*(getattr(library.slurm, each.__name__) for each in PYTHON))
"""None where the library was not built."""


def kernel_of(machine: Machine, saves_power: bool = False) -> Kernel:
    """The native one if there is one for such a machine; it knows no switches, and no nodes that sleep."""
    is_simple = max(machine.cpus) <= MOST_CPUS and machine.switches is None and not saves_power
    return NATIVE if NATIVE is not None and is_simple else PYTHON


def known_share(share: Share, machine: Machine) -> Share:
    """A share as the classes know it that are used for a machine."""
    if library is None or kernel_of(machine) is PYTHON:
        return share
    made: Share = library.slurm.Share.of(share, len(machine.nodes))
    return made
