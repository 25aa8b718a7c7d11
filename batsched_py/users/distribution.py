"""Users who submit in the hours and on the days on which they use to.

N. Zakay and D. Feitelson, "Preserving User Behavior Characteristics in Trace-Based Simulation of Parallel Job
Scheduling", MASCOTS 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated
from zlib import crc32

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.users.batches import InBatches, Presence, Record
from batsched_py.workload.model import Workload

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
