"""What the figures compare: schedules under short names, and the recorded log on the same footing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.lateness import job_lateness, noted_submissions, recorded_submissions
from batsched_py.analysis.remarks import remarks_beside
from batsched_py.analysis.schedule import host_sets, read_schedule, started
from batsched_py.analysis.summary import read_summary
from batsched_py.errors import InputError
from batsched_py.protocol.jobs import JobState
from batsched_py.schedulers.remarks import Remark
from batsched_py.workload.swf import SwfLog


@dataclass(frozen=True, eq=False)
class Run:
    """The jobs of a schedule and the machine it was made for."""

    label: str
    jobs: pd.DataFrame
    """The columns of ``jobs.csv``, how many hosts each job ``held``, and what else :attr:`replayed` has."""
    hosts: int
    remarks: Mapping[str, Sequence[Remark]] = field(default_factory=dict)
    """What the policy remarked on jobs, by their full identifiers, if that was written down."""

    @property
    def executed(self) -> pd.DataFrame:
        """The jobs that were not rejected."""
        return started(self.jobs)

    @property
    def replayed(self) -> pd.DataFrame:
        """The jobs with their ``user``, ``recorded`` submission and ``lateness``, if these are known."""
        if "lateness" not in self.jobs:
            raise InputError(
                f"{self.label}: the schedule does not tell its users; give the log with --recorded LOG.swf"
            )
        return self.jobs

    @property
    def end(self) -> float:
        """When the last job had finished."""
        return float(self.executed["finish_time"].max())

    def busy_hosts(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean number of busy hosts between each two successive ``edges`` of time."""
        jobs = self.executed
        times = np.concatenate([jobs["starting_time"], jobs["finish_time"]])
        order = np.argsort(times, kind="stable")
        busy = np.concatenate([jobs["held"], -jobs["held"]])[order].cumsum()
        times = times[order]
        host_seconds = np.concatenate([[0.0], (busy[:-1] * np.diff(times)).cumsum()])
        return np.diff(np.interp(edges, times, host_seconds)) / np.diff(edges)


def read_run(path: str | Path, label: str, log: SwfLog | None = None) -> Run:
    """The run behind a ``PREFIX_jobs.csv``.

    Users and lateness are known from the log that was replayed, or from what feedback users noted. The
    number of hosts is taken from the ``PREFIX_schedule.csv`` beside it; without that file, there are hosts
    up to the highest one that was used.
    """
    path = Path(path)
    jobs = read_schedule(path)
    recorded = noted_submissions(jobs) if log is None else recorded_submissions(log)
    if recorded is not None:
        try:
            jobs = jobs.join(job_lateness(jobs, recorded), on="job_id")
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    try:
        return replace(run_of(jobs, label, read_summary(path).nb_hosts or 0), remarks=remarks_beside(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def run_of(jobs: pd.DataFrame, label: str, hosts: int = 0) -> Run:
    """The run with the jobs of a schedule, on so many hosts, or more if some of higher numbers were used."""
    if not len(started(jobs)):
        raise InputError("no job was executed, so there is nothing to show")
    allocations = host_sets(jobs)
    used = max(each.mask.bit_length() for each in allocations)
    return Run(label, jobs.assign(held=[len(each) for each in allocations]), max(used, hosts))


def recorded_run(log: SwfLog) -> Run:
    """A log as if it were a run: what happened on the recorded machine, but not on which of its hosts.

    Times are those of a simulation of the log, whose time 0 is the first submission.
    """
    known = recorded_submissions(log).reset_index()
    log = log.select(log.processors > 0)
    start = known["submission_time"] + np.maximum(log.wait, 0)
    jobs = known.assign(
        recorded=known["submission_time"],
        lateness=0.0,
        starting_time=start,
        finish_time=start + log.run_time,
        held=log.processors,
        final_state=JobState.SUCCESS.value,
    )
    return Run("recorded", jobs, log.machine_size or int(log.processors.max()))
