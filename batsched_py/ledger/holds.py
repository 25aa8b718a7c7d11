"""Jobs that are submitted and may not start yet, because they wait for other jobs.

Policies do not see such jobs: a job is *held* until what it waits for has happened, and joins the queue then.
Batsim has no words for this, so it is known where decisions are made, and nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from msgspec import Struct, field

from batsched_py.errors import InputError
from batsched_py.ledger.ends import Ends
from batsched_py.protocol.clock import to_tick
from batsched_py.protocol.dependencies import (
    AFTER,
    ARRAY,
    Dependency,
    End,
    array_of,
    dependency_of,
    full_name,
)
from batsched_py.protocol.jobs import Job

T = TypeVar("T")


class Held(Struct, eq=False):
    """A job that waits for others."""

    number: int
    """Its place in the order of submission."""
    job: Job
    nb_open: int
    """How many of the things it waits for are not known to have happened, or not to happen any more."""
    any: bool
    """Whether one of them is enough."""
    met: bool | None = None
    """Whether they have happened, once that is known."""
    reason: str = ""
    """What decided it, in words."""


class _Tasks(Struct, eq=False):
    """An array: how many of its tasks are not over, and how many more may wait in the queue or run."""

    name: str
    nb_left: int = 0
    end: float | None = None
    """When the last of those that were submitted was over."""
    success: bool = True
    slots: float = inf
    with_slot: set[str] = field(default_factory=set)
    waiting: list[tuple[int, Held]] = field(default_factory=list)
    """The tasks that wait for one of these places only, as a heap."""


class Holds:
    """Which jobs are held, and why.

    All that happens at an instant is told first. Then :meth:`take_hopeless` and :meth:`take_ready` give those
    that are not held any longer. So the order in which things happen at an instant does not matter.

    ``active`` gives all jobs that were submitted and are not over. Ends are remembered only where a job may
    be submitted later that waits for them.
    """

    def __init__(self, active: Callable[[], Iterable[Job]], remembers_ends: bool) -> None:
        self._remembers_ends = remembers_ends
        self.held: dict[str, Held] = {}
        """The jobs that are held, in the order of their submission."""
        self._hopeless: deque[Held] = deque()
        """Those that can never join the queue."""
        self._ready: list[Held] = []
        """Those that wait for no other job any more."""
        self._freed: dict[str, _Tasks] = {}
        """The arrays of which one more task may go."""
        self._count = 0
        self._active = active
        self._ends = Ends()
        self._waiting_for: dict[str, list[tuple[Held, End]]] = {}
        """Who waits for the end of which job or array."""
        self._arrays: dict[str, _Tasks] = {}
        self._namesakes: dict[tuple[str | None, str], dict[str, None]] = {}
        """The jobs of one user and name that are not over, where somebody has asked for them."""
        self._timers: list[tuple[float, int, Held, End]] = []
        """When enough time will have passed since an end."""
        self._nb_timers = 0

    @property
    def next_time(self) -> float:
        """When enough time will have passed for the next job that waits for that."""
        return self._timers[0][0] if self._timers else inf

    # --- what happens ----------------------------------------------------------------------------

    def submitted(self, job: Job) -> None:
        """A job is submitted, whether it will be held or not."""
        if ARRAY in job.extra and (array := _read(array_of, job)) is not None:
            tasks = self._arrays.get(array.name)
            if tasks is None:
                tasks = self._arrays[array.name] = _Tasks(array.name, slots=array.limit or inf)
            tasks.nb_left += 1
            tasks.end = None
        if self._namesakes and (namesakes := self._namesakes.get(_owner(job))) is not None:
            namesakes[job.id] = None

    def hold(self, job: Job) -> bool:
        """Whether a job that is submitted is held, at least until all of this instant has happened."""
        dependency = _read(dependency_of, job) if AFTER in job.extra else None
        if dependency is None and self._limited(job) is None:
            return False
        self._count += 1
        if dependency is None:
            held = self.held[job.id] = Held(self._count, job, 0, False, True)
            self._ready.append(held)
            return True
        held = self.held[job.id] = Held(self._count, job, dependency.nb_conditions, dependency.any)
        self._look(held, dependency)
        return True

    def over(self, job: Job, now: float, success: bool) -> None:
        """A job has ended, or was rejected."""
        if self._remembers_ends:
            self._ends.put(job.id, now, success)
        self.held.pop(job.id, None)
        if ARRAY in job.extra:
            self._task_over(job, now, success)
        if self._namesakes:
            self._namesake_over(job)
        if self._waiting_for:
            self._tell(job.id, now, success)

    def comes_back(self, job: Job, name: str, next_name: str) -> None:
        """An execution of a job has ended, and it begins again under another name: it is not over."""
        namesakes = self._namesakes.get(_owner(job))
        if namesakes is not None and name in namesakes:
            self._namesakes[_owner(job)] = {next_name if each == name else each: None for each in namesakes}

    def wake(self, now: float) -> None:
        """Time has come to this."""
        while self._timers and self._timers[0][0] <= now:
            _, _, held, end = heappop(self._timers)
            self._resolve(held, True, f"{end}")

    # --- what follows ----------------------------------------------------------------------------

    @property
    def unsettled(self) -> bool:
        """Whether something has happened that may let jobs go."""
        return bool(self._ready or self._hopeless or self._freed)

    def take_hopeless(self) -> Held | None:
        """A job that can never join the queue, if there is one; it is to be rejected."""
        while self._hopeless:
            held = self._hopeless.popleft()
            if self._is_held(held):
                return held
        return None

    def take_ready(self) -> list[Held]:
        """The jobs that may join the queue now, in the order of their submission; they do."""
        chosen = []
        for held in self._ready:
            if self._is_held(held):
                tasks = self._limited(held.job)
                if tasks is None:
                    chosen.append(held)
                else:
                    heappush(tasks.waiting, (held.number, held))
                    self._freed[tasks.name] = tasks
        for tasks in self._freed.values():
            while tasks.waiting and tasks.slots > 0:
                _, held = heappop(tasks.waiting)
                if self._is_held(held):
                    tasks.slots -= 1
                    tasks.with_slot.add(held.job.id)
                    chosen.append(held)
        self._ready.clear()
        self._freed.clear()
        for held in chosen:
            del self.held[held.job.id]
        return sorted(chosen, key=lambda held: held.number)

    def abandon(self) -> bool:
        """Nobody will submit any more jobs: who waits for one that was not submitted waits in vain."""
        known = {job.id for job in self._active()} | self._arrays.keys()
        for name in [name for name in self._waiting_for if name not in known]:
            for held, end in self._waiting_for.pop(name):
                why = f"{end} can never be met, because {end.target} was never submitted"
                self._resolve(held, False, why)
        return bool(self._hopeless)

    def _is_held(self, held: Held) -> bool:
        """Whether a job is held still; its user may have withdrawn it."""
        return self.held.get(held.job.id) is held

    def _limited(self, job: Job) -> _Tasks | None:
        """The array of a job, if not all of its tasks may go at once."""
        array = _read(array_of, job) if ARRAY in job.extra else None
        return None if array is None or array.limit is None else self._arrays[array.name]

    # --- why -------------------------------------------------------------------------------------

    def why(self, held: Held) -> str:
        """What a job waits for, in words."""
        if held.met:
            array = _read(array_of, held.job)
            assert array is not None
            return f"it waits for a turn in its array {array.name}, of which {array.limit} may run at once"
        dependency = _read(dependency_of, held.job)
        assert dependency is not None
        for end in dependency.ends:
            name = full_name(held.job, end.target)
            if name in self.held:
                return f"{end}: {name} is held itself"
            if self._end_of(name)[0] is None:
                known = name in self._arrays or any(job.id == name for job in self._active())
                return f"{end}: {name} " + ("is not over" if known else "was never submitted")
        return str(held.job.extra[AFTER])

    # --- in detail -------------------------------------------------------------------------------

    def _look(self, held: Held, dependency: Dependency) -> None:
        """Find out what has happened already, and ask for the rest."""
        for end in dependency.ends:
            name = full_name(held.job, end.target)
            time, success = self._end_of(name)
            if time is None:
                self._waiting_for.setdefault(name, []).append((held, end))
            else:
                self._ended(held, end, time, held.job.submission_time, success)
        if dependency.singleton:
            namesakes = self._namesakes_of(held.job)
            if next(iter(namesakes)) == held.job.id:
                self._resolve(held, True, "singleton")

    def _end_of(self, name: str) -> tuple[float | None, bool]:
        """When a job or an array was over, if it was, and whether it succeeded."""
        tasks = self._arrays.get(name)
        if tasks is not None:
            return tasks.end, tasks.success
        return self._ends.get(name), self._ends.succeeded(name)

    def _tell(self, name: str, now: float, success: bool) -> None:
        """Tell those who wait for the end of a job or an array."""
        for held, end in self._waiting_for.pop(name, ()):
            self._ended(held, end, now, now, success)

    def _ended(self, held: Held, end: End, time: float, now: float, success: bool) -> None:
        """What a job waits for has ended at a time."""
        met = end.kind == "afterany" or success == (end.kind == "afterok")
        if not met:
            became = "succeeded" if success else "did not succeed"
            self._resolve(held, False, f"{end} can never be met, because {end.target} {became}")
        elif (then := to_tick(time + end.delay)) > now:
            self._nb_timers += 1
            heappush(self._timers, (then, self._nb_timers, held, end))
        else:
            self._resolve(held, True, f"{end}")

    def _resolve(self, held: Held, met: bool, reason: str) -> None:
        """One of the things that a job waits for has happened, or never will."""
        if held.met is not None or not self._is_held(held):
            return
        held.nb_open -= 1
        if met == held.any or not held.nb_open:
            held.met, held.reason = met, reason
            if met:
                self._ready.append(held)
            else:
                self._hopeless.append(held)

    def _task_over(self, job: Job, now: float, success: bool) -> None:
        array = _read(array_of, job)
        if array is None:
            return
        tasks = self._arrays[array.name]
        tasks.nb_left -= 1
        tasks.success = tasks.success and success
        if job.id in tasks.with_slot:
            tasks.with_slot.remove(job.id)
            tasks.slots += 1
            self._freed[tasks.name] = tasks
        if not tasks.nb_left:
            tasks.end = now
            self._tell(array.name, now, tasks.success)

    def _namesakes_of(self, job: Job) -> dict[str, None]:
        """The jobs of one user and name that are not over, this one last."""
        owner = _owner(job)
        if owner not in self._namesakes:
            others = (other.id for other in self._active() if _owner(other) == owner)
            self._namesakes[owner] = dict.fromkeys([*(id for id in others if id != job.id), job.id])
        return self._namesakes[owner]

    def _namesake_over(self, job: Job) -> None:
        namesakes = self._namesakes.get(_owner(job))
        if namesakes is None or job.id not in namesakes:
            return
        was_first = next(iter(namesakes)) == job.id
        del namesakes[job.id]
        if not was_first:
            return
        held = self.held.get(next(iter(namesakes), ""))
        if held is not None and (dependency := _read(dependency_of, held.job)) and dependency.singleton:
            self._resolve(held, True, "singleton")


def _owner(job: Job) -> tuple[str | None, str]:
    """Whose job it is, and how it is called; a log has the number of its program."""
    return job.user, str(job.extra.get("name", job.extra.get("executable", "")))


def _read(read: Callable[[Job], T], job: Job) -> T:
    """What a field of a job says."""
    try:
        return read(job)
    except ValueError as error:
        raise InputError(f"job {job.id}: {error}") from None
