"""Users who work batch by batch, as Zakay and Feitelson see them.

A *batch* are jobs of one session that overlapped: it ends when all of them had ended, as recorded, and the
next job of the session opens another. What keeps a user waiting are batches, and what is kept of the record
is the think time between the end of a batch and the start of those that depend on it. The models of the two
authors differ in where a batch goes whose time has come: :class:`Adjusted`, :class:`Fluid` and
:class:`Distribution`.

N. Zakay and D. Feitelson, "Preserving User Behavior Characteristics in Trace-Based Simulation of Parallel Job
Scheduling", MASCOTS 2014.
"""

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from math import inf
from typing import Annotated, ClassVar, Literal
from zlib import crc32

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from batsched_py.protocol.jobs import TICK, Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.users import NamedUsers, Submission, User
from batsched_py.users.population import DAY, HOUR, run_time_of
from batsched_py.users.rigid import recorded_note
from batsched_py.users.think_time import SessionOption
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.sessions import Session, cut_workload, session_rule

#: The first time, not before a given one, at which a user is there to submit a batch; with the number of the
#: session that the batch opened, as recorded, if it did.
Presence = Callable[[float, int | None], float]


class Record(Struct, eq=False):
    """What is recorded of a user."""

    name: str
    sessions: Sequence[Session]
    finishes: Mapping[str, float]
    """When each job had finished."""
    begins: Mapping[str, float]
    """By when jobs had to be over for each job to depend on them: its submission, or its start."""


@dataclass
class InBatches(NamedUsers):
    """What the models of users with batches have in common."""

    sessions: SessionOption = "arrival:60"
    order: Annotated[
        bool, Meta(description="Order constraint: no batch before all jobs of the one before are submitted.")
    ] = True
    dependence: Annotated[
        bool,
        Meta(
            description="Potential dependence: a session waits for all batches that had ended before it; "
            "otherwise it begins as recorded, and only the batches inside it wait for each other."
        ),
    ] = True
    ended_before: Annotated[
        Literal["submission", "start"],
        Meta(
            description="A batch may depend on what had ended before its submission, or before it started to "
            "run; a user who was too early for the latter, as recorded, then submits without thinking."
        ),
    ] = "submission"

    keeps_breaks: ClassVar[bool] = True
    """Whether the time between sessions is think time, which is kept like that between batches."""

    def __post_init__(self) -> None:
        self._rule = session_rule(self.sessions)

    def named_users(self, workload: Workload) -> list[User]:
        """One user for each in the workload."""
        cut = cut_workload(workload, self._rule)
        assert workload.finishes is not None
        finishes, begins = {}, {}
        for job, finish in zip(workload.jobs, workload.finishes, strict=True):
            finishes[job.id], begins[job.id] = float(finish), job.submission_time
            if self.ended_before == "start":
                begins[job.id] = float(finish) - run_time_of(job, workload.profiles[job.profile])
        presence = self.presences(workload)
        users: list[User] = []
        for name, sessions in cut.items():
            record = Record(name, sessions, finishes, begins)
            links = BatchLinks(record, self.dependence, self.keeps_breaks)
            users.append(BatchUser(name, links, presence(record), workload.profiles, self.order))
        return users

    @abstractmethod
    def presences(self, workload: Workload) -> Callable[[Record], Presence]:
        """When each user of a workload is there."""


def cut_batches(session: Session, finishes: Mapping[str, float]) -> list[Session]:
    """The batches of a session, in the order of their starts."""
    batches: list[Session] = []
    jobs: list[Job] = []
    for job in session.jobs:
        finish = finishes[job.id]
        if not batches or job.submission_time >= batches[-1].finish:
            jobs = []
            batches.append(Session(jobs, start=job.submission_time, finish=finish))
        jobs.append(job)
        batches[-1].finish = max(batches[-1].finish, finish)
    return batches


class BatchLinks:
    """The batches of a user, in the order of their starts, and which waits for which."""

    def __init__(self, record: Record, dependence: bool, keeps_breaks: bool) -> None:
        self._keeps_breaks = keeps_breaks
        self.batches: list[Session] = []
        self.session_of: list[int] = []
        """The number of each batch's session."""
        for number, session in enumerate(record.sessions):
            cut = cut_batches(session, record.finishes)
            self.batches += cut
            self.session_of += [number] * len(cut)
        count = len(self.batches)
        if dependence:
            # By when those that a batch depends on had ended. Users keep the order of their batches, so each
            # one waits for all that the one before it waits for.
            starts = accumulate((record.begins[batch.jobs[0].id] for batch in self.batches), max)
            pairs = zip(self.batches, starts, strict=True)
            graph = SessionGraph([Session(batch.jobs, start, batch.finish) for batch, start in pairs])
            self.successors: list[Sequence[int]] = [graph.successors(index) for index in range(count)]
        else:
            pairwise = zip(self.session_of, [*self.session_of[1:], -1], strict=True)
            self.successors = [
                [n] if own == next_one else [] for n, (own, next_one) in enumerate(pairwise, 1)
            ]
        nb_predecessors = Counter(successor for successors in self.successors for successor in successors)
        self.nb_predecessors = [nb_predecessors[index] for index in range(count)]

    def opens_session(self, index: int) -> bool:
        """Whether a batch is the first of its session."""
        return not index or self.session_of[index - 1] != self.session_of[index]

    def think_time(self, before: int, after: int) -> float:
        """How long the user thinks between the end of one batch and the start of another."""
        if self._keeps_breaks or not self.opens_session(after):
            return max(self.batches[after].start - self.batches[before].finish, 0.0)
        return 0.0


class BatchUser(User):
    """Works through batches.

    A batch is free when the think times since all that it waits for are over, or at its recorded time if it
    waits for nothing. It is then submitted as soon as the user is there, its jobs in their recorded
    distances. With an order constraint that is not before the last job of the batch before it.
    """

    def __init__(
        self, name: str, links: BatchLinks, presence: Presence, profiles: Mapping[str, Profile], ordered: bool
    ) -> None:
        self.name = name
        self._links = links
        self._presence = presence
        self._profiles = profiles
        self._ordered = ordered
        self._batch_of: dict[str, int] = {}
        """The batch of each job that may still end."""
        self._unfinished_jobs = [len(batch.jobs) for batch in links.batches]
        self._unfinished_predecessors = list(links.nb_predecessors)
        self._earliest = [-inf] * len(links.batches)
        """For each batch, when it may start as far as is known."""
        self._free: dict[int, float] = {}
        """The batches that wait for nothing but their turn, and when they may start."""
        self._turn = 0
        """The batch whose turn it is, where there is an order."""
        self._last_submission = -inf
        """Of all batches whose turn has been."""
        self._plan: list[tuple[float, int, int, float]] = []
        """When to submit which job of which batch, as a heap, and since when that is known."""
        for index, batch in enumerate(links.batches):
            if not self._unfinished_predecessors[index]:
                self._set_free(index, batch.start, 0.0)

    def next_time(self) -> float:
        """The time of the next job of the batches that have started or are about to."""
        return self._plan[0][0] if self._plan else inf

    def submit(self, now: float) -> list[Submission]:
        """All jobs whose time has come."""
        submissions = []
        while self._plan and self._plan[0][0] <= now:
            _, index, place, decided = heappop(self._plan)
            job = self._links.batches[index].jobs[place]
            self._batch_of[job.id] = index
            note = recorded_note(job, self._links.session_of[index])
            submissions.append(Submission(job, self._profiles[job.profile], note, decided))
        return submissions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Go on with what waits for the batch that is over with this job."""
        index = self._batch_of.pop(job.id)
        self._unfinished_jobs[index] -= 1
        if self._unfinished_jobs[index]:
            return
        for successor in self._links.successors[index]:
            free = now + self._links.think_time(index, successor)
            self._earliest[successor] = max(self._earliest[successor], free)
            self._unfinished_predecessors[successor] -= 1
            if not self._unfinished_predecessors[successor]:
                self._set_free(successor, self._earliest[successor], now)

    def _set_free(self, index: int, time: float, now: float) -> None:
        if not self._ordered:
            self._start(index, time, now)
            return
        self._free[index] = time
        while self._turn in self._free:
            self._start(self._turn, max(self._free.pop(self._turn), self._last_submission), now)
            self._turn += 1

    def _start(self, index: int, earliest: float, decided: float) -> None:
        links = self._links
        start = self._presence(earliest, links.session_of[index] if links.opens_session(index) else None)
        batch = links.batches[index]
        for place, job in enumerate(batch.jobs):
            time = start + (job.submission_time - batch.start)
            self._last_submission = max(self._last_submission, time)
            heappush(self._plan, (time, index, place, decided))


@dataclass
class Adjusted(InBatches):
    """A batch of overlapping jobs starts when the think times since those it waits for have passed.

    Each user's jobs are cut into sessions and these into batches; inside a batch jobs keep their distances.
    The user is there at any hour. A rejected or killed job is over like any other. The papers let a job wait
    for what had ended before it *ran*; as a user can only wait before submitting, here it is what had ended
    before the batch was *submitted*.
    """

    name = "adjusted"

    def presences(self, workload: Workload) -> Callable[[Record], Presence]:
        """Always."""
        return lambda record: lambda time, opens: time


@dataclass
class Fluid(InBatches):
    """Recorded sessions are the user's hours: work flows into the one that is open, or waits for the next.

    A session is open from its first to its last recorded submission; with `session_end=finish` until all its
    jobs had finished, as users may also be there while they wait. Think times are kept inside sessions;
    between sessions there is none, as the user was away. So the first batch of a session goes as soon as
    those it waits for are over, if the user is there then: early, into a session that is still open, or
    late. A batch whose time comes between two sessions waits for the second. After the last session the user
    is always there, so that all is submitted.
    """

    name = "fluid"
    keeps_breaks = False

    session_end: Annotated[
        Literal["submission", "finish"],
        Meta(description="When a recorded session was over: at its last submission, or its last finish."),
    ] = "submission"

    def presences(self, workload: Workload) -> Callable[[Record], Presence]:
        """During the recorded sessions."""
        return self._windows

    def _windows(self, record: Record) -> Presence:
        """The sessions as windows. What opened a session of its own goes into another only before its end.

        They last until the last submission, or until the last finish, which may be after others have begun.
        """
        starts = [session.start for session in record.sessions]
        ends = [session.jobs[-1].submission_time for session in record.sessions]
        if self.session_end == "finish":
            ends = list(accumulate((session.finish for session in record.sessions), max))

        def presence(time: float, opened: int | None) -> float:
            if opened is not None and abs(time - starts[opened]) <= TICK:
                return time
            window = bisect_left(ends, time - TICK) if opened is None else bisect_right(ends, time)
            return time if window == len(ends) else max(time, starts[window])

        return presence


@dataclass
class Distribution(InBatches):
    """As adjusted, but only in the user's active hours and days; else at a time drawn from these.

    A user is active in an hour of the day and on a day of the week if a job was ever submitted then, by this
    user or, where the user has too few jobs to tell, by anybody. A batch whose time comes then goes at once.
    Any other one goes hour by hour through those that follow, and each one is taken with a chance
    proportional to the jobs of that hour and of that day; inside the hour each moment is as likely.
    """

    name = "distribution"

    fewest: Annotated[
        int, Meta(ge=1, description="With fewer jobs than this a user has the hours of the population.")
    ] = 30
    seed: Annotated[int, Meta(ge=0, description="Of the drawn times.")] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._population: Activity | None = None

    def learn(self, workload: Workload) -> None:
        """Learn when the population is active."""
        self._population = Activity(job.submission_time for job in workload.jobs)

    def presences(self, workload: Workload) -> Callable[[Record], Presence]:
        """In the active hours of each user."""
        population = self._population or Activity(job.submission_time for job in workload.jobs)

        def presence(record: Record) -> Presence:
            times = [job.submission_time for session in record.sessions for job in session.jobs]
            activity = population if len(times) < self.fewest else Activity(times)
            random = np.random.default_rng([self.seed, crc32(record.name.encode())])
            return lambda time, opens: activity.next_time(time, random)

        return presence


class Activity:
    """How likely submissions are in each hour of the week, counted from the beginning of the log."""

    def __init__(self, times: Iterable[float]) -> None:
        """The activity that submissions at these times show."""
        submissions = np.fromiter(times, dtype=np.float64)
        hours = np.bincount((submissions % DAY // HOUR).astype(np.intp), minlength=24)
        days = np.bincount((submissions // DAY % 7).astype(np.intp), minlength=7)
        chances = np.outer(days.astype(np.float64), hours.astype(np.float64))
        self.chances: NDArray[np.float64] = chances / chances.max()
        """For each day of the week and each hour of the day, relative to the liveliest."""

    def chance(self, time: float) -> float:
        """That of the hour in which this moment is."""
        return float(self.chances[int(time // DAY % 7), int(time % DAY // HOUR)])

    def next_time(self, time: float, random: np.random.Generator) -> float:
        """This time if it is an active one, or else a later one, drawn."""
        if self.chance(time) > 0:
            return time
        hour = time // HOUR
        while True:
            hour += 1
            if random.random() < self.chance(hour * HOUR):
                return float((hour + random.random()) * HOUR)
