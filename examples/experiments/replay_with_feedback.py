"""The KTH-SP2 tables of "Replay with Feedback", reproduced by one command.

    python examples/experiments/replay_with_feedback.py KTH-SP2-1996-2.1-cln.swf.gz

Simulates the 18 experiments of M. Madon, G. Da Costa and J.-M. Pierson, "Replay with Feedback: How does the
performance of HPC system impact user submission behavior?", FGCS 155, 2024, and prints what comes out beside
their tables 1 and 2 and beside the figures of an independent implementation, with how far it is from both.
The log is in the Parallel Workloads Archive; its one job without processors is left out. On half the machine
some jobs are too wide and are rejected; the mean wait counts them with a wait of 0.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
from rich import box
from rich.console import Console
from rich.table import Table

from batsched_py.analysis.metrics import DAY, measure
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.user_metrics import recorded_submissions
from batsched_py.errors import BatschedError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.experiment.run import run_experiment
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload

#: The paper's rule for walltimes: as requested, but at least twice the run time.
WALLTIME: WalltimeRule = "max"

PROCESSES = 2
WIDTH = 110

#: How the columns of the tables are called, which metric each one shows, and in which unit.
COLUMNS = {
    "makespan": ("makespan", DAY),
    "mean wait": ("mean_waiting_time", DAY),
    "max wait": ("max_waiting_time", DAY),
    "mean late": ("mean_lateness", DAY),
    "rel. late": ("relative_lateness", 1.0),
    "add. late": ("additional_lateness", 1.0),
}

#: Experiment, replay, the paper's figures, those of an independent implementation, none of them ours. Of a
#: rigid replay nothing is late.
FIGURES = """
recorded | log   | 332.93 0.18 11.34                     | 332.93 0.18 11.34
EASY     | rigid | 332.91 0.07 4.07                      | 332.91 0.068 4.075
EASY     | a0    | 366.14 0.06 5.06 -3.36 0.99 -20.39    | 365.14 0.059 5.114 -3.65 0.989 -22.12
EASY     | a60   | 366.67 0.07 6.11 -4.47 0.99 -27.12    | 366.67 0.072 6.111 -4.469 0.987 -27.12
FCFS     | rigid | 333.10 4.51 11.79                     | 333.12 4.515 11.786
FCFS     | a0    | 457.89 0.29 4.95 32.66 1.10 198.18    | 457.93 0.289 4.948 32.65 1.098 198.15
FCFS     | a60   | 454.41 0.47 4.47 26.31 1.08 159.64    | 454.45 0.471 4.472 26.30 1.079 159.62
perf*2   | rigid | 332.91 0.01 1.34                      | 332.91 0.008 1.342
perf*2   | a0    | 332.57 0.01 1.82 -12.40 0.96 -75.27   | 332.57 0.006 1.819 -12.40 0.963 -75.27
perf*2   | a60   | 332.61 0.01 1.44 -13.31 0.96 -80.79   | 332.61 0.008 1.439 -13.32 0.960 -80.86
perf/2   | rigid | 471.85 31.84 141.34                   | 473.23 31.61 142.27
perf/2   | a0    | 635.97 0.46 10.70 46.10 1.14 279.75   | 634.66 0.456 11.61 45.63 1.137 276.91
perf/2   | a60   | 630.28 0.62 10.26 43.54 1.13 264.24   | 631.39 0.604 10.30 44.02 1.132 267.14
infra*2  | rigid | 332.91 0.00 0.54                      | 332.91 0.003 0.542
infra*2  | a0    | 332.63 0.00 0.81 -8.65 0.97 -52.48    | 332.63 0.002 0.807 -8.647 0.974 -52.47
infra*2  | a60   | 332.65 0.00 0.56 -9.32 0.97 -56.57    | 332.65 0.002 0.560 -9.335 0.972 -56.65
infra/2  | rigid | 386.70 4.15 58.87                     | 387.66 4.375 59.57
infra/2  | a0    | 472.93 0.27 7.43 16.48 1.05 99.99     | 476.23 0.271 7.066 16.73 1.050 101.53
infra/2  | a60   | 472.45 0.35 7.31 14.91 1.04 90.48     | 461.99 0.365 6.734 14.55 1.044 88.27
"""

#: For each experiment the scheduler, the number of hosts and their speed.
MACHINES = {
    "EASY": ("easy", 100, 1.0),
    "FCFS": ("fcfs", 100, 1.0),
    "perf*2": ("easy", 100, 2.0),
    "perf/2": ("easy", 100, 0.5),
    "infra*2": ("easy", 200, 1.0),
    "infra/2": ("easy", 50, 1.0),
}
REPLAYS = {"rigid": None, "a0": "arrival:0", "a60": "arrival:60"}

#: How far a figure may be from another one to agree with it.
TOLERANCE = 0.01

#: The experiments with the longest queues, and so the longest simulations.
LONG = {"perf/2", "infra/2"}


class Row(NamedTuple):
    """An experiment, and what others got."""

    experiment: str
    replay: str
    paper: tuple[str, ...]
    independent: tuple[str, ...]


def rows() -> Iterator[Row]:
    """The lines of :data:`FIGURES`."""
    for line in FIGURES.strip().splitlines():
        experiment, replay, paper, independent = (part.strip() for part in line.split("|"))
        yield Row(experiment, replay, tuple(paper.split()), tuple(independent.split()))


@cache
def read(path: Path) -> tuple[SwfLog, Workload]:
    """The log and its jobs, read once a process."""
    log = read_swf(path)
    return log, swf_to_workload(log, walltime=WALLTIME)


def figures_of(path: Path, row: Row) -> list[float]:
    """Our figures for one experiment, in the order of :data:`COLUMNS`."""
    metrics = measure_recorded(path) if row.replay == "log" else measure_simulated(path, row)
    return [metrics[name] / unit for name, unit in list(COLUMNS.values())[: len(row.paper)]]


def measure_recorded(path: Path) -> dict[str, float]:
    """What the log itself says."""
    log, _ = read(path)
    log = log.select(log.processors > 0)
    return {
        "makespan": float((log.submit + log.wait + log.run_time).max() - log.submit.min()),
        "mean_waiting_time": float(log.wait.mean()),
        "max_waiting_time": float(log.wait.max()),
    }


def measure_simulated(path: Path, row: Row) -> dict[str, float]:
    """What comes out of a simulation."""
    log, workload = read(path)
    scheduler, hosts, speed = MACHINES[row.experiment]
    sessions = REPLAYS[row.replay]
    users = Choice("rigid") if sessions is None else Choice("think-time", {"sessions": sessions})
    experiment = Experiment(
        scenario=Scenario(
            workloads=Workloads(files=(str(path),), walltime=WALLTIME),
            machine=Machine(hosts=hosts, speed=speed),
        ),
        actors=Actors(scheduler=Choice(scheduler), users=users),
    )
    with tempfile.TemporaryDirectory() as folder:
        prefix = f"{folder}/out"
        run_experiment(experiment, [workload], prefix)
        schedule = read_schedule(f"{prefix}_jobs.csv")
    outcome = Outcome(schedule, hosts, recorded_submissions(log))
    metrics = measure(outcome)
    metrics["mean_waiting_time"] *= len(outcome.executed) / len(schedule)
    return metrics


def deviations(figures: list[float], printed: Sequence[str]) -> list[float]:
    """How far our figures are from printed ones, relative, as far as it goes beyond their rounding."""
    found = []
    for value, text in zip(figures, printed, strict=True):
        rounding = 0.5 * 10.0 ** -len(text.partition(".")[2])
        beyond = max(0.0, abs(value - float(text)) - rounding)
        found.append(beyond / max(abs(float(text)), rounding))
    return found


def table_of(results: dict[Row, list[float]]) -> Table:
    """Five lines for each experiment."""
    table = Table("experiment", "replay", "", box=box.SIMPLE_HEAD)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for row, figures in results.items():
        table.add_row(row.experiment, row.replay, "here", *(f"{value:.3f}" for value in figures))
        for name, printed in (("paper", row.paper), ("independent", row.independent)):
            table.add_row("", "", name, *printed)
            table.add_row("", "", "  deviation", *map(verdict, deviations(figures, printed)))
        table.add_section()
    return table


def verdict(deviation: float) -> str:
    """A deviation, marked when it is large."""
    text = f"{deviation:.1%}"
    return text if deviation <= TOLERANCE else f"[bold red]{text}[/bold red]"


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(log: Path) -> None:
    """Reproduce the tables of "Replay with Feedback" for KTH-SP2 from its LOG."""
    began = time.perf_counter()
    # The longest simulations first, so that no process is left alone with one of them.
    order = sorted(rows(), key=lambda row: row.experiment not in LONG)
    with ProcessPoolExecutor(PROCESSES, initializer=logging.disable, initargs=(logging.WARNING,)) as pool:
        figures = dict(zip(order, pool.map(figures_of, [log] * len(order), order), strict=True))
    results = {row: figures[row] for row in rows()}
    console = Console(width=WIDTH)
    console.print(table_of(results))
    console.print("Times in days, the additional lateness in seconds. Deviations are those beyond rounding.")
    for name in ("paper", "independent"):
        each = [far for row, ours in results.items() for far in deviations(ours, getattr(row, name))]
        near = sum(far <= TOLERANCE for far in each)
        console.print(f"{name}: {near} of {len(each)} figures are within {TOLERANCE:.0%}")
    console.print(f"Took {time.perf_counter() - began:.0f} s in {PROCESSES} processes.")


if __name__ == "__main__":
    try:
        main()
    except BatschedError as error:
        sys.exit(f"error: {error}")
