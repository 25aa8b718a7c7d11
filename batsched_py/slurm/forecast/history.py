"""What is drawn from the jobs of a log: how long jobs run, and which jobs come in the next hours.

A job runs for a share of its time limit, drawn from its like: jobs of the same user, size and limit, else of
the same user, else of anybody. In a draw, half of the waiting jobs that are alike in all three run for the
same share, as the jobs of a bag of tasks do. Jobs that are yet to come are those that came at the same time
of some week in the past, all of them, with their users.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np
from msgspec import Struct

from batsched_py.workload.swf.log import DAY, WEEK, Floats, Integers, Random

#: A job is compared with so many jobs of the same user, size and limit, or else with all of the user.
ALIKE = 10

#: A user with fewer jobs is taken to be like all users.
ENOUGH = 30

#: The latest so many jobs are looked at: of one kind, of a user, and of all users.
LATEST = (50, 200, 5000)

#: The share of jobs of one kind that run equally long in a draw.
EQUAL = 0.5


class History(Struct, frozen=True):
    """Jobs that were submitted one after another; times are in seconds."""

    submit: Floats
    end: Floats
    """When each ended; infinite if it never did."""
    run_time: Floats
    limit: Floats
    size: Integers
    user: Integers

    def before(self, moment: float) -> Past:
        """What was known of it at a moment."""
        return Past(self, moment)


class Past:
    """What is known of the jobs of a log at a moment: those that were submitted, and how long they ran."""

    def __init__(self, history: History, moment: float) -> None:
        self._jobs, self._moment = history, moment
        self._done = np.flatnonzero(history.end <= moment)
        self._shares = np.minimum(history.run_time / history.limit, 1.0)
        self._all = self._shares[self._done[-LATEST[2] :]]
        self._of_kind: dict[tuple[int, int, float], Floats] = {}

    def __len__(self) -> int:
        """How many jobs have ended."""
        return len(self._done)

    @property
    def is_empty(self) -> bool:
        """Whether no job has ended."""
        return not len(self._done)

    def like(self, user: int, size: int = 0, limit: float = 0.0) -> Floats:
        """The shares that jobs used which are like those of a user, and if told, of a size and limit."""
        kind = user, size, limit
        if kind not in self._of_kind:
            jobs = self._jobs
            own = self._done[jobs.user[self._done] == user]
            same = own[(jobs.size[own] == size) & (jobs.limit[own] == limit)]
            chosen = same[-LATEST[0] :] if len(same) >= ALIKE else own[-LATEST[1] :]
            few = len(same) < ALIKE and len(own) < ENOUGH
            self._of_kind[kind] = self._all if few else self._shares[chosen]
        return self._of_kind[kind]

    def drawing(self, random: Random) -> Callable[[int, int, float, float], float]:
        """A draw: how long a job of a user, size and limit runs in all that has run for a while already."""
        equal: dict[tuple[int, int, float], float] = {}

        def run_time(user: int, size: int, limit: float, ran: float) -> float:
            kind = user, size, limit
            for shares in (self.like(*kind), self._all):
                possible = shares[shares * limit > ran]
                if len(possible):
                    share = float(random.choice(possible))
                    if not ran and random.random() < EQUAL:
                        share = equal.setdefault(kind, share)
                    return share * limit
            return limit

        return run_time

    def coming(self, random: Random, length: float) -> tuple[Integers, Floats]:
        """Jobs that come in some time from now on: which ones of the log, and when from now.

        They are those of the same hours of a week that is drawn; of a day, if the log is shorter than that.
        If it is shorter than the time that is asked for, they come for as long as the log knows.
        """
        known = self._moment - float(self._jobs.submit[0])
        period = WEEK if known >= 2 * max(WEEK, length) else DAY
        least, most = ceil(length / period), int(known // period)
        if not most:
            return np.empty(0, dtype=np.int64), np.empty(0)
        begin = self._moment - period * random.integers(min(least, most), most + 1)
        end = min(begin + length, self._moment)
        first, last = np.searchsorted(self._jobs.submit, (begin, end))
        return np.arange(first, last), self._jobs.submit[first:last] - begin

    def has_ended(self, job: int) -> bool:
        """Whether it is known how long a job of the log ran."""
        return bool(self._jobs.end[job] <= self._moment)
