"""Arrays of jobs: when all tasks are over, and whose turn it is where only some may go at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from math import inf

from msgspec import Struct, field

from batsched_py.ledger.held import Held, read_field
from batsched_py.protocol.dependencies import ARRAY, Array, array_of
from batsched_py.protocol.jobs import Job


class TaskArray(Struct, eq=False):
    """The tasks of an array that were submitted so far."""

    name: str
    nb_left: int = 0
    """How many are not over."""
    end: float | None = None
    """When the last one was over, if all are."""
    success: bool = True
    """Whether all that are over have succeeded."""
    unstarted: set[str] = field(default_factory=set)
    """Those that have neither started nor are over."""
    start: float | None = None
    """When there were none of these any more."""
    slots: float = inf
    """How many more may wait in the queue or run."""
    with_slot: set[str] = field(default_factory=set)
    """Those that do, where their number is limited."""
    waiting: list[tuple[int, Held]] = field(default_factory=list)
    """Those that wait for nothing but a slot, as a heap."""


class Arrays:
    """The arrays of which tasks were submitted, by their full names."""

    def __init__(self) -> None:
        self._arrays: dict[str, TaskArray] = {}
        self._changed: dict[str, TaskArray] = {}
        """Those in which a slot has become free, or one more task waits for a slot."""

    @property
    def names(self) -> set[str]:
        """How they are called."""
        return set(self._arrays)

    def get(self, name: str) -> TaskArray | None:
        """The array of a name, if there is one."""
        return self._arrays.get(name)

    def submitted(self, job: Job) -> None:
        """A job is submitted; if it is a task, its array is not over."""
        array = _array_of(job)
        if array is not None:
            tasks = self._arrays.get(array.name)
            if tasks is None:
                tasks = self._arrays[array.name] = TaskArray(array.name, slots=array.limit or inf)
            tasks.nb_left += 1
            tasks.unstarted.add(job.id)
            tasks.end = tasks.start = None

    def started(self, job: Job, now: float) -> TaskArray | None:
        """A job has started, or is over without that: its array, if this was the last task to do so."""
        array = _array_of(job)
        if array is None:
            return None
        tasks = self._arrays[array.name]
        if job.id not in tasks.unstarted:
            return None
        tasks.unstarted.remove(job.id)
        if tasks.unstarted:
            return None
        tasks.start = now
        return tasks

    def over(self, job: Job, now: float, success: bool) -> TaskArray | None:
        """A job is over: its array, if this was the last of its tasks."""
        array = _array_of(job)
        if array is None:
            return None
        tasks = self._arrays[array.name]
        tasks.nb_left -= 1
        tasks.success = tasks.success and success
        if job.id in tasks.with_slot:
            tasks.with_slot.remove(job.id)
            tasks.slots += 1
            self._changed[tasks.name] = tasks
        if tasks.nb_left:
            return None
        tasks.end = now
        return tasks

    def limited(self, job: Job) -> TaskArray | None:
        """The array of a job, if not all of its tasks may go at once."""
        array = _array_of(job)
        return None if array is None or array.limit is None else self._arrays[array.name]

    # --- turns -----------------------------------------------------------------------------------

    @property
    def unsettled(self) -> bool:
        """Whether a task may have a turn now that had none before."""
        return bool(self._changed)

    def wait_for_slot(self, tasks: TaskArray, held: Held) -> None:
        """A task waits for nothing but a slot of its array."""
        heappush(tasks.waiting, (held.number, held))
        self._changed[tasks.name] = tasks

    def take_turns(self, is_held: Callable[[Held], bool]) -> Iterator[Held]:
        """The tasks that get a slot now; one that its user has withdrawn gets none."""
        for tasks in self._changed.values():
            while tasks.waiting and tasks.slots > 0:
                _, held = heappop(tasks.waiting)
                if is_held(held):
                    tasks.slots -= 1
                    tasks.with_slot.add(held.job.id)
                    yield held
        self._changed.clear()


def why_no_turn(job: Job) -> str:
    """Why a task waits that waits for nothing but a slot, in words."""
    array = _array_of(job)
    assert array is not None
    return f"it waits for a turn in its array {array.name}, of which {array.limit} may run at once"


def _array_of(job: Job) -> Array | None:
    return read_field(array_of, job) if ARRAY in job.extra else None
