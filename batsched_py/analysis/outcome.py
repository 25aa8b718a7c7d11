"""The results of a simulation, as far as metrics need them, whole or by groups of jobs."""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis import user_metrics
from batsched_py.analysis.conditions import Carried, carried_beside, slowdown_by_contention
from batsched_py.analysis.job_rows import JobRows, read_rows
from batsched_py.analysis.schedule import INSTANT
from batsched_py.analysis.user_metrics import noted
from batsched_py.analysis.windows import Window
from batsched_py.errors import InputError
from batsched_py.protocol.jobs import JobState

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.groupings import Grouping
    from batsched_py.workload.swf.log import SwfLog


_log = logging.getLogger(__name__)

#: Bound of the bounded slowdown, in seconds: shorter jobs count as if they ran for this long.
TAU: Final = 10.0

#: What is in the notes of users who work in sessions, and submit when they are ready.
_IN_SESSION: Final = r"(?:^| )session=\S"

#: What is said where nothing tells how large a machine is.
UNKNOWN_MACHINE: Final = (
    "nothing tells how large the machine is: it is taken to have %s hosts, up to the highest that was used"
)

#: The part of the jobs that are submitted before the end of what utilization and throughput are about.
MOST: Final = 0.9


class Summary(Struct, frozen=True):
    """The values that only the summary has, if it has them."""

    nb_hosts: int | None = None
    consumed_joules: float | None = None
    nb_switches: int | None = None
    """How many times power states were changed."""
    energy_cost: float | None = None
    carbon: float | None = None
    """In grams of CO2."""


def read_summary(jobs_file: str | Path) -> Summary:
    """The summary beside a ``PREFIX_jobs.csv``; nothing if it is missing.

    A simulation that does not account for energy writes 0 joules.
    """
    path = jobs_csv.beside(jobs_file, "schedule")
    try:
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                row = next(csv.DictReader(file), {})
        elif (path := path.with_suffix(".json")).is_file():
            row = _texts(path.read_bytes())
        else:
            return Summary()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    return _summary(row)


def summary_in(schedule: TextIO | None) -> Summary:
    """The summary in an open ``schedule.csv``; nothing if there is none."""
    return _summary(next(csv.DictReader(schedule), {})) if schedule else Summary()


def _summary(row: Mapping[str, str]) -> Summary:
    def number(name: str) -> float | None:
        try:
            number = float(row.get(name) or "")
        except ValueError:
            return None
        return number if isfinite(number) else None

    def count(name: str) -> int | None:
        text = row.get(name) or ""
        return int(text) if re.fullmatch("[0-9]{1,9}", text) else None

    joules = number("consumed_joules")
    return Summary(
        count("nb_computing_machines"),
        joules if joules is not None and joules > 0 else None,
        count("nb_grouped_switches"),
        number("energy_cost"),
        number("carbon_grams"),
    )


def _texts(content: bytes) -> dict[str, str]:
    """The members of a JSON object as texts, as in a table."""
    try:
        fields = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return {name: str(value) for name, value in fields.items()} if isinstance(fields, dict) else {}


def decisions_beside(jobs_file: str | Path) -> pd.DataFrame | None:
    """What each decision took, beside a ``PREFIX_jobs.csv``; nothing if it was not asked for."""
    measured = dict.fromkeys(("decision_seconds", "other_seconds", "memory_bytes"), float)
    return _table_beside(jobs_file, "decisions", {"time": float, "queue": int, **measured})


def _table_beside(jobs_file: str | Path, name: str, types: Mapping[str, type]) -> pd.DataFrame | None:
    def read(file: TextIO, path: str) -> pd.DataFrame:
        import pandas as pd

        try:
            return pd.read_csv(file, usecols=list(types), dtype=dict(types))
        except ValueError:
            what = f"is not what a simulation with --{name} writes ({','.join(types)})"
            raise InputError(f"{path}: {what}") from None

    return jobs_csv.read_table(jobs_csv.tables_beside(jobs_file), name, read)


def executions(schedule: pd.DataFrame) -> pd.DataFrame | None:
    """For each execution the host seconds that were ``useful``, ``lost`` and ``overhead``.

    None if no failure has ended any.
    """
    import pandas as pd

    if noted(schedule, "failed").empty:
        return None
    jobs = jobs_csv.started(schedule)
    has_failed = jobs.index.isin(noted(jobs, "failed").index)
    if not has_failed.any():
        return None
    ran = jobs["execution_time"].where(jobs["execution_time"] > INSTANT, 0.0)
    hosts = pd.Series(jobs_csv.mean_hosts(jobs, jobs_csv.host_counts(jobs)), jobs.index)
    overhead = noted(jobs, "overhead").astype(float).reindex(jobs.index, fill_value=0.0)
    saved = noted(jobs, "saved").astype(float).reindex(jobs.index, fill_value=0.0)
    has_succeeded = (jobs["final_state"] == JobState.SUCCESS).to_numpy()
    useful = np.where(has_failed, saved, np.where(has_succeeded, ran - overhead, 0.0))
    lost = np.where(has_failed, ran - saved - overhead, 0.0)
    return pd.DataFrame(
        {"useful": useful * hosts, "lost": lost * hosts, "overhead": overhead * hosts}, jobs.index
    )


@dataclass(frozen=True, eq=False)
class Outcome:
    """A schedule with everything that its metrics depend on."""

    jobs: JobRows | pd.DataFrame
    nb_hosts: int | None = None
    """Size of the machine; :attr:`machine_size` has what counts if it is not given."""
    recorded: pd.DataFrame | None = None
    """The recorded submissions, if the schedule is a replay of a log."""
    consumed_joules: float | None = None
    """The energy of all hosts, if it was measured."""
    energy_cost: float | None = None
    """What that energy cost, if its price is known."""
    carbon: float | None = None
    """The grams of CO2 that it caused, if its carbon intensity is known."""
    lost_seconds: pd.Series[float] | None = None
    """What jobs lost by sharing links and hosts, by their full identifiers, if that was recorded."""
    decisions: pd.DataFrame | None = None
    """What each decision took, if that was measured."""
    data: pd.DataFrame | None = None
    """The changes of additional data, with the columns time, name and value, if classes computed any."""
    bound: float = TAU
    """The bound of the bounded slowdown."""
    whole: Outcome | None = None
    """All of the run, if this is a window of it."""
    window: tuple[float, float] | None = None
    """When this window begins and ends, if it is one."""

    def __repr__(self) -> str:
        return f"<Outcome of {len(self.rows):,} jobs>"

    @cached_property
    def rows(self) -> JobRows:
        """The jobs as columns of numbers."""
        return self.jobs if isinstance(self.jobs, JobRows) else JobRows.of(self.jobs)

    @property
    def schedule(self) -> pd.DataFrame:
        """The jobs as a table; where numbers are enough, :attr:`rows` need less time and memory."""
        return self.rows.table

    @classmethod
    def read(cls, jobs_file: str | Path, hosts: int | None = None) -> Outcome:
        """The outcome of a simulation, by its ``PREFIX_jobs.csv`` and the files beside it.

        A machine of so many ``hosts`` must be the one that the files tell of, if they do.
        """
        summary = read_summary(jobs_file)
        if hosts is not None and summary.nb_hosts not in (None, hosts):
            what = f"the machine has {summary.nb_hosts:,} hosts, as the schedule file beside it says"
            raise InputError(f"{jobs_file}: {what}, not {hosts:,}")
        found = cls.of(
            read_rows(jobs_file),
            summary,
            carried_beside(jobs_file),
            decisions_beside(jobs_file),
            _table_beside(jobs_file, "data", {"time": float, "name": str, "value": float}),
        )
        return found if hosts is None else replace(found, nb_hosts=hosts)

    @classmethod
    def of(
        cls,
        jobs: JobRows | pd.DataFrame,
        summary: Summary,
        carried: Carried | None = None,
        decisions: pd.DataFrame | None = None,
        data: pd.DataFrame | None = None,
    ) -> Outcome:
        """The outcome of a simulation, with its users' notes about the log that they replayed."""
        rows = jobs if isinstance(jobs, JobRows) else JobRows.of(jobs)
        return cls(
            rows,
            summary.nb_hosts,
            user_metrics.noted_submissions(rows.table) if rows.has_notes else None,
            summary.consumed_joules,
            summary.energy_cost,
            summary.carbon,
            None if carried is None else carried.lost,
            decisions,
            data,
        )

    @cached_property
    def slowdown_by_contention(self) -> pd.Series[float]:
        """How many times longer each executed job ran than alone."""
        assert self.lost_seconds is not None
        lost = jobs_csv.full_ids(self.executed).map(self.lost_seconds).fillna(0.0)
        return slowdown_by_contention(self.executed["execution_time"], lost)

    @cached_property
    def executed(self) -> pd.DataFrame:
        """The jobs that were not rejected, as a table."""
        return jobs_csv.started(self.schedule)

    @property
    def ran(self) -> JobRows:
        """The same as columns of numbers."""
        return self.rows.started

    def within(self, window: Window) -> Outcome:
        """What is measured over a window: the jobs that are submitted in it, and the machine meanwhile.

        Where users react, jobs are those that were recorded in it, so that every simulation of a log has the
        same ones. What is known of the whole run only, such as its energy, is not known of a window.
        """
        submitted = self.rows["submission_time"]
        if self.recorded is not None:
            known = self.recorded["submission_time"].reindex(self.schedule["job_id"]).to_numpy()
            submitted = np.where(np.isnan(known), submitted, known)
        first = float(submitted.min()) if len(submitted) else 0.0
        last = float(submitted.max()) if len(submitted) else first
        begin = first + window.begin
        end = last if window.end is None else first + window.end
        inside = (submitted >= begin) & ((submitted < end) if window.end is not None else (submitted <= end))
        if not inside.any():
            raise InputError(f"the run has no {window}; its last one is at {(last - first) / 86400:.4g} d")
        jobs = self.rows.select(np.flatnonzero(inside))
        recorded = self.recorded
        if recorded is not None:
            recorded = recorded.loc[recorded.index.isin(jobs.table["job_id"])]
        decisions = self.decisions
        if decisions is not None:
            decisions = decisions[(decisions["time"] >= begin) & (decisions["time"] < end)]
        return replace(
            self,
            jobs=jobs,
            recorded=recorded,
            consumed_joules=None,
            energy_cost=None,
            carbon=None,
            decisions=decisions,
            whole=self,
            window=(begin, end),
        )

    @cached_property
    def slowdown(self) -> NDArray[np.float64]:
        """Turnaround time by run time, of each executed job."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio: NDArray[np.float64] = self.column("turnaround_time") / self.column("execution_time")
        return ratio

    @cached_property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        """The same, where shorter jobs count as if they ran for :attr:`bound`; at least 1."""
        run_times = np.maximum(self.column("execution_time"), self.bound)
        return np.maximum(self.column("turnaround_time") / run_times, 1.0)

    def column(self, name: str) -> NDArray[np.float64]:
        """A column of numbers of the executed jobs."""
        return self.ran[name]

    @cached_property
    def makespan(self) -> float:
        """From the first submission to the last end; of a window, how long it is."""
        if self.window is not None:
            return self.window[1] - self.window[0]
        if not len(self.ran):
            return 0.0
        return float(self.ran["finish_time"].max() - self.rows["submission_time"].min())

    @cached_property
    def busy(self) -> Outcome:
        """What tells how much the machine had to do: all of the run, or the window that it is.

        With users who react it is the time until 90 % of the jobs are submitted. After that, a few who are
        late have the machine for themselves, and it is as if it were idle because users think.
        """
        if self.window is not None or not self.rows.has_notes:
            return self
        if not self.schedule["metadata"].str.contains(_IN_SESSION).any():
            return self
        submitted = self.rows["submission_time"]
        end = float(np.quantile(submitted, MOST, method="inverted_cdf"))
        begin = float(submitted.min())
        return self if end <= begin else replace(self, whole=self, window=(begin, end))

    @cached_property
    def submitting(self) -> float:
        """How long jobs are submitted, in seconds; a window is that long."""
        if self.busy.window is not None:
            return self.busy.makespan
        return float(np.ptp(self.rows["submission_time"])) if len(self.rows) else 0.0

    @cached_property
    def submitted_work(self) -> float:
        """The run times of the jobs that are submitted in this time, times their hosts."""
        jobs, window = self.ran, self.busy.window
        ran = jobs["execution_time"]
        work = np.where(ran > INSTANT, ran, 0.0) * jobs["mean_held"]
        return float(work.sum() if window is None else work[jobs["submission_time"] <= window[1]].sum())

    @cached_property
    def host_seconds(self) -> float:
        """Sum over all jobs of run time times hosts, piece by piece; 0 for a job of no length.

        Of a window, as much of it as lies inside, of whatever job.
        """
        if self.whole is not None and self.window is not None:
            jobs = self.whole.ran
            inside = _overlap(jobs["starting_time"], jobs["finish_time"], self.window)
            return float(inside @ jobs["mean_held"])
        ran = self.ran["execution_time"]
        return float(np.where(ran > INSTANT, ran, 0.0) @ self.ran["mean_held"])

    @cached_property
    def nb_ended(self) -> int:
        """How many jobs were executed; of a window, how many ended in it."""
        if self.whole is None or self.window is None:
            return len(self.ran)
        ends = self.whole.ran["finish_time"]
        return int(((ends >= self.window[0]) & (ends < self.window[1])).sum())

    @cached_property
    def waited_seconds(self) -> float:
        """Sum over all jobs of their waits; of a window, as much of it as lies inside, of whatever job."""
        if self.whole is None or self.window is None:
            return float(self.ran["waiting_time"].sum())
        jobs = self.whole.ran
        return float(_overlap(jobs["submission_time"], jobs["starting_time"], self.window).sum())

    @cached_property
    def max_queue_length(self) -> int:
        """How many jobs waited at most at a time."""
        if not len(self.ran):
            return 0
        if self.whole is None or self.window is None:
            return most_waiting(self.ran["submission_time"], self.ran["starting_time"])
        jobs = self.whole.ran
        return most_waiting(jobs["submission_time"], jobs["starting_time"], self.window)

    @cached_property
    def nb_held(self) -> NDArray[np.int64]:
        """How many hosts each executed job had at its end."""
        return self.ran["held"].astype(np.int64, copy=False)

    @cached_property
    def machine_size(self) -> int:
        """How many hosts there are; a warning if nothing tells, and an error for jobs above the last one."""
        if self.whole is not None:
            return self.whole.machine_size
        used = int(self.ran["highest"].max(initial=-1)) + 1
        if self.nb_hosts is None and used:
            _log.warning(UNKNOWN_MACHINE, f"{used:,}")
        if self.nb_hosts is not None and used > self.nb_hosts:
            raise InputError(
                f"jobs ran on hosts up to number {used - 1:,}, counted from 0: the machine has more than "
                f"{self.nb_hosts:,} hosts"
            )
        return used if self.nb_hosts is None else self.nb_hosts

    @cached_property
    def lateness(self) -> pd.DataFrame:
        """The lateness of each job, as :func:`~batsched_py.analysis.user_metrics.job_lateness` has it."""
        return user_metrics.job_lateness(self.schedule, self.recorded_or_refused)

    @cached_property
    def working_sessions(self) -> pd.DataFrame | None:
        """The sessions that users had, if the users of jobs are known."""
        return user_metrics.working_sessions(self.schedule) if self.rows.has_notes else None

    @cached_property
    def patient_jobs(self) -> pd.DataFrame | None:
        """The jobs by users who may lose patience, if there are such."""
        return self._with_note("patience")

    @cached_property
    def pending_jobs(self) -> pd.DataFrame | None:
        """The jobs that waited in the end, if there are such."""
        return self._with_note("pending")

    @cached_property
    def sober_jobs(self) -> pd.DataFrame | None:
        """The jobs that sober users wanted to submit inside a window, if there are such."""
        return self._with_note("sober")

    def _with_note(self, key: str) -> pd.DataFrame | None:
        return user_metrics.jobs_with_note(self.schedule, key) if self.rows.has_notes else None

    @cached_property
    def failed_executions(self) -> pd.DataFrame | None:
        """What of each execution was useful and what was lost, if failures have ended some."""
        return executions(self.schedule) if self.rows.has_notes else None

    @cached_property
    def joules_around_windows(self) -> tuple[float, float] | None:
        """The energy of jobs inside and after the windows of sober users, if known."""
        return user_metrics.joules_around_windows(self.schedule) if self.rows.has_notes else None

    @property
    def recorded_or_refused(self) -> pd.DataFrame:
        """The recorded submissions, which must be known."""
        if self.recorded is None:
            raise InputError("the schedule does not tell its users; give the log with --recorded LOG.swf")
        return self.recorded

    def by_user(self) -> dict[str, Outcome]:
        """The outcome for each user, in the order of their numbers or names."""
        users = user_metrics.users_of(self.schedule, self.recorded_or_refused)
        outcomes = self.parts(users.to_numpy())
        return {user: outcomes[user] for user in sorted(outcomes, key=lambda user: (len(user), user))}

    def parts(self, labels: pd.Series[str] | NDArray[np.object_]) -> dict[str, Outcome]:
        """The outcome for the jobs of each label; a job without one is in no part."""
        import pandas as pd

        parts = {}
        for label, places in pd.Series(range(len(self.rows))).groupby(np.asarray(labels)):
            part, known = self.rows.select(places.to_numpy()), self.recorded
            if known is not None:
                names = part.table["job_id"]
                known = known.loc[names[names.isin(known.index)]]
            parts[str(label)] = replace(self, jobs=part, recorded=known, nb_hosts=self.machine_size)
        return parts


def _overlap(begins: NDArray[Any], ends: NDArray[Any], window: tuple[float, float]) -> NDArray[Any]:
    """How much of each period lies in a window."""
    inside: NDArray[Any] = np.minimum(ends, window[1]) - np.maximum(begins, window[0])
    return np.maximum(inside, 0.0)


def queue_length(schedule: pd.DataFrame) -> pd.Series[int]:
    """How many jobs are submitted and not started, from each change on.

    Jobs that start when they are submitted have not waited. Rejected jobs are left out: how long they waited
    is unknown.
    """
    import pandas as pd

    executed = jobs_csv.started(schedule)
    times = np.concatenate([executed["submission_time"], executed["starting_time"]])
    steps = pd.Series(np.repeat([1, -1], len(executed)), index=pd.Index(times, name="time"))
    return steps.groupby(level=0).sum().cumsum()


def most_waiting(
    submitted: NDArray[np.float64], begun: NDArray[np.float64], window: tuple[float, float] | None = None
) -> int:
    """How many jobs are submitted and not started at most at a time, in a window if one is given."""
    submitted, begun = np.sort(submitted), np.sort(begun)
    since, until = window or (-inf, inf)
    most = []
    for changes in (submitted, begun):
        times = changes[slice(*np.searchsorted(changes, (since, until), side="right"))]
        if changes[0] <= since:
            times = np.append(since, times)
        waiting = np.searchsorted(submitted, times, "right") - np.searchsorted(begun, times, "right")
        most.append(int(waiting.max(initial=0)))
    return max(most)


#: The columns of a log that tell the group of a job.
_COLUMNS: Final = {"partition": "partition", "account": "group"}


def groups_of(outcome: Outcome, by: Grouping, log: SwfLog | None = None) -> dict[str, Outcome]:
    """The outcome for the jobs of each group, by the name of the group.

    A rejected job has no run time, so it is in no class. Partitions and accounts stand in the log that was
    replayed; an account is what the log calls a group, and jobs without one are in the group ``none``. Users
    stand there too, or in the notes of jobs.
    """
    match by:
        case "class":
            from batsched_py.workload.description.jobs import CLASSES, class_numbers

            ran = outcome.ran["execution_time"]
            numbers = class_numbers(np.where(ran > INSTANT, ran, 0.0), outcome.nb_held)
            labels = np.full(len(outcome.rows), None, object)
            labels[~outcome.rows.ended(JobState.REJECTED)] = np.array(CLASSES, object)[numbers]
            parts = outcome.parts(labels)
            return {name: parts[name] for name in CLASSES if name in parts}
        case "user":
            return outcome.by_user()
        case "partition" | "account":
            if log is None:
                raise InputError(
                    f"the schedule does not tell its {by}s; give the log with --recorded LOG.swf"
                )
            import pandas as pd

            from batsched_py.workload.sources.accounting import names_of

            names = pd.Series(names_of(log, _COLUMNS[by]), index=log.job_number.astype(str))
            found = outcome.schedule["job_id"].map(names[~names.index.duplicated()])
            parts = outcome.parts(found.where(found.notna() & (found != ""), "none"))
            return {name: parts[name] for name in sorted(parts, key=lambda name: (len(name), name))}
