"""What each policy costs a job, by the mean length of its queue, as a table and as a plot."""

from __future__ import annotations

import resource
from pathlib import Path
from time import process_time

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT.parent / "shared" / "logs"
PLOT = ROOT / "out" / "policies.png"

#: Name, log, hosts, speed of the hosts, and how many jobs of the log.
CASES = (
    ("KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", 100, 1.0, None),
    ("HPC2N, 30,000 jobs", "HPC2N-2002-2.2-cln.swf.gz", 240, 1.0, 30_000),
    (
        "KTH-SP2 overloaded (a third of the speed), 6,000 jobs",
        "KTH-SP2-1996-2.1-cln.swf.gz",
        100,
        0.33,
        6_000,
    ),
)
#: These decide nothing that a queue could slow down.
TRIVIAL = {"reject-all"}


def measure(name: str, workload: Workload, hosts: int, speed: float) -> tuple[float, float]:
    """Mean queue length, and microseconds of processor time a job."""
    batsim = Batsim(Setup(Platform.homogeneous(hosts, speed), [workload]))
    process = DecisionProcess(SCHEDULERS.create(name, {}))
    began = process_time()
    results = simulate(batsim, process)
    seconds = process_time() - began
    return results.sum_waiting / results.makespan, 1e6 * seconds / results.nb_jobs


def main() -> None:
    """Measure every policy in every case, on the sample where the large logs are absent."""
    overload()
    points: dict[str, list[tuple[float, float]]] = {}
    for title, log, hosts, speed, most in CASES:
        path = LOGS / log
        if not path.is_file():
            path, hosts = ROOT / "workloads" / "sample.swf", 64
        workload = read_workload(path, "w0")
        if most is not None:
            workload.jobs = workload.jobs[:most]
        print(f"{title}:")
        for name in SCHEDULERS.all():
            if name not in TRIVIAL:
                queue, cost = measure(name, workload, hosts, speed)
                points.setdefault(name, []).append((queue, cost))
                print(f"  {name:14}mean queue {queue:8.1f} jobs, {cost:8.1f} us a job")
    print(
        f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB; plot: {_plot(points)}"
    )


def overload() -> None:
    """Print what EASY costs when thousands wait, against the normal case."""
    path = LOGS / CASES[0][1]
    if path.is_file():
        workload = read_workload(path, "w0")
        (_, normal), (queue, overloaded) = (measure("easy", workload, 100, speed) for speed in (1.0, 0.5))
        print(
            f"EASY on KTH-SP2 at half the speed: mean queue {queue:.0f} jobs, {overloaded:.1f} us a job, "
            f"{overloaded / normal:.1f} times the normal case"
        )


def _plot(points: dict[str, list[tuple[float, float]]]) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, measured in points.items():
        axes.plot(*zip(*sorted(measured), strict=True), marker="o", label=name)
    axes.set(xscale="symlog", yscale="log", xlabel="mean queue length (jobs)", ylabel="us a job")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, dpi=150)
    return PLOT.relative_to(ROOT)


if __name__ == "__main__":
    main()
