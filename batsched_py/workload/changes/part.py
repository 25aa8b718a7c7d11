"""Parts of a log, one of which is one repetition of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.changes.base import Change
from batsched_py.workload.changes.moments import span
from batsched_py.workload.swf.log import Integers, SwfLog
from batsched_py.workload.wall_clock import DAY, WEEK, local_time, start_of, wall_clock


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
        changed = log.select(parts[self.number - 1])
        return changed, f"part {self.number} of {len(parts)}, {len(changed)} of {len(log)} jobs kept"


def split(log: SwfLog, every: str) -> list[SwfLog]:
    """All parts of a log, each with its line of history."""
    return [Part(number, every).apply(log) for number in range(1, count_parts(log, every) + 1)]


def count_parts(log: SwfLog, every: str) -> int:
    """How many parts a log has."""
    return len(_parts(log, every))


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


def _parts(log: SwfLog, every: str) -> list[NDArray[np.intp]]:
    """The positions of the jobs of each part that the log covers and that has jobs."""
    submit = log.submit
    if every == "month":
        numbers, first_is_whole, last_is_whole = _months(log)
    else:
        length = WEEK if every == "week" else span(every)
        clock = wall_clock(log, submit) if every == "week" else submit - submit.min()
        numbers = (clock // length).astype(np.int64)
        first_is_whole = float(clock.min()) % length < DAY / 2
        last_is_whole = float(clock.max()) % length > length - DAY / 2
    whole = np.ones(len(log), dtype=bool)
    if not first_is_whole:
        whole &= numbers > numbers.min()
    if not last_is_whole:
        whole &= numbers < numbers.max()
    return [np.flatnonzero(whole & (numbers == number)) for number in np.unique(numbers[whole]).tolist()]


def _months(log: SwfLog) -> tuple[Integers, bool, bool]:
    """The month of each job, and whether the log covers the first and the last of them."""
    if start_of(log) is None:
        raise InputError(f"{log.path or 'the log'} does not say when it began, so not where its months are")
    days = local_time(log, log.submit).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    first_is_whole = days.min() == months.min().astype("datetime64[D]")
    last_is_whole = days.max() == (months.max() + 1).astype("datetime64[D]") - 1
    return months.astype(np.int64), bool(first_is_whole), bool(last_is_whole)
