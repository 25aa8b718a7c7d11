"""The whole line from a log to written files, as a multiple of the bare loop in the same process."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

from batsched_py.decision.process import DecisionProcess
from batsched_py.schedulers.easy import Easy
from batsched_py.simulation import simulate
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.workload.swf import LOG_SPEED, read_swf, swf_to_workload
from benchmarks.bare_loop import easy


def run(log: Path, hosts: int, prefix: str) -> None:
    """Read a log, simulate it under EASY, write the files."""
    workload = swf_to_workload(read_swf(log))
    batsim = Batsim(Platform.homogeneous(hosts), [workload], outputs=Outputs(prefix))
    simulate(batsim, DecisionProcess(Easy()))


def best_of(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """The least seconds of processor time that each action takes, all of them in turn in each round."""
    least = [float("inf")] * len(actions)
    for _ in range(rounds):
        for place, action in enumerate(actions):
            began = process_time()
            action()
            least[place] = min(least[place], process_time() - began)
    return least


def measure(log: Path, hosts: int, rounds: int) -> None:
    """Print a line for a log."""
    workload = swf_to_workload(read_swf(log))
    bare = [
        (
            job.submission_time,
            job.size,
            workload.profiles[job.profile].seconds([LOG_SPEED]),
            job.walltime,
        )
        for job in workload.jobs
    ]
    with tempfile.TemporaryDirectory() as folder:
        ours, loop = best_of(rounds, lambda: run(log, hosts, f"{folder}/out"), lambda: easy(bare, hosts))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{log.name}: {len(bare):,} jobs on {hosts} hosts, EASY: run {ours:.2f} s, bare loop {loop:.2f} s, "
        f"ratio {ours / loop:.1f}, {1e6 * ours / len(bare):.0f} us a job, at most {memory:.0f} MB"
    )
