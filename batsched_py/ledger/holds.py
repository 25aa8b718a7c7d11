"""Jobs that are submitted and may not start yet, because they wait for other jobs.

Policies do not see such jobs: a job is *held* until its conditions are met, and joins the queue then. Batsim
has no words for this, so only the side that decides knows of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf

from batsched_py.ledger.arrays import Arrays, why_no_turn
from batsched_py.ledger.ends import Ends
from batsched_py.ledger.held import Held, read_field
from batsched_py.ledger.namesakes import Namesakes
from batsched_py.protocol.dependencies import AFTER, ARRAY, START, Dependency, End, dependency_of, full_name
from batsched_py.protocol.jobs import Job, to_tick


class Holds:
    """Which jobs are held, and why.

    All that happens at an instant is told first. Then :meth:`take_hopeless` and :meth:`take_ready` give those
    that are not held any longer. So the order in which things happen at an instant does not matter.

    ``active`` gives all jobs that were submitted and are not over. Starts and ends are remembered only where
    a job may be submitted later that waits for them.
    """

    def __init__(self, active: Callable[[], Iterable[Job]], remembers: bool) -> None:
        self._active = active
        self._remembers = remembers
        self.held: dict[str, Held] = {}
        """The jobs that are held, in the order of their submission."""
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

    @property
    def next_time(self) -> float:
        """When enough time will have passed for the next job that waits for that."""
        return self._timers[0][0] if self._timers else inf

    # --- what happens ----------------------------------------------------------------------------

    def submitted(self, job: Job) -> None:
        """A job is submitted, whether it will be held or not."""
        if ARRAY in job.extra:
            self._arrays.submitted(job)
        if self._namesakes:
            self._namesakes.submitted(job)

    def hold(self, job: Job) -> bool:
        """Whether a job that is submitted is held, at least until all of this instant has happened."""
        dependency = read_field(dependency_of, job) if AFTER in job.extra else None
        if dependency is None and self._arrays.limited(job) is None:
            return False
        self._count += 1
        if dependency is None:
            held = self.held[job.id] = Held(self._count, job, 0, False, True)
            self._ready.append(held)
            return True
        held = self.held[job.id] = Held(self._count, job, dependency.nb_conditions, dependency.any)
        self._look(held, dependency)
        return True

    def started(self, job: Job, now: float) -> None:
        """A job has started, or is over without that."""
        if self._remembers and self._starts.get(job.id) is None:
            self._starts.put(job.id, now, True)
        if ARRAY in job.extra and (array := self._arrays.started(job, now)) is not None:
            self._tell_start(array.name, now)
        if self._waiting_for_start:
            self._tell_start(job.id, now)

    def over(self, job: Job, now: float, success: bool) -> None:
        """A job has ended, or was rejected."""
        self.started(job, now)
        if self._remembers:
            self._ends.put(job.id, now, success)
        self.held.pop(job.id, None)
        if ARRAY in job.extra and (array := self._arrays.over(job, now, success)) is not None:
            self._tell(array.name, now, array.success)
        if self._namesakes:
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
            del self.held[held.job.id]
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
            if name in self.held:
                return f"{end}: {name} is held itself"
            if self._time_of(end, name)[0] is None:
                known = self._arrays.get(name) is not None or any(job.id == name for job in self._active())
                not_yet = "has not started" if end.kind == START else "is not over"
                return f"{end}: {name} " + (not_yet if known else "was never submitted")
        return str(held.job.extra[AFTER])

    # --- in detail -------------------------------------------------------------------------------

    def _is_held(self, held: Held) -> bool:
        """Whether a job is held still; its user may have withdrawn it."""
        return self.held.get(held.job.id) is held

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
        held = None if job_id is None else self.held.get(job_id)
        if held is not None and (dependency := read_field(dependency_of, held.job)) and dependency.singleton:
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
