"""Who is there, week by week: a population made of the users of a log, and the jobs of a log as one mix.

N. Zakay and D. Feitelson, "Workload Resampling for Performance Evaluation of Parallel Job Schedulers",
Concurrency and Computation 26(12), 2014; D. Feitelson, "Resampling with Feedback: A New Paradigm of Using
Workload Data for Performance Evaluation", JSSPP 2021, section 4.2.

The unit is the *stream* of a user: all jobs of the user, as recorded. Streams are moved by whole weeks, so
that every job keeps its day of the week and its time of the day.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from math import floor

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.dependencies import depends, without_dependencies
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Homogeneous, Profile
from batsched_py.users import one_by_one, part_of
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import LOG_SPEED

HOUR = 3600.0
DAY = 24 * HOUR
WEEK = 7 * DAY


def run_time_of(job: Job, profile: Profile) -> float:
    """How long a job runs on the machine of its log; of one that does more than compute, its walltime."""
    match profile:
        case Homogeneous(work=work):
            return work / LOG_SPEED
        case Delay(seconds=seconds):
            return seconds
    return job.walltime


def no_longer_than(workload: Workload, hours: float) -> Workload:
    """The workload without the jobs that run for more than so many hours; 0 leaves all in it."""
    if not hours:
        return workload
    places = [
        place
        for place, job in enumerate(workload.jobs)
        if run_time_of(job, workload.profiles[job.profile]) <= hours * 3600
    ]
    if not places:
        source = workload.path or workload.name
        raise InputError(f"{source}: no job runs for at most {hours:g} h, so there is nothing to submit")
    return part_of(workload, places)


def without_waits(workload: Workload) -> Workload:
    """The workload with jobs that wait for no others: in a mix, who comes before whom means nothing."""
    if not have_dependencies(workload.jobs):
        return workload
    jobs = [without_dependencies(job) if depends(job) else job for job in workload.jobs]
    return replace(workload, jobs=jobs)


def shuffled(workload: Workload, seed: int) -> Workload:
    """The same submissions with jobs that are dealt anew: who submits when stays, what is submitted does not.

    A job takes along all that is recorded of it, also its wait, but not the jobs that it waited for.
    """
    jobs = list(without_waits(workload).jobs)
    places = np.random.default_rng([seed, 0, 1]).permutation(len(jobs)).tolist()
    dealt = [
        replace(
            jobs[place],
            submission_time=job.submission_time,
            extra=jobs[place].extra | ({} if job.user is None else {"user": job.extra["user"]}),
        )
        for job, place in zip(jobs, places, strict=True)
    ]
    finishes = None
    if (recorded := workload.finishes) is not None:
        finishes = [
            job.submission_time + (float(recorded[place]) - jobs[place].submission_time)
            for job, place in zip(jobs, places, strict=True)
        ]
    return replace(workload, jobs=dealt, finishes=finishes)


class Stream(Struct, eq=False):
    """All jobs of a user, in submission order."""

    user: str
    workload: Workload
    first_week: int
    last_week: int

    @property
    def nb_weeks(self) -> int:
        """From the week of the first job to that of the last."""
        return self.last_week - self.first_week + 1


#: Two hundred years; a log that is longer has a job whose submission is a mistake.
MOST_WEEKS = 200 * 53


class Pool(Struct, eq=False):
    """The users of a log from whom populations are made."""

    nb_weeks: int
    """Of the log."""
    long_term: list[Stream]
    temporary: list[Stream]
    """Without those who were there only when the log began or ended, and perhaps for longer."""
    nb_temporary: float
    """How many temporary users the log has in a week, on average, all of them counted."""
    arrivals: float
    """How many temporary users come in a week, on average."""

    @classmethod
    def of(cls, workload: Workload, long_term_weeks: int, margin: int) -> Pool:
        """Long-term users are those with activity over so many weeks or more, temporary ones all others.

        Temporary users are left out who were there in the first or in the last ``margin`` weeks only.
        """
        streams = [
            Stream(user, part, *(int(part.jobs[end].submission_time // WEEK) for end in (0, -1)))
            for user, part in one_by_one(workload).items()
        ]
        if not streams:
            raise InputError(f"{workload.path or workload.name}: no job names a user, so there is nobody")
        nb_weeks = max(stream.last_week for stream in streams) + 1
        if nb_weeks > MOST_WEEKS:
            raise InputError(
                f"the jobs are submitted over {nb_weeks:,} weeks, of which each would be resampled; "
                f"take a period of at most {MOST_WEEKS:,} weeks, or mend the last submissions"
            )
        temporary = [stream for stream in streams if stream.nb_weeks < long_term_weeks]
        return cls(
            nb_weeks,
            [stream for stream in streams if stream.nb_weeks >= long_term_weeks],
            [s for s in temporary if s.last_week >= margin and s.first_week < nb_weeks - margin],
            sum(stream.nb_weeks for stream in temporary) / nb_weeks,
            len(temporary) / nb_weeks,
        )


class Stay(Struct, eq=False):
    """A stream that is played once: somebody who comes in some week."""

    name: str
    """``USER.NUMBER``, a number for each stay."""
    stream: Stream
    week: int
    """When it begins."""
    from_week: int
    """The week of the log that is played first."""
    regular: bool
    """Whether it begins again some time after it is over."""
    offset: float = 0.0
    """By how much it is moved in addition, where cycles are not kept."""

    @property
    def shift(self) -> float:
        """How much later than recorded its jobs are, in seconds: whole weeks, where cycles are kept."""
        return (self.week - self.from_week) * WEEK + self.offset

    @property
    def last_week(self) -> int:
        """The week of its last job, if nothing keeps the user."""
        return self.week + self.stream.last_week - self.from_week

    @property
    def places(self) -> range:
        """The jobs of the stream that are played."""
        jobs = self.stream.workload.jobs
        skipped = sum(1 for job in jobs if job.submission_time < self.from_week * WEEK)
        return range(skipped, len(jobs))


class Rules(Struct, frozen=True, kw_only=True):
    """How a population is made of a pool."""

    seed: int = 0
    load: float = 1.0
    """How many times the users of the log there are."""
    rest: int | None = None
    """How many weeks long-term users are away between two stays; as long as in the log if not said."""
    begin_active: bool = False
    """Whether all long-term users are there at the beginning; if not, each may be away."""
    cycles: bool = True
    """Whether jobs keep their weekday and time of the day; if not, each stay is moved by part of a week."""
    weights: Mapping[str, float] = {}
    """How many times more often than others some users are taken."""


class Turnover:
    """Who comes in each week.

    What is drawn for a week depends on nothing but the seed and the week. So two simulations with one seed
    have the same population, whatever their users live through.
    """

    def __init__(self, pool: Pool, rules: Rules) -> None:
        known = {stream.user for stream in pool.long_term + pool.temporary}
        for user in rules.weights:
            if user not in known:
                raise InputError(f"there is no user {user!r} in the log to be taken more often")
        self._pool = pool
        self._rules = rules
        self._refuse_too_much()
        self._count = 0
        """How many have come."""
        self._nb_planned = 0
        self._again: list[tuple[int, int, Stream, int]] = []
        """When which long-term users come, as a heap: week, number, stream, first week of the log."""
        random = np.random.default_rng([rules.seed, 0])
        for stream in pool.long_term:
            for _ in range(_rounded(rules.load * rules.weights.get(stream.user, 1.0), random)):
                away = 0 if rules.begin_active else self._rest(stream)
                place = int(random.integers(stream.nb_weeks + away))
                if place < stream.nb_weeks:
                    self._come_again(0, stream, stream.first_week + place)
                else:
                    week = stream.nb_weeks + self._rest(stream) - place
                    self._come_again(week, stream, stream.first_week)

    def _refuse_too_much(self) -> None:
        """As nobody comes twice in a week, there are only so many temporary users to begin with."""
        load, pool = self._rules.load, self._pool
        able = sum(self._rules.weights.get(stream.user, 1.0) > 0 for stream in pool.temporary)
        if load > 1 and load * pool.nb_temporary > able:
            most = max(floor(100 * able / pool.nb_temporary) / 100, 1.0)
            raise InputError(
                f"load {load:g}: the log has too few temporary users, of whom nobody comes twice in a week; "
                f"the largest load is {most:g}"
            )

    def come(self, week: int) -> list[Stay]:
        """Who comes in a week; to be asked for one week after another, from 0 on."""
        random = np.random.default_rng([self._rules.seed, 1 + week])
        stays = []
        while self._again and self._again[0][0] <= week:
            _, _, stream, from_week = heappop(self._again)
            stays.append(self._stay(stream, week, from_week, random, regular=True))
        load, pool = self._rules.load, self._pool
        if week:
            come = self._drawn(int(random.poisson(load * pool.arrivals)), random)
            return stays + [self._stay(stream, week, stream.first_week, random) for stream in come]
        lengths = [float(stream.nb_weeks) for stream in pool.temporary]
        for stream in self._drawn(_rounded(load * pool.nb_temporary, random), random, lengths):
            from_week = stream.first_week + int(random.integers(stream.nb_weeks))
            stays.append(self._stay(stream, 0, from_week, random))
        return stays

    def left(self, stay: Stay, week: int) -> None:
        """Somebody has submitted the last job, in this week."""
        if stay.regular:
            self._come_again(week + self._rest(stay.stream) + 1, stay.stream, stay.stream.first_week)

    def _rest(self, stream: Stream) -> int:
        return self._pool.nb_weeks - stream.nb_weeks if self._rules.rest is None else self._rules.rest

    def _come_again(self, week: int, stream: Stream, from_week: int) -> None:
        self._nb_planned += 1
        heappush(self._again, (week, self._nb_planned, stream, from_week))

    def _stay(
        self, stream: Stream, week: int, from_week: int, random: np.random.Generator, regular: bool = False
    ) -> Stay:
        self._count += 1
        offset = 0.0 if self._rules.cycles else float(random.integers(int(WEEK)))
        return Stay(f"{stream.user}.{self._count}", stream, week, from_week, regular, offset)

    def _drawn(
        self, count: int, random: np.random.Generator, lengths: list[float] | None = None
    ) -> list[Stream]:
        """So many temporary users, nobody twice."""
        streams = self._pool.temporary
        weights = np.array([self._rules.weights.get(stream.user, 1.0) for stream in streams])
        if lengths is not None:
            weights = weights * np.array(lengths)
        count = min(count, int((weights > 0).sum()))
        if not count:
            return []
        places = random.choice(len(streams), size=count, replace=False, p=weights / weights.sum())
        return [streams[place] for place in places.tolist()]


def _rounded(number: float, random: np.random.Generator) -> int:
    """A whole number that is the given one on average."""
    return int(number + random.random())
