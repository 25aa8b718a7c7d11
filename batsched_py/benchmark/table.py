"""The leaderboard: how much better policies are than EASY, and whether that can be told from chance.

The unit is a week of a log: what a policy does on the tasks of one week is averaged before anything is
tested. Weeks of one log are alike, so what the logs alone say stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log, nan
from statistics import fmean
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.runs import CONFIDENCE, FEWEST, SIGNIFICANT, Estimate, Paired, holm
from batsched_py.benchmark.results import Result
from batsched_py.benchmark.tasks import Benchmark, Task
from batsched_py.errors import InputError

#: The two metrics that are compared, and what columns call them.
COMPARED = {"mean_bounded_slowdown": "slowdown", "area_weighted_turnaround_time": "turnaround"}

#: What all others are compared with.
REFERENCE = "easy"

#: All conditions together.
ALL = "all tasks"

#: How often weeks are drawn again for the interval of a rank, and where the random numbers begin.
DRAWS, SEED = 2000, 1


class Gain(Struct, frozen=True):
    """By which factor a policy is above another one in a metric: less than 1 is better."""

    ratio: Estimate
    """The geometric mean over weeks, with its interval."""
    by_log: Estimate
    """The same over logs, of which there are few."""
    logs_better: int
    """On how many logs it is better in the mean."""
    p_value: float
    """Of the t-test of pairs over weeks, raised for all comparisons of the page by Holm's method."""

    @property
    def is_shown(self) -> bool:
        """Whether there is a difference, as far as the weeks tell."""
        return self.p_value < SIGNIFICANT


class Row(Struct, frozen=True):
    """A policy; what is said of each metric is in dictionaries."""

    name: str
    gains: dict[str, dict[str, Gain]]
    """Against the reference, by condition; none where there are too few weeks."""
    ranks: dict[str, Estimate]
    """The mean over weeks of the mean rank on their tasks, with a bootstrap interval."""
    is_best: dict[str, bool]
    """Whether it is the best over all tasks, or cannot be told from it."""
    states: dict[str, int]
    """How many tasks are ok, failed, not applicable or missing."""

    @property
    def is_whole(self) -> bool:
        """Whether it has a schedule of every task."""
        return self.states.keys() <= {"ok"}


class Table(Struct, frozen=True):
    """The leaderboard."""

    version: str
    nb_tasks: int
    nb_units: int
    logs: list[str]
    nb_tests: int
    conditions: list[str]
    rows: list[Row]
    """In the order of their mean ranks in the first metric."""


#: For each task the value of a metric under a policy.
Values = Mapping[Task, float]


class _Compared(Struct):
    """What is compared in a metric; the p-values are not raised yet."""

    best: str
    """The policy with the best mean over all tasks, among those that have them all."""
    ranks: dict[str, Estimate]
    gains: dict[tuple[str, str], Gain]
    """Against the reference, by policy and condition."""
    rivals: dict[str, Gain]
    """Against the best."""


def leaderboard(results: Sequence[Result], benchmark: Benchmark) -> Table:
    """The table of some results."""
    names = [result.name for result in results]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two results are called {twice!r}; give one of them another --name")
    if REFERENCE not in names:
        raise InputError(f"policies are compared with {REFERENCE}, whose result is not among these files")
    states = {result.name: _states(result, benchmark) for result in results}
    whole = [name for name in names if states[name].keys() == {"ok"}]
    conditions = list(dict.fromkeys(task.condition for task in benchmark.tasks))
    found = {
        metric: _compared(
            {result.name: _values(result, metric, benchmark) for result in results},
            whole or [REFERENCE],
            [ALL, *conditions],
        )
        for metric in COMPARED
    }
    nb_tests = _raise(found.values())
    rows = [_row(name, found, states[name]) for name in names]
    return Table(
        version=benchmark.version,
        nb_tasks=len(benchmark.tasks),
        nb_units=len({task.unit for task in benchmark.tasks}),
        logs=[source.name for source in benchmark.logs],
        nb_tests=nb_tests,
        conditions=conditions,
        rows=sorted(rows, key=lambda row: (row.ranks[next(iter(COMPARED))].mean, row.name)),
    )


def _row(name: str, found: Mapping[str, _Compared], states: dict[str, int]) -> Row:
    return Row(
        name=name,
        gains={
            metric: {condition: gain for (its, condition), gain in each.gains.items() if its == name}
            for metric, each in found.items()
        },
        ranks={metric: each.ranks[name] for metric, each in found.items()},
        is_best={
            metric: name == each.best or (name in each.rivals and not each.rivals[name].is_shown)
            for metric, each in found.items()
        },
        states=states,
    )


def _compared(values: Mapping[str, Values], whole: Sequence[str], conditions: Sequence[str]) -> _Compared:
    found = _Compared(min(whole, key=lambda name: _mean_log(values[name])), _ranks(values), {}, {})
    for name, its in values.items():
        for condition in conditions if name != REFERENCE else ():
            if (gain := _gain(its, values[REFERENCE], condition)) is not None:
                found.gains[name, condition] = gain
        if name != found.best and (gain := _gain(its, values[found.best], ALL)) is not None:
            found.rivals[name] = gain
    return found


def _raise(found: Iterable[_Compared]) -> int:
    """Raise the p-values of all comparisons together, by Holm's method; how many they are."""
    tables: list[dict[Any, Gain]] = [table for each in found for table in (each.gains, each.rivals)]
    places = [(table, key) for table in tables for key in table]
    raised = holm([table[key].p_value for table, key in places])
    for (table, key), p_value in zip(places, raised, strict=True):
        table[key] = replace(table[key], p_value=p_value)
    return len(places)


def _states(result: Result, benchmark: Benchmark) -> dict[str, int]:
    done = [result.tasks.get(task.name) for task in benchmark.tasks]
    return dict(sorted(Counter("missing" if each is None else each.state for each in done).items()))


def _values(result: Result, metric: str, benchmark: Benchmark) -> Values:
    """What a metric is on the tasks that have a schedule with jobs that ran."""
    known = {task: result.tasks.get(task.name) for task in benchmark.tasks}
    found = {task: each.metrics.get(metric) for task, each in known.items() if each is not None}
    return {task: value for task, value in found.items() if value is not None and value > 0}


def _mean_log(values: Values) -> float:
    return fmean(_by(lambda task: task.unit, {task: log(value) for task, value in values.items()}).values())


def _by(key: Callable[[Task], Any], values: Values) -> dict[Any, float]:
    """The means of values over the tasks that have a key in common."""
    found: dict[Any, list[float]] = {}
    for task, value in values.items():
        found.setdefault(key(task), []).append(value)
    return {each: fmean(its) for each, its in found.items()}


def _gain(mine: Values, its: Values, condition: str) -> Gain | None:
    """One policy against another on the tasks that both have; none if these are of too few weeks."""
    logs = {
        task: log(mine[task] / its[task])
        for task in mine
        if task in its and condition in (ALL, task.condition)
    }
    weeks = _by(lambda task: task.unit, logs)
    if len(weeks) < FEWEST:
        return None
    of_logs: dict[str, list[float]] = {}
    for (name, _), value in weeks.items():
        of_logs.setdefault(name, []).append(value)
    by_log = [fmean(each) for each in of_logs.values()]
    paired = Paired.of([*weeks.values()])
    better = sum(value < 0 for value in by_log)
    return Gain(_factor(paired.difference), _factor(Estimate.of(by_log)), better, paired.p_value)


def _factor(logs: Estimate) -> Estimate:
    """The factor whose logarithm is estimated."""
    low, high = (None if end is None else exp(end) for end in (logs.low, logs.high))
    return Estimate(exp(logs.mean), low, high)


def _ranks(values: Mapping[str, Values]) -> dict[str, Estimate]:
    """For each policy its mean rank; weeks are drawn again and again for its interval."""
    ranked: dict[str, dict[Task, float]] = {name: {} for name in values}
    for task in dict.fromkeys(task for its in values.values() for task in its):
        rivals = {name: its[task] for name, its in values.items() if task in its}
        for name, value in rivals.items():
            same = sum(each == value for each in rivals.values())
            ranked[name][task] = 1 + sum(each < value for each in rivals.values()) + (same - 1) / 2
    return {name: _mean_rank([*_by(lambda task: task.unit, its).values()]) for name, its in ranked.items()}


def _mean_rank(weeks: Sequence[float]) -> Estimate:
    """The mean over weeks, with the interval of the means of as many weeks that are drawn of them."""
    if len(weeks) < FEWEST:
        return Estimate(fmean(weeks) if weeks else nan)
    drawn = np.random.default_rng(SEED).integers(len(weeks), size=(DRAWS, len(weeks)))
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.array(weeks)[drawn].mean(axis=1), [tail, 100 - tail]).tolist()
    return Estimate(fmean(weeks), low, high)
