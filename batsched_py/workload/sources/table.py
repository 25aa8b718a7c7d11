"""Tables with named columns: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Protocol, TextIO

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.output_files import writing, writing_text
from batsched_py.workload.doubts import warn_of_doubts
from batsched_py.workload.lines import read_parquet
from batsched_py.workload.presets import PRESETS, Preset, preset_for
from batsched_py.workload.sources import SOURCES, Source, open_text
from batsched_py.workload.sources import mapping as mapping_of
from batsched_py.workload.sources.accounting import NAMED, TWICE, Account, Disagreement, Piece, numbered
from batsched_py.workload.sources.mapping import DURATIONS, MOMENTS, Mapped, full_mapping, read_mapping
from batsched_py.workload.sources.moments import (
    DATES,
    LATEST,
    SURELY_UNIX,
    AmbiguousDates,
    Moments,
    check_origins,
    without_zeros,
)
from batsched_py.workload.swf.conventions import CANCELLED, FAILED
from batsched_py.workload.swf.log import COLUMNS, SwfLog
from batsched_py.workload.swf.reader import settled

if TYPE_CHECKING:
    import pandas as pd

_Columns = dict[str, NDArray[Any]]

_HEADER: Final = b"batsched-py header"

#: Columns that have other meanings elsewhere, as in a table where ``queue`` is a wait; and one that only
#: tables have whose columns are those of a log.
_DOUBTFUL: Final = ("queue", "partition", "wait")
_OURS: Final = "job_number"

#: How many rows are read at a time.
PIECE: Final = 50_000

#: How tables call what tells jobs apart, and how Slurm calls a step of a job.
_IDS: Final = ("id", "job_id", "jobid", "jobidraw")
_STEP: Final = re.compile(r"[0-9]+(?:[_+][0-9]+)?[.](?:batch|extern|interactive|[0-9]+)")

#: What stands for a number that is not known; an empty field does, too.
_UNKNOWN: Final = frozenset({"nan", "na", "n/a", "null", "none", "-", ""})

#: A number of a user, a group and so on; with a zero ahead, or an exponent, it is a name.
_NUMBER: Final = re.compile(r" *-?(?:0|[1-9][0-9]*)(?:\.0+)? *")

#: What Slurm writes for a time without a limit.
_UNLIMITED: Final = (2.0**32 - 1, 2.0**32 - 2)


@dataclass(frozen=True)
class Table(Source):
    """A table in CSV with one job a row. The names of its columns are those of the log.

    Needed are submit, run_time or start and end, and requested_processors or allocated_processors. Others are
    wait, requested_time, user, group, executable, queue, partition, status and so on; columns of other names
    are kept beside the log. Times are numbers of seconds, or dates; numbers that can only be seconds since
    1970 are taken for these. Users, groups, executables, queues and partitions may be names, and the status
    may be a word or a return code. A job of status 5 without a run time, or without a start, was cancelled
    while it waited.
    """

    name = "csv"
    endings: ClassVar[tuple[str, ...]] = (".csv",)
    names_are_ours: ClassVar[bool] = False
    """Whether the reader gives columns their names, not the file."""

    columns: Annotated[
        str,
        Meta(description="What the file calls columns, like submit:SubmitTime,requested_time:Limit/min."),
    ] = ""
    zone: Annotated[str, Meta(description="Time zone of dates that have none; UTC if nothing is said.")] = ""
    preset: Annotated[
        str, Meta(description="The kind of table, if its columns do not tell; none for no kind.")
    ] = ""

    def read(self, path: Path) -> SwfLog:
        """Read a log."""
        table, header = next(self._load(path))
        return self.log_of(table, header, Account(path))

    def log_of(self, table: pd.DataFrame, header: Mapping[str, str], account: Account) -> SwfLog:
        """The log that a table is; its column ``line`` says where each row stands."""
        read = self._reading(table, account)
        columns, submit = read.columns, read.columns["submit"]
        first = float(np.floor(submit.min())) if len(submit) else 0.0
        if _has_unix_times(read, header):
            columns["submit"] = np.round(submit - first, 6)
            header = {"UnixStartTime": f"{first:.0f}", "TimeZoneString": read.zone} | dict(header)
        return account.log(columns, dict(header) | read.names, more=read.more, mapping=read.shown())

    def beginning(self, path: Path, rows: int) -> tuple[pd.DataFrame, SwfLog]:
        """The first rows of a table as they are, and as a log."""
        table, header = next(self._load(path, rows))
        return table.drop(columns="line"), self.log_of(table, header, Account(path))

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a log: the comments of its header, then the columns of which anything is known."""
        columns = _known(log)
        with writing_text(path) as file:
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
            try:
                read = self._reading(table, account)
            except AmbiguousDates:  # other pieces may tell the order of days and months
                raise Disagreement("dates") from None
            waits = "id" in table and ("after" in table or "array" in table)
            if _has_unix_times(read, header):
                header = {"TimeZoneString": read.zone} | header | {"UnixStartTime": "0"}
            yield Piece(read.columns, header, read.names, read.kinds | read.orders, waits)

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
            names = _check_named(file, path)
            file.seek(place)
            options: Any = {"skipinitialspace": True, "keep_default_na": False, "na_values": [""]}
            options |= {"low_memory": False, "dtype": dict.fromkeys(self._named(names), str)}
            first = skipped + 2
            try:
                read = pd.read_csv(file, chunksize=rows, **options)
                for table in [read] if rows is None else read:
                    yield table.assign(line=np.arange(len(table)) + first), header
                    first += len(table)
            except (ValueError, pd.errors.ParserError) as error:
                raise InputError(f"{path}: not a table in CSV: {error}") from None

    def _reading(self, table: pd.DataFrame, account: Account) -> Reading:
        """What the good rows of a table say; what was taken without being named is told once."""
        _check_distinct(map(str, table.columns), account.path)
        preset = self._preset(table.columns)
        if preset.signature and not self.preset:
            account.tell(f"read as a table of {preset.name} (-i preset=none reads it as any other)")
        unused = None if self.preset or not self.columns else preset_for(table.columns)
        hint = "" if unused is None else f"add -i preset={unused.name}"
        if unused is not None:
            whose = "its mapping is" if self.zone else "its zone and mapping are"
            account.tell(f"looks like {unused.name}: {whose} not used; {hint}")
        raw, table = table, preset.prepare(table)
        usual = [each for each in read_mapping(preset.columns) if each.theirs in table]
        mapping = {each.ours: each for each in (*usual, *read_mapping(self.columns))}
        full = full_mapping(mapping.values(), table.columns, str(account.path))
        taken = [each.ours for each in full if not each.is_named]
        is_foreign = not self.names_are_ours and _OURS not in taken
        is_doubtful = is_foreign and not {*_DOUBTFUL}.isdisjoint(taken)
        if taken and (mapping or is_doubtful):
            account.tell(f"taken because of their names: columns {', '.join(taken)}")
        prepared = _prepared(raw, table, preset.name) if preset.signature else {}
        return Reading(table, full, self.zone or preset.zone, preset.states, account, hint, prepared)

    def _named(self, columns: Collection[str]) -> set[str]:
        """The columns that may hold names, to be read as they are written: user 007 is not user 7."""
        said = (*read_mapping(self._preset(columns).columns), *read_mapping(self.columns))
        theirs = dict(zip(NAMED, NAMED, strict=True)) | {each.ours: each.theirs for each in said}
        return {theirs[name] for name in NAMED} & {*columns}

    def _preset(self, columns: Collection[str]) -> Preset:
        """The preset that is named, or else the one for such columns, unless these are named."""
        if self.preset:
            return Preset() if self.preset == "none" else PRESETS.create(self.preset, {})
        return (None if self.columns else preset_for(columns)) or Preset()


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
                _check_distinct(table.column_names, path)
                frame, header = frame_of(table)
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
        with writing(path) as file, arrow.ParquetWriter(file, schema) as writer:
            for piece in _pieces(columns):
                writer.write_table(pyarrow.Table.from_pandas(piece, schema, preserve_index=False))

    def recognises(self, beginning: bytes) -> bool:
        """Such files begin with a magic word."""
        return beginning.startswith(b"PAR1")


def _has_unix_times(read: Reading, header: Mapping[str, str]) -> bool:
    """Whether the times of a table are dates, or numbers that can be nothing else."""
    submit = read.columns["submit"]
    if read.kinds.get("submit") == DATES:
        return True
    return len(submit) > 0 and float(submit.min()) >= SURELY_UNIX and "UnixStartTime" not in header


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow; install it with: pip install 'batsched-py[models]'"
        ) from None
    return pyarrow.parquet


class ArrowStream(Protocol):
    """A table in memory that other libraries can read, such as those of polars and pyarrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Its columns, as Arrow passes them on."""


def log_in_memory(table: pd.DataFrame | ArrowStream, options: Mapping[str, str]) -> SwfLog:
    """The log that a table in memory is."""
    import pandas as pd

    header: dict[str, str] = {}
    if isinstance(table, pd.DataFrame):
        frame = _with_index(table)
    elif hasattr(table, "__arrow_c_stream__"):
        _pyarrow()
        import pyarrow

        try:
            frame, header = frame_of(pyarrow.table(table))
        except pyarrow.ArrowException as error:
            raise InputError(f"a table in memory that Arrow cannot read: {error}") from None
    else:
        raise InputError(f"a log is read from a file, a DataFrame or an Arrow stream, not from {type(table)}")
    source = SOURCES.create("csv", options)
    assert isinstance(source, Table)
    account = Account(Path("table in memory"))
    log = source.log_of(frame.assign(line=np.arange(1, len(frame) + 1)), header, account)
    warn_of_doubts(log)
    return replace(log, path="")


def arrow_stream(table: pd.DataFrame, requested_schema: Any = None) -> Any:
    """A table as Arrow passes it on."""
    _pyarrow()
    import pyarrow

    return pyarrow.Table.from_pandas(table, preserve_index=False).__arrow_c_stream__(requested_schema)


def frame_of(table: Any) -> tuple[pd.DataFrame, dict[str, str]]:
    """A table of pyarrow for pandas, and the header of a log that is in its metadata."""
    kept = (table.schema.metadata or {}).get(_HEADER)
    header = msgspec.json.decode(kept, type=dict[str, str]) if kept else {}
    return _with_index(table.to_pandas()), header


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose index is among its columns if it has a name."""
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(level=named).reset_index(drop=True)


class Reading:
    """What the good rows of a table say."""

    columns: _Columns
    """Those of a log that are known."""
    names: dict[str, str]
    """What names stand for numbers, under their keys in a header."""
    kinds: dict[str, str]
    """Whether moments are dates or numbers."""
    orders: dict[str, str]
    """Whether dates begin with the day or with the month, where that matters."""
    more: _Columns
    """The other columns."""

    def __init__(
        self,
        table: pd.DataFrame,
        mapping: Sequence[Mapped],
        zone: str,
        words: Mapping[str, int],
        account: Account,
        hint: str = "",
        prepared: Mapping[str, str] | None = None,
    ) -> None:
        """What else may be done about columns that are missing is in the ``hint``.

        A preset may have ``prepared`` columns, each of another of the table.
        """
        self._prepared = prepared or {}
        self.zone = zone
        table = self._table = _without_steps(table, mapping, account)
        self._account = account
        self._mapping = {each.ours: each for each in mapping}
        if "job_number" in self._mapping and not _are_numbers_of_jobs(self._number("job_number")):
            self._table = table = table.rename(columns={self._mapping.pop("job_number").theirs: "id"})
        _check_columns(self._mapping.keys(), account.path, hint)
        moments = self._moments()
        account.guessed[TWICE] += sum(each.nb_twice for each in moments.values())
        check_origins(moments, account.path)
        times = without_zeros(moments)
        self._tell_readings()
        numbers = self._numbers(times, words)
        self._good = np.ones(len(table), dtype=bool)
        self._reject_unusable(times, numbers)
        self.columns = numbers | {"submit": times["submit"]}
        if "start" in times:
            self._take_waits(times)
        self.names = {}
        for name in filter(self._mapping.get, NAMED):
            self.columns[name], lines = _codes(self._column(name))
            self.names |= {NAMED[name]: lines} if lines else {}
        self.kinds = {
            name: DATES if moments[name].is_dated else "numbers"
            for name, seconds in times.items()
            if np.isfinite(seconds).any()
        }
        self.orders = {f"order of {name}": each.order for name, each in moments.items() if each.order}
        taken = {each.theirs for each in self._mapping.values()}
        more = {name: table[name].to_numpy() for name in table if name not in (*taken, "line")}
        self.columns, self.more = ({name: of[name][self._good] for name in of} for of in (self.columns, more))

    def _moments(self) -> dict[str, Moments]:
        """The columns that say when something was."""
        return {
            name: Moments(name, self._column(name), self._mapping[name], self.zone, self._account.path)
            for name in MOMENTS
            if name in self._mapping
        }

    def _numbers(self, times: Mapping[str, NDArray[np.float64]], words: Mapping[str, int]) -> _Columns:
        """What columns say in numbers, and the run time."""
        found: _Columns = {
            name: self._number(name) if name == "run_time" else self._if_known(name)
            for name in self._mapping
            if name not in (*NAMED, *MOMENTS, "status")
        }
        if "status" in self._mapping:
            found["status"] = self._states(words)
        if {"start", "end"} <= times.keys():
            lasted = np.round(times["end"] - times["start"], 6)
            found.setdefault("run_time", lasted)
            self._tell_contradictions("run_time", found["run_time"], "end - start", lasted)
        self._never_started = np.zeros(len(self._table), dtype=bool)
        if "status" in found:
            never_began = ~(found["run_time"] >= 0)
            if "start" in times:
                never_began |= (found["run_time"] == 0) & np.isnan(times["start"])
            self._never_started = (found["status"] == CANCELLED) & never_began
            unknown = np.full(len(self._table), -1.0)
            sizes = {"allocated_processors": unknown, "requested_processors": unknown}
            found |= settled({**sizes, **found}, self._never_started)
        return found

    def _reject_unusable(self, times: Mapping[str, NDArray[np.float64]], numbers: _Columns) -> None:
        """Leave out rows that are no jobs."""
        if "status" in numbers:
            self._reject(np.isnan(numbers["status"]), "the job is not over")
        for name, column in {"submit": times["submit"], **numbers}.items():
            self._reject(~np.isfinite(column), f"{name} is no number or time")
        for name, column in times.items():
            unit = f"{name}:{self._mapping[name].theirs}/ms"
            self._reject(
                column > LATEST, f"{name} is in a year beyond 5000, unless it has another unit: {unit}"
            )
        if "job_number" in numbers:
            self._reject(self._account.came_before(numbers["job_number"]), "job_number came before")
        self._reject(times["submit"] < 0, "submit is negative")
        self._reject(numbers["run_time"] < 0, "run_time is unknown or negative")

    def _take_waits(self, times: Mapping[str, NDArray[np.float64]]) -> None:
        """Waits, which end when a job starts or was cancelled."""
        begun = np.where(self._never_started, times.get("end", np.nan), times["start"])
        wait = np.nan_to_num(np.round(begun - times["submit"], 6), nan=-1.0)
        early = (begun < times["submit"]) & self._good
        wait[early] = -1.0
        if "wait" in self.columns:
            self._tell_contradictions("wait", self.columns["wait"], "start - submit", wait)
        else:
            self._account.tell_odd("wait unknown, for a start before the submission", early)
            self.columns["wait"] = wait

    def _tell_contradictions(
        self, name: str, said: NDArray[np.float64], other: str, found: NDArray[np.float64]
    ) -> None:
        """Say of how many jobs two columns tell something else, beyond a minute and a hundredth."""
        differ = (said >= 0) & (found >= 0) & (np.abs(said - found) > np.maximum(60.0, 0.01 * found))
        self._account.tell_odd(f"{name} taken from its column, which is not {other}", differ)

    def _tell_readings(self) -> None:
        """Say how texts are read that may mean something else."""
        import pandas as pd

        for names, form, reading in (
            (DURATIONS, r"\d+:\d\d", "durations like {} are minutes and seconds"),
            (("requested_memory",), r".*\d *[kKMGTP]i?[Bb]?n?", "amounts like {} are those of one processor"),
        ):
            for name in set(names) & self._mapping.keys():
                column = self._column(name)
                if not pd.api.types.is_numeric_dtype(column) and column.dtype.kind not in "mM":
                    texts = column.astype(object).where(~column.isna(), "").astype(str).str.strip()
                    if (found := texts[texts.str.fullmatch(form)]).any():
                        self._account.tell(f"{name}: {reading.format(found.iloc[0])}")

    def shown(self) -> dict[str, str]:
        """For each column of the log, what of the table it is."""
        kinds = {DATES: f"dates, {self.zone} where they have no zone", "numbers": "seconds"}
        return {
            name: f"{each.theirs}{each.unit and f' in {each.unit}'}"
            + (f" ({kinds[self.kinds[name]]})" if name in self.kinds and not each.unit else "")
            for name, each in self._mapping.items()
        } | {name: what for name, what in self._prepared.items() if name in self.more}

    def _column(self, name: str) -> pd.Series:
        return self._table[self._mapping[name].theirs]

    def _number(self, name: str) -> NDArray[np.float64]:
        return mapping_of.numbers(self._column(name), self._mapping[name])

    def _if_known(self, name: str) -> NDArray[np.float64]:
        """Numbers, with -1 for fields that are empty, and whole ones of processors."""
        values, column = self._number(name), self._column(name)
        words = column.astype(object).where(~column.isna(), "").astype(str).str.strip().str.lower()
        values[np.isnan(values) & words.isin(_UNKNOWN).to_numpy()] = -1.0
        if name == "requested_time":
            values[np.isin(values, [each * self._mapping[name].factor for each in _UNLIMITED])] = -1.0
        if name in mapping_of.PROCESSORS:
            broken = np.isfinite(values) & (values != np.floor(values))
            self._account.tell_odd("sizes rounded up to whole processors", broken)
            values = np.ceil(values)
        return values

    def _states(self, words: Mapping[str, int]) -> NDArray[np.float64]:
        column, mapped = self._column("status"), self._mapping["status"]
        found, unknown = mapping_of.states(column, mapped, words)
        if not mapped.unit and "exit" not in mapped.theirs.lower():
            if mapping_of.are_slurms(column):
                raise InputError(
                    f"{self._account.path}: status: most numbers are 3, which is COMPLETED in Slurm and a "
                    f"part of a job in a log; say columns=status:{mapped.theirs}/slurm or /swf"
                )
            if column.dtype.kind in "iuf" and (found == FAILED).sum() > (found > FAILED).sum():
                self._account.tell(
                    "status: most numbers are 0, which is a failure in a log; if it is a success, "
                    f"say columns=status:{mapped.theirs}/exit"
                )
        for word, count in sorted(unknown.items()):
            self._account.odd[f"status unknown, for {word!r}"] += count
        return found

    def _reject(self, wrong: NDArray[np.bool_], reason: str) -> None:
        """Leave out rows for a reason, unless they are left out already."""
        for row in np.flatnonzero(wrong & self._good).tolist():
            self._account.reject(int(self._table["line"].iloc[row]), reason, reason)
        self._good &= ~wrong


def _prepared(raw: pd.DataFrame, table: pd.DataFrame, preset: str) -> dict[str, str]:
    """What the columns of a table are that a preset made of others: renamed ones, or computed ones."""
    names = dict(zip(table, raw, strict=False))
    renamed = {name: old for name, old in names.items() if old not in table and raw[old].equals(table[name])}
    return {str(name): str(renamed.get(name, f"computed by {preset}")) for name in table if name not in raw}


def _without_steps(table: pd.DataFrame, mapping: Sequence[Mapped], account: Account) -> pd.DataFrame:
    """The rows of jobs, without those of their steps, as ``sacct`` writes them."""
    import pandas as pd

    named = [each.theirs for each in mapping if each.ours == "job_number"]
    for name in named or [name for name in table if str(name).lower() in _IDS]:
        if pd.api.types.is_numeric_dtype(table[name]):
            continue
        texts = table[name].astype(object).where(~table[name].isna(), "").astype(str)
        is_step = texts.str.fullmatch(_STEP.pattern)
        if is_step.any():
            account.tell(f"steps of jobs, such as {texts[is_step].iloc[0]}, are no jobs, and left out")
            account.left_out["step of a job"] += int(is_step.sum())
            table = table[~is_step].reset_index(drop=True)
    return table


def _are_numbers_of_jobs(values: NDArray[np.float64]) -> bool:
    return bool(((values >= 0) & (values == np.floor(values))).all())


def _check_named(file: TextIO, path: Path) -> list[str]:
    """The names of the columns. Without one for each, pandas would take names for other columns."""
    rows, first = csv.reader(file, skipinitialspace=True), list[str]()
    try:
        names = next(rows, [])
    except csv.Error as error:
        raise InputError(f"{path}: not a table in CSV: {error}") from None
    with suppress(csv.Error):  # of a field that is too long, which is reported with its line
        first = next(filter(None, rows), [])
    _check_distinct(names, path)
    if len(first) > len(names):
        raise InputError(
            f"{path}: the first row has {len(first)} fields, but {len(names)} columns have names"
        )
    return [name.removeprefix("\ufeff") for name in names]


def _check_distinct(names: Iterable[str], path: Path) -> None:
    for name, count in Counter(names).items():
        if count > 1 and name:
            raise InputError(f"{path}: {count} columns are called {name!r}; give each a name of its own")


def _check_columns(names: Collection[str], path: Path, hint: str) -> None:
    if "submit" not in names:
        missing = "submit"
    elif not ("run_time" in names or {"start", "end"} <= set(names)):
        missing = "run_time, nor start and end"
    elif not {"requested_processors", "allocated_processors"} & set(names):
        missing = "requested_processors or allocated_processors"
    else:
        return
    raise InputError(
        f"{path}: there is no column {missing}; say what it is called with columns=submit:SubmitTime,..."
        + (f", or {hint}" if hint else "")
    )


def _known(log: SwfLog) -> _Columns:
    """The columns of which anything is known; whole numbers are written without a fraction."""
    columns = {name: getattr(log, name) for name in COLUMNS}
    known = {name: column for name, column in columns.items() if (column != -1).any()} | log.more
    for name, column in known.items():
        if column.dtype.kind == "f" and len(column) and (column == np.floor(column)).all():
            known[name] = column.astype(np.int64)
    return known


def _pieces(columns: _Columns) -> Iterator[pd.DataFrame]:
    """The table, piece by piece."""
    import pandas as pd

    for first in range(0, len(columns["submit"]), PIECE):
        yield pd.DataFrame({name: column[first : first + PIECE] for name, column in columns.items()})


def _codes(column: pd.Series) -> tuple[NDArray[np.int64], str]:
    """Numbers as they are, names numbered. Texts are numbers if all of them are written as numbers are."""
    import pandas as pd

    numbers = mapping_of.numbers(column, Mapped("user", ""))
    is_known = ~column.isna().to_numpy()
    known = numbers[is_known]
    if (known == np.floor(known)).all():
        is_number = pd.api.types.is_numeric_dtype(column)
        if is_number or all(map(_NUMBER.fullmatch, map(str, column[is_known].unique()))):
            return np.nan_to_num(numbers, nan=-1).astype(np.int64), ""
    return numbered(column.fillna("").astype(str).to_numpy())
