"""What studies were led to conclude, before and now: one line for each figure that was misleading.

    python -m benchmarks.conclusions ../shared/logs

Models with half the load, utilization that comes from the tail, lateness without a control, estimates that
nobody made, means that a few jobs dominate, and F1 in parts of a log.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import batsched_py as bp
from batsched_py.workload.description.jobs import characterised, jobs_that_ran
from batsched_py.workload.description.over_time import load
from batsched_py.workload.models.realistic import Realistic

SAMPLE = Path(__file__).parents[1] / "workloads" / "sample.swf"
LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln",
    "SDSC-DS": "SDSC-DS-2004-2.1-cln",
    "Thunder": "LLNL-Thunder-2007-1.1-cln",
    "HPC2N": "HPC2N-2002-2.2-cln",
}


def tell(what: str, before: str, now: str) -> None:
    """Print a figure as it was, and as it is."""
    print(f"{what}: {before} before, {now} now", flush=True)


def models(logs: dict[str, Path]) -> None:
    """The load of a log that is generated like another one, from completed jobs and from all that ran."""
    for name, path in logs.items():
        log = bp.read_log(path).columns
        loads = []
        for jobs in (characterised(log), jobs_that_ran(log)):
            made = Realistic().fit(jobs).generate(len(jobs), seed=200)
            loads.append(f"{load(made).load:.1%}")
        tell(f"load of a log like {name}, which has {load(log).load:.1%}", *loads)


def tail(logs: dict[str, Path]) -> None:
    """The utilization of half the nodes with users who react: over the makespan, and until 90 % are there."""
    half = bp.simulate(SAMPLE, "easy", hosts=32, users="think-time", sessions="arrival:60", progress=False)
    whole = half.outcome.host_seconds / (half.overview.hosts * half.outcome.makespan)
    tell("utilization of half the nodes", f"{whole:.1%}", f"{half.overview.utilization:.1%}")


def lateness(logs: dict[str, Path]) -> None:
    """The lateness on half of the machine, against the log and against a control."""
    half = bp.simulate(
        logs["KTH-SP2"],
        "easy",
        hosts=50,
        reject_larger=True,
        users="think-time",
        sessions="arrival:60",
        progress=False,
    )
    control = half.control()
    tell(
        f"lateness on half of KTH-SP2, control {control.control_lateness / 86400:+.2f} d",
        f"{control.lateness / 86400:+.1f} d",
        f"{control.mean_difference / 86400:+.1f} d",
    )


def estimates(logs: dict[str, Path]) -> None:
    """EASY on a log whose jobs mostly have no estimates: with perfect ones, and with those of a model."""
    waits = []
    for rule in ("at-least-run-time", "modelled"):
        overview = bp.simulate(logs["Thunder"], "easy", walltime=rule, progress=False).overview
        waits.append(f"{overview.mean_waiting_time / 3600:.2f} h, {overview.unrequested:,} unrequested")
    tell("mean wait of EASY on Thunder", *waits)


def dominance(logs: dict[str, Path]) -> None:
    """A mean slowdown, and what is beside it now."""
    overview = bp.simulate(logs["KTH-SP2"], "easy", progress=False).overview
    beside = f"median {overview.bounded_slowdown_median:.2f}, top 1% {overview.part_of_top_percent:.0%}"
    tell("bounded slowdown of EASY on KTH-SP2", f"{overview.mean_bounded_slowdown:.1f}", beside)


def origin(logs: dict[str, Path]) -> None:
    """F1 in the same weeks as a part and inside the whole log: how many jobs start at another time."""
    log = bp.read_log(SAMPLE)
    part = log.part(2, every="28d")
    shares = []
    for order in ("f1", "f1-queue"):
        means = [
            bp.simulate(each, "easy", options={"order": order}, hosts=64, progress=False)
            .jobs.set_index("job_id")["waiting_time"]
            .reindex(part.columns.job_number.astype(str))
            .mean()
            for each in (part, log)
        ]
        shares.append(f"{means[0] / 3600:.2f} h cut off and {means[1] / 3600:.2f} h inside")
    tell("mean wait of EASY in F1 order over the second four weeks of the sample", *shares)


STUDIES: tuple[Callable[[dict[str, Path]], None], ...] = (
    tail,
    lateness,
    estimates,
    dominance,
    origin,
    models,
)


def main(folder: Path) -> None:
    """All of them."""
    logs = {name: folder / f"{file}.swf.gz" for name, file in LOGS.items()}
    for study in STUDIES:
        study(logs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
