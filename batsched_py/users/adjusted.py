"""Users who keep their think times between batches.

N. Zakay and D. Feitelson, "Preserving User Behavior Characteristics in Trace-Based Simulation of Parallel Job
Scheduling", MASCOTS 2014.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Literal
from zlib import crc32

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.protocol.jobs import TICK
from batsched_py.users.batches import InBatches, Presence, Record
from batsched_py.workload.model import Workload


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
        return _sessions_to_submission if self.session_end == "submission" else _sessions_to_finish


def _sessions_to_submission(record: Record) -> Presence:
    """Sessions until the last submission."""
    return _windows(record, [session.jobs[-1].submission_time for session in record.sessions])


def _sessions_to_finish(record: Record) -> Presence:
    """Sessions until the last finish, which may be after others have begun."""
    return _windows(record, list(accumulate((session.finish for session in record.sessions), max)))


def _windows(record: Record, ends: list[float]) -> Presence:
    """The sessions as windows. What opened a session of its own goes into another only before its end."""
    starts = [session.start for session in record.sessions]

    def presence(time: float, opened: int | None) -> float:
        if opened is None:
            window = bisect_left(ends, time - TICK)
        elif abs(time - starts[opened]) <= TICK:
            return time
        else:
            window = bisect_right(ends, time)
        return time if window == len(ends) else max(time, starts[window])

    return presence


HOUR = 3600.0
DAY = 24 * HOUR


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
        self._population = Activity.of(job.submission_time for job in workload.jobs)

    def presences(self, workload: Workload) -> Callable[[Record], Presence]:
        """In the active hours of each user."""
        population = self._population or Activity.of(job.submission_time for job in workload.jobs)

        def presence(record: Record) -> Presence:
            times = [job.submission_time for session in record.sessions for job in session.jobs]
            activity = population if len(times) < self.fewest else Activity.of(times)
            random = np.random.default_rng([self.seed, crc32(record.name.encode())])
            return lambda time, opens: activity.next_time(time, random)

        return presence


class Activity:
    """How likely submissions are in each hour of the week, counted from the beginning of the log."""

    def __init__(self, hours: NDArray[np.float64], days: NDArray[np.float64]) -> None:
        chances = np.outer(days, hours)
        self.chances: NDArray[np.float64] = chances / chances.max()
        """For each day of the week and each hour of the day, relative to the liveliest."""

    @classmethod
    def of(cls, times: Iterable[float]) -> Activity:
        """The activity that submissions at these times show."""
        submissions = np.fromiter(times, dtype=np.float64)
        hours = np.bincount((submissions % DAY // HOUR).astype(np.intp), minlength=24)
        days = np.bincount((submissions // DAY % 7).astype(np.intp), minlength=7)
        return cls(hours.astype(np.float64), days.astype(np.float64))

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
