"""The jobs of a log, ready to be simulated, and what they wait for.

They are kept as columns, as a log may have too many jobs to keep an object for each.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.dependencies import AFTER, ARRAY
from batsched_py.protocol.jobs import Job, ReadOnlyDict
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.workload import model
from batsched_py.workload.calendar import Calendar
from batsched_py.workload.columns import BLOCK, Numbers, distinct, gather, narrow
from batsched_py.workload.dependencies import rewritten
from batsched_py.workload.swf import conventions
from batsched_py.workload.swf.conventions import EXTRA, extra_fields, number_text, profile_name
from batsched_py.workload.swf.log import COLUMNS, SwfLog
from batsched_py.workload.swf.reader import SwfReader, keep, sort_by_submission

if TYPE_CHECKING:
    from batsched_py.workload.requests import NodeWords

_log = logging.getLogger(__name__)


#: So many extras are kept; jobs with the same values share one.
_SHARED_EXTRAS = 4096


class LoggedJobs(model.Jobs):
    """Jobs over the columns ``job_number``, ``submit``, ``size``, ``walltime``, ``run_time`` and ``extra``.

    A walltime of 0 means none. The column ``extra`` has, for each job, a row of ``extras``: a combination of
    the values that jobs have in their ``extra``.
    """

    def __init__(
        self, workload: str, columns: Mapping[str, Numbers], extras: Numbers, profiles: Mapping[float, str]
    ) -> None:
        self._workload = workload
        self._columns = columns
        self._extras = extras
        self._extra = lru_cache(_SHARED_EXTRAS)(lambda row: extra_fields(extras[row].tolist()))
        self._profiles = profiles
        """The name of its profile for each run time."""
        self._numbers = columns["job_number"]
        self._submit = columns["submit"]
        self._sizes = columns["size"]
        self._walltimes = columns["walltime"]
        self._run_times = columns["run_time"]
        self._extra_rows = columns["extra"]

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> LoggedJobs: ...
    def __getitem__(self, place: int | slice) -> Job | LoggedJobs:
        if isinstance(place, slice):
            columns = {name: column[place] for name, column in self._columns.items()}
            return LoggedJobs(self._workload, columns, self._extras, self._profiles)
        return Job(
            f"{self._workload}!{self._numbers.item(place)}",
            float(self._submit.item(place)),
            self._sizes.item(place),
            float(self._walltimes.item(place)) or inf,
            self._profiles[self._run_times.item(place)],
            self._extra(self._extra_rows.item(place)),
        )

    def __iter__(self) -> Iterator[Job]:
        for start in range(0, len(self), BLOCK):
            yield from self.take(np.arange(start, min(start + BLOCK, len(self))))

    @property
    def submission_times(self) -> Numbers:
        """For each job, when it is submitted."""
        return self._submit

    def users(self) -> tuple[list[str | None], Numbers]:
        """The names of the users, and for each job the place of its user's name among them."""
        places: dict[str | None, int] = {}
        names = (None if user == -1 else str(user) for user in self._extras[:, 0].tolist())
        users = [places.setdefault(name, len(places)) for name in names]
        return list(places), narrow(np.array(users))[self._extra_rows]

    def take(self, places: model.Places) -> list[Job]:
        """The jobs in these places."""
        workload, profiles, extra = self._workload, self._profiles, self._extra
        return [
            Job(f"{workload}!{number}", submit, size, walltime or inf, profiles[run_time], extra(row))
            for number, submit, size, walltime, run_time, row in zip(
                self._numbers[places].tolist(),
                self._submit[places].astype(np.float64).tolist(),
                self._sizes[places].tolist(),
                self._walltimes[places].astype(np.float64).tolist(),
                self._run_times[places].tolist(),
                self._extra_rows[places].tolist(),
                strict=True,
            )
        ]

    def nb_larger_than(self, hosts: int) -> int:
        """How many jobs ask for more hosts than these."""
        return int(np.count_nonzero(self._sizes > hosts))

    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""
        workload, _, name = job_id.partition("!")
        if workload != self._workload or not name.lstrip("-").isdecimal() or len(name) > 18:
            return None
        rank = int(np.searchsorted(self._numbers, int(name), sorter=self._by_number))
        job = self[int(self._by_number[rank])] if rank < len(self) else None
        return job if job is not None and job.id == job_id else None

    @cached_property
    def _by_number(self) -> model.Places:
        return np.argsort(self._numbers, kind="stable").astype(np.int32)


class RecordedFinishes(Sequence[float]):
    """When the jobs of a log had finished, computed when it is asked for."""

    def __init__(self, submit: Numbers, wait: Numbers, run_time: Numbers) -> None:
        self._submit = submit
        self._wait = wait
        self._run_time = run_time

    def __len__(self) -> int:
        return len(self._submit)

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> list[float]: ...
    def __getitem__(self, place: int | slice) -> float | list[float]:
        finishes: float | list[float] = self.take(place).tolist()
        return finishes

    def take(self, places: model.Places | slice | int) -> Numbers:
        """When the jobs in these places had finished."""
        return self._submit[places].astype(np.float64) + self._wait[places] + self._run_time[places]


def with_dependencies(jobs: Sequence[Job], log: SwfLog, preceding: model.PrecedingRule) -> Sequence[Job]:
    """The jobs of a log with what they wait for in their ``extra``; the same sequence if it tells nothing.

    What they wait for that is not among the jobs, because it is in no log or was left out, is taken to be
    over. The source may call jobs by other names than the log, which are in its column ``id``.
    """
    tells = "id" in log.more and ("after" in log.more or "array" in log.more)
    if not tells and preceding == "ignore":
        return jobs
    kept = {job.name for job in jobs}
    try:
        told = _told(kept, log) if tells else {}
    except ValueError as error:
        raise InputError(f"{log.path}: column {error}") from None
    if preceding == "wait":
        for name, text in _preceding(kept, log).items():
            fields = told.setdefault(name, {})
            if "?" not in fields.get(AFTER, ""):
                fields[AFTER] = ",".join(filter(None, [fields.get(AFTER), text]))
    if not any(told.values()):
        return jobs
    return [replace(job, extra=job.extra | told[job.name]) if told.get(job.name) else job for job in jobs]


def _told(kept: set[str], log: SwfLog) -> dict[str, dict[str, str]]:
    """The fields of each job that is kept, by its name; an array has a name that no job has."""
    numbers = {
        name: str(number)
        for name, number in zip(_texts(log.more["id"]), log.job_number.tolist(), strict=True)
        if str(number) in kept
    }
    tasks: dict[str, list[str]] = {}
    for name, number in numbers.items():
        array, underscore, _ = name.partition("_")
        if underscore:
            tasks.setdefault(array, []).append(number)
    awaited: set[str] = set()

    def rename(name: str) -> str | None:
        if name not in numbers and name in tasks:
            awaited.add(name)
            return f"array{name}"
        return numbers.get(name)

    nothing = np.full(len(log), "")
    after, arrays = (_texts(log.more.get(name, nothing)) for name in ("after", "array"))
    told: dict[str, dict[str, str]] = {}
    for number, text, array in zip(map(str, log.job_number.tolist()), after, arrays, strict=True):
        if number in kept and text and (renamed := rewritten(text, rename)):
            told.setdefault(number, {})[AFTER] = renamed
        if number in kept and array:
            told.setdefault(number, {})[ARRAY] = f"array{array}"
    for array in sorted(awaited):
        for number in tasks[array]:
            told.setdefault(number, {}).setdefault(ARRAY, f"array{array}")
    return told


def _texts(column: NDArray[Any]) -> list[str]:
    """What fields say, those that are empty or that a table has as numbers, too."""
    import pandas as pd

    return [
        "" if is_empty else number_text(value) if isinstance(value, float) else str(value)
        for value, is_empty in zip(column.tolist(), pd.isna(column).tolist(), strict=True)
    ]


def _preceding(kept: set[str], log: SwfLog) -> dict[str, str]:
    """What each job waits for: its preceding job, if that was submitted before it, and its think time."""
    columns = (log.job_number.astype(str), log.preceding_job.astype(str), log.think_time)
    found: dict[str, str] = {}
    seen: set[str] = set()
    for number, before, think_time in zip(*(column.tolist() for column in columns), strict=True):
        if number in kept and before in seen:
            delay = f"+{number_text(round(think_time, 6))}s" if think_time > 0 else ""
            found[number] = f"afterany:{before}{delay}"
        if number in kept:
            seen.add(number)
    return found


def swf_to_workload(
    log: SwfLog,
    name: str = "w0",
    walltime_factor: float = 2.0,
    walltime: model.WalltimeRule = "at-least-run-time",
    cancelled: model.CancelledRule = "leave-out",
    words: NodeWords | None = None,
    preceding: model.PrecedingRule = "ignore",
    attributes: Sequence[str] = (),
    processors: model.ProcessorsRule = "allocated",
) -> model.Workload:
    """The jobs of a log, ready to be simulated.

    A job asks for the processors it was allocated, else for those it requested, or the other way round if
    ``processors`` says so; one with neither is left out. Times are shifted so that the first submission is 0.
    The walltime is the requested time, but never less than the run time, so that nothing is killed; with the
    rule ``"max"`` the larger one of the requested time and ``walltime_factor`` times the run time; with
    ``"requested"`` the requested time alone; with ``"estimate"`` the same, and a job that is late runs to its
    end; with ``"modelled"`` a job that requested nothing gets a round estimate. A job for which this gives
    nothing has no walltime. A wait that was not recorded counts as 0 in the recorded finishes. Users and what
    else the log says about a job are in its ``extra``, which jobs with the same values share.

    Jobs that were cancelled while they waited are left out. With the rule ``"withdraw"`` their ``extra`` says
    how long they had waited, for users who withdraw them then, and they run for longer than that.

    With the ``words`` of a machine of nodes, jobs get a ``request`` of what the log says that they asked for.
    What the source of the log tells about jobs that wait for others is in their ``extra``, too. With
    ``preceding="wait"``, a job waits for its preceding job, and for its think time from then on.
    Further ``attributes`` in their ``extra`` are those of :mod:`batsched_py.workload.attributes`.
    """
    columns = {column: getattr(log, column) for column in COLUMNS}
    jobs = JobColumns(walltime_factor, walltime, cancelled, processors)
    if words is not None:
        from batsched_py.workload.requests import requests_of

        codes, requests = requests_of(log, words, processors)
        jobs.add(columns, codes, [{"request": request} if request else {} for request in requests])
    if attributes:
        from batsched_py.workload.attributes import attributes_of

        jobs.add(columns, *attributes_of(log, attributes))
    pieces = (
        {name: column[start : start + BLOCK] for name, column in columns.items()}
        for start in range(0, len(log), BLOCK)
    )
    workload = jobs.workload(gather(jobs.derive(pieces)), name, log.header, log.path)
    workload.jobs = with_dependencies(workload.jobs, log, preceding)
    return workload


def read_swf_workload(
    path: str | Path,
    name: str = "w0",
    walltime_factor: float = 2.0,
    walltime: model.WalltimeRule = "at-least-run-time",
    cancelled: model.CancelledRule = "leave-out",
    processors: model.ProcessorsRule = "allocated",
) -> model.Workload:
    """Read a log's jobs: the same as :func:`swf_to_workload` with :func:`~.reader.read_swf`.

    Only what the jobs need is ever in memory, some thirty bytes a job.
    """
    reader = SwfReader(path)
    jobs = JobColumns(walltime_factor, walltime, cancelled, processors)
    columns = reader.usable(gather(jobs.derive(reader.pieces())))
    return jobs.workload(columns, name, reader.header, str(path))


class JobColumns:
    """Derives what a simulation needs from the records of a log, piece by piece."""

    def __init__(
        self,
        walltime_factor: float,
        walltime: model.WalltimeRule,
        cancelled: model.CancelledRule,
        processors: model.ProcessorsRule,
    ) -> None:
        self._factor = conventions.run_time_factor(walltime, walltime_factor)
        self._late_jobs_stay = walltime == "estimate"
        self._modelled = walltime == "modelled"
        self._sizes = ("allocated_processors", "requested_processors")
        if processors == "requested":
            self._sizes = self._sizes[::-1]
        self._withdrawn = cancelled == "withdraw"
        self._extras: dict[tuple[int, ...], int] = {}
        """The row of each combination of values that jobs have in their ``extra``."""
        self._added: list[dict[str, Any]] = []
        """What else jobs have in their ``extra``; the column ``added`` says which of these is a job's."""

    def add(self, columns: dict[str, Any], codes: Numbers, added: list[dict[str, Any]]) -> None:
        """Let jobs have more in their ``extra``: for each job the place of what is added."""
        if "added" in columns:
            pairs, codes = np.unique(columns["added"] * len(added) + codes, return_inverse=True)
            combined = [divmod(pair, len(added)) for pair in pairs.tolist()]
            added = [self._added[first] | added[second] for first, second in combined]
        columns["added"], self._added = codes, added

    def derive(self, pieces: Iterable[Mapping[str, Numbers]]) -> Iterable[dict[str, Numbers]]:
        """The columns of jobs, and those that tell whether a record can be used."""
        for piece in pieces:
            kept = ("job_number", "submit", "run_time", "skipped", "added")
            columns = {name: piece[name] for name in kept if name in piece}
            allocated = piece["allocated_processors"]
            cancelled = conventions.never_started(piece["status"], piece["run_time"], allocated)
            columns["left_out"] = cancelled & ~(self._withdrawn & (piece["wait"] >= 0))
            columns["withdrawn"] = cancelled & ~columns["left_out"]
            columns["wait"] = np.maximum(piece["wait"], 0)
            first, second = (piece[name] for name in self._sizes)
            columns["size"] = np.where(first > 0, first, second)
            columns["otherwise"] = (first <= 0) & (second > 0)
            requested = np.maximum(piece["requested_time"], 0)
            columns["walltime"] = np.maximum(requested, self._factor * piece["run_time"])
            columns["unrequested"] = requested <= 0
            columns["equal"] = (requested > 0) & (requested == piece["run_time"])
            columns["raised"] = (requested > 0) & (columns["walltime"] > requested)
            rows = self._extras
            combinations = zip(*(piece[name].astype(np.int64).tolist() for name in EXTRA), strict=True)
            places = [rows.setdefault(values, len(rows)) for values in combinations]
            columns["extra"] = np.array(places, dtype=np.int64)
            yield columns

    def sort(self, columns: dict[str, Numbers]) -> None:
        """Put the records of all pieces into the order of their submissions."""
        if sort_by_submission(columns):
            distinct, first = np.unique(columns["extra"], return_index=True)
            numbers = np.empty(len(distinct), dtype=columns["extra"].dtype)
            by_appearance = np.argsort(first)
            numbers[by_appearance] = np.arange(len(distinct))
            columns["extra"] = numbers[columns["extra"]]
            combinations = list(self._extras)
            self._extras = {combinations[row]: place for place, row in enumerate(by_appearance.tolist())}

    def workload(
        self, columns: dict[str, Numbers], name: str, header: Mapping[str, str], path: str
    ) -> model.Workload:
        """The jobs of all pieces."""
        sized = columns["size"] > 0 if columns else np.zeros(0, dtype=bool)
        if not sized.all():
            _log.warning(conventions.UNSIZED_LEFT_OUT, path, (~sized).sum(), len(sized))
            keep(columns, sized)
        if not sized.any():
            raise InputError(f"{path}: no job has a positive number of processors")
        first = columns["submit"].min()
        if first < 0:  # else the column has room for the times since then
            columns["submit"] = columns["submit"].astype(np.float64)
        columns["submit"] -= first
        if first > conventions.UNIX_TIMES and columns["submit"].dtype.kind == "f":
            columns["submit"] = np.round(columns["submit"], 6)
        left_out = columns.pop("left_out").astype(bool)
        if left_out.any():
            _log.warning(conventions.CANCELLED_LEFT_OUT, path, left_out.sum(), len(left_out))
            keep(columns, ~left_out)
        if left_out.all():
            raise InputError(f"{path}: every job was cancelled while it waited")
        if self._modelled:
            _model_walltimes(columns)
        nb_unrequested, nb_raised, nb_equal, nb_sized_otherwise = (
            int(columns.pop(name).sum()) for name in ("unrequested", "raised", "equal", "otherwise")
        )
        withdrawn = np.flatnonzero(columns.pop("withdrawn"))
        waits = columns["wait"][withdrawn].tolist()
        finishes = RecordedFinishes(columns["submit"], columns.pop("wait"), columns["run_time"])
        names = {run_time: profile_name(run_time) for run_time in distinct(columns["run_time"]).tolist()}
        profiles = conventions.profiles_of(names)
        added = columns.pop("added", None)
        extras = narrow(np.array(list(self._extras), dtype=np.int64))
        jobs: Sequence[Job] = LoggedJobs(name, columns, extras, names)
        if added is not None:
            jobs = _with_more(jobs, columns["extra"].tolist(), added.tolist(), self._added)
        if waits:
            jobs = _with_withdrawals(jobs, dict(zip(withdrawn.tolist(), waits, strict=True)), profiles)
        nb_hosts = conventions.machine_size(header)
        return model.Workload(
            name,
            jobs,
            profiles,
            nb_hosts,
            path,
            finishes,
            has_cancelled=bool(waits),
            late_jobs_stay=self._late_jobs_stay,
            nb_unrequested=nb_unrequested,
            nb_raised=nb_raised,
            nb_sized_otherwise=nb_sized_otherwise,
            nb_partitions=conventions.nb_partitions(header),
            nb_equal=nb_equal,
            calendar=Calendar.of(header, float(first)),
            scaled=conventions.scaled(header),
        )


def _model_walltimes(columns: dict[str, Numbers]) -> None:
    """Give jobs without a request a walltime as users would have asked for it."""
    from batsched_py.workload.changes.estimates import fill_in

    requested = np.where(columns["unrequested"], 0, columns["walltime"])
    columns["walltime"] = fill_in(columns["run_time"], requested)


def _with_more(
    jobs: Sequence[Job], rows: Sequence[int], codes: Sequence[int], added: Sequence[dict[str, Any]]
) -> list[Job]:
    """The jobs, each with what is added to its ``extra``; jobs with the same values share one."""
    extras: dict[tuple[int, int], dict[str, Any]] = {}
    made = list(jobs)
    for place, (job, row, number) in enumerate(zip(made, rows, codes, strict=True)):
        if added[number]:
            if (row, number) not in extras:
                extras[row, number] = ReadOnlyDict(job.extra | added[number])
            made[place] = replace(job, extra=extras[row, number])
    return made


def _with_withdrawals(
    jobs: Sequence[Job], waits: Mapping[int, float], profiles: dict[str, Profile]
) -> list[Job]:
    """The jobs, of which those in some places were cancelled after so long a wait.

    How long such a job would have run is unknown. It is given a profile that lasts longer than it waited, so
    that it does not complete before it is withdrawn.
    """
    made = list(jobs)
    for place, wait in waits.items():
        job, profile = made[place], f"cancelled_after_{number_text(wait)}"
        profiles[profile] = Delay(wait + 1.0)
        made[place] = replace(job, profile=profile, extra=job.extra | {model.CANCELLED_AFTER: wait})
    return made
