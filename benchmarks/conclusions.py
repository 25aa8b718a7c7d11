"""What studies were led to conclude, before and now: one line for each figure that was misleading.

    python -m benchmarks.conclusions ../shared/logs [parts] [noise] ...

Parts that begin on an empty machine, means of saturated machines, noise that is called better, seeds that
count as workloads, loads that make other users, models with half the load, utilization that comes from the
tail, lateness without a control, estimates that nobody made, means that a few jobs dominate, F1 in parts
of a log, and parts that depend on each other.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from statistics import fmean

import numpy as np

import batsched_py as bp
from batsched_py.analysis.runs import SIGNIFICANT, Paired, kept_of, lag_1
from batsched_py.analysis.runs.comparisons import compare
from batsched_py.campaign.review.conclusions import clustered
from batsched_py.campaign.review.thorough import SESSION_RULES
from batsched_py.errors import InputError
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


def parts(logs: dict[str, Path]) -> None:
    """The mean wait of FCFS in parts that begin on an empty machine, and in windows of one run."""
    log = bp.read_log(logs["KTH-SP2"])
    for every in ("7d", "28d", "84d"):
        cut = fmean(_wait(part, "fcfs") for part in log.parts(every))
        plan = bp.Plan(logs={"kth": logs["KTH-SP2"]}, schedulers=["fcfs"], parts=every)
        found = plan.run(progress=False, workers=1)
        mean = found.table()["mean_waiting_time"].mean() / 3600
        inside = f"{mean:.0f} h{', no steady state' * bool(found.measured()[0].unstable)}"
        tell(f"mean wait of FCFS on KTH-SP2, over parts of {every}", f"{cut:.0f} h", inside)


def _wait(log: bp.Log, scheduler: str) -> float:
    return bp.simulate(log, scheduler, hosts=100, progress=False).overview.mean_waiting_time / 3600


def conclusions(logs: dict[str, Path]) -> None:
    """EASY++ and EASY under 1.2 times the load: in parts that begin on an empty machine, and in windows."""
    cut = bp.read_log(logs["KTH-SP2"]).load(1.2).parts(every="28d")
    means = [
        fmean(
            bp.simulate(part, name, hosts=100, progress=False).overview.mean_bounded_slowdown for part in cut
        )
        for name in ("easy-sjbf", "easy")
    ]
    plan = bp.Plan(
        logs={"kth": logs["KTH-SP2"]},
        schedulers=["easy", "easy-sjbf"],
        loads=[1.2],
        parts="28d",
        metrics=["mean_bounded_slowdown", "mean_waiting_time"],
        baseline="easy",
    )
    found = plan.run(progress=False, workers=1)
    told = " ".join(map(str, compare(found.measured(), found.wanted.metrics, "easy"))) or "not compared"
    tell("EASY++ and EASY on KTH-SP2, load 1.2", f"slowdown {means[0]:.0f} and {means[1]:.0f}", told)


def saturated(logs: dict[str, Path]) -> None:
    """The mean wait of EASY under a load that is too much, over half of a log and over all of it."""
    log = bp.read_log(logs["KTH-SP2"]).load(1.6)
    half = _wait(log.first(len(log) // 2), "easy")
    whole = bp.simulate(log, "easy", hosts=100, progress=False)
    mean = whole.overview.mean_waiting_time / 3600
    now = f"no steady state: {whole.overview.unstable}"
    tell("EASY on KTH-SP2, load 1.6", f"{half:.0f} h over half of the log, {mean:.0f} h over all", now)


def noise(logs: dict[str, Path]) -> None:
    """A random policy against itself, and against another one with the sign of each part by chance."""
    names = [f"random{number}" for number in range(1, 5)]
    plan = bp.Plan(
        logs={"sample": SAMPLE},
        schedulers={name: {"name": "random", "options": {"seed": name[-1]}} for name in names},
        platforms={"base": {"hosts": 64}},
        parts="5d",
        metrics=["mean_waiting_time", "mean_bounded_slowdown"],
    )
    found = plan.run(progress=False, workers=1)
    told = compare(found.measured(), found.wanted.metrics)
    better = sum("is better than" in str(each) for each in told)
    tell(f"'better' in {len(told)} sentences on a random policy against itself", f"{len(told)}", f"{better}")
    repeated = bp.Plan(
        logs={"sample": SAMPLE},
        schedulers=["random", "filler"],
        platforms={"base": {"hosts": 64}},
        parts="5d",
        repetitions=10,
        metrics=["mean_waiting_time"],
    )
    table = repeated.run(progress=False, workers=1).table()
    waits = table.pivot(index="part", columns=["scheduler", "seed"], values="mean_waiting_time")
    differences = waits["random"].to_numpy() - waits["filler"].to_numpy()
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (1000, len(differences), 1))
    flipped = signs * differences
    shares = []
    for tests in (flipped.reshape(len(signs), -1), flipped.mean(axis=2)):
        stars = [Paired.of(values.tolist()).p_value < SIGNIFICANT for values in tests]
        shares.append(f"{fmean(stars):.1%}")
    tell(f"false stars of {len(differences)} parts with 10 seeds, where 5% are allowed", *shares)


def dependent(logs: dict[str, Path]) -> None:
    """Noise in nine parts that keep some of the part before: false stars, if each part counts as one, and as
    tests count them now; and how often review says so.

    A table has four rows that are compared with a baseline; half of their noise is the same.
    """
    random, tables, parts = np.random.default_rng(1), 2000, 9
    for kept in (0.0, 0.3, 0.5, 0.7):
        own, common = random.standard_normal((tables, 4, 40)), random.standard_normal((tables, 1, 40))
        noise = sqrt(0.5) * (own + common)
        for place in range(1, 40):
            noise[:, :, place] += kept * noise[:, :, place - 1]
        found = noise[:, :, -parts:].tolist()
        stars = [
            fmean(
                Paired.of(row, each).p_value < SIGNIFICANT
                for table, each in zip(found, counted, strict=True)
                for row in table
            )
            for counted in ([0.0] * tables, [kept_of(table) for table in found])
        ]
        about = f"{kept:g} of the part before"
        tell(f"false stars of parts that keep {about}", *(f"{share:.1%}" for share in stars))
        before = fmean(max(lag_1(row) or 0.0 for row in table) > 2 / sqrt(parts) for table in found)
        said = Counter(clustered(table) for table in found)
        now = ", ".join(f"{said[verdict] / tables:.1%} {verdict}" for verdict in ("warn", "fail"))
        tell(f"review of parts that keep {about}", f"{before:.1%} fail", now)


def loads(logs: dict[str, Path]) -> None:
    """A mean wait under 1.2 times the load, by the way in which the load is made; and for users who react."""
    log = bp.read_log(logs["KTH-SP2"])
    waits = {by: _wait(log.load(1.2, by=by), "easy") for by in ("arrivals", "run-times", "sizes")}
    words = ", ".join(f"{wait:.2f} h by {by}" for by, wait in waits.items())
    tell("mean wait of EASY on KTH-SP2, load 1.2", f"{waits['arrivals']:.2f} h", words)
    now = "taken as it is"
    try:
        users = {"a60": {"name": "think-time"}}
        plan = {"logs": {"kth": logs["KTH-SP2"]}, "schedulers": ["easy"], "users": users}
        _ = bp.Plan(**plan, loads=[2.0], load_by="arrivals").runs
    except InputError as error:
        now = f"refused: {error}"
    many = bp.simulate(
        log.load(2.0), "easy", hosts=100, users="think-time", sessions="arrival:60", progress=False
    )
    tell("KTH-SP2 with users who think, load 2", f"utilization {many.overview.utilization:.0%}", now)


def sessions(logs: dict[str, Path]) -> None:
    """EASY and conservative backfilling with users who think, by how their sessions are cut."""
    found = []
    for rule in SESSION_RULES:
        easy, other = (
            bp.simulate(logs["KTH-SP2"], name, users="think-time", sessions=rule, progress=False).overview
            for name in ("easy", "conservative")
        )
        found.append(f"{(other.mean_waiting_time - easy.mean_waiting_time) / 3600:+.3f} h by {rule}")
    tell("mean wait of conservative less EASY on KTH-SP2, with users", found[1], ", ".join(found))


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
    parts,
    conclusions,
    saturated,
    noise,
    dependent,
    loads,
    sessions,
    tail,
    lateness,
    estimates,
    dominance,
    origin,
    models,
)


def main(folder: Path, *names: str) -> None:
    """Those that are named, or all."""
    logs = {name: folder / f"{file}.swf.gz" for name, file in LOGS.items()}
    for study in STUDIES:
        if not names or study.__name__ in names:
            study(logs)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
