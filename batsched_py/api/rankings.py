"""How policies rank on a log and on logs of models: whether a study of the model would conclude the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Final

from batsched_py.api.log import Log
from batsched_py.api.simulate import simulate
from batsched_py.workload.swf.log import SwfLog

#: The policies that are ranked: with and without reservations, in the order of arrival and of estimates.
POLICIES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "fcfs": ("fcfs", {}),
    "sjf": ("sjf", {}),
    "easy": ("easy", {}),
    "easy, shortest first": ("easy", {"order": "shortest"}),
    "easy-sjbf": ("easy-sjbf", {}),
    "conservative": ("conservative", {}),
}

#: What they are ranked by, with a title and the unit of the table.
MEASURES: Final = {
    "mean_waiting_time": ("mean wait, in hours", 3600.0),
    "mean_bounded_slowdown": ("mean bounded slowdown", 1.0),
}

#: For each measure the value of each policy.
Values = Mapping[str, list[float]]


def values_of(log: SwfLog, done: Callable[[], None]) -> Values:
    """What each policy reaches on a log, on its own machine; the least is the best.

    Jobs of models that have no estimates get round ones, so that policies know as little as on the log.
    """
    found: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for name, options in POLICIES.values():
        overview = simulate(Log(log), name, options=options, walltime="modelled", progress=False).overview
        for measure, values in found.items():
            values.append(getattr(overview, measure))
        done()
    return found


def kendalls_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """How alike two rankings are, from -1 (reversed) to 1 (the same); a pair that is tied in one counts 0.

    >>> kendalls_tau([1, 2, 3], [10, 20, 30]), kendalls_tau([1, 2, 3], [2, 1, 3])
    (1.0, 0.3333333333333333)
    """
    signs = [
        _sign(first[one] - first[two]) * _sign(second[one] - second[two])
        for one, two in combinations(range(len(first)), 2)
    ]
    return sum(signs) / len(signs)


def table_of(measure: str, log: Values, models: Mapping[str, Sequence[Values]]) -> list[list[str]]:
    """The rows of a table: a policy, the log's value with its rank, and those of each model.

    A model's value is the mean over its logs. The last row has Kendall's tau of each of its logs, as the mean
    and, in brackets, the least.
    """
    unit = MEASURES[measure][1]
    columns, taus = [log[measure]], [""]
    for copies in models.values():
        values = [copy[measure] for copy in copies]
        columns.append([sum(each) / len(each) for each in zip(*values, strict=True)])
        alike = [kendalls_tau(log[measure], each) for each in values]
        taus.append(f"{sum(alike) / len(alike):.2f} ({min(alike):.2f})")
    cells = [
        [f"{value / unit:.2f} ({sorted(column).index(value) + 1})" for value in column] for column in columns
    ]
    rows = [[name, *(column[place] for column in cells)] for place, name in enumerate(POLICIES)]
    return [*rows, ["Kendall's tau", *taus]]


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
