"""How long the runs of a plan will take, judged by those that are done; at first by one that is tried."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.campaign.executors import untold
from batsched_py.campaign.run import RUNS, Manifest, Run
from batsched_py.errors import BatschedError, InputError
from batsched_py.experiment import Actors, Choice, Experiment, Workloads
from batsched_py.experiment.build import read_workloads, words_of
from batsched_py.experiment.run import run_experiment
from batsched_py.users import part_of
from batsched_py.workload.model import Workload

#: What runs have in common that are expected to take equally long, from the best guess to the last.
_ALIKE = (
    ("log", "platform", "scheduler", "allocator", "users", "load"),
    ("log", "scheduler", "users"),
    ("log",),
    ("scheduler", "users"),
    (),
)


class Estimate(Struct, frozen=True):
    """How many runs there are, and how long those take that are not done."""

    wanted: int
    done: int
    """Those of which there is a folder; whether they are stale is not looked at."""
    seconds: float
    """What the others take, one after another; 0 if nothing is known of them."""


def estimated(runs: Sequence[Run], folder: Path) -> Estimate:
    """The runs of a plan whose results are in a folder."""
    left, times = [], defaultdict[tuple[str, ...], list[float]](list)
    for run in runs:
        try:
            seconds = sum(Manifest.read(folder / RUNS / run.name).seconds.values())
        except InputError:
            left.append(run)
            continue
        for key in _keys(run.axes):
            times[key].append(seconds)
    guesses = (next((fmean(times[key]) for key in _keys(run.axes) if key in times), 0.0) for run in left)
    return Estimate(len(runs), len(runs) - len(left), sum(guesses))


#: So many jobs are simulated to see how long that takes, and so many to see what has nothing to do with jobs.
TRIED, FEW = 1000, 100

#: The jobs of so many logs are counted; those of the others are taken for as many.
_COUNTED = 3


def guessed(runs: Sequence[Run]) -> float | None:
    """How long runs take of which none is done, one after another, if they are as quick as EASY.

    That is tried with the first jobs of one of their logs, on its machine. Nothing is known if their logs are
    still to be made, or have no jobs.
    """
    try:
        with untold():
            return _guessed(runs)
    except BatschedError:
        return None


def _guessed(runs: Sequence[Run]) -> float | None:
    experiments = {run.name: run.experiment for run in runs if run.experiment is not None}
    there: dict[Workloads, Experiment] = {}
    for experiment in experiments.values():
        if all(Path(file).is_file() for file in experiment.scenario.workloads.files):
            there.setdefault(experiment.scenario.workloads, experiment)
    read = {
        logs: read_workloads(logs, words=words_of(experiment.scenario.machine))
        for logs, experiment in islice(there.items(), _COUNTED)
    }
    counts = {logs: sum(len(workload.jobs) for workload in workloads) for logs, workloads in read.items()}
    if not any(counts.values()):
        return None
    logs = max(counts, key=lambda logs: counts[logs])
    _tried(there[logs], read[logs], FEW)  # what is loaded for it is loaded once
    few, many = (_tried(there[logs], read[logs], most) for most in (FEW, TRIED))
    each, usual = many / min(counts[logs], TRIED), fmean(counts.values())
    return sum(few + each * counts.get(e.scenario.workloads, usual) for e in experiments.values())


def _tried(experiment: Experiment, workloads: Sequence[Workload], most: int) -> float:
    """How many seconds it takes to simulate the first jobs with EASY, and to measure what came of them."""
    from batsched_py.analysis import metrics, outcome, steadiness

    easy = replace(experiment, actors=Actors(scheduler=Choice("easy")))
    first = [part_of(each, list(range(min(len(each.jobs), most)))) for each in workloads]
    began = perf_counter()
    with TemporaryDirectory() as folder:
        run_experiment(easy, first, f"{folder}/out")
        known = outcome.Outcome.read(f"{folder}/out_jobs.csv")
        steadiness.steadiness(known)
        metrics.measure(known)
    return perf_counter() - began


def _keys(axes: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for names in _ALIKE:
        yield tuple(f"{name}={axes.get(name, '')}" for name in names)
