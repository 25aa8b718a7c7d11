"""When and where a job could run if running jobs last until their time limits.

Slurm lets the running jobs end in its mind, one after another, and tries after some of them. ``cons_tres``
does not try after each: jobs that end close to one another are taken together, within a time that doubles
with each try. So the start that is found may be later than need be; that is a part of how Slurm plans.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from batsched_py.slurm.policy.job import Asked, RunningRecord
from batsched_py.slurm.policy.nodes import Share, Usage, places
from batsched_py.slurm.policy.selection import Selector

FIRST_WINDOW = 30
"""Seconds within which running jobs are taken to end together, at first."""


@dataclass(eq=False)
class Future:
    """The running jobs in the order of their ends, and what is free after each.

    Answers are kept until a job starts or ends: many jobs ask for the same.
    """

    _usage: Usage
    _running: list[RunningRecord]
    _selector: Selector
    _window_step: int = 0
    _is_linear: bool = False
    _kill_wait: int = 0
    """How long a job may last that is beyond its time limit."""
    _origin: int = 0

    def __post_init__(self) -> None:
        self._usage, self._running = self._usage.copy(), list(self._running)
        self._changed()

    def _changed(self) -> None:
        """Forget all answers."""
        self._idle = self._idle_after()
        self._now: dict[tuple[int, int], Share | None] = {}
        """What jobs would get of some nodes now."""
        self._later: dict[tuple[int, int], tuple[RunningRecord, Share] | None] = {}
        """After which running job they could start there, and what they would get then."""

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
        key = asked.number, nodes
        if key not in self._now:
            self._now[key] = self._selector.select(asked, nodes, self._usage)
        share = self._now[key]
        if share is not None:
            return now, share
        if only_now:
            return None
        if key not in self._later:
            search = self._whole if asked.exclusive else self._shared
            has_enough = (nodes & asked.nodes).bit_count() >= asked.least_nodes
            self._later[key] = search(asked, nodes) if has_enough else None
        found = self._later[key]
        if found is None:
            return None
        last, share = found
        return last.end if last.end > now else max(last.end + self._kill_wait, now + 1), share

    def _tries(self, nodes: int) -> Iterator[tuple[int, RunningRecord]]:
        if self._is_linear:
            return one_by_one(self._running, nodes)
        return in_windows(self._running, nodes, self._window_step, self._origin)

    def _whole(self, asked: Asked, nodes: int) -> tuple[RunningRecord, Share] | None:
        """For a job that shares its nodes with nobody."""
        for place, last in self._tries(nodes):
            idle = self._idle[place] & nodes & asked.nodes
            if idle.bit_count() >= asked.least_nodes:
                share = self._selector.whole(asked, idle)
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
    window, base, last, count = FIRST_WINDOW, 0, None, len(running)
    for place, ending in enumerate(running, start=1):
        if ending.share.nodes & nodes:
            base = base or ending.end + window - (ending.end + origin) % window
            last = ending
            following = running[place].end if place < count else 0
            if place == count or following > base + window:
                window = window + step if step else window * 2
                while following > base + window:
                    window = window + step if step else window * 2
                yield place, last
                last = None
    if last is not None:
        yield count, last
