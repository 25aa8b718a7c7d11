"""What is drawn from the jobs of a log: how long jobs run, and which jobs come in the next hours.

A job runs for a share of its time limit. Jobs of the same user, name, size and limit are of one kind. A job
is drawn like one of its kind that has ended, the more likely the more of these there are; or else like those
of another kind, of the same user if it has had several, which is drawn once for all jobs of a kind. Jobs that
still run count among their kind with what was drawn for them, so that those that end early do not count for
all. Half of the waiting jobs of a kind run for the same share in a draw, as the jobs of a bag of tasks do.

Jobs that are yet to come are those that came at the same time of some week in the past, all of them, with
their users; at the same time of some day, or in some part of it, if the log is short.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from math import ceil, inf

import numpy as np
from msgspec import Struct

from batsched_py.workload.swf.log import DAY, WEEK, Floats, Integers, Random

#: The latest so many jobs are looked at: of one kind, and of all.
LATEST = (50, 5000)

#: The share of jobs of one kind that run equally long in a draw.
EQUAL = 0.5

#: So often a kind is drawn of which enough jobs ran long enough.
TRIES = 50

#: User, name, size and limit of jobs that are alike.
Kind = tuple[int, int, int, float]


class History(Struct, frozen=True):
    """Jobs that were submitted one after another; times are in seconds."""

    submit: Floats
    start: Floats
    """Infinite if it did not start yet."""
    end: Floats
    """When each ended; infinite if it never did."""
    limit: Floats
    size: Integers
    user: Integers
    name: Integers
    ran: Floats
    """How long each ran; 0 if it was cancelled while it waited, or still waits or runs."""

    def kind(self, job: int) -> Kind:
        """What it has in common with those alike."""
        return int(self.user[job]), int(self.name[job]), int(self.size[job]), float(self.limit[job])

    def before(self, moment: float) -> Past:
        """What was known of it at a moment."""
        return Past(self, moment)


class Past:
    """What is known of the jobs of a log at a moment: those that were submitted, and how long they ran."""

    def __init__(self, history: History, moment: float) -> None:
        self._jobs, self._moment = history, moment
        done = np.flatnonzero((history.end <= moment) & (history.ran > 0))[-LATEST[1] :]
        shares = np.minimum(history.ran[done] / history.limit[done], 1.0)
        self._ended = len(done)
        kinds: dict[Kind, list[float]] = defaultdict(list)
        for job, share in zip(done.tolist(), shares.tolist(), strict=True):
            kinds[history.kind(job)].append(share)
        self._shares = {kind: sorted(found[-LATEST[0] :]) for kind, found in kinds.items()}
        self._of_user: dict[int, list[Kind]] = defaultdict(list)
        for kind in self._shares:
            self._of_user[kind[0]].append(kind)
        self._all = list(self._shares)

    def __len__(self) -> int:
        """How many jobs have ended."""
        return self._ended

    def longer(self, user: int, share: float) -> float:
        """The part of a user's jobs, or else of all, that used more than such a share of their limits."""
        shares = [each for kind in self._of_user.get(user) or self._all for each in self._shares[kind]]
        return sum(each > share for each in shares) / max(len(shares), 1)

    def drawn(self, random: Random, jobs: Sequence[tuple[Kind, float]]) -> list[float]:
        """A draw: which shares of their limits jobs use that are of a kind, and have run for so long."""
        draw = _Draw(self._shares, self._of_user, self._all, random)
        found = [0.0] * len(jobs)
        order = sorted(range(len(jobs)), key=lambda place: -jobs[place][1])
        for place in order:
            (*_, limit), ran = kind, so_far = jobs[place]
            found[place] = draw.share(kind, so_far / limit) if ran < limit else 1.0
        return found

    def coming(self, random: Random, length: float) -> tuple[Integers, Floats]:
        """Jobs that come in some time from now on: which ones of the log, and when from now.

        They are those of the same hours of a week that is drawn; of a day, if the log is shorter than that.
        Of a log that is shorter still, parts are drawn one after another. It may be that nobody comes any
        more: one such part more would make it one of so many.
        """
        first = float(self._jobs.submit[0]) if len(self._jobs.submit) else inf
        known = self._moment - first
        period = WEEK if known >= 2 * max(WEEK, length) else DAY
        if known >= 2 * period:
            least, most = ceil(length / period), int(known // period)
            begin = self._moment - period * int(random.integers(min(least, most), most + 1))
            return self._between(begin, min(begin + length, self._moment))
        part = min(length, known / 2)
        if part <= 0 or random.random() < part / (known + part):
            return np.empty(0, dtype=np.int64), np.empty(0)
        found = []
        for later in np.arange(0.0, length, part).tolist():
            begin = float(random.uniform(first, self._moment - part))
            jobs, at = self._between(begin, begin + min(part, length - later))
            found.append((jobs, at + later))
        return np.concatenate([jobs for jobs, _ in found]), np.concatenate([at for _, at in found])

    def _between(self, begin: float, end: float) -> tuple[Integers, Floats]:
        first, last = np.searchsorted(self._jobs.submit, (begin, end))
        return np.arange(first, last), self._jobs.submit[first:last] - begin

    def share(self, job: int) -> float | None:
        """The share of its limit that a job of the log used, if it is known by now."""
        if self._jobs.end[job] > self._moment or not self._jobs.ran[job]:
            return None
        return min(float(self._jobs.ran[job] / self._jobs.limit[job]), 1.0)


class _Draw:
    """What is the same for all jobs of one draw."""

    def __init__(
        self,
        shares: dict[Kind, list[float]],
        of_user: dict[int, list[Kind]],
        every: list[Kind],
        random: Random,
    ) -> None:
        self._shares, self._of_user, self._every, self._random = shares, of_user, every, random
        self._running: dict[Kind, list[float]] = defaultdict(list)
        self._others: dict[Kind, list[float]] = {}
        self._equal: dict[Kind, float] = {}

    def share(self, kind: Kind, so_far: float) -> float:
        """The share of its limit that a job uses that has used so much."""
        own = _above(self._shares.get(kind, []), so_far) + self._running[kind]
        if kind not in self._others:
            self._others[kind] = self._drawn_kind(kind, so_far)
        shares = self._others[kind]
        others = _above(shares, so_far)
        weight = len(others) / len(shares) if shares else 0.0
        is_own = self._random.random() * (len(own) + weight) < len(own)
        possible = own if is_own else others
        share = float(possible[int(self._random.integers(len(possible)))]) if possible else 1.0
        if so_far:
            self._running[kind].append(share)
        elif self._random.random() < EQUAL:
            share = self._equal.setdefault(kind, share)
        return share

    def _drawn_kind(self, kind: Kind, so_far: float) -> list[float]:
        """The shares of another kind, some jobs of which used more than so much."""
        others = [each for each in self._of_user.get(kind[0], ()) if each != kind]
        is_own = self._random.random() * (len(others) + 1) < len(others)
        for kinds in (others, self._every) if is_own else (self._every,):
            for _ in range(TRIES if kinds else 0):
                shares = self._shares[kinds[int(self._random.integers(len(kinds)))]]
                if self._random.random() * len(shares) < len(_above(shares, so_far)):
                    return shares
        return []


def _above(shares: list[float], least: float) -> list[float]:
    """Those of some sorted shares that are larger than another."""
    return shares[bisect_right(shares, least) :] if least else shares
