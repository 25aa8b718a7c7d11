"""Many simulations in one process: each log is read once, and only what was asked for is kept.

Where the library takes all turns of a policy, it does so without Python's lock, and as many simulations go on
at a time as there are processors. All else is Python's, of which a process does one thing at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.simulate import Options, experiment_of, several
from batsched_py.api.threads import done_in_order
from batsched_py.campaign.executors import usable_cores
from batsched_py.engines.native import library
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment, Workloads
from batsched_py.experiment.build import read_workloads, words_of
from batsched_py.experiment.run import rare_garbage_collection, run_experiment
from batsched_py.protocol.jobs import HostState
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.outputs import PREFIX, MemoryFiles
from batsched_py.workload.model import Workload, as_jobs
from batsched_py.workload.swf.quick_reader import NativeFinishes, NativeJobs

if TYPE_CHECKING:
    import pandas as pd

#: What is known of a whole run without its jobs, by the names that metrics have.
FIGURES = (
    "nb_jobs",
    "nb_jobs_rejected",
    "nb_jobs_killed",
    "makespan",
    "mean_waiting_time",
    "max_waiting_time",
    "mean_slowdown",
    "mean_bounded_slowdown",
    "utilization",
)

#: What is measured over each window, by metric.
Measured = dict[str, dict[str, float]]

#: Of simulations with fewer jobs, threads do not make more in a time: Python's part is too large.
LONG = 1000

#: The users that the library has.
_USERS_OF_LIBRARY = ("rigid", "think-time")


def simulate_many(
    workloads: lazy.log.Log | lazy.log.FileName | Sequence[lazy.log.Log | lazy.log.FileName],
    schedulers: str | Sequence[str | tuple[str, Options]],
    *,
    metrics: Sequence[str] = FIGURES,
    measure: str | Sequence[str] = (),
    users: str | None = None,
    user_options: Options | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Simulate each of the workloads under each of the schedulers, and measure each simulation.

    A scheduler is a name, or a name with its options. The table has a row for each simulation, or for each
    window of it that ``measure`` names, such as ``["4w:8w", "8w:12w"]``; the ``workload`` is a number, the
    place among the given ones. ``metrics`` are names that `batsched-py metrics --explain` lists. Those that
    are measured unless they are named are known without looking at single jobs, which is quickest.

    The settings are those of :func:`batsched_py.simulate`.
    """
    import pandas as pd

    chosen = [Choice.of(*((each, {}) if isinstance(each, str) else each)) for each in several(schedulers)]
    windows = {text: Window.parse(text) for text in several(measure)}

    def rows_of(
        place: dict[str, Any], experiment: Experiment, read: Sequence[Workload]
    ) -> list[dict[str, Any]]:
        found = measured(experiment, read, windows or {"": Window()}, metrics)
        return [place | ({"window": part} if windows else {}) | its for part, its in found.items()]

    def simulations() -> Iterator[partial[list[dict[str, Any]]]]:
        for number, workload in enumerate(several(workloads)):
            experiment, logs, _ = experiment_of([workload], "fcfs", {}, users, user_options or {}, settings)
            read = read_for_many(experiment, logs)
            for choice in chosen:
                one = replace(experiment, actors=replace(experiment.actors, scheduler=choice))
                place = {"workload": number, "scheduler": choice.name, "options": choice.options}
                yield partial(rows_of, place, one, read)

    with rare_garbage_collection:
        tasks = simulations()
        first = [*islice(tasks, 1)]
        at_a_time = min((_nb_at_a_time(each.args[1], each.args[2], chosen) for each in first), default=1)
        return pd.DataFrame([*chain.from_iterable(done_in_order(chain(first, tasks), at_a_time))])


def _nb_at_a_time(one: Experiment, workloads: Sequence[Workload], chosen: Sequence[Choice]) -> int:
    """How many simulations like this one go on at a time: several, if the library takes most of their time.

    Code of others may keep something for the next simulation, so then they go on one after another.
    """
    users, words = one.actors.users, msgspec.json.encode([one, list(chosen)])
    is_short = sum(len(workload.jobs) for workload in workloads) < LONG
    if library is None or is_short or b".py:" in words or (users and users.name not in _USERS_OF_LIBRARY):
        return 1
    with suppress(InputError):  # which is told when its turn has come
        policies = [SCHEDULERS.find(choice.name) for choice in chosen]
        ours = all(policy.__module__.startswith("batsched_py.") for policy in policies)
        if ours and all(hasattr(policy.schedule, "in_library") for policy in policies):
            return usable_cores()
    return 1


def read_for_many(
    experiment: Experiment, logs: Mapping[int, lazy.swf_log.SwfLog] | None = None
) -> list[Workload]:
    """The workloads of an experiment, as the native engine has them if it can."""
    scenario = experiment.scenario
    return _as_columns(read_workloads(scenario.workloads, logs, words_of(scenario.machine)), experiment)


class LogInPeriods:
    """The workloads of an experiment, read once, of which one gets the jobs of periods."""

    def __init__(self, experiment: Experiment) -> None:
        scenario = experiment.scenario
        self._read = read_workloads(scenario.workloads, None, words_of(scenario.machine))
        self._experiment = experiment
        times = [as_jobs(each.jobs).submission_times for each in self._read if len(each.jobs)]
        if not times:
            raise InputError(f"{', '.join(scenario.workloads.files)}: there are no jobs")
        self._zero = min(float(each.min()) for each in times)
        self.span = max(float(each.max()) for each in times) - self._zero
        """Seconds from the first to the last submission."""

    def period(self, begin: float, end: float) -> list[Workload]:
        """The workloads with the jobs that are submitted from ``begin`` to before ``end``.

        Both are in seconds since the first submission. Jobs keep their submission times.
        """
        begin, end = self._zero + begin, self._zero + end
        return _as_columns([_between(begin, end, each) for each in self._read], self._experiment)

    def submissions(self, begin: float, end: float) -> list[float]:
        """When the jobs of a period are submitted, in seconds since the first submission, in order."""
        times = (as_jobs(each.jobs).submission_times for each in self._read)
        since = (float(time) - self._zero for each in times for time in each)
        return sorted(time for time in since if begin <= time < end)


def _as_columns(read: Sequence[Workload], experiment: Experiment) -> list[Workload]:
    return [_in_columns(each, experiment.scenario.workloads) for each in read]


def _between(begin: float, end: float, workload: Workload) -> Workload:
    """The workload with the jobs that are submitted in a period."""
    times = as_jobs(workload.jobs).submission_times
    places = [place for place, time in enumerate(times) if begin <= time < end]
    jobs, finishes = [workload.jobs[place] for place in places], workload.finishes
    return replace(
        workload,
        jobs=jobs,
        profiles={job.profile: workload.profiles[job.profile] for job in jobs},
        finishes=None if finishes is None else [float(finishes[place]) for place in places],
    )


def _in_columns(workload: Workload, rules: Workloads) -> Workload:
    """A workload whose jobs the native engine need not make again for each simulation."""
    jobs, finishes = as_jobs(workload.jobs), workload.finishes
    is_log = not workload.path.endswith(".json") and finishes is not None and jobs.has_usual_ties
    asks_more = rules.attributes or rules.preceding != "ignore" or workload.has_cancelled
    if library is None or isinstance(jobs, NativeJobs) or asks_more or not is_log:
        return workload
    assert finishes is not None
    order = sorted(range(len(jobs)), key=lambda place: jobs[place].submission_time)
    log = library.new_log(
        workload.name,
        [jobs[place] for place in order],
        dict(workload.profiles),
        [float(finishes[place]) for place in order],
    )
    return replace(
        workload, jobs=NativeJobs(log), finishes=NativeFinishes(log), profiles=dict(workload.profiles)
    )


def measured(
    experiment: Experiment,
    workloads: Sequence[Workload],
    windows: Mapping[str, Window],
    metrics: Sequence[str] = FIGURES,
) -> Measured:
    """What an experiment comes to over each window."""
    if set(metrics) <= set(FIGURES) and all(window.is_whole for window in windows.values()):
        known = _figures(experiment, workloads)
        return {part: {name: known[name] for name in metrics} for part in windows}
    known_names = {metric.name: metric for metric in lazy.metrics.METRICS}
    for name in metrics:
        if name not in known_names:
            raise InputError(f"there is no metric {name!r}; `batsched-py metrics --explain` lists them")
    whole = outcome_of(experiment, workloads)
    found: Measured = {}
    for part, window in windows.items():
        inside = whole if window.is_whole else whole.within(window)
        found[part] = {}
        for name in metrics:
            metric = known_names[name]
            if metric.needs is not None and getattr(inside, metric.needs) is None:
                raise InputError(f"{name} is not known of such a simulation")
            found[part][name] = float(metric.compute(inside))
    return found


def outcome_of(experiment: Experiment, workloads: Sequence[Workload]) -> lazy.outcome.Outcome:
    """What metrics look at, of a simulation that leaves no files."""
    kept = MemoryFiles()
    run_experiment(experiment, workloads, PREFIX, new_file=kept.new_file)
    summary = lazy.outcome.summary_in(kept.open("schedule"))
    joules = summary.consumed_joules if experiment.scenario.energy else None
    return lazy.outcome.Outcome.of(
        lazy.job_rows.rows_of(kept.open, lambda: lazy.schedule.schedule_of(kept.open)),
        replace(summary, consumed_joules=joules),
    )


def _figures(experiment: Experiment, workloads: Sequence[Workload]) -> dict[str, float]:
    """What is known without looking at jobs: as in the overview, without distributions."""
    simulation = run_experiment(experiment, workloads, "")
    results, machines = simulation.results, simulation.machines
    capacity = machines.count * results.span
    computing = machines.seconds()[HostState.COMPUTING]
    return {
        "nb_jobs": results.nb_jobs,
        "nb_jobs_rejected": results.nb_rejected,
        "nb_jobs_killed": results.nb_finished - results.nb_success,
        "makespan": results.span,
        "mean_waiting_time": results.mean_of_finished(results.sum_waiting),
        "max_waiting_time": results.max_waiting,
        "mean_slowdown": results.mean_of_finished(results.sum_slowdown),
        "mean_bounded_slowdown": results.mean_of_finished(results.sum_bounded_slowdown),
        "utilization": computing / capacity if capacity else float("nan"),
    }
