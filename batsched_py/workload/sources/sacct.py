"""Slurm's accounting: ``sacct --parsable2``, one line a job and one for each of its steps.

A line that has the separator inside of values too, like ``-C skylake|rome``, has more fields than the first
line has names. Only free texts can hold a separator. So the surplus fields belong to some of these, and all
other values must look as their columns say. If that leaves one way to read the line, this is it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.output_files import writing_text
from batsched_py.workload.sources import Source, accounting, count_lost, open_text, slurm_fields
from batsched_py.workload.sources.accounting import Account, Piece
from batsched_py.workload.sources.slurm_fields import Records
from batsched_py.workload.swf.conventions import CANCELLED, COMPLETED, FAILED
from batsched_py.workload.swf.log import SwfLog, on_clock, start_of

if TYPE_CHECKING:
    import pandas as pd


_TIME = r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+Z-]{5,20}|[0-9]+|Unknown|None|N/A|NONE)?"
_NUMBER = r"[0-9]*"
_DURATION = r"(?:[0-9:.-]+|INVALID|UNLIMITED|Partition_Limit|Unknown)?"
_RESOURCES = r"(?:[A-Za-z][A-Za-z0-9_/:.-]*=[^,=]*(?:,[A-Za-z][A-Za-z0-9_/:.-]*=[^,=]*)*)?"

#: What values look like, by the columns that have them.
_LOOKS: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(pattern)
    for pattern, names in {
        _TIME: "Submit Eligible Start End",
        _NUMBER: """AllocCPUS AllocNodes NCPUS NNodes ReqCPUS ReqNodes ElapsedRaw CPUTimeRAW DBIndex UID GID
            Priority QOSRAW NTasks AssocID ReservationId WCKeyID""",
        _DURATION: "Elapsed CPUTime Suspended SystemCPU TotalCPU UserCPU Timelimit Reserved Planned",
        _RESOURCES: "AllocTRES ReqTRES",
        r"[0-9]+(?:[_+.].*)?": "JobID JobIDRaw",
        r"[A-Z_]+(?: by [0-9]+|\+)?": "State",
        r"(?:[0-9.]+[KMGTP]?[cn]?)?": "ReqMem",
        r"(?:[0-9]+:[0-9]+)?": "ExitCode DerivedExitCode",
        r"(?:/(?s:.*))?": "WorkDir",
    }.items()
    for name in names.split()
}

#: Columns whose values may hold anything.
_FREE: Final = frozenset(
    "AdminComment Comment Constraints Container JobName SubmitLine SystemComment WCKey WorkDir".split()
)
_CONSTRAINT = re.compile(r"(?:^|\s)(?:--constraint[=\s]\s*|-C\s*)(\S+)")
#: With more surplus fields than this a line is not tried.
_MOST: Final = 12


def realigned(names: Sequence[str], fields: Sequence[str], separator: str) -> list[str] | None:
    """The values of a line with surplus fields; nothing if there is no one way to read it.

    >>> realigned(["JobID", "Constraints", "NNodes"], ["7", "a", "b", "2"], "|")
    ['7', 'a|b', '2']
    """
    surplus = len(fields) - len(names)
    if not 0 < surplus <= _MOST:
        return None
    found = list(_ways(names, fields, 0, surplus, separator))
    if len(found) > 1:
        found = [way for way in found if _agrees(dict(zip(names, way, strict=True)))]
    return found[0] if len(found) == 1 else None


def _ways(
    names: Sequence[str], fields: Sequence[str], place: int, surplus: int, separator: str
) -> Iterator[list[str]]:
    """All ways to give the fields from a place on to the names from there on."""
    made: list[str] = []
    for number in range(place, len(names)):
        name, value = names[number], fields[number - place]
        if surplus and name in _FREE:
            rest = fields[number - place :]
            for more in range(surplus, 0, -1):
                joined = separator.join(rest[: more + 1])
                if _looks(name, joined):
                    for way in _ways(names, rest[more + 1 :], number + 1, surplus - more, separator):
                        yield [*made, joined, *way]
        if not _looks(name, value):
            return
        made.append(value)
    if not surplus:
        yield made


def _looks(name: str, value: str) -> bool:
    """Whether a value may stand in a column."""
    pattern = _LOOKS.get(name)
    return pattern is None or pattern.fullmatch(value) is not None


def _agrees(values: dict[str, str]) -> bool:
    """Whether the nodes' features are those that the command asked for."""
    asked = _CONSTRAINT.search(values.get("SubmitLine", ""))
    return asked is not None and asked[1].strip("\"'") == values.get("Constraints")


NEEDED: Final = ("JobID", "Submit", "State")
_PENDING_TASKS: Final = re.compile(
    r"([0-9]+)_\[([0-9]{1,15}(?:-[0-9]{1,15})?(?:,[0-9]{1,15}(?:-[0-9]{1,15})?)*)(?::[0-9]+)?(?:%[0-9]+)?\]"
)
#: The first letter behind the name of a column; a comma or a blank is that of other files.
_BETWEEN: Final = re.compile(r"[A-Za-z]+([^A-Za-z0-9 \t,.\"'_-])")
_AS_A_WHOLE: Final = "cancelled as a whole"
_WHOLE_ARRAY: Final = f"task of an array that was {_AS_A_WHOLE}"
#: How many tasks of arrays that were cancelled as a whole a file may tell of.
_MOST_TASKS: Final = 1_000_000

#: More tasks than this in one array are a mistake; a Slurm allows 1,000 of them unless it is told otherwise.
_LARGEST_ARRAY: Final = 100_000
_WRITTEN: Final = (
    "JobID", "User", "Group", "JobName", "Partition", "Submit", "Start", "End", "State", "ElapsedRaw",
    "Timelimit", "ReqCPUS", "AllocCPUS", "ReqMem", "AllocTRES",
)  # fmt: skip
#: Columns of the log that are names, and the fields that say them.
_NAMED: Final = {"user": "User", "group": "Group", "executable": "JobName", "partition": "Partition"}
#: Columns beside the log, and the fields that say them.
_KEPT: Final = {
    "account": "Account", "qos": "QOS", "priority": "Priority", "reservation": "Reservation",
    "submit_line": "SubmitLine", "licences": "Licenses", "reason": "Reason",
}  # fmt: skip
#: Why most lines of a file are no jobs of the log.
STEP: Final = "step of a job"
_PEAK: Final = "MaxRSS of steps"
_PIECE: Final = 10_000
#: What a delimiter inside of a value is written as until the line is cut into its values.
_INSIDE: Final = "\x1e"


#: So many seconds the clocks of a site may differ.
_CLOCKS: Final = 60.0


@dataclass(frozen=True)
class Sacct(Source):
    """The text of Slurm's ``sacct --parsable2 --allusers --duplicates``, at least JobID, Submit and State.

    Better with User, Group, JobName, Partition, Start, End, ElapsedRaw, Timelimit, ReqCPUS, AllocCPUS,
    ReqMem, MaxRSS, TotalCPU, ReqTRES, AllocTRES, NodeList and Constraints, too. Each task of an array and
    each attempt of a job that was requeued is a job of its own; an attempt names the one before it as its
    preceding job. Steps only tell how much memory was used. A job that was cancelled before it started has a
    run time of 0 and waited until then. Beyond the format the log has the columns ``id``, ``state``,
    ``gpus``, ``nodes``, ``hosts``, and where the file says them ``account``, ``qos``, ``priority``,
    ``reservation``, ``eligible`` (Eligible, in seconds after Submit), ``energy`` (ConsumedEnergyRaw, in
    joules; -1 where nothing was measured), ``requested_nodes`` (ReqNodes or ReqTRES), ``tasks`` (NTasks),
    ``features`` (Constraints) and ``gpu_type`` (ReqTRES). From SubmitLine, or from a field Dependency, come
    the columns ``after`` (the jobs that a job waits for) and ``array`` (with how many tasks may run at once),
    which are simulated.
    """

    name = "sacct"
    endings = (".sacct", ".psv")

    zone: Annotated[str, Meta(description="Time zone of times that have none of their own.")] = "UTC"

    def read(self, path: Path) -> SwfLog:
        """Read a log."""
        account = Account(path)
        records, times = self._timed(_jobs(_tables(path, account), account), account)
        if not len(records):
            return account.log({"submit": np.empty(0)}, {})
        origin = float(np.floor(times["Submit"].min()))
        columns = self._columns(records, times, origin, account)
        named, names = accounting.named_columns({name: records.text(field) for name, field in _NAMED.items()})
        starts = columns["submit"] + np.maximum(columns["wait"], 0)
        in_use = accounting.most_in_use(starts, starts + columns["run_time"], columns["allocated_processors"])
        machine = max(in_use, int(columns["requested_processors"].max()))
        header = account.header("Slurm", origin, self.zone, machine) | names
        more = {
            "id": records.text("JobID").astype(str),
            "state": records.states(),
            "gpus": records.gpus(),
            "nodes": records.nodes().astype(np.int64),
            "hosts": records.hosts(),
            **{name: text for name, field in _KEPT.items() if (text := records.known_text(field)).any()},
            **_requests(records),
            **self._eligible(records, times["Submit"], account),
            **_energy(records),
            **slurm_fields.dependencies(records, account),
        }
        return account.log(columns | named, header, more=more)

    def pieces(self, path: Path, account: Account) -> Iterator[Piece]:
        """The records of a file, some lines at a time; what only steps tell is left out."""
        for table in _tables(path, account):
            records, times = self._timed(_jobs([table], account), account)
            if account.guessed[_WHOLE_ARRAY] > _MOST_TASKS:
                raise _too_many_tasks(path)
            if len(records):
                columns = self._columns(records, times, 0.0, account)
                named, names = accounting.named_columns(
                    {name: records.text(field) for name, field in _NAMED.items()}
                )
                waits = bool(slurm_fields.dependencies(records, account))
                yield Piece(columns | named, {}, names, has_dependencies=waits)

    def machine_header(self, header: Mapping[str, str], machine: Callable[[], int]) -> Mapping[str, str]:
        """The size of the machine is the most processors that were in use at once; times are Unix times."""
        return {"UnixStartTime": "0", "TimeZoneString": self.zone, "MaxProcs": str(machine())}

    def _timed(self, records: Records, account: Account) -> tuple[Records, dict[str, NDArray[Any]]]:
        """The records of which the submission is known, and their times."""
        times = {name: records.moments(name, self.zone, account) for name in ("Submit", "Start", "End")}
        good = ~np.isnan(times["Submit"])
        for row in np.flatnonzero(~good).tolist():
            line, text = int(records.table["line"].iloc[row]), records.text("Submit")[row]
            account.reject(line, f"Submit {text[:25]!r} is no time", "Submit is no time")
        return records[good], {name: moments[good] for name, moments in times.items()}

    def _columns(
        self, records: Records, times: dict[str, NDArray[Any]], origin: float, account: Account
    ) -> dict[str, NDArray[Any]]:
        """What the records say, as columns of a log."""
        submit, start, end = times["Submit"], times["Start"], times["End"]
        states = records.states()
        elapsed = records.elapsed(start, end)
        statuses = [slurm_fields.STATES[state] for state in states.tolist()]
        never_ran = (elapsed <= 0) & (np.isnan(start) | np.isin(states, ("CANCELLED", "REVOKED")))
        begun = np.where(never_ran, end, start)
        requested = records.processors("ReqTRES", "ReqCPUS")
        allocated = records.processors("AllocTRES", "AllocCPUS", "NCPUS")
        unsized = (requested <= 0) & (allocated <= 0)
        account.guessed["size of a job that says none: 1"] += int(unsized.sum())
        if unsized.all():
            account.tell("no job says how many processors it had, so each has 1; AllocCPUS and ReqCPUS tell")
        account.tell_odd("wait taken as 0, for a start before the submission", submit - begun > _CLOCKS)
        account.tell_odd("run time taken as 0, for an end before the start", start - end > _CLOCKS)
        lasted = end - start - np.maximum(records.duration("Suspended"), 0)
        contradicts = np.abs(elapsed - lasted) > np.maximum(_CLOCKS, 0.01 * np.abs(lasted))
        account.tell_odd("run time taken from Elapsed, which is not End - Start - Suspended", contradicts)
        requested = np.where(requested > 0, requested, np.where(allocated > 0, allocated, 1))
        allocated = np.where(never_ran, 0, np.where(allocated > 0, allocated, requested))
        return {
            "submit": submit - origin,
            "wait": np.where(np.isnan(begun), -1.0, np.maximum(begun - submit, 0)),
            "run_time": np.where(never_ran, 0.0, np.maximum(elapsed, 0)),
            "allocated_processors": allocated,
            "average_cpu_time": records.cpu_time_each(allocated),
            "used_memory": records.table[_PEAK].to_numpy(),
            "requested_processors": requested,
            "requested_time": records.limit(),
            "requested_memory": records.memory_each(requested),
            "status": np.where(never_ran, CANCELLED, statuses),
            "preceding_job": accounting.preceding_jobs(records.text("JobID"), submit),
        }

    def _eligible(self, records: Records, submit: NDArray[Any], account: Account) -> dict[str, NDArray[Any]]:
        """How long after its submission each job became eligible, if the file says that."""
        moments = records.moments("Eligible", self.zone, account)
        if np.isnan(moments).all():
            return {}
        return {"eligible": np.nan_to_num(np.maximum(moments - submit, 0.0), nan=0.0)}

    def write(self, path: Path, log: SwfLog) -> None:
        """Write what sacct would have printed."""
        with writing_text(path) as file:
            file.write("|".join(_WRITTEN) + "\n")
            file.writelines("\n".join(map("|".join, piece)) + "\n" for piece in self._lines(log))

    def _lines(self, log: SwfLog) -> Iterator[list[tuple[str, ...]]]:
        """The fields of each line, in pieces."""
        names = {column: accounting.names_of(log, column) for column in _NAMED}
        zone, origin = accounting.zone_named(self.zone), start_of(log) or 0
        for first in range(0, len(log), _PIECE):
            positions = np.arange(first, min(first + _PIECE, len(log)))
            part = log.select(positions)
            starts = part.submit + np.maximum(part.wait, 0)
            never_ran = (part.status == CANCELLED) & (part.run_time == 0)
            gpus = part.more.get("gpus", np.zeros(len(part), dtype=np.int64))
            yield list(
                zip(
                    part.more.get("id", part.job_number).astype(str).tolist(),
                    names["user"][positions].tolist(),
                    names["group"][positions].tolist(),
                    names["executable"][positions].tolist(),
                    names["partition"][positions].tolist(),
                    _written_moments(origin + part.submit, zone),
                    np.where(never_ran, "None", _written_moments(origin + starts, zone)).tolist(),
                    _written_moments(origin + starts + part.run_time, zone),
                    _written_states(part),
                    [f"{seconds:.0f}" for seconds in part.run_time.tolist()],
                    _each(
                        part.requested_time,
                        lambda time: accounting.written_duration(time) if time > 0 else "UNLIMITED",
                    ),
                    part.requested_processors.astype(str).tolist(),
                    part.allocated_processors.astype(str).tolist(),
                    [f"{size:.0f}Kc" if size > 0 else "" for size in part.requested_memory.tolist()],
                    [f"gres/gpu={count}" if count > 0 else "" for count in gpus.tolist()],
                    strict=True,
                )
            )

    def lost(self, log: SwfLog) -> dict[str, int]:
        """Waits are kept as starts; names of hosts and what else was known are not."""
        columns = ("average_cpu_time", "used_memory", "queue", "think_time")
        return count_lost(log, columns, kept=("id", "state", "gpus"))

    def recognises(self, beginning: bytes) -> bool:
        """The first line names columns."""
        head = beginning.split(b"\n")[0].decode(errors="replace").strip("\r\ufeff ")
        return set(head.split(_delimiter(head))) >= set(NEEDED)


def _requests(records: Records) -> dict[str, NDArray[Any]]:
    """What jobs asked for beside processors and memory, as far as the file says."""
    counts = {"requested_nodes": records.requested_nodes(), "tasks": records.number("NTasks")}
    asked: dict[str, NDArray[Any]] = {
        name: column.astype(np.int64) for name, column in counts.items() if (column >= 0).any()
    }
    texts = {"features": records.features(), "gpu_type": records.gpu_type()}
    return asked | {name: column for name, column in texts.items() if column.any()}


def _tables(path: Path, account: Account) -> Iterator[pd.DataFrame]:
    """The lines that have as many fields as the first, each with its number, some after the others."""
    import pandas as pd

    with open_text(path) as file:
        head = file.readline().strip("\r\n\ufeff ")
        delimiter = _delimiter(head)
        names = head.rstrip(delimiter).split(delimiter)
        missing = [name for name in NEEDED if name not in names]
        if missing:
            raise InputError(
                f"{path}: line 1: not the header of sacct --parsable2: there is no column {missing[0]}"
            )
        lines, piece = enumerate(file, start=2), None
        while piece is None or piece:
            piece = list(islice(lines, _PIECE))
            good = list(_good_lines(piece, names, delimiter, account))
            records = StringIO("\n".join([delimiter.join(names), *(text for _, text in good)]))
            table = pd.read_csv(
                records, sep=delimiter, dtype=object, keep_default_na=False, quoting=csv.QUOTE_NONE
            )
            if any(_INSIDE in text for _, text in good):
                table = table.replace(_INSIDE, delimiter, regex=True)
            yield table.copy().assign(line=[number for number, _ in good])


def _delimiter(head: str) -> str:
    """What stands between the names of columns: ``|``, unless sacct was given another ``--delimiter``."""
    found = _BETWEEN.match(head)
    return found[1] if found else "|"


def _good_lines(
    lines: Iterable[tuple[int, str]], names: list[str], delimiter: str, account: Account
) -> Iterator[tuple[int, str]]:
    """The lines that can be read; a delimiter inside of a value is written as another character."""
    nb_fields = len(names)
    for number, line in lines:
        text = line.rstrip("\r\n")
        if text.count(delimiter) == nb_fields:
            text = text.removesuffix(delimiter)
        if text.count(delimiter) == nb_fields - 1:
            yield number, text
        elif text.count(delimiter) >= nb_fields:
            values = realigned(names, text.split(delimiter), delimiter)
            if values is None:
                raise InputError(
                    f"{account.path}: line {number}: {text.count(delimiter) + 1} fields instead of "
                    f"{nb_fields}, and no single way to read it, for a value has a {delimiter!r}; give sacct "
                    "another separator: --delimiter=$'\\x1f'"
                )
            yield number, delimiter.join(value.replace(delimiter, _INSIDE) for value in values)
        elif text.strip():
            fields = text.count(delimiter) + 1
            account.reject(number, f"{fields} fields instead of {nb_fields}", "another number of fields")


def _jobs(tables: Iterable[pd.DataFrame], account: Account) -> Records:
    """The records of finished jobs, with what their steps say, and one for each task of an array.

    Most lines of a file are steps. Of these, only the memory that they used is kept.
    """
    import pandas as pd

    pieces, peaks, nb_steps = [], [], 0
    for table in tables:
        ids = table["JobID"]
        steps = ids.str.contains(".", regex=False)
        peak = accounting.for_each(Records(table).text("MaxRSS"), lambda text: accounting.memory(text)[0])
        measured = np.flatnonzero(peak >= 0)
        of_jobs = ids.iloc[measured].str.split(".").str[0].to_numpy()
        peaks.append(pd.Series(peak[measured]).groupby(of_jobs).max())
        pieces.append(table[~steps])
        nb_steps += int(steps.sum())
    used = pd.concat(peaks).groupby(level=0).max()
    jobs = pd.concat(pieces, ignore_index=True)
    jobs = jobs.assign(**{_PEAK: jobs["JobID"].map(used).astype(float).fillna(-1.0)})
    account.left_out[STEP] += nb_steps
    states = Records(jobs).states()
    for state in slurm_fields.UNFINISHED:
        account.left_out[f"job is {state.lower()}"] += int((states == state).sum())
    known = np.isin(states, list(slurm_fields.STATES))
    for row in np.flatnonzero(~known & ~np.isin(states, slurm_fields.UNFINISHED)).tolist():
        state = jobs["State"].iloc[row]
        account.reject(int(jobs["line"].iloc[row]), f"State {state[:25]!r} is unknown", "State is unknown")
    jobs = jobs[known]
    for kind in [kind for kind, count in account.left_out.items() if not count]:
        del account.left_out[kind]
    ids = jobs["JobID"].tolist()
    tasks = [_tasks(name) for name in ids]
    counts = [max(sum(map(len, numbers)), 1) for numbers in tasks]
    if sum(counts) > len(counts) + _MOST_TASKS or max(counts, default=0) > _LARGEST_ARRAY:
        raise _too_many_tasks(account.path)
    if any(tasks):
        account.guessed[_WHOLE_ARRAY] += sum(c for c in counts if c > 1)
        names: list[str] = []
        for name, numbers in zip(ids, tasks, strict=True):
            array = name.partition("_")[0]
            names += [f"{array}_{task}" for each in numbers for task in each] or [name]
        jobs = jobs.loc[jobs.index.repeat(counts)].assign(JobID=names)
    return Records(jobs.reset_index(drop=True))


def _energy(records: Records) -> dict[str, NDArray[Any]]:
    """What each job consumed, if the file tells it of any; a cluster that measures nothing writes 0."""
    energy = records.number("ConsumedEnergyRaw")
    return {"energy": np.where(energy > 0, energy, -1.0)} if (energy > 0).any() else {}


def _too_many_tasks(path: Path) -> InputError:
    return InputError(
        f"{path}: tells of more than {_MOST_TASKS} tasks of arrays that were {_AS_A_WHOLE}, or of more than "
        f"{_LARGEST_ARRAY} of one array"
    )


def _tasks(name: str) -> list[range]:
    """The numbers of the tasks that a record like ``12_[3-5,9]`` represents; none for any other record.

    One that is named twice is one task.

    >>> _tasks("12_[3-5,9,4-6]")
    [range(3, 6), range(6, 7), range(9, 10)]
    """
    parts = _PENDING_TASKS.fullmatch(name)
    if parts is None:
        return []
    ends = (each.partition("-")[::2] for each in parts[2].split(","))
    told: list[range] = []
    for first, last in sorted((int(first), int(last or first)) for first, last in ends):
        begin = max(first, told[-1].stop) if told else first
        if begin <= last:
            told.append(range(begin, last + 1))
    return told


def _written_moments(moments: NDArray[Any], zone: tzinfo) -> list[str]:
    """Moments of Unix time on the clock of a zone, with its offset."""
    local = on_clock(np.round(moments), zone)
    texts = local.astype("datetime64[s]").astype(str).tolist()

    def offset(seconds: float) -> str:
        hours, minutes = divmod(abs(int(seconds)) // 60, 60)
        return f"{'-' if seconds < 0 else '+'}{hours:02}{minutes:02}"

    offsets = _each(local - np.round(moments), offset)
    return [text + offset for text, offset in zip(texts, offsets, strict=True)]


def _each(numbers: NDArray[Any], write: Callable[[float], str]) -> list[str]:
    """Each number as text; each distinct one is written once."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    return np.array([write(number) for number in distinct.tolist()], dtype=object)[codes].tolist()


def _written_states(log: SwfLog) -> list[str]:
    if "state" in log.more:
        return log.more["state"].tolist()
    names = {COMPLETED: "COMPLETED", FAILED: "FAILED", CANCELLED: "CANCELLED"}
    return [names.get(status, "COMPLETED") for status in log.status.tolist()]
