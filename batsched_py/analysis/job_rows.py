"""The jobs of a schedule as columns of numbers, for what is measured of them.

Most measures need no text of a job, and a table with all texts takes long to make and a lot of memory. So the
library of the native engine reads the numbers alone. Without it, and where a file is in any way unusual, the
whole table is read as :mod:`batsched_py.analysis.schedule` does, which tells what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py import native
from batsched_py.analysis import schedule as jobs_csv
from batsched_py.input_files import open_input
from batsched_py.protocol.jobs import JobState

if TYPE_CHECKING:
    import pandas as pd

#: The columns of numbers that are read without the others.
_NUMBERS: Final = (
    "submission_time",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
)
_TYPES: Final = dict.fromkeys(_NUMBERS, np.float64) | {
    "state": np.uint8,
    "held": np.int32,
    "highest": np.int32,
}
_STATES: Final = [str(state) for state in jobs_csv.FINAL_STATES]

#: So many bytes are read at a time.
_PIECE: Final = 1 << 20


class _Columns(dict[str, NDArray[Any]]):
    """Columns that are made when they are asked for."""

    def __init__(self, make: Callable[[str], NDArray[Any]]) -> None:
        self._make = make

    def __missing__(self, name: str) -> NDArray[Any]:
        self[name] = made = self._make(name)
        return made


class JobRows:
    """Some rows of a ``jobs.csv``: ``rows["waiting_time"]`` is a column of numbers.

    Beside the columns of the file there are ``held``, how many hosts an executed job had at its end,
    ``mean_held``, how many it had in the mean of its run time, ``highest``, the highest number of them, and
    ``state``, the place of its final state among :data:`~batsched_py.analysis.schedule.FINAL_STATES`.
    """

    def __init__(
        self,
        count: int,
        columns: dict[str, NDArray[Any]],
        table: Callable[[], pd.DataFrame],
        has_notes: bool | None = None,
    ) -> None:
        self._count = count
        self._columns = columns
        self._make_table = table
        self._has_notes = has_notes

    @classmethod
    def of(cls, table: pd.DataFrame) -> JobRows:
        """The rows of a table that was read."""
        rows = cls(len(table), _Columns(lambda name: _column_of(rows, name)), lambda: table)
        return rows

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<JobRows of {self._count:,} jobs>"

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    @cached_property
    def table(self) -> pd.DataFrame:
        """All that is known of the jobs, as :func:`~batsched_py.analysis.schedule.read_schedule` has it."""
        return self._make_table()

    @cached_property
    def has_notes(self) -> bool:
        """Whether any job has a note; if there is none, nobody needs to look for one."""
        return self._has_notes is not False and bool((self.table["metadata"] != "").any())

    def ended(self, state: JobState) -> NDArray[np.bool_]:
        """Whether each job ended in a state."""
        found: NDArray[np.bool_] = self["state"] == _STATES.index(state)
        return found

    @cached_property
    def started(self) -> JobRows:
        """The rows of the jobs that were executed, that is, not rejected."""
        rejected = self.ended(JobState.REJECTED)
        return self.select(np.flatnonzero(~rejected)) if rejected.any() else self

    def select(self, places: NDArray[np.intp]) -> JobRows:
        """The rows at these places."""
        columns = _Columns(lambda name: self[name][places])
        return JobRows(len(places), columns, lambda: self.table.iloc[places], self._has_notes)


def read_rows(jobs_file: str | Path) -> JobRows:
    """The rows of a ``PREFIX_jobs.csv``, in the order of the file."""
    path = Path(jobs_file)

    def table() -> pd.DataFrame:
        return jobs_csv.read_schedule(path)

    rows = None
    if not jobs_csv.beside(path, "resizes").is_file():
        try:
            with open_input(path) as file:
                rows = _numbers_in(file, table)
        except OSError:
            pass  # is told when the table is read
    return JobRows.of(table()) if rows is None else rows


def rows_of(tables: jobs_csv.Tables, table: Callable[[], pd.DataFrame]) -> JobRows:
    """The rows in the tables of a simulation; ``table`` reads all that is known of them."""
    resizes, jobs = tables("resizes"), tables("jobs")
    assert jobs is not None
    with jobs as file, resizes or nullcontext():
        text = file.read().encode(errors="surrogatepass") if resizes is None else b""
    rows = _numbers_in(BytesIO(text), table)
    return JobRows.of(table()) if rows is None else rows


def _numbers_in(file: BinaryIO, table: Callable[[], pd.DataFrame]) -> JobRows | None:
    """The rows as the library reads them; none if it is missing, or the file is not in the plain form."""
    header = file.readline(1 << 16).decode("ascii", "replace").rstrip("\n").split(",")
    is_plain = len(set(header)) == len(header) and set(jobs_csv.COLUMNS) <= set(header)
    if native.library is None or not is_plain:
        return None
    reader = native.library.JobTable(header, list(_NUMBERS), _STATES)
    pieces: list[dict[str, bytes]] = []
    text = piece = file.read(_PIECE)
    while text:
        used = reader.read(text, not piece)
        if used < 0:
            return None
        pieces.append(reader.take())
        piece = file.read(_PIECE) if piece else b""
        text = text[used:] + piece
    found = {
        name: np.concatenate([np.frombuffer(each.pop(name), kind) for each in pieces] or [np.zeros(0, kind)])
        for name, kind in _TYPES.items()
    }

    def more(name: str) -> NDArray[Any]:
        return found["held"].astype(float) if name == "mean_held" else _column_of(rows, name)

    columns = _Columns(more)
    columns.update(found)
    rows = JobRows(len(found["state"]), columns, table, reader.has_notes)
    return rows


def _column_of(rows: JobRows, name: str) -> NDArray[Any]:
    """A column of numbers that was not read, or is made of others."""
    table = rows.table
    if name not in ("state", "held", "mean_held", "highest"):
        return table[name].to_numpy()
    states = table["final_state"]
    if name == "state":
        return np.select(
            [(states == state).to_numpy() for state in _STATES], range(len(_STATES)), len(_STATES)
        )
    executed = np.flatnonzero((states != JobState.REJECTED).to_numpy())
    jobs = table.iloc[executed]
    made = np.full(len(table), -1 if name == "highest" else 0, float if name == "mean_held" else np.int64)
    if name == "mean_held":
        made[executed] = jobs_csv.mean_hosts(jobs, rows["held"][executed])
    elif name == "held":
        made[executed] = jobs_csv.host_counts(jobs)
    else:
        pieces = jobs_csv.in_pieces(jobs.set_axis(executed))
        intervals = jobs_csv.host_intervals(pieces)
        np.maximum.at(made, pieces.index.to_numpy()[intervals["place"]], intervals["high"].to_numpy())
    return made
