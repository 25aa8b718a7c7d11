"""Jobs that are submitted and may not start yet, because they wait for other jobs.

Policies do not see such jobs: a job is *held* until its conditions are met, and joins the queue then. Batsim
has no words for this, so only the side that decides knows of it.
"""

import csv
import io
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from math import inf, isnan, nan
from typing import TypeVar

from msgspec import Struct, field

from batsched_py.errors import InputError
from batsched_py.ledger.waiting import Held, WaitingJobs
from batsched_py.protocol.dependencies import (
    AFTER,
    ARRAY,
    START,
    Array,
    Dependency,
    End,
    array_of,
    dependency_of,
    full_name,
)
from batsched_py.protocol.jobs import Job, to_tick

T = TypeVar("T")


def read_field(read: Callable[[Job], T], job: Job) -> T:
    """What a field of a job says; a fault in it is told with the name of the job."""
    try:
        return read(job)
    except ValueError as error:
        raise InputError(f"job {job.id}: {error}") from None


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
        self.unsettled: dict[str, TaskArray] = {}
        """Those of which a task may have a turn now that had none before."""
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
            self.unsettled[tasks.name] = tasks
        if tasks.nb_left:
            return None
        tasks.end = now
        return tasks

    def limited(self, job: Job) -> TaskArray | None:
        """The array of a job, if not all of its tasks may go at once."""
        array = _array_of(job)
        return None if array is None or array.limit is None else self._arrays[array.name]

    # --- turns -----------------------------------------------------------------------------------

    def wait_for_slot(self, tasks: TaskArray, held: Held) -> None:
        """A task waits for nothing but a slot of its array."""
        heappush(tasks.waiting, (held.number, held))
        self.unsettled[tasks.name] = tasks

    def take_turns(self, is_held: Callable[[Held], bool]) -> Iterator[Held]:
        """The tasks that get a slot now; one that its user has withdrawn gets none."""
        for tasks in self.unsettled.values():
            while tasks.waiting and tasks.slots > 0:
                _, held = heappop(tasks.waiting)
                if is_held(held):
                    tasks.slots -= 1
                    tasks.with_slot.add(held.job.id)
                    yield held
        self.unsettled.clear()


def why_no_turn(job: Job) -> str:
    """Why a task waits that waits for nothing but a slot, in words."""
    array = _array_of(job)
    assert array is not None
    return f"it waits for a turn in its array {array.name}, of which {array.limit} may run at once"


def _array_of(job: Job) -> Array | None:
    return read_field(array_of, job) if ARRAY in job.extra else None


#: The place in a page for the last two characters of a name, if they are digits.
_PLACE = {f"{number:02}": number for number in range(100)}


class Ends:
    """The times at which jobs ended or started, by their names, and which of them did not succeed.

    Names that agree in all but their last two digits share a page of numbers. So the ends of the jobs
    ``w0!100`` to ``w0!199`` take some 10 bytes each, where a dictionary takes 200.

    >>> ends = Ends()
    >>> ends.put("w0!123", 60.0, True)
    >>> ends.get("w0!123"), ends.get("w0!124"), ends.succeeded("w0!123")
    (60.0, None, True)
    """

    def __init__(self) -> None:
        self._pages: dict[str, array[float]] = {}
        self._others: dict[str, float] = {}
        self._unsuccessful: set[str] = set()

    def put(self, name: str, time: float, success: bool) -> None:
        """A job has ended."""
        place = _PLACE.get(name[-2:])
        if place is None:
            self._others[name] = time
        else:
            page = self._pages.get(name[:-2])
            if page is None:
                page = self._pages[name[:-2]] = array("d", [nan]) * 100
            page[place] = time
        if not success:
            self._unsuccessful.add(name)

    def get(self, name: str) -> float | None:
        """When a job ended, if it did."""
        place = _PLACE.get(name[-2:])
        if place is None:
            return self._others.get(name)
        page = self._pages.get(name[:-2])
        return None if page is None or isnan(page[place]) else page[place]

    def succeeded(self, name: str) -> bool:
        """Whether a job that has ended did so successfully."""
        return name not in self._unsuccessful


class Namesakes:
    """For each user and name, the jobs that are not over, in the order of submission.

    They are counted from the first time that somebody asks for a user and a name. ``active`` gives all jobs
    that were submitted and are not over.
    """

    def __init__(self, active: Callable[[], Iterable[Job]]) -> None:
        self._active = active
        self.groups: dict[tuple[str | None, str], dict[str, None]] = {}
        """Those that somebody has asked for."""

    def submitted(self, job: Job) -> None:
        """A job is submitted."""
        group = self.groups.get(_owner(job))
        if group is not None:
            group[job.id] = None

    def is_first(self, job: Job) -> bool:
        """Whether a job that is submitted now is the only one of its user and name that is not over."""
        owner = _owner(job)
        if owner not in self.groups:
            others = (other.id for other in self._active() if _owner(other) == owner)
            self.groups[owner] = dict.fromkeys([*(id for id in others if id != job.id), job.id])
        return next(iter(self.groups[owner])) == job.id

    def over(self, job: Job) -> str | None:
        """A job is over: the one that is first now in its place, if it was first."""
        group = self.groups.get(_owner(job))
        if group is None or job.id not in group:
            return None
        was_first = next(iter(group)) == job.id
        del group[job.id]
        return next(iter(group), None) if was_first else None

    def rename(self, job: Job, name: str, next_name: str) -> None:
        """An execution of a job goes on under another name, in its place."""
        group = self.groups.get(_owner(job))
        if group is not None and name in group:
            self.groups[_owner(job)] = {next_name if each == name else each: None for each in group}


def _owner(job: Job) -> tuple[str | None, str]:
    """Whose job it is, and how it is called; a log has the number of its program."""
    return job.user, str(job.extra.get("name", job.extra.get("executable", "")))


class Holds:
    """Which jobs are held, and why.

    All that happens at an instant is told first. Then :meth:`take_hopeless` and :meth:`take_ready` give those
    that are not held any longer. So the order in which things happen at an instant does not matter.

    ``active`` gives all jobs that were submitted and are not over. Starts and ends are remembered only where
    a job may be submitted later that waits for them.
    """

    def __init__(self, waiting: WaitingJobs, active: Callable[[], Iterable[Job]]) -> None:
        self._waiting = waiting
        self._active = active
        self._holding = False
        self._remembers = False
        self._hopeless: deque[Held] = deque()
        """Those that can never join the queue."""
        self._ready: list[Held] = []
        """Those that wait for no other job any more."""
        self._count = 0
        self._ends = Ends()
        self._starts = Ends()
        self._waiting_for: dict[str, list[tuple[Held, End]]] = {}
        """Who waits for the end of which job or array."""
        self._waiting_for_start: dict[str, list[tuple[Held, End]]] = {}
        self._arrays = Arrays()
        self._namesakes = Namesakes(active)
        self._timers: list[tuple[float, int, Held, End]] = []
        """When enough time will have passed since an end or a start."""
        self._nb_timers = 0

    def begin(self, remembers: bool) -> None:
        """From now on, jobs that wait for others are held; this is said before anything happens."""
        self._holding, self._remembers = True, remembers

    @property
    def held(self) -> list[Held]:
        """The jobs that are held, in the order of their submission."""
        return list(self._waiting.all(Held))

    def __bool__(self) -> bool:
        """Whether any job is held."""
        return bool(self._waiting.apart) and any(True for _ in self._waiting.all(Held))

    @property
    def next_time(self) -> float:
        """When enough time will have passed for the next job that waits for that."""
        return self._timers[0][0] if self._timers else inf

    # --- what happens ----------------------------------------------------------------------------

    def submitted(self, job: Job) -> None:
        """A job is submitted, whether it will be held or not."""
        if ARRAY in job.extra and self._holding:
            self._arrays.submitted(job)
        if self._namesakes.groups:
            self._namesakes.submitted(job)

    def hold(self, job: Job) -> Held | None:
        """Hold a job that is submitted, if it waits for others, until all of this instant has happened."""
        if not self._holding:
            return None
        dependency = read_field(dependency_of, job) if AFTER in job.extra else None
        if dependency is None and self._arrays.limited(job) is None:
            return None
        self._count += 1
        if dependency is None:
            held = self._waiting.set_apart(Held(job, self._count, 0, False, True))
            self._ready.append(held)
        else:
            held = Held(job, self._count, dependency.nb_conditions, dependency.any)
            self._look(self._waiting.set_apart(held), dependency)
        return held

    def started(self, job: Job, now: float) -> None:
        """A job has started, or is over without that."""
        if not self._holding:
            return
        if self._remembers and self._starts.get(job.id) is None:
            self._starts.put(job.id, now, True)
        if ARRAY in job.extra and (array := self._arrays.started(job, now)) is not None:
            self._tell_start(array.name, now)
        if self._waiting_for_start:
            self._tell_start(job.id, now)

    def over(self, job: Job, now: float, success: bool) -> None:
        """A job has ended, or was rejected."""
        if not self._holding:
            return
        self.started(job, now)
        if self._remembers:
            self._ends.put(job.id, now, success)
        if ARRAY in job.extra and (array := self._arrays.over(job, now, success)) is not None:
            self._tell(array.name, now, array.success)
        if self._namesakes.groups:
            self._singleton_may_go(self._namesakes.over(job))
        if self._waiting_for:
            self._tell(job.id, now, success)

    def comes_back(self, job: Job, name: str, next_name: str) -> None:
        """An execution of a job has ended, and it begins again under another name: it is not over."""
        self._namesakes.rename(job, name, next_name)

    def wake(self, now: float) -> None:
        """The clock has come to this time."""
        while self._timers and self._timers[0][0] <= now:
            _, _, held, end = heappop(self._timers)
            self._resolve(held, True, f"{end}")

    # --- what follows ----------------------------------------------------------------------------

    @property
    def unsettled(self) -> bool:
        """Whether something has happened that may let jobs go."""
        return bool(self._ready or self._hopeless or self._arrays.unsettled)

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
        for held in filter(self._is_held, self._ready):
            tasks = self._arrays.limited(held.job)
            if tasks is None:
                chosen.append(held)
            else:
                self._arrays.wait_for_slot(tasks, held)
        self._ready.clear()
        chosen += self._arrays.take_turns(self._is_held)
        for held in chosen:
            del self._waiting.apart[held.job.id]
        return sorted(chosen, key=lambda held: held.number)

    def abandon(self) -> bool:
        """Nobody will submit any more jobs: conditions on jobs that were never submitted cannot be met.

        Returns whether a job can never join the queue because of that.
        """
        known = {job.id for job in self._active()} | self._arrays.names
        for waiting in (self._waiting_for, self._waiting_for_start):
            for name in [name for name in waiting if name not in known]:
                for held, end in waiting.pop(name):
                    why = f"{end} can never be met, because {end.target} was never submitted"
                    self._resolve(held, False, why)
        return bool(self._hopeless)

    def why(self, held: Held) -> str:
        """What a job waits for, in words."""
        if held.met:
            return why_no_turn(held.job)
        dependency = read_field(dependency_of, held.job)
        assert dependency is not None
        for end in dependency.ends:
            name = full_name(held.job, end.target)
            if self._waiting.is_held(name):
                return f"{end}: {name} is held itself"
            if self._time_of(end, name)[0] is None:
                known = self._arrays.get(name) is not None or any(job.id == name for job in self._active())
                not_yet = "has not started" if end.kind == START else "is not over"
                return f"{end}: {name} " + (not_yet if known else "was never submitted")
        return str(held.job.extra[AFTER])

    # --- in detail -------------------------------------------------------------------------------

    def _is_held(self, held: Held) -> bool:
        """Whether a job is held still; its user may have withdrawn it."""
        return self._waiting.apart.get(held.job.id) is held

    def _look(self, held: Held, dependency: Dependency) -> None:
        """Find out which conditions are met already, and wait for the others."""
        for end in dependency.ends:
            name = full_name(held.job, end.target)
            time, success = self._time_of(end, name)
            if time is None:
                waiting = self._waiting_for_start if end.kind == START else self._waiting_for
                waiting.setdefault(name, []).append((held, end))
            else:
                self._ended(held, end, time, held.job.submission_time, success)
        if dependency.singleton and self._namesakes.is_first(held.job):
            self._resolve(held, True, "singleton")

    def _time_of(self, end: End, name: str) -> tuple[float | None, bool]:
        """When a job or an array was over, if it was, and whether it succeeded; or when it started."""
        tasks, is_start = self._arrays.get(name), end.kind == START
        if tasks is not None:
            return (tasks.start, True) if is_start else (tasks.end, tasks.success)
        if is_start:
            return self._starts.get(name), True
        return self._ends.get(name), self._ends.succeeded(name)

    def _tell_start(self, name: str, now: float) -> None:
        """Tell those who wait for the start of a job or an array."""
        for held, end in self._waiting_for_start.pop(name, ()):
            self._ended(held, end, now, now, True)

    def _tell(self, name: str, now: float, success: bool) -> None:
        """Tell those who wait for the end of a job or an array."""
        for held, end in self._waiting_for.pop(name, ()):
            self._ended(held, end, now, now, success)

    def _singleton_may_go(self, job_id: str | None) -> None:
        """A job is the first of its user and name now, which a singleton waits for."""
        held = None if job_id is None else self._waiting.apart.get(job_id)
        if (
            isinstance(held, Held)
            and (dependency := read_field(dependency_of, held.job))
            and dependency.singleton
        ):
            self._resolve(held, True, "singleton")

    def _ended(self, held: Held, end: End, time: float, now: float, success: bool) -> None:
        """What a job waits for has ended or started at a time."""
        met = end.kind in ("afterany", START) or success == (end.kind == "afterok")
        if not met:
            became = "succeeded" if success else "did not succeed"
            self._resolve(held, False, f"{end} can never be met, because {end.target} {became}")
        elif (then := to_tick(time + end.delay)) > now:
            self._nb_timers += 1
            heappush(self._timers, (then, self._nb_timers, held, end))
        else:
            self._resolve(held, True, f"{end}")

    def _resolve(self, held: Held, met: bool, reason: str) -> None:
        """A condition of a job is met, or can never be."""
        if held.met is not None or not self._is_held(held):
            return
        held.nb_open -= 1
        if met == held.any or not held.nb_open:
            held.met, held.reason = met, reason
            if met:
                self._ready.append(held)
            else:
                self._hopeless.append(held)


#: How a file of such jobs begins.
RELEASES_HEADER = "job_id,submission_time,eligible_time,reason\n"


class Release(Struct, frozen=True, gc=False):
    """A job that is not held any more."""

    job: Job
    eligible: float | None
    """When it joined the queue; nothing if it was rejected."""
    reason: str


def release_writer(write: Callable[[str], object]) -> Callable[[Release], None]:
    """A function that writes a line for each job that was held."""

    def write_line(release: Release) -> None:
        line = io.StringIO()
        eligible = "" if release.eligible is None else f"{release.eligible:.6f}"
        cells = [release.job.id, f"{release.job.submission_time:.6f}", eligible, release.reason]
        csv.writer(line, lineterminator="\n").writerow(cells)
        write(line.getvalue())

    return write_line
