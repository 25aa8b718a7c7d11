"""When and where a job could run if running jobs last until their time limits.

Slurm lets the running jobs end in its mind, one after another, and tries after some of them. ``cons_tres``
does not try after each: jobs that end close to one another are taken together, within a time that doubles
with each try. So the start that is found may be later than need be; that is a part of how Slurm plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batsched_py.slurm.policy.job import Asked, RunningRecord
from batsched_py.slurm.policy.nodes import Share, Usage, places
from batsched_py.slurm.policy.selection import Selector

FIRST_WINDOW = 30
"""Seconds within which running jobs are taken to end together, at first."""


class Future:
    """The running jobs in the order of their ends, and what is free after each.

    Answers are kept until a job starts or ends: many jobs ask for the same.
    """

    def __init__(
        self,
        usage: Usage,
        running: Sequence[RunningRecord],
        selector: Selector,
        window_step: int = 0,
        is_linear: bool = False,
        kill_wait: int = 0,
        origin: int = 0,
    ) -> None:
        self._usage = usage.copy()
        self._running = list(running)
        self._selector = selector
        self._window_step = window_step
        self._is_linear = is_linear
        self._kill_wait = kill_wait
        """How long a job may last that is beyond its time limit."""
        self._origin = origin
        self._changed()

    def _changed(self) -> None:
        """Forget all answers."""
        self._idle = self._idle_after()
        self._now: dict[tuple[int, int], Share | None] = {}
        self._later: dict[tuple[int, int], tuple[RunningRecord, Share] | None] = {}

    def started(self, place: int, running: RunningRecord) -> None:
        """A job runs from now on, with this place among the running jobs."""
        self._usage.take(running.share)
        self._running.insert(place, running)
        self._changed()

    def ended(self, place: int) -> None:
        """The job at this place among the running jobs runs no longer."""
        self._usage.give(self._running.pop(place).share)
        self._changed()

    @property
    def first_end(self) -> float:
        """When the first time limit is over, among those that can matter."""
        return self._running[0].end if self._running else float("inf")

    def _idle_after(self) -> list[int]:
        """The nodes without jobs when so many jobs have ended."""
        left, idle, after = self._usage.jobs.copy(), self._usage.idle, []
        for running in self._running:
            after.append(idle)
            if running.share.exclusive:
                idle |= running.share.nodes
            for node, _, _ in running.share.parts:
                left[node] -= 1
                if not left[node]:
                    idle |= 1 << node
        after.append(idle)
        return after

    def earliest(self, asked: Asked, nodes: int, now: int, only_now: bool) -> tuple[int, Share] | None:
        """When a job could start on some of these nodes if nobody else waited, and its share of them."""
        if nodes.bit_count() < asked.least_nodes:
            return None
        share = self._at_once(asked, nodes)
        if share is not None:
            return now, share
        found = None if only_now else self._after(asked, nodes)
        if found is None:
            return None
        last, share = found
        return last.end if last.end > now else max(last.end + self._kill_wait, now + 1), share

    def _at_once(self, asked: Asked, nodes: int) -> Share | None:
        """What a job would get of these nodes now."""
        key = asked.number, nodes
        if key not in self._now:
            self._now[key] = self._selector.select(asked, nodes, self._usage)
        return self._now[key]

    def _after(self, asked: Asked, nodes: int) -> tuple[RunningRecord, Share] | None:
        """After which running job a job could start, and what it would get of these nodes."""
        key = asked.number, nodes
        if key not in self._later:
            search = self._whole if asked.exclusive else self._shared
            usable = nodes & asked.nodes
            self._later[key] = None if usable.bit_count() < asked.least_nodes else search(asked, nodes)
        return self._later[key]

    def _tries(self, nodes: int) -> Iterator[tuple[int, RunningRecord]]:
        if self._is_linear:
            return one_by_one(self._running, nodes)
        return in_windows(self._running, nodes, self._window_step, self._origin)

    def _whole(self, asked: Asked, nodes: int) -> tuple[RunningRecord, Share] | None:
        """For a job that shares its nodes with nobody."""
        usable, idle = nodes & asked.nodes, self._idle
        for place, last in self._tries(nodes):
            if (idle[place] & usable).bit_count() >= asked.least_nodes:
                share = self._selector.whole(asked, idle[place] & usable)
                if share is not None:
                    return last, share
        return None

    def _shared(self, asked: Asked, nodes: int) -> tuple[RunningRecord, Share] | None:
        """For a job that may share its nodes; it is tried only if enough processors are free at all."""
        usage, running, done = self._usage.copy(), self._running, 0
        usable, cpus, has = nodes & asked.nodes, usage.cpus, self._selector.machine.cpus
        free = sum([cpus[node] for node in places(usable & ~usage.exclusive)])
        single = asked.tasks == 1
        for place, last in self._tries(nodes):
            touched = False
            while done < place:
                share = running[done].share
                done += 1
                if not share.nodes & usable:
                    continue
                usage.give(share)
                if share.exclusive:
                    free += sum([has[node] for node in places(share.nodes & usable)])
                    touched = True
                for node, count, _ in share.parts:
                    if usable >> node & 1:
                        free += count
                        touched = touched or not single or cpus[node] >= asked.least_cpus_of_node
            if touched and free >= asked.cpus:
                found = self._selector.select(asked, nodes, usage)
                if found is not None:
                    return last, found
        return None


def one_by_one(running: Sequence[RunningRecord], nodes: int) -> Iterator[tuple[int, RunningRecord]]:
    """After how many running jobs ``select/linear`` tries a start: after each that is on the nodes."""
    for place, ending in enumerate(running, start=1):
        if ending.share.nodes & nodes:
            yield place, ending


def in_windows(
    running: Sequence[RunningRecord], nodes: int, step: int, origin: int = 0
) -> Iterator[tuple[int, RunningRecord]]:
    """After how many running jobs ``select/cons_tres`` tries a start, and the last of them on the nodes.

    With a ``step``, windows grow by it instead of doubling. They begin at multiples of the first window since
    an ``origin`` before time 0.
    """
    window, base, place, count = FIRST_WINDOW, 0, 0, len(running)
    while place < count:
        last = None
        following = None
        while place < count:
            ending = running[place]
            place += 1
            if not ending.share.nodes & nodes:
                continue
            if not base:
                base = ending.end + window - (ending.end + origin) % window
            last = ending
            if place == count:
                break
            if running[place].end > base + window:
                following = running[place]
                break
        if last is None:
            return
        window = window + step if step else window * 2
        while following is not None and following.end > base + window:
            window = window + step if step else window * 2
        yield place, last
