"""One simulation into one folder: the files of a Batsim, and what is measured of them.

Whatever changes the results of a run is in this module or reached from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import structs

from batsched_py.campaign.batsim import Simulator, SimulatorFailed, run_batsim
from batsched_py.campaign.digest import digest_of_file
from batsched_py.experiment import Experiment
from batsched_py.simulation import simulate
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf import WalltimeRule

#: Names of the files begin with this, as Batsim's do by default.
PREFIX = "out"
METRICS_FILE = "metrics.json"


def simulate_into(
    folder: Path, experiment: Experiment, simulator: Simulator | None, time_limit: float | None
) -> dict[str, float]:
    """Simulate, measure, and write all results into ``folder``; how many seconds each step took."""
    began = time.perf_counter()
    workload = _workload(experiment)
    read = time.perf_counter()
    platform = experiment.read_platform(workload)
    prefix = folder / PREFIX
    if simulator is None:
        batsim, process = experiment.sides(workload, platform, str(prefix))
        simulate(batsim, process, _watch(time_limit))
    else:
        run_batsim(simulator, experiment, workload, platform, prefix, time_limit)
    simulated = time.perf_counter()
    (folder / METRICS_FILE).write_bytes(_metrics(f"{prefix}_jobs.csv", len(platform.hosts)))
    return {
        "read": read - began,
        "simulate": simulated - read,
        "measure": time.perf_counter() - simulated,
    }


def _workload(experiment: Experiment) -> Workload:
    """The workload, read once for all runs of this process that need the same."""
    read = _read(
        experiment.workload,
        digest_of_file(experiment.workload),
        experiment.walltime_factor,
        experiment.walltime,
    )
    return structs.replace(read, profiles=dict(read.profiles))


@lru_cache(maxsize=4)
def _read(path: str, digest: str, factor: float, walltime: WalltimeRule) -> Workload:
    return read_workload(path, "w0", factor, walltime)


def _metrics(jobs_file: str, nb_hosts: int) -> bytes:
    """All metrics of a schedule, as JSON."""
    from batsched_py.analysis.lateness import noted_submissions
    from batsched_py.analysis.metrics import measure
    from batsched_py.analysis.outcome import Outcome
    from batsched_py.analysis.schedule import read_schedule

    schedule = read_schedule(jobs_file)
    metrics = measure(Outcome(schedule, nb_hosts, noted_submissions(schedule)))
    return msgspec.json.format(msgspec.json.encode(metrics))


def _watch(time_limit: float | None) -> Callable[[], None] | None:
    """Something to call after each message, which stops a simulation that takes too long."""
    if time_limit is None:
        return None
    end = time.monotonic() + time_limit

    def check() -> None:
        if time.monotonic() > end:
            raise SimulatorFailed(f"not finished after {time_limit:g} s, the time limit")

    return check
