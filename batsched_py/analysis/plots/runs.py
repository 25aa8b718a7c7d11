"""What the figures compare: schedules under short names, and the recorded log in the same form."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis.conditions import Absence, Carried, carried_beside, failures_and_closures_beside
from batsched_py.analysis.explain import remarks_beside
from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.outcome import UNKNOWN_MACHINE, decisions_beside, read_summary
from batsched_py.analysis.plots import style
from batsched_py.analysis.user_metrics import job_lateness, noted_submissions, recorded_submissions
from batsched_py.errors import InputError
from batsched_py.ledger.nodes import NodeMachine
from batsched_py.protocol.jobs import JobState
from batsched_py.schedulers.decisions import Remark
from batsched_py.workload.sources.accounting import most_in_use
from batsched_py.workload.swf.log import SwfLog

_log = logging.getLogger(__name__)

#: Axes along which a run repeats the same experiment.
REPEATED: Final = ("seed", "part")

_UNITS: Final = {metric.name: metric.unit for metric in METRICS}


def check_columns(table: pd.DataFrame, *names: str) -> None:
    """Raise an error for a column that is missing."""
    for name in names:
        if name not in table:
            raise InputError(
                f"the table of results has no column {name!r}; it has {', '.join(table.columns)}"
            )
    if table.empty:
        raise InputError("the table of results is empty, so there is nothing to show")


def by_log(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The part of a table for each log."""
    if "log" not in table:
        return {"": table}
    return {str(log): part for log, part in table.groupby("log", sort=False)}


def configurations(table: pd.DataFrame, *other: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """What is compared, by name: the combinations of all axes on which rows differ, but for some.

    Logs, repetitions and metrics are never among these axes. Metrics of one's own are the numbers to the
    right of one of ours, where the table of a campaign has them.
    """
    ours = table.columns.isin(list(_UNITS))
    own = table.loc[:, ours.cumsum() > 0].select_dtypes("float")
    common = {"run", "log", "unstable", *REPEATED, *other, *_UNITS, *own}
    axes = [column for column in table if column not in common and table[column].nunique(dropna=False) > 1]
    if not axes:
        yield str(table["scheduler"].iloc[0]) if "scheduler" in table else "all runs", table
        return
    for values, part in table.groupby(axes, sort=False, dropna=False):
        yield ", ".join(str(value) for value in values if not pd.isna(value)), part


def in_unit(table: pd.DataFrame, metric: str) -> tuple[float, str]:
    """What values of a metric are divided by to be shown, and the label with the unit that they have then."""
    unit, label = _UNITS.get(metric, ""), metric.removeprefix("nb_").replace("_", " ")
    if unit == "s":
        seconds, unit = style.time_unit(float(table[metric].abs().max()))
        return seconds, f"{label} ({unit})"
    return 1.0, f"{label} ({unit})" if unit else label


@dataclass(frozen=True, eq=False)
class Run:
    """The jobs of a schedule and the machine it was made for."""

    label: str
    jobs: pd.DataFrame
    """The columns of ``jobs.csv``, how many hosts each job ``held``, and what else :attr:`replayed` has."""
    machine: int | None
    """How many hosts there are, if that is known."""
    log: SwfLog | None = None
    """The log that it replays, or is; it tells the time on the wall clock."""
    energy: pd.Series | None = None
    """The joules that all hosts have drawn by each time, where that was accounted for."""
    remarks: Mapping[str, Sequence[Remark]] = field(default_factory=dict)
    """What the policy remarked on jobs, by their full identifiers, if that was written down."""
    outside: Mapping[str, pd.Series] = field(default_factory=dict)
    """Price, carbon intensity and temperature from each of their changes on, where they are known."""
    absences: Sequence[Absence] = ()
    """The hosts that failed or were closed, where that was written down."""
    intervals: pd.DataFrame | None = None
    """Which hosts each job had, as ``host_intervals`` tells; not known of a log.

    If jobs have grown or shrunk, it also tells from when to when, as ``begin`` and ``end``.
    """
    carried: Carried | None = None
    """What links, hosts and storages carried, if that was recorded."""
    decisions: pd.DataFrame | None = None
    """What each decision took, if that was measured."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """The first host of each node by its name, in the order of hosts, if hosts are cores of nodes."""

    @cached_property
    def executed(self) -> pd.DataFrame:
        """The jobs that were not rejected."""
        return jobs_csv.started(self.jobs)

    @cached_property
    def hosts(self) -> int:
        """How many hosts there are; of an unknown machine, what jobs used of it, with a warning."""
        if self.machine is not None:
            return self.machine
        if self.intervals is not None:
            used = 1 + int(self.intervals["high"].max())
            _log.warning("%s: " + UNKNOWN_MACHINE, self.label, f"{used:,}")
            return used
        jobs = self.executed
        used = most_in_use(*(jobs[each].to_numpy() for each in ("starting_time", "finish_time", "held")))
        what = "the log does not say how large its machine is: it is taken to have the %s processors"
        _log.warning("%s: " + what + " that were in use at once", self.label, f"{used:,}")
        return used

    @property
    def replayed(self) -> pd.DataFrame:
        """The jobs with their ``user``, ``recorded`` submission and ``lateness``, if these are known."""
        if "lateness" not in self.jobs:
            raise InputError(
                f"{self.label}: the schedule does not tell its users; give the log with --recorded LOG.swf"
            )
        return self.jobs

    @cached_property
    def end(self) -> float:
        """When the last job had finished."""
        return float(self.executed["finish_time"].max())

    def mean_power(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean power that all hosts draw between each two successive ``edges`` of time, in watts."""
        if self.energy is None:
            raise InputError(f"{self.label}: nothing tells what its hosts drew; simulate it with --energy")
        return np.diff(np.interp(edges, self.energy.index, self.energy)) / np.diff(edges)

    def busy_hosts(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean number of busy hosts between each two successive ``edges`` of time."""
        jobs = jobs_csv.in_pieces(self.executed)
        held = jobs["held"] if jobs is self.executed else [len(hosts) for hosts in jobs_csv.host_sets(jobs)]
        return jobs_csv.mean_level(jobs["starting_time"], jobs["finish_time"], held, edges)

    def waiting_jobs(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean number of waiting jobs between each two successive ``edges`` of time."""
        jobs = self.executed
        return jobs_csv.mean_level(jobs["submission_time"], jobs["starting_time"], np.ones(len(jobs)), edges)


def read_run(path: str | Path, label: str, log: SwfLog | None = None) -> Run:
    """The run behind a ``PREFIX_jobs.csv``.

    Users and lateness are known from the log that was replayed, or from what feedback users noted. The
    number of hosts is taken from the ``PREFIX_schedule.csv`` beside it; without that file it is unknown.
    """
    path = Path(path)
    jobs = jobs_csv.read_schedule(path)
    recorded = noted_submissions(jobs) if log is None else recorded_submissions(log)
    try:
        if recorded is not None:
            jobs = jobs.join(job_lateness(jobs, recorded), on="job_id")
        run = run_of(jobs, label, read_summary(path).nb_hosts)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return replace(
        run,
        log=log,
        energy=_read_energy(path),
        remarks=remarks_beside(path),
        carried=carried_beside(path),
        outside=_read_outside(path),
        absences=failures_and_closures_beside(path),
        decisions=decisions_beside(path),
    )


def run_of(jobs: pd.DataFrame, label: str, hosts: int | None = None) -> Run:
    """The run with the jobs of a schedule, on so many hosts, or more if some of higher numbers were used.

    Jobs that have grown or shrunk held so many hosts in the mean.
    """
    if not len(jobs_csv.started(jobs)):
        raise InputError("no job was executed, so there is nothing to show")
    jobs = jobs.reset_index(drop=True) if jobs_csv.has_resizes(jobs) else jobs
    pieces = jobs_csv.in_pieces(jobs)
    intervals = jobs_csv.host_intervals(pieces)
    if not len(intervals):
        raise InputError("no executed job has hosts, so there is nothing to show")
    row = intervals["place"].to_numpy()
    if pieces is jobs:
        lengths = intervals["high"] - intervals["low"] + 1
        held: NDArray[Any] = np.bincount(row, lengths, minlength=len(jobs)).astype(np.int64)
    else:
        begins, ends = (pieces[column].to_numpy()[row] for column in ("starting_time", "finish_time"))
        intervals = intervals.assign(place=pieces.index.to_numpy()[row], begin=begins, end=ends)
        held = jobs_csv.mean_hosts(
            jobs, np.array([len(each) for each in jobs_csv.host_sets(jobs)], dtype=np.int64)
        )
    machine = None if hosts is None else max(hosts, 1 + int(intervals["high"].max()))
    return Run(label, jobs.assign(held=held), machine, intervals=intervals)


def _read_energy(jobs_file: Path) -> pd.Series | None:
    """What is in the ``PREFIX_consumed_energy.csv`` beside the jobs, if it is there."""
    path = jobs_csv.beside(jobs_file, "consumed_energy")
    if not path.is_file():
        return None
    try:
        table = pd.read_csv(path, usecols=["time", "energy"], dtype=float)
    except (ValueError, OSError):
        raise InputError(f"{path}: this is not the consumed_energy.csv of a Batsim") from None
    return energy_by_time(table)


def _read_outside(jobs_file: Path) -> dict[str, pd.Series]:
    """What is in the ``PREFIX_outside.csv`` beside the jobs, by its name."""
    path = jobs_csv.beside(jobs_file, "outside")
    if not path.is_file():
        return {}
    try:
        table = pd.read_csv(path, dtype={"name": str, "time": float, "value": float})
        return {str(name): part.set_index("time")["value"] for name, part in table.groupby("name")}
    except (ValueError, KeyError, OSError):
        raise InputError(f"{path}: this is not the outside.csv of a simulation") from None


def energy_by_time(table: pd.DataFrame) -> pd.Series:
    """The joules that all hosts have drawn by each time, of a ``consumed_energy.csv``."""
    return table.drop_duplicates("time", keep="last").set_index("time")["energy"]


def with_recorded(runs: Sequence[Run], recorded: Run | None) -> list[Run]:
    """What was recorded, if that is known, and then the runs."""
    return list(runs) if recorded is None else [recorded, *runs]


def recorded_run(log: SwfLog, label: str = "recorded") -> Run:
    """A log as if it were a run: what happened on the recorded machine, but not on which of its hosts.

    Times are those of a simulation of the log, whose time 0 is the first submission. Jobs that were cancelled
    while they waited count as rejected.
    """
    known = recorded_submissions(log).reset_index()
    whole, log = log, log.select(log.processors > 0)
    start = known["submission_time"] + np.maximum(log.wait, 0)
    jobs = known.assign(
        recorded=known["submission_time"],
        lateness=0.0,
        starting_time=start,
        finish_time=start + log.run_time,
        held=log.processors,
        final_state=np.where(log.never_started, JobState.REJECTED.value, JobState.SUCCESS.value),
    )
    return Run(label, jobs, log.machine_size, whole)


def first_hosts(machine: NodeMachine) -> dict[str, int]:
    """The first host of each node of a machine, by its name."""
    return {node.name: node.first for node in machine.nodes}
