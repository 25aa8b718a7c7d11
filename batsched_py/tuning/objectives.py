"""What is to become better: a metric, of all jobs or of a group of them."""

from __future__ import annotations

from math import nan
from typing import Literal

from msgspec import Struct

from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.outcome import Outcome, groups_of
from batsched_py.analysis.runs.columns import column_of
from batsched_py.errors import InputError

#: The groups of jobs that are known of every simulation.
GROUPINGS: tuple[Literal["class", "user"], ...] = ("class", "user")


class Objective(Struct, frozen=True):
    """A metric, and the group of jobs it is of."""

    text: str
    """As the plan writes it."""
    metric: str
    unit: str
    sign: float
    """1 if less is better, otherwise -1."""
    positive: bool
    """Whether its values are above 0, so that ratios tell more than differences."""
    grouping: str = ""
    group: str = ""

    @classmethod
    def parse(cls, text: str) -> Objective:
        """What a plan says: ``METRIC``, or ``METRIC of class=NAME`` or ``user=NAME``.

        >>> Objective.parse("mean_waiting_time of class=short, wide").group
        'short, wide'
        """
        metric, _, which = (word.strip() for word in text.partition(" of "))
        grouping, _, group = which.partition("=")
        if metric not in {each.name for each in METRICS}:
            raise InputError(f"there is no metric {metric!r}; `batsched-py metrics --explain` lists them")
        if which and (grouping not in GROUPINGS or not group):
            raise InputError(f"{which!r} is no group of jobs; write class=NAME or user=NAME")
        column = column_of(metric, {})
        if column.better == "neither":
            raise InputError(f"neither more nor less of {metric} is better")
        sign = -1.0 if column.better == "higher" else 1.0
        return cls(text, metric, column.unit, sign, column.possible.least >= 0, grouping, group)

    def value(self, outcome: Outcome) -> float:
        """What it comes to."""
        found: Outcome | None = outcome
        if self.grouping == "class":
            found = groups_of(outcome, "class").get(self.group)
        elif self.grouping == "user":
            found = None if outcome.recorded is None else groups_of(outcome, "user").get(self.group)
        metric = next(each for each in METRICS if each.name == self.metric)
        if found is None:
            return nan
        if metric.needs is not None and getattr(found, metric.needs) is None:
            raise InputError(f"{self.metric} is not known of such a simulation")
        return float(metric.compute(found))
