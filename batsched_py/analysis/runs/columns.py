"""What is known of the columns of tables: metrics, with the values that they can have, and how these look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isnan, log10
from statistics import median_high
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from batsched_py.analysis.runs import Estimate, Range

#: Which values of a metric are better.
Better = Literal["lower", "higher", "neither"]

#: Of these metrics more is better; of these neither is; of all others less is.
HIGHER_IS_BETTER = frozenset(
    {"utilization", "throughput", "nb_jobs_finished", "nb_jobs_success", "jobs_per_session", "jain_index"}
)
_DEEDS = ("nb_jobs_put_off", "nb_jobs_on_fewer_hosts", "nb_jobs_doing_less")
NEUTRAL = frozenset({"nb_jobs", *_DEEDS, "nb_sessions", "mean_session_length"})

#: How negative figures begin.
MINUS = "\N{MINUS SIGN}"

#: More than so many decimals are never shown.
MOST_DECIMALS = 4

#: In which units large figures are shown, by the unit in which they are measured.
_UNITS = {
    "s": (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0)),
    "J": (("GJ", 1e9), ("MJ", 1e6), ("kJ", 1e3), ("J", 1.0)),
}


class Column(Struct, frozen=True, omit_defaults=True):
    """What a table needs to know of a metric."""

    unit: str = ""
    better: Better = "lower"
    formula: str = ""
    """For readers, in one line."""
    source: str = ""
    """How a metric that is not ours is named, with its file."""
    possible: Range = Range()
    """The values that it can have, as far as that is known."""


#: What a control says about a run, which is about jobs of both; neither is a metric of one run.
OF_CONTROL: Mapping[str, Column] = MappingProxyType(
    {
        "control_lateness": Column(
            "s", "neither", "mean lateness of the same users on the machine of the log", possible=Range()
        ),
        "later_than_control": Column(
            "s",
            "neither",
            "mean over jobs: submission in the run - in the control",
            possible=Range(),
        ),
    }
)

#: What is known of metrics that are not ours, by their names.
Own = Mapping[str, Column]
NOTHING: Own = MappingProxyType({})


def column_of(metric: str, own: Own) -> Column:
    """What is known of a metric, ours or not."""
    from batsched_py.analysis.metrics import METRICS

    if metric in own or metric in OF_CONTROL:
        return own[metric] if metric in own else OF_CONTROL[metric]
    better: Better = "neither" if metric in NEUTRAL else "higher" if metric in HIGHER_IS_BETTER else "lower"
    found = next((each for each in METRICS if each.name == metric), None)
    possible = Range(0.0)
    if "lateness" in metric:
        possible = Range()
    elif metric in ("utilization", "goodput"):
        possible = Range(0.0, 1.0)
    elif metric.endswith(("slowdown", "stretch")):
        possible = Range(1.0)
    if found is None:
        return Column(better=better, possible=possible)
    return Column(found.unit, better, found.formula, possible=possible)


class ColumnFormat(Struct, frozen=True):
    """How the figures of a column are written."""

    unit: str
    scale: float
    """What figures are divided by to be in this unit."""
    decimals: int

    @classmethod
    def of(cls, unit: str, estimates: Sequence[Estimate]) -> ColumnFormat:
        """What suits estimates in a unit.

        There are so many decimals that the largest value has four digits and the smallest three, within
        reason.
        """
        sizes = [abs(estimate.mean) for estimate in estimates if estimate.mean and not isnan(estimate.mean)]
        scale = 1.0
        if unit in _UNITS and sizes:
            units = _UNITS[unit]
            unit, scale = next((each for each in units if median_high(sizes) >= each[1]), units[-1])
        shown, decimals = [size / scale for size in sizes], 0
        is_exact = not any(estimate.half_width for estimate in estimates)
        if shown and not (is_exact and all(size.is_integer() for size in shown)):
            largest, smallest = (floor(log10(size)) for size in (max(shown), min(shown)))
            decimals = min(max(3 - largest, 2 - smallest, 0), MOST_DECIMALS)
        return cls(unit, scale, decimals)

    def number(self, value: float) -> str:
        """A figure of the column; what is shown as 0 has no sign.

        >>> ColumnFormat("", 1.0, 2).number(-0.001)
        '0.00'
        """
        return f"{value / self.scale:z.{self.decimals}f}".replace("-", MINUS)

    def text(self, estimate: Estimate) -> str:
        """A mean with its interval: half of its width where it is symmetric, else both of its ends."""
        mean = self.number(estimate.mean)
        if estimate.low is None or estimate.high is None:
            return mean
        if estimate.is_symmetric:
            return f"{mean} ± {self.number(estimate.high - estimate.mean)}"
        return f"{mean} [{self.number(estimate.low)}, {self.number(estimate.high)}]"
