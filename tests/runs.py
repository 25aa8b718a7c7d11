"""Schedules and runs made by hand, for tests of what is drawn of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from batsched_py.analysis.plots.runs import Run, read_run
from batsched_py.simulator.outputs import JOBS_HEADER


class Row(NamedTuple):
    """A job of a schedule; one without hosts was rejected."""

    job: int
    submitted: float
    started: float = 0.0
    finished: float = 0.0
    hosts: str = ""
    size: int = 1
    note: str = ""


def write_jobs(path: Path, rows: list[Row], nb_hosts: int | None = None) -> Path:
    """Write a ``PREFIX_jobs.csv``, and its summary when the number of hosts is to be known."""
    lines = []
    for row in rows:
        head = f"{row.job},w0,p,{row.submitted:.6f},{row.size},-1.000000"
        if not row.hosts:
            lines.append(f'{head},0,REJECTED,,,,,,,,,"{row.note}"\n')
            continue
        run_time, turnaround = row.finished - row.started, row.finished - row.submitted
        times = (
            row.started,
            run_time,
            row.finished,
            row.started - row.submitted,
            turnaround,
            turnaround / run_time,
        )
        texts = ",".join(f"{time:.6f}" for time in times)
        lines.append(f'{head},1,COMPLETED_SUCCESSFULLY,{texts},{row.hosts},-1.000000,"{row.note}"\n')
    path.write_text(JOBS_HEADER + "".join(lines))
    if nb_hosts is not None:
        summary = path.with_name(path.name.removesuffix("jobs.csv") + "schedule.csv")
        summary.write_text(f"makespan,nb_computing_machines\n0.0,{nb_hosts}\n")
    return path


def run_of(folder: Path, rows: list[Row], label: str = "run", nb_hosts: int | None = None) -> Run:
    """The run that has these jobs."""
    return read_run(write_jobs(folder / f"{label}_jobs.csv", rows, nb_hosts), label)


def write_log(path: Path, records: list[tuple[int, float, float, float, int, int]], header: str = "") -> Path:
    """Write a log of number, submission, wait, run time, processors and user."""
    lines = [f"{n} {a} {w} {r} {p}{' -1' * 6} {u}{' -1' * 6}\n" for n, a, w, r, p, u in records]
    path.write_text(header + "".join(lines))
    return path


@dataclass(frozen=True)
class Measured:
    """A run of which only the place in its plan and the metrics are known."""

    axes: Mapping[str, str]
    metrics: Mapping[str, float | None]
    files: Mapping[str, Path] = field(default_factory=dict)
    remark: str = ""
    unstable: str = ""

    @property
    def name(self) -> str:
        return "_".join(self.axes.values())
