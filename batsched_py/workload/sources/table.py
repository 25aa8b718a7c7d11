"""Tables with named columns: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.lines import read_parquet
from batsched_py.workload.sources import Source, open_text
from batsched_py.workload.sources.accounting import NAMED, Account, Piece, in_zone, numbered, unix_times
from batsched_py.workload.swf.conventions import CANCELLED
from batsched_py.workload.swf.log import COLUMNS, SwfLog

if TYPE_CHECKING:
    import pandas as pd

_Columns = dict[str, NDArray[Any]]

_TIMES: Final = ("submit", "start", "end")
_HEADER: Final = b"batsched-py header"

#: How many rows are read at a time.
PIECE: Final = 50_000

#: What a column of dates is called among those of other kinds.
DATES: Final = "dates"

#: No date has more characters; it takes minutes to find out what a million of them mean.
_LONGEST_DATE: Final = 100

#: No number of a log is larger.
_LARGEST: Final = 2.0**53


@dataclass(frozen=True)
class Table(Source):
    """A table in CSV with one job a row. The names of its columns are those of the log.

    Needed are submit, run_time or start and end, and requested_processors or allocated_processors. Others are
    wait, requested_time, user, group, executable, queue, partition, status and so on; columns of other names
    are kept beside the log. Times are numbers of seconds, or dates. Users, groups, executables, queues and
    partitions may be names. A job of status 5 without a run time, or without a start, was cancelled while it
    waited.
    """

    name = "csv"
    endings: ClassVar[tuple[str, ...]] = (".csv",)

    columns: Annotated[
        str, Meta(description="What the file calls columns, like submit:SubmitTime,user:Owner.")
    ] = ""
    zone: Annotated[str, Meta(description="Time zone of dates that have none.")] = "UTC"

    def read(self, path: Path) -> SwfLog:
        """Read a log."""
        table, header = next(self._load(path))
        account = Account(path)
        columns, kinds, names, more = self._columns(table, account)
        if kinds.get("submit") == DATES:
            origin = float(np.floor(columns["submit"].min())) if len(columns["submit"]) else 0.0
            columns["submit"] = columns["submit"] - origin
            header = {"UnixStartTime": f"{origin:.0f}", "TimeZoneString": self.zone} | header
        return account.log(columns, header | names, more=more)

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a log: the comments of its header, then the columns of which anything is known."""
        columns = _known(log)
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for key, value in log.header.items():
                file.writelines(f"# {key}: {line}\n" for line in value.split("\n"))
            file.write(",".join(columns) + "\n")
            for piece in _pieces(columns):
                piece.to_csv(file, header=False, index=False)

    def lost(self, log: SwfLog) -> dict[str, int]:
        """A table has room for everything."""
        return {}

    def recognises(self, beginning: bytes) -> bool:
        """The first line that is no comment names the columns."""
        lines = (line for line in beginning.split(b"\n") if not line.startswith(b"#"))
        return b"submit" in next(lines, b"").strip().split(b",")

    def pieces(self, path: Path, account: Account) -> Iterator[Piece]:
        """The records of a file, some at a time."""
        for table, header in self._load(path, PIECE):
            columns, kinds, names, _ = self._columns(table, account)
            waits = "id" in table and ("after" in table or "array" in table)
            yield Piece(columns, header, names, kinds, waits)

    def machine_header(self, header: Mapping[str, str], machine: Callable[[], int]) -> Mapping[str, str]:
        """The comments of the file."""
        return header

    def _load(self, path: Path, rows: int | None = None) -> Iterator[tuple[pd.DataFrame, dict[str, str]]]:
        """The table, so many rows at a time if that is said, and the comments above it."""
        import pandas as pd

        header: dict[str, str] = {}
        skipped = 0
        with open_text(path) as file:
            place = file.tell()
            while (line := file.readline()).startswith("#"):
                key, _, value = line[1:].strip().partition(": ")
                header[key] = f"{header[key]}\n{value}" if key in header else value
                skipped += 1
                place = file.tell()
            file.seek(place)
            options: Any = {"skipinitialspace": True, "keep_default_na": False, "na_values": [""]}
            first = skipped + 2
            try:
                read = pd.read_csv(file, chunksize=rows, **options)
                for table in [read] if rows is None else read:
                    yield table.assign(line=np.arange(len(table)) + first), header
                    first += len(table)
            except (ValueError, pd.errors.ParserError) as error:
                raise InputError(f"{path}: not a table in CSV: {error}") from None

    def _names(self) -> dict[str, str]:
        names = {}
        for pair in filter(None, self.columns.split(",")):
            ours, colon, theirs = pair.partition(":")
            if not colon or ours not in (*COLUMNS, "start", "end"):
                raise InputError(
                    f"columns={self.columns}: write NAME:COLUMN, where NAME is one of {', '.join(COLUMNS)}"
                )
            names[theirs] = ours
        return names

    def _columns(
        self, table: pd.DataFrame, account: Account
    ) -> tuple[_Columns, dict[str, str], dict[str, str], _Columns]:
        """What the good rows of a table say: the columns of a log, those that are dates or numbers, what
        names stand for numbers, and the other columns."""
        table = table.rename(columns=self._names())
        _check_columns(table, account.path)
        times = {name: self._moments(table, name) for name in _TIMES if name in table}
        numbers = {
            name: _numbers(table[name]) for name in COLUMNS
            if name in table and name not in (*NAMED, "submit")
        }  # fmt: skip
        run_time = numbers["run_time"] if "run_time" in numbers else times["end"] - times["start"]
        never_started = np.zeros(len(table), dtype=bool)
        if "status" in numbers:
            never_started = (numbers["status"] == CANCELLED) & ~(run_time >= 0)
            numbers, run_time = _settled(numbers, run_time, never_started)
        good = np.ones(len(table), dtype=bool)
        for name, column in {"submit": times["submit"], "run_time": run_time, **numbers}.items():
            _reject(account, table, good, ~np.isfinite(column), f"{name} is no number or time")
        _reject(account, table, good, times["submit"] < 0, "submit is negative")
        _reject(account, table, good, run_time < 0, "run_time is unknown or negative")
        columns: _Columns = numbers | {"submit": times["submit"], "run_time": run_time}
        if "start" in times and "wait" not in columns:
            begun = np.where(never_started, times.get("end", np.nan), times["start"])
            columns["wait"] = np.nan_to_num(begun - times["submit"], nan=-1.0)
        names: dict[str, str] = {}
        for name in NAMED:
            if name in table:
                columns[name], lines = _codes(table[name])
                names |= {NAMED[name]: lines} if lines else {}
        more = {
            name: table[name].to_numpy() for name in table
            if name not in (*COLUMNS, *_TIMES, "line")
        }  # fmt: skip
        kinds = {
            name: DATES if _is_dated(table[name]) else "numbers"
            for name, moments in times.items()
            if np.isfinite(moments).any()
        }
        columns, more = ({name: of[name][good] for name in of} for of in (columns, more))
        return columns, kinds, names, more

    def _moments(self, table: pd.DataFrame, name: str) -> NDArray[np.float64]:
        """Seconds: numbers as they are, dates as Unix time."""
        import pandas as pd

        column = table[name]
        if not _is_dated(column):
            return _numbers(column)
        if not pd.api.types.is_datetime64_any_dtype(column):
            column = column.where(column.astype(str).str.len() <= _LONGEST_DATE)
        moments = pd.DatetimeIndex(pd.to_datetime(column, errors="coerce", format="mixed"))
        if moments.tz is None:
            moments = in_zone(moments, self.zone)
        return unix_times(moments)


@dataclass(frozen=True)
class Parquet(Table):
    """A table in Parquet, with the same columns as one in CSV; needs pyarrow."""

    name = "parquet"
    endings = (".parquet",)

    def _load(self, path: Path, rows: int | None = None) -> Iterator[tuple[pd.DataFrame, dict[str, str]]]:
        _pyarrow()
        first = 1
        try:
            for table in read_parquet(path, rows):
                kept = (table.schema.metadata or {}).get(_HEADER)
                header = msgspec.json.decode(kept, type=dict[str, str]) if kept else {}
                frame = table.to_pandas()
                yield frame.assign(line=np.arange(len(frame)) + first), header
                first += len(frame)
        except InputError:
            raise
        except Exception as error:  # pyarrow and pandas may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{path}: not a table in Parquet: {reason[:200]}") from None

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a log; its header goes into the metadata of the table."""
        arrow = _pyarrow()
        import pyarrow

        columns = _known(log)
        first = next(_pieces(columns))
        schema = pyarrow.Schema.from_pandas(first, preserve_index=False)
        schema = schema.with_metadata({_HEADER: msgspec.json.encode(log.header)})
        with arrow.ParquetWriter(path, schema) as writer:
            for piece in _pieces(columns):
                writer.write_table(pyarrow.Table.from_pandas(piece, schema, preserve_index=False))

    def recognises(self, beginning: bytes) -> bool:
        """Such files begin with a magic word."""
        return beginning.startswith(b"PAR1")


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow; install it with: pip install 'batsched-py[models]'"
        ) from None
    return pyarrow.parquet


def _check_columns(table: pd.DataFrame, path: Path) -> None:
    names = set(table.columns)
    if "submit" not in names:
        missing = "submit"
    elif not ("run_time" in names or {"start", "end"} <= names):
        missing = "run_time, nor start and end"
    elif not names & {"requested_processors", "allocated_processors"}:
        missing = "requested_processors or allocated_processors"
    else:
        return
    raise InputError(
        f"{path}: there is no column {missing}; say what it is called with columns=submit:SubmitTime,..."
    )


def _settled(
    numbers: _Columns, run_time: NDArray[Any], never_started: NDArray[np.bool_]
) -> tuple[_Columns, NDArray[Any]]:
    """The numbers and the run times; jobs that were cancelled as they waited ran for 0 s on 0 processors."""
    run_time = np.where(never_started, 0.0, run_time)
    unknown = np.full(len(run_time), -1.0)
    allocated = numbers.get("allocated_processors", unknown)
    requested = numbers.get("requested_processors", unknown)
    settled = {
        "allocated_processors": np.where(never_started, 0.0, allocated),
        "requested_processors": np.where(never_started & ~(requested > 0), allocated, requested),
    }
    if "run_time" in numbers:
        settled["run_time"] = run_time
    return numbers | settled, run_time


def _known(log: SwfLog) -> dict[str, NDArray[Any]]:
    """The columns of which anything is known."""
    columns = {name: getattr(log, name) for name in COLUMNS}
    known = {name: column for name, column in columns.items() if (column != -1).any()}
    return {name: _whole(column) for name, column in (known | log.more).items()}


def _pieces(columns: dict[str, NDArray[Any]]) -> Iterator[pd.DataFrame]:
    """The table, piece by piece."""
    import pandas as pd

    for first in range(0, len(columns["submit"]), PIECE):
        yield pd.DataFrame({name: column[first : first + PIECE] for name, column in columns.items()})


def _whole(column: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers are written without a fraction."""
    if column.dtype.kind == "f" and len(column) and (column == np.floor(column)).all():
        return column.astype(np.int64)
    return column


def _reject(
    account: Account, table: pd.DataFrame, good: NDArray[np.bool_], wrong: NDArray[np.bool_], reason: str
) -> None:
    """Leave out rows for a reason, unless they are left out already."""
    for row in np.flatnonzero(wrong & good).tolist():
        account.reject(int(table["line"].iloc[row]), reason, reason)
    good &= ~wrong


def _is_dated(column: pd.Series) -> bool:
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(column) and bool(np.isnan(_numbers(column)).all())


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    import pandas as pd

    try:
        numbers = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # of integers that no double can hold
        numbers = pd.to_numeric(column.astype(str), errors="coerce")
    values = numbers.to_numpy(dtype=np.float64)
    return np.where(np.abs(values) <= _LARGEST, values, np.nan)


def _codes(column: pd.Series) -> tuple[NDArray[np.int64], str]:
    """Numbers as they are, names numbered."""
    numbers = _numbers(column)
    if not np.isnan(numbers[~column.isna().to_numpy()]).any():
        return np.nan_to_num(numbers, nan=-1).astype(np.int64), ""
    return numbered(column.fillna("").astype(str).to_numpy())
