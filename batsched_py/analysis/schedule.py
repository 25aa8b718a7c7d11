"""Reading the schedule of a simulation: Batsim's ``PREFIX_jobs.csv``, ours or a real one's."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from batsched_py.errors import InputError
from batsched_py.input_files import open_input
from batsched_py.protocol.hosts import MOST_HOSTS, HostSet
from batsched_py.protocol.jobs import JobState

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Integers = NDArray[np.int64]
Hosts = NDArray[np.int32]

#: A run time up to this long means 0: Batsim writes it instead of 0, to keep the stretch finite, although its
#: clock does not advance.
INSTANT: Final = 1e-5
#: Times that differ by at most this count as equal. Batsim prints times with six decimals, so each printed
#: number is up to half a microsecond off. The longest comparison has four of them (a start and a walltime
#: against another start and walltime); the rest is room for the rounding of their sums.
SLACK: Final = 3e-6

#: The column of a schedule with the resizes of each job, in the order of time.
RESIZES: Final = "resizes"

#: The final states of jobs.
FINAL_STATES: Final = (
    JobState.SUCCESS,
    JobState.FAILED,
    JobState.WALLTIME_REACHED,
    JobState.KILLED,
    JobState.REJECTED,
)

_TEXTS: Final = ("job_id", "workload_name", "profile", "final_state", "allocated_resources", "metadata")
_COUNTS: Final = ("requested_number_of_resources", "success")
_REQUEST: Final = ("submission_time", "requested_time")
_EXECUTION: Final = (
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
)
_ENERGY: Final = "consumed_energy"
_NUMBERS: Final = (*_REQUEST, *_EXECUTION, _ENERGY)
_TYPES: Final[dict[str, Any]] = (
    dict.fromkeys(_TEXTS, "str") | dict.fromkeys(_COUNTS, "int64") | dict.fromkeys(_NUMBERS, "float64")
)

#: The columns that every Batsim writes, in another order.
COLUMNS: Final = tuple(_TYPES)

#: So many texts of intervals are parsed at once.
_PIECE: Final = 20_000

#: Lines of intervals of hosts as every Batsim writes them.
_PLAIN: Final = re.compile(r"(?:\d{1,8}+(?:-\d{1,8}+)?+(?:[ \n]|$)|[ \n])*+", re.ASCII)


def read_schedule(path: str | Path) -> pd.DataFrame:
    """The rows of a ``PREFIX_jobs.csv``, in the order of the file.

    Identifiers and host sets are strings, sizes and the success flag integers, times floats. Rejected jobs
    have NaN where they have no times. A row that cannot be read is named by its line. If jobs have grown or
    shrunk, as the ``PREFIX_resizes.csv`` beside it tells, there is a column ``resizes``.
    """
    path = Path(path)
    with open_table(path) as file:
        schedule = schedule_in(file, str(path))
    return with_resizes(schedule, tables_beside(path))


def with_resizes(schedule: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    """The schedule with what a ``resizes.csv`` tells, if there is one."""
    resizes = read_table(tables, "resizes", read_resizes)
    if resizes is None:
        return schedule
    return schedule.assign(**{RESIZES: [resizes.get(job, []) for job in full_ids(schedule)]})


def schedule_of(tables: Tables) -> pd.DataFrame:
    """The same from the tables of a simulation."""
    schedule = read_table(tables, "jobs", schedule_in)
    assert schedule is not None
    return with_resizes(schedule, tables)


@contextmanager
def open_table(path: Path) -> Iterator[TextIO]:
    """The text of a CSV file; one that cannot be read is reported in one line."""
    try:
        with TextIOWrapper(open_input(path), encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not text in UTF-8") from None


def schedule_in(file: TextIO, name: str) -> pd.DataFrame:
    """The same from a text; errors in it are reported with the given name."""
    header = next(csv.reader(file), [])
    missing = [column for column in _TYPES if column not in header]
    if missing:
        raise InputError(f"{name}:1: no column `{missing[0]}`; this is not the jobs.csv of a Batsim")
    file.seek(0)
    schedule = _read_rows(file)
    if schedule is None:
        file.seek(0)
        rows = csv.reader(file)
        header = next(rows)
        faults = (f"{rows.line_num}: {fault}" for row in rows if row for fault in _faults(header, row))
        raise InputError(f"{name}:{next(faults, '1: the table cannot be read')}")
    return schedule


def read_pieces(path: str | Path, nb_rows: int) -> Iterator[pd.DataFrame | None]:
    """The rows of a ``PREFIX_jobs.csv``, so many at a time; nothing in place of rows if some are bad."""
    with open_table(Path(path)) as file:
        try:
            for piece in _read_csv(file, chunksize=nb_rows):
                yield _checked(piece)
        except (ValueError, OverflowError, KeyError):
            yield None


def _read_csv(file: Any, **how: Any) -> Any:
    import pandas as pd

    missing = {column: [""] for column in _NUMBERS}
    return pd.read_csv(file, dtype=_TYPES, keep_default_na=False, na_values=missing, **how)


def _read_rows(file: Any) -> pd.DataFrame | None:
    """The whole table at once, or nothing if some row is bad."""
    try:
        return _checked(_read_csv(file))
    except (ValueError, OverflowError):
        return None


def _checked(schedule: pd.DataFrame) -> pd.DataFrame | None:
    """A table that was read, or nothing if some row is bad.

    A Batsim 5 puts the name of the workload in front of those of its profiles.
    """
    import pandas as pd

    rejected = schedule["final_state"] == JobState.REJECTED
    whole = isinstance(schedule.index, pd.RangeIndex) and schedule["metadata"].notna().all()
    known = schedule["final_state"].isin(FINAL_STATES).all()
    requested = np.isfinite(schedule[list(_REQUEST)]).all(axis=None)
    executed = np.isfinite(schedule.loc[~rejected, list(_EXECUTION)]).all(axis=None)
    if schedule["profile"].str.contains("!", regex=False).any():
        names = zip(schedule["profile"], schedule["workload_name"], strict=True)
        schedule["profile"] = [profile.removeprefix(f"{workload}!") for profile, workload in names]
    return schedule if whole and known and requested and executed else None


def _faults(header: list[str], row: list[str]) -> Iterator[str]:
    if len(row) != len(header):
        yield f"{len(row)} fields instead of {len(header)}"
        return
    fields = dict(zip(header, row, strict=True))
    if fields["final_state"] not in FINAL_STATES:
        yield f"`final_state` is {fields['final_state']!r}, which is no state in which a job ends"
    for column in _COUNTS:
        if not fields[column].lstrip("-").isdigit():
            yield f"`{column}` is {fields[column]!r} instead of an integer"
    optional = (*_EXECUTION, _ENERGY) if fields["final_state"] == JobState.REJECTED else (_ENERGY,)
    for column in _NUMBERS:
        text = fields[column]
        if text or column not in optional:
            try:
                number = float(text)
            except ValueError:
                yield f"`{column}` is {text!r} instead of a number"
            else:
                if not isfinite(number) and column not in optional:
                    yield f"`{column}` is {text!r}, which is not finite"


def full_ids(schedule: pd.DataFrame) -> pd.Series[str]:
    """The identifiers ``WORKLOAD!JOB`` of the rows."""
    return schedule["workload_name"] + "!" + schedule["job_id"]


def started(schedule: pd.DataFrame) -> pd.DataFrame:
    """The rows of the jobs that were executed, that is, not rejected."""
    rejected = schedule["final_state"] == JobState.REJECTED
    return schedule[~rejected] if rejected.any() else schedule


def host_sets(schedule: pd.DataFrame) -> list[HostSet]:
    """The hosts of each row; each distinct text is parsed once."""
    import pandas as pd

    codes, texts = pd.factorize(schedule["allocated_resources"])
    parsed = []
    for code, text in enumerate(texts.tolist()):
        try:
            parsed.append(HostSet.parse(text))
        except ValueError as error:
            job = full_ids(schedule).iloc[int(np.argmax(codes == code))]
            raise InputError(f"job {job}: `allocated_resources`: {error}") from None
    return [parsed[code] for code in codes]


def host_intervals(schedule: pd.DataFrame) -> pd.DataFrame:
    """The intervals of hosts of all rows: the ``place`` of the row, and ``low`` and ``high``, both included.

    The same as :func:`host_sets`, faster for texts in the form that every Batsim writes.
    """
    import pandas as pd

    codes, distinct = pd.factorize(schedule["allocated_resources"])
    plain = _plain_intervals(distinct.tolist())
    if plain is None:
        runs = [hosts.runs() for hosts in host_sets(schedule)]
        places = np.repeat(np.arange(len(runs)), [len(each) for each in runs])
        bounds = np.array([run for each in runs for run in each], dtype=np.int64).reshape(-1, 2)
        return pd.DataFrame({"place": places, "low": bounds[:, 0], "high": bounds[:, 1]})
    counts, low, high = plain
    lengths = counts[codes]
    ahead = (counts.cumsum() - counts)[codes] - (lengths.cumsum() - lengths)
    pieces = np.repeat(ahead, lengths)
    pieces += np.arange(len(pieces))
    place = np.repeat(np.arange(len(codes), dtype=np.int32), lengths)
    return pd.DataFrame({"place": place, "low": low[pieces], "high": high[pieces]}, copy=False)


def host_counts(schedule: pd.DataFrame) -> Integers:
    """How many hosts each row has."""
    return counted(host_intervals(schedule), len(schedule))


def counted(intervals: pd.DataFrame, nb_rows: int) -> Integers:
    """How many hosts each row has, by the intervals of all rows."""
    sizes = intervals["high"].to_numpy(np.int64) - intervals["low"].to_numpy(np.int64) + 1
    return np.bincount(intervals["place"], sizes, minlength=nb_rows).astype(np.int64)


def _plain_intervals(texts: list[str]) -> tuple[Integers, Hosts, Hosts] | None:
    """The number of intervals in each text, and the bounds of all; none if one text has an unusual form.

    Numbers of hosts have half of the usual bytes, because a year of a large machine has millions of them.
    """
    found = []
    for first in range(0, max(len(texts), 1), _PIECE):
        piece = _plain_intervals_of_piece(texts[first : first + _PIECE])
        if piece is None:
            return None
        found.append(piece)
    counts, low, high = zip(*found, strict=True)
    return np.concatenate(counts), np.concatenate(low, dtype=np.int32), np.concatenate(high, dtype=np.int32)


def _plain_intervals_of_piece(texts: list[str]) -> tuple[Integers, Integers, Integers] | None:
    """The same, with some numbers for each character in memory.

    A number without a dash before it begins an interval; the last number before the next one ends it. Each
    must end after it begins, and begin after a gap if it is not the first of a line.
    """
    lines = "\n".join(["", *texts])
    if lines.count("\n") != len(texts) or not _PLAIN.fullmatch(lines):
        return None
    numbers = np.fromstring(lines.replace("-", " ").strip(), dtype=np.int64, sep=" ")
    characters = np.frombuffer(lines.encode(), dtype=np.uint8)
    is_digit = characters >= ord("0")
    (before,) = np.nonzero(is_digit[1:] & ~is_digit[:-1])
    (first,) = np.nonzero(characters[before] != ord("-"))
    line = (characters == ord("\n")).cumsum()[before[first]] - 1
    low, high = numbers[first], numbers[np.append(first, len(numbers))[1:] - 1]
    has_gap = (low[1:] > high[:-1] + 1) | (line[1:] > line[:-1])
    if not ((low <= high).all() and has_gap.all() and (high < MOST_HOSTS).all()):
        return None
    return np.bincount(line, minlength=len(texts)), low, high


def beside(jobs_file: str | Path, name: str) -> Path:
    """Where the file ``PREFIX_NAME.csv`` of the same simulation is, if it was written.

    >>> beside("out/easy_jobs.csv", "held").as_posix()
    'out/easy_held.csv'
    """
    jobs_file = Path(jobs_file)
    return jobs_file.with_name(f"{jobs_file.name.removesuffix('jobs.csv')}{name}.csv")


#: Opens a ``PREFIX_NAME.csv`` of a simulation by its name, if it was written.
Tables = Callable[[str], AbstractContextManager[TextIO] | None]


def tables_beside(jobs_file: str | Path) -> Tables:
    """Opens the tables that were written beside the jobs of a simulation."""

    def table(name: str) -> AbstractContextManager[TextIO] | None:
        path = beside(jobs_file, name)
        return open_table(path) if path.is_file() else None

    return table


def read_table(tables: Tables, name: str, read: Callable[[TextIO, str], T]) -> T | None:
    """What is read of a table, if it was written; faults in it are told with its name."""
    table = tables(name)
    if table is None:
        return None
    with table as file:
        return read(file, str(getattr(file, "name", f"{name}.csv")))


def read_lines(
    lines: Iterable[str], name: str, what: str, read: Callable[[dict[str, str]], T]
) -> Iterator[T]:
    """What is read of each line of a table; one that cannot be read is named, with ``what`` is wrong."""
    rows = csv.DictReader(lines)
    try:
        yield from map(read, rows)
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error):
        raise InputError(f"{name}:{rows.line_num}: {what}") from None


@dataclass(frozen=True)
class Resize:
    """A job goes on with other hosts."""

    time: float
    before: HostSet
    after: HostSet


@dataclass(frozen=True)
class Piece:
    """A job between two changes of its hosts."""

    start: float
    finish: float
    hosts: HostSet


def read_resizes(lines: Iterable[str], name: str) -> dict[str, list[Resize]]:
    """The resizes of jobs, by their full identifiers; a line that cannot be read is named."""

    def read(row: dict[str, str]) -> tuple[str, Resize]:
        hosts = [HostSet.parse(row[column]) for column in ("hosts_before", "hosts_after")]
        resize = Resize(float(row["time"]), *hosts)
        if not (isfinite(resize.time) and resize.after):
            raise ValueError
        return row["job_id"], resize

    what = "this is no line of resizes (job_id,time,hosts_before,hosts_after)"
    found: dict[str, list[Resize]] = {}
    for job_id, resize in read_lines(lines, name, what, read):
        found.setdefault(job_id, []).append(resize)
    return found


def has_resizes(schedule: pd.DataFrame) -> bool:
    """Whether any job of a schedule has grown or shrunk."""
    return RESIZES in schedule and bool(schedule[RESIZES].map(len).any())


def pieces_of(start: float, finish: float, resizes: Sequence[Resize]) -> Iterator[Piece]:
    """The pieces of a job that has grown or shrunk; those of no length are left out, but for the last."""
    hosts = resizes[0].before
    for resize in resizes:
        if resize.time > start:
            yield Piece(start, resize.time, hosts)
        start, hosts = resize.time, resize.after
    yield Piece(start, finish, hosts)


def in_pieces(schedule: pd.DataFrame) -> pd.DataFrame:
    """The schedule with a row for each piece of a job, in place of the job's row, under the same label.

    The times of a piece are its own, and so are its hosts, ``allocated_resources`` and ``hosts``.
    """
    if not has_resizes(schedule):
        return schedule
    places: list[int] = []
    changed: list[tuple[int, Piece]] = []
    rows = zip(schedule["starting_time"], schedule["finish_time"], schedule[RESIZES], strict=True)
    for place, (start, finish, resizes) in enumerate(rows):
        for piece in pieces_of(start, finish, resizes) if resizes else ():
            changed.append((len(places), piece))
            places.append(place)
        if not resizes:
            places.append(place)
    pieces = schedule.iloc[places].copy()
    columns: dict[str, Any] = {
        "starting_time": lambda piece: piece.start,
        "finish_time": lambda piece: piece.finish,
        "execution_time": lambda piece: piece.finish - piece.start,
        "allocated_resources": lambda piece: piece.hosts.text(),
        "hosts": lambda piece: piece.hosts,
    }
    for name, value in columns.items():
        if name in pieces:
            column = pieces[name].tolist()
            for place, piece in changed:
                column[place] = value(piece)
            pieces[name] = column
    return pieces


def mean_hosts(schedule: pd.DataFrame, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many hosts each job had in the mean of its run time; ``counts`` are those it had at its end."""
    means = counts.astype(float)
    if has_resizes(schedule):
        rows = zip(schedule["starting_time"], schedule["finish_time"], schedule[RESIZES], strict=True)
        for place, (start, finish, resizes) in enumerate(rows):
            if resizes and finish > start:
                pieces = pieces_of(start, finish, resizes)
                work = sum((piece.finish - piece.start) * len(piece.hosts) for piece in pieces)
                means[place] = work / (finish - start)
    return means


_RESTART: Final = re.compile(r"(?:^| )restart=(\d+)(?: |$)")


def ended_by_failures(schedule: pd.DataFrame) -> set[str]:
    """The executions that failures have ended, or a policy has put back, as their notes say."""
    return set(schedule.loc[schedule["metadata"].str.contains(r"(?:^| )(?:failed|requeued)="), "id"])


def before_restarts(row: Any, failed: Collection[str]) -> str:
    """The name of the job of which a row is an execution, if a failure has ended the one before."""
    restart = _RESTART.search(row.metadata)
    name, mark, number = row.id.rpartition("#")
    if restart is None or not mark or number != restart[1]:
        return str(row.id)
    before = name if number == "1" else f"{name}#{int(number) - 1}"
    return name if before in failed else str(row.id)


def has_restarts(schedule: pd.DataFrame) -> bool:
    """Whether any job of a schedule may have been started again."""
    return bool(schedule["metadata"].str.contains("restart=", regex=False).any())


def names_before_restarts(schedule: pd.DataFrame) -> list[str]:
    """The names of the jobs of which the rows are executions."""
    if not has_restarts(schedule):
        return schedule["id"].to_list()
    failed = ended_by_failures(schedule)
    return [before_restarts(row, failed) for row in schedule.itertuples()]


def started_again(schedule: pd.DataFrame) -> dict[str, str]:
    """The executions of a schedule that are not the first of their jobs, with the names of these jobs."""
    again = schedule[schedule["id"].str.contains("#", regex=False)]
    failed = ended_by_failures(schedule) if len(again) else set[str]()
    names = {row.id: before_restarts(row, failed) for row in again.itertuples()}
    return {execution: name for execution, name in names.items() if name != execution}


def mean_level(
    begins: ArrayLike, ends: ArrayLike, heights: ArrayLike, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean, between each two edges, of what is so high from each beginning to each end together."""
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    level = np.concatenate([heights, np.negative(heights)])[order].cumsum()
    times = times[order]
    area = np.concatenate([[0.0], (level[:-1] * np.diff(times)).cumsum()])
    return np.diff(np.interp(edges, times, area)) / np.diff(edges)
