"""The jobs of a schedule as columns of numbers, for the rules that look at all of them.

A table with all texts takes a kilobyte a job. So most rules see a long schedule piece by piece, and what is
needed of all jobs is kept in as few bytes as hold it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import JobState
from batsched_py.workload.columns import Column, as_bytes

Places = NDArray[np.int32]

#: The columns of a schedule that are kept, and further ones that promises are about; not all have turns.
_KEPT = ("submission_time", "starting_time", "execution_time", "finish_time")
_PROMISED = ("requested_time", "requested_number_of_resources", "held", "turn")

#: So many objects of Python are made at a time, which need much more memory than columns.
MANY = 10_000


def described(schedule: pd.DataFrame) -> pd.DataFrame:
    """The schedule with the full identifiers of its jobs as ``id``."""
    return schedule.assign(id=jobs_csv.full_ids(schedule))


def with_hosts(schedule: pd.DataFrame) -> pd.DataFrame:
    """The schedule with sets of hosts as ``hosts``, where it is made for few rows."""
    return schedule if "hosts" in schedule else schedule.assign(hosts=jobs_csv.host_sets(schedule))


def counted(schedule: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The schedule with how many hosts jobs have, ``held``, and the ``highest``; and their intervals."""
    intervals = jobs_csv.host_intervals(schedule)
    highest = np.full(len(schedule), -1)
    np.maximum.at(highest, intervals["place"].to_numpy(), intervals["high"].to_numpy())
    return schedule.assign(held=jobs_csv.counted(intervals, len(schedule)), highest=highest), intervals


class Rows:
    """Some rows of a schedule: ``rows["starting_time"]`` is a column of numbers."""

    def __init__(self, tables: Iterable[pd.DataFrame] = (), for_promises: bool = True) -> None:
        self._kept = (*_KEPT, *_PROMISED) if for_promises else _KEPT
        self._columns = {name: Column() for name in (*self._kept, "rejected", "intervals", "low", "high")}
        self._names = [as_bytes([])]
        for table in tables:
            self.add(*counted(table))

    def add(self, table: pd.DataFrame, intervals: pd.DataFrame) -> None:
        """Append the rows of a table, of which these are the intervals of hosts."""
        for name in self._kept:
            if name in table:
                self._columns[name].extend(table[name].to_numpy())
        rejected = (table["final_state"] == JobState.REJECTED).to_numpy().astype(np.int8)
        numbers = np.bincount(intervals["place"], minlength=len(table))
        low, high = intervals["low"].to_numpy(np.int64), intervals["high"].to_numpy(np.int64)
        for name, values in (("rejected", rejected), ("intervals", numbers), ("low", low), ("high", high)):
            self._columns[name].extend(values)
        self._names.append(as_bytes(table["id"].tolist()))

    def __len__(self) -> int:
        return len(self["rejected"])

    def __contains__(self, name: str) -> bool:
        return len(self[name]) == len(self)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].values

    @property
    def names(self) -> NDArray[np.bytes_]:
        """The identifiers of the jobs, in bytes that are ordered like them."""
        if len(self._names) > 1:
            self._names = [np.concatenate(self._names)]
        return self._names[0]

    def name(self, place: int) -> str:
        """The identifier of a job."""
        return name_of(self.names[place])

    @property
    def executed(self) -> Places:
        """The places of the jobs that were executed, that is, not rejected."""
        return np.flatnonzero(self["rejected"] == 0).astype(np.int32)

    @cached_property
    def _ends(self) -> NDArray[np.int32]:
        return self["intervals"].cumsum(dtype=np.int32)

    def mask(self, place: int) -> int:
        """The hosts of a job, as a mask."""
        last = self._ends[place]
        part, mask = slice(last - self["intervals"][place], last), 0
        for low, high in zip(self["low"][part].tolist(), self["high"][part].tolist(), strict=True):
            mask |= ((2 << (high - low)) - 1) << low
        return mask

    def hosts(self, place: int) -> HostSet:
        """The hosts of a job."""
        return HostSet(self.mask(place))


def name_of(name: bytes) -> str:
    """The name that was made bytes."""
    return name[:-1].decode(errors="surrogatepass")


def are_in(ordered: NDArray[np.bytes_], names: Sequence[str]) -> NDArray[np.bool_]:
    """Whether each name is among those that are in order."""
    wanted = as_bytes(names)
    if not len(ordered):
        return np.zeros(len(wanted), np.bool_)
    places = np.searchsorted(ordered, wanted).clip(max=len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[places] == wanted
    return found


def blocks(column: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The numbers in a column, some at a time."""
    for first in range(0, len(column), MANY):
        yield column[first : first + MANY]


def one_by_one(column: NDArray[Any]) -> Iterator[Any]:
    """The numbers in a column, as Python has them."""
    for some in blocks(column):
        yield from some.tolist()
