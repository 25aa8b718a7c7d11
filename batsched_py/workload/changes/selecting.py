"""Changes that keep some of the jobs: by time, by number, by size, by who stands out."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.changes import Change, kept
from batsched_py.workload.description import users
from batsched_py.workload.description.over_time import intervals
from batsched_py.workload.swf.log import DAY, HOUR, WEEK, SwfLog, local_time, start_of, wall_clock, zone_of

Floats = NDArray[np.float64]

_UNITS: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": HOUR, "d": DAY, "w": WEEK}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)")


def span(text: str) -> float:
    """A number of seconds, written with its unit.

    >>> span("90min"), span("4w")
    (5400.0, 2419200.0)
    """
    length = _seconds(text)
    if not length:
        raise InputError(
            f"{text!r} is no span of time; write a number above 0 with s, min, h, d or w, like 28d"
        )
    return length


def _seconds(text: str) -> float | None:
    """A number of seconds, which may be 0; none if the text is no span."""
    parts = _SPAN.fullmatch(text)
    return None if parts is None else float(parts[1]) * _UNITS[parts[2]]


def moment(text: str, log: SwfLog) -> float:
    """A moment in the time of a log: a date on its wall clock, or a span since its first submission."""
    if (length := _seconds(text)) is not None:
        return float(log.submit.min()) + length
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no moment; write a date like 2003-01-15 or 2003-01-15T08:00, or a span since the "
            "first submission like 30d"
        ) from None
    start = start_of(log)
    if start is None:
        raise InputError(f"{log.path or 'the log'} does not say when it began; write a span like 30d")
    return (date if date.tzinfo else date.replace(tzinfo=zone_of(log))).timestamp() - start


@dataclass(frozen=True)
class First(Change):
    """Keep the first jobs."""

    name = "first"

    jobs: Annotated[int, Meta(gt=0, description="How many.")]

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """Jobs are in the order of their submissions."""
        return kept(log, np.arange(min(self.jobs, len(log))), self)


@dataclass(frozen=True)
class Period(Change):
    """Keep the jobs that are submitted in a period.

    A moment is a date on the wall clock of the log, like 2003-01-15 or 2003-01-15T08:00, or a span since the
    first submission, like 36h, 28d or 4w. Jobs that were waiting or running when the period began are not
    there any more, so the machine is empty at first.
    """

    name = "period"

    start: Annotated[str, Meta(description="The first moment of the period; the beginning by default.")] = ""
    end: Annotated[str, Meta(description="The first moment after the period; the end by default.")] = ""

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """Times stay as they are, so that the header still says when they were."""
        inside = log.submit == log.submit
        if self.start:
            inside &= log.submit >= moment(self.start, log)
        if self.end:
            inside &= log.submit < moment(self.end, log)
        if not inside.any():
            raise InputError(f"{self}: no job of {log.path or 'the log'} is submitted in this period")
        return kept(log, inside, self)


@dataclass(frozen=True)
class Part(Change):
    """Cut the log into equal parts and keep one of them.

    Weeks begin on Mondays at midnight and months on their first day, on the wall clock of the log; parts of
    another length, like 28d, are counted from the first submission. Parts at both ends that the log does not
    cover are left out. As the machine is empty at the beginning of a part, long parts distort less.
    """

    name = "part"

    number: Annotated[int, Meta(gt=0, description="Which one, counted from 1.")]
    every: Annotated[str, Meta(description="How long a part is: week, month, or a span like 28d.")] = "week"

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The part, if there are so many."""
        parts = _parts(log, self.every)
        if self.number > len(parts):
            raise InputError(f"{self}: {log.path or 'the log'} has {len(parts)} parts of one {self.every}")
        changed, text = kept(log, parts[self.number - 1], self)
        return changed, f"part {self.number} of {len(parts)}, {text}"


def split(log: SwfLog, every: str) -> list[SwfLog]:
    """All parts of a log, each with its line of history."""
    return [Part(number, every).apply(log) for number in range(1, len(_parts(log, every)) + 1)]


def outside_of_parts(log: SwfLog, every: str) -> str:
    """The jobs at both ends of a log that no whole part has, in words; nothing if all are in one."""
    parts = _parts(log, every)
    if not parts:
        return ""
    ends = (("first", log.submit[: parts[0][0]]), ("last", log.submit[parts[-1][-1] + 1 :]))
    return " and ".join(
        f"the {end} {len(times)} jobs, of {(times[-1] - times[0]) / DAY:.1f} days"
        for end, times in ends
        if len(times)
    )


def bounds_of_parts(log: SwfLog, every: str) -> list[tuple[float, float]]:
    """When each part begins and ends, in seconds since the first submission of a job that can run.

    A part ends where the next one begins, if that follows at once.
    """
    clock, numbers, length = _clock(log, every)
    firsts = [int(jobs[0]) for jobs in _parts(log, every)]
    begins = [float(log.submit[job] - clock[job]) for job in firsts]
    ends = [begin + length(job) for begin, job in zip(begins, firsts, strict=True)]
    for place, (job, following) in enumerate(pairwise(firsts)):
        if numbers[following] == numbers[job] + 1:
            ends[place] = begins[place + 1]
    zero = float(log.submit[log.processors > 0].min()) if begins else 0.0
    return [(begin - zero, end - zero) for begin, end in zip(begins, ends, strict=True)]


def _parts(log: SwfLog, every: str) -> list[NDArray[np.intp]]:
    """The positions of the jobs of each part that the log covers and that has jobs."""
    clock, numbers, length = _clock(log, every)
    first, last = int(np.argmin(log.submit)), int(np.argmax(log.submit))
    slack = DAY if every == "month" else DAY / 2
    first_is_whole = clock[first] < slack
    last_is_whole = clock[last] >= length(last) - slack
    whole = (first_is_whole | (numbers > numbers.min())) & (last_is_whole | (numbers < numbers.max()))
    return [np.flatnonzero(whole & (numbers == number)) for number in np.unique(numbers[whole]).tolist()]


def _clock(log: SwfLog, every: str) -> tuple[Floats, NDArray[np.int64], Callable[[int], float]]:
    """For each job the time since its part began, and the number of this part; and how long the part is."""
    if every == "month":
        if start_of(log) is None:
            where = "so not where its months are"
            raise InputError(f"{log.path or 'the log'} does not say when it began, {where}")
        local = local_time(log, log.submit)
        months = local.astype("datetime64[M]")
        since = (local - months.astype("datetime64[s]")).astype(np.float64) + log.submit % 1
        days = (months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")
        return since, months.astype(np.int64), lambda job: float(days[job].astype(np.int64)) * DAY
    length = WEEK if every == "week" else span(every)
    clock = wall_clock(log, log.submit) if every == "week" else log.submit - log.submit.min()
    return clock % length, (clock // length).astype(np.int64), lambda job: length


class _ByNumber:
    """Keeps the jobs that have one of some numbers in a column, if any are given, and none of some others."""

    column: ClassVar[str]
    keep: tuple[int, ...]
    drop: tuple[int, ...]

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The jobs with those numbers."""
        assert isinstance(self, Change)
        numbers = getattr(log, self.column)
        for number in (*self.keep, *self.drop):
            if number not in numbers:
                raise InputError(f"{self}: no job of the log has the number {number}")
        chosen = np.isin(numbers, self.keep) if self.keep else np.ones(len(numbers), dtype=bool)
        return kept(log, chosen & ~np.isin(numbers, self.drop), self)


@dataclass(frozen=True)
class Users(_ByNumber, Change):
    """Keep the jobs of some users, or leave them out."""

    name = "users"
    column = "user"

    keep: Annotated[tuple[int, ...], Meta(description="Numbers of users, like 3,7; all by default.")] = ()
    drop: Annotated[tuple[int, ...], Meta(description="Numbers of users to leave out.")] = ()


@dataclass(frozen=True)
class Queues(_ByNumber, Change):
    """Keep the jobs of some queues, or leave them out."""

    name = "queues"
    column = "queue"

    keep: Annotated[tuple[int, ...], Meta(description="Numbers of queues, like 3,7; all by default.")] = ()
    drop: Annotated[tuple[int, ...], Meta(description="Numbers of queues to leave out.")] = ()


@dataclass(frozen=True)
class Partitions(_ByNumber, Change):
    """Keep the jobs of some partitions, or leave them out."""

    name = "partitions"
    column = "partition"

    keep: Annotated[
        tuple[int, ...], Meta(description="Numbers of partitions, like 3,7; all by default.")
    ] = ()
    drop: Annotated[tuple[int, ...], Meta(description="Numbers of partitions to leave out.")] = ()


Action = Literal["remove", "keep"]


@dataclass(frozen=True)
class Sizes(Change):
    """Keep the jobs that ran on some numbers of processors."""

    name = "sizes"

    least: Annotated[int, Meta(ge=1, description="The smallest size.")] = 1
    most: Annotated[int | None, Meta(description="The largest size; any by default.")] = None

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The jobs of these sizes."""
        return kept(log, (log.processors >= self.least) & (log.processors <= (self.most or np.inf)), self)


@dataclass(frozen=True)
class Flurries(Change):
    """Remove the flurries, or keep nothing else.

    A flurry is a week, counted from the first submission, in which one user submits at least a given share of
    the jobs and at least a given factor times the jobs of the median week; consecutive weeks are one.
    """

    name = "flurries"

    action: Annotated[Action, Meta(description="What happens to the jobs of a flurry.")] = "remove"
    share: Annotated[float, Meta(gt=0, le=1, description="Least share of a week's jobs.")] = users.SHARE
    factor: Annotated[float, Meta(gt=0, description="Least multiple of the median week's jobs.")] = (
        users.FACTOR
    )

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log without the flurries, or they alone."""
        weeks = intervals(log.submit, WEEK)
        found = users.find_flurries(log, self.share, self.factor)
        jobs = np.zeros(len(log), dtype=bool)
        for flurry in found:
            jobs |= (log.user == flurry.user) & (weeks >= flurry.first_week) & (weeks <= flurry.last_week)
        which = ", ".join(f"user {each.user} in weeks {each.first_week}-{each.last_week}" for each in found)
        return _chosen(log, jobs, self, which)


@dataclass(frozen=True)
class Dominating(Change):
    """Remove the jobs of users who submit a large share of all jobs, or keep nothing else."""

    name = "dominating"

    action: Annotated[Action, Meta(description="What happens to the jobs of these users.")] = "remove"
    share: Annotated[float, Meta(gt=0, le=1, description="Least share of all jobs.")] = users.DOMINATING_SHARE

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log without these users, or they alone."""
        found = users.find_dominating(log, self.share)
        jobs = np.isin(log.user, [each.user for each in found])
        which = ", ".join(f"user {each.user} with {each.share_of_jobs:.0%} of all jobs" for each in found)
        return _chosen(log, jobs, self, which)


def _chosen(log: SwfLog, jobs: np.ndarray, change: Flurries | Dominating, which: str) -> tuple[SwfLog, str]:
    changed, _ = kept(log, jobs if change.action == "keep" else ~jobs, change)
    verb = "kept" if change.action == "keep" else "removed"
    return changed, f"{verb} {int(jobs.sum())} of {len(log)} jobs ({which or 'there is none'})"
