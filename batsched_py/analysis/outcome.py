"""The results of a simulation, as far as metrics need them, whole or by groups of jobs."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from batsched_py.analysis import user_metrics
from batsched_py.analysis.conditions import Carried, carried_beside, slowdown_by_contention
from batsched_py.analysis.schedule import (
    INSTANT,
    beside,
    full_ids,
    has_resizes,
    host_sets,
    in_pieces,
    mean_hosts,
    read_schedule,
    read_table,
    started,
    tables_beside,
)
from batsched_py.analysis.user_metrics import noted
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import JobState

if TYPE_CHECKING:
    from batsched_py.analysis.runs.aggregate import Grouping
    from batsched_py.workload.swf.log import SwfLog


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
    path = beside(jobs_file, "schedule")
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
    return Summary(
        _count(row.get("nb_computing_machines") or ""),
        _joules(row.get("consumed_joules") or ""),
        _count(row.get("nb_grouped_switches") or ""),
        _number(row.get("energy_cost") or ""),
        _number(row.get("carbon_grams") or ""),
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _texts(content: bytes) -> dict[str, str]:
    """The members of a JSON object as texts, as in a table."""
    try:
        fields = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return {name: str(value) for name, value in fields.items()} if isinstance(fields, dict) else {}


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _joules(text: str) -> float | None:
    joules = _number(text)
    return joules if joules is not None and joules > 0 else None


_TYPES: Final = {
    "time": float,
    "queue": int,
    "decision_seconds": float,
    "other_seconds": float,
    "memory_bytes": float,
}


def decisions_beside(jobs_file: str | Path) -> pd.DataFrame | None:
    """What each decision took, beside a ``PREFIX_jobs.csv``; nothing if it was not asked for."""
    return _table_beside(jobs_file, "decisions", _TYPES)


def data_beside(jobs_file: str | Path) -> pd.DataFrame | None:
    """The additional data beside a ``PREFIX_jobs.csv``; nothing if no class computed any."""
    return _table_beside(jobs_file, "data", {"time": float, "name": str, "value": float})


def _table_beside(jobs_file: str | Path, name: str, types: Mapping[str, type]) -> pd.DataFrame | None:
    def read(file: TextIO, path: str) -> pd.DataFrame:
        try:
            return pd.read_csv(file, usecols=list(types), dtype=dict(types))
        except ValueError:
            what = f"is not what a simulation with --{name} writes ({','.join(types)})"
            raise InputError(f"{path}: {what}") from None

    return read_table(tables_beside(jobs_file), name, read)


def executions(schedule: pd.DataFrame) -> pd.DataFrame | None:
    """For each execution the host seconds that were ``useful``, ``lost`` and ``overhead``.

    None if no failure has ended any.
    """
    jobs = started(schedule)
    has_failed = jobs.index.isin(noted(jobs, "failed").index)
    if not has_failed.any():
        return None
    ran = jobs["execution_time"].where(jobs["execution_time"] > INSTANT, 0.0)
    counts = np.array([len(hosts) for hosts in host_sets(jobs)], dtype=np.int64)
    hosts = pd.Series(mean_hosts(jobs, counts), jobs.index)
    overhead = noted(jobs, "overhead").astype(float).reindex(jobs.index, fill_value=0.0)
    saved = noted(jobs, "saved").astype(float).reindex(jobs.index, fill_value=0.0)
    has_succeeded = (jobs["final_state"] == JobState.SUCCESS).to_numpy()
    useful = np.where(has_failed, saved, np.where(has_succeeded, ran - overhead, 0.0))
    lost = np.where(has_failed, ran - saved - overhead, 0.0)
    return pd.DataFrame(
        {"useful": useful * hosts, "lost": lost * hosts, "overhead": overhead * hosts}, jobs.index
    )


def nb_restarts(schedule: pd.DataFrame) -> int:
    """How many executions were submitted after a failure."""
    return len(noted(schedule, "restart"))


@dataclass(frozen=True, eq=False)
class Outcome:
    """A schedule with everything that its metrics depend on."""

    schedule: pd.DataFrame
    nb_hosts: int | None = None
    """Size of the machine; if it is not given, it has the hosts up to the highest one that was used."""
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

    @classmethod
    def read(cls, jobs_file: str | Path) -> Outcome:
        """The outcome of a simulation, by its ``PREFIX_jobs.csv`` and the files beside it."""
        return cls.of(
            read_schedule(jobs_file),
            read_summary(jobs_file),
            carried_beside(jobs_file),
            decisions_beside(jobs_file),
            data_beside(jobs_file),
        )

    @classmethod
    def of(
        cls,
        schedule: pd.DataFrame,
        summary: Summary,
        carried: Carried | None = None,
        decisions: pd.DataFrame | None = None,
        data: pd.DataFrame | None = None,
    ) -> Outcome:
        """The outcome of a simulation, with its users' notes about the log that they replayed."""
        return cls(
            schedule,
            summary.nb_hosts,
            user_metrics.noted_submissions(schedule),
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
        lost = full_ids(self.executed).map(self.lost_seconds).fillna(0.0)
        return slowdown_by_contention(self.executed["execution_time"], lost)

    @cached_property
    def executed(self) -> pd.DataFrame:
        """The rows of jobs that were not rejected."""
        return started(self.schedule)

    @cached_property
    def makespan(self) -> float:
        """From the first submission to the last end."""
        if self.executed.empty:
            return 0.0
        return float(self.executed["finish_time"].max() - self.schedule["submission_time"].min())

    @cached_property
    def host_seconds(self) -> float:
        """Sum over all jobs of run time times hosts, piece by piece; 0 for a job of no length."""
        ran = self.executed["execution_time"].to_numpy()
        return float(np.where(ran > INSTANT, ran, 0.0) @ mean_hosts(self.executed, self.nb_held))

    @cached_property
    def nb_held(self) -> NDArray[np.int64]:
        """How many hosts each executed job had at its end."""
        return np.array([len(hosts) for hosts in self._hosts], dtype=np.int64)

    @cached_property
    def machine_size(self) -> int:
        """How many hosts there are."""
        if self.nb_hosts is not None:
            return self.nb_hosts
        used = self._hosts if not has_resizes(self.executed) else host_sets(in_pieces(self.executed))
        return max((hosts.mask.bit_length() for hosts in used), default=0)

    @cached_property
    def _hosts(self) -> list[HostSet]:
        return host_sets(self.executed)

    @cached_property
    def lateness(self) -> pd.DataFrame:
        """The lateness of each job, as :func:`~batsched_py.analysis.user_metrics.job_lateness` has it."""
        return user_metrics.job_lateness(self.schedule, self._recorded)

    @cached_property
    def working_sessions(self) -> pd.DataFrame | None:
        """The sessions that users had, if the users of jobs are known."""
        return user_metrics.working_sessions(self.schedule)

    @cached_property
    def patient_jobs(self) -> pd.DataFrame | None:
        """The jobs by users who may lose patience, if there are such."""
        return user_metrics.jobs_with_note(self.schedule, "patience")

    @cached_property
    def sober_jobs(self) -> pd.DataFrame | None:
        """The jobs that sober users wanted to submit inside a window, if there are such."""
        return user_metrics.jobs_with_note(self.schedule, "sober")

    @cached_property
    def failed_executions(self) -> pd.DataFrame | None:
        """What of each execution was useful and what was lost, if failures have ended some."""
        return executions(self.schedule)

    @cached_property
    def joules_around_windows(self) -> tuple[float, float] | None:
        """The energy of jobs inside and after the windows of sober users, if known."""
        return user_metrics.joules_around_windows(self.schedule)

    @property
    def _recorded(self) -> pd.DataFrame:
        if self.recorded is None:
            raise InputError("the schedule does not tell its users; give the log with --recorded LOG.swf")
        return self.recorded

    def by_user(self) -> dict[str, Outcome]:
        """The outcome for each user, in the order of their numbers or names."""
        users = user_metrics.users_of(self.schedule, self._recorded)
        outcomes = self.parts(users.to_numpy())
        return {user: outcomes[user] for user in sorted(outcomes, key=lambda user: (len(user), user))}

    def parts(self, labels: pd.Series[str] | NDArray[np.object_]) -> dict[str, Outcome]:
        """The outcome for the jobs of each label; a job without one is in no part."""
        recorded = self.recorded
        parts = {}
        for label, part in self.schedule.groupby(labels):
            known = None
            if recorded is not None:
                known = recorded.loc[part.loc[part["job_id"].isin(recorded.index), "job_id"]]
            parts[str(label)] = replace(self, schedule=part, recorded=known)
        return parts


def queue_length(schedule: pd.DataFrame) -> pd.Series[int]:
    """How many jobs are submitted and not started, from each change on.

    Jobs that start when they are submitted have not waited. Rejected jobs are left out: how long they waited
    is unknown.
    """
    executed = started(schedule)
    times = np.concatenate([executed["submission_time"], executed["starting_time"]])
    steps = pd.Series(np.repeat([1, -1], len(executed)), index=pd.Index(times, name="time"))
    return steps.groupby(level=0).sum().cumsum()


#: Up to how many hosts a job is narrow, and up to how many seconds it is short.
NARROW: Final = 8
SHORT: Final = 3600.0
#: The classes that this makes; in their numbers, a short job counts 2 and a wide one 1.
CLASSES: Final = ("long, narrow", "long, wide", "short, narrow", "short, wide")


def class_numbers(run_times: ArrayLike, sizes: ArrayLike) -> NDArray[np.int8]:
    """The place of each job's class in :data:`CLASSES`."""
    is_short: NDArray[Any] = np.asarray(run_times) <= SHORT
    is_wide: NDArray[Any] = np.asarray(sizes) > NARROW
    return 2 * is_short.astype(np.int8) + is_wide.astype(np.int8)


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
            jobs = outcome.executed
            ran = jobs["execution_time"].to_numpy()
            numbers = class_numbers(np.where(ran > INSTANT, ran, 0.0), outcome.nb_held)
            labels = pd.Series(np.array(CLASSES, object)[numbers], index=jobs.index)
            labels = labels.reindex(outcome.schedule.index)
            parts = outcome.parts(labels)
            return {name: parts[name] for name in CLASSES if name in parts}
        case "user":
            return outcome.by_user()
        case "partition" | "account":
            if log is None:
                raise InputError(
                    f"the schedule does not tell its {by}s; give the log with --recorded LOG.swf"
                )
            from batsched_py.workload.sources.accounting import names_of

            names = pd.Series(names_of(log, _COLUMNS[by]), index=log.job_number.astype(str))
            found = outcome.schedule["job_id"].map(names[~names.index.duplicated()])
            parts = outcome.parts(found.where(found.notna() & (found != ""), "none"))
            return {name: parts[name] for name in sorted(parts, key=lambda name: (len(name), name))}
