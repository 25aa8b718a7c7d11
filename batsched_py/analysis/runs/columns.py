"""Metrics as the columns of tables: in which unit, with how many digits, and which value is the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor, isnan, log10
from pathlib import Path
from statistics import median_high
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, Literal, Protocol, TypeVar, get_args

from msgspec import Struct

from batsched_py.analysis.statistics import Estimate

if TYPE_CHECKING:
    import pandas as pd


#: Which values of a metric are better.
Better = Literal["lower", "higher", "neither"]

#: Of these metrics more is better; of these neither is; of all others less is.
HIGHER_IS_BETTER = frozenset(
    {"utilization", "throughput", "nb_jobs_finished", "nb_jobs_success", "jobs_per_session"}
)
NEUTRAL = frozenset(
    {
        "nb_jobs",
        "nb_jobs_put_off",
        "nb_jobs_on_fewer_hosts",
        "nb_jobs_doing_less",
        "nb_sessions",
        "mean_session_length",
    }
)

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


#: What is known of metrics that are not ours, by their names.
Own = Mapping[str, Column]
NOTHING: Own = MappingProxyType({})


def column_of(metric: str, own: Own) -> Column:
    """What is known of a metric, ours or not."""
    from batsched_py.analysis.metrics import METRICS

    if metric in own:
        return own[metric]
    better: Better = "neither" if metric in NEUTRAL else "higher" if metric in HIGHER_IS_BETTER else "lower"
    found = next((each for each in METRICS if each.name == metric), None)
    return Column(better=better) if found is None else Column(found.unit, better, found.formula)


class ColumnFormat(Struct, frozen=True):
    """How the figures of a column are written."""

    unit: str
    scale: float
    """What figures are divided by to be in this unit."""
    decimals: int

    @classmethod
    def of(cls, unit: str, estimates: Sequence[Estimate]) -> ColumnFormat:
        """What suits estimates in a unit."""
        sizes = [abs(estimate.mean) for estimate in estimates if estimate.mean and not isnan(estimate.mean)]
        scale = 1.0
        if unit in _UNITS and sizes:
            units = _UNITS[unit]
            unit, scale = next((each for each in units if median_high(sizes) >= each[1]), units[-1])
        exact = not any(estimate.half_width for estimate in estimates)
        return cls(unit, scale, _decimals([size / scale for size in sizes], exact))

    def number(self, value: float) -> str:
        """A figure of the column; what is shown as 0 has no sign.

        >>> ColumnFormat("", 1.0, 2).number(-0.001)
        '0.00'
        """
        return f"{value / self.scale:z.{self.decimals}f}".replace("-", MINUS)


def _decimals(sizes: Sequence[float], exact: bool) -> int:
    """So many that the largest value has four digits and the smallest three, within reason."""
    if not sizes or (exact and all(size.is_integer() for size in sizes)):
        return 0
    largest, smallest = (floor(log10(choose(sizes))) for choose in (max, min))
    return min(max(3 - largest, 2 - smallest, 0), MOST_DECIMALS)


#: The axes on which an experiment is repeated: of its results, the mean is of interest.
REPETITIONS = ("part", "seed")

#: How the jobs of a run are told apart where each group of them has a row of its own.
Grouping = Literal["class", "partition", "account", "user"]
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)

#: The choice on each axis.
Place = tuple[tuple[str, str], ...]


class MeasuredRun(Protocol):
    """A finished run: its place in the plan, its metrics and its files."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def axes(self) -> Mapping[str, str]:
        """The choice on each axis of the plan."""

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """By name; none where a metric makes no sense."""

    @property
    def files(self) -> Mapping[str, Path]:
        """The files that it has left, by the names that links to them have."""

    @property
    def remark(self) -> str:
        """How to make it again, or why it failed."""


R = TypeVar("R", bound=MeasuredRun)


class Group(Struct, Generic[R], frozen=True):
    """Runs that make the same choices on some axes."""

    axes: dict[str, str]
    runs: list[R]

    def values(self, metric: str) -> list[float]:
        """The values of a metric, of the runs that have it."""
        return [value for run in self.runs if (value := run.metrics.get(metric)) is not None]

    def estimate(self, metric: str) -> Estimate:
        """The mean of a metric over the runs that have it."""
        return Estimate.of(self.values(metric))


def grouped(runs: Iterable[R], place: Callable[[R], Place]) -> list[Group[R]]:
    """The runs, those of the same place together."""
    groups: dict[Place, Group[R]] = {}
    for run in runs:
        axes = place(run)
        groups.setdefault(axes, Group(dict(axes), [])).runs.append(run)
    return list(groups.values())


def repetitions(runs: Iterable[R]) -> list[Group[R]]:
    """The runs, those together that differ in part or seed only."""
    return grouped(runs, lambda run: place_without(run, *REPETITIONS))


def place_without(run: MeasuredRun, *axes: str) -> Place:
    """The choices of a run on all other axes."""
    return tuple((axis, name) for axis, name in run.axes.items() if axis not in axes)


def known_metrics(names: Iterable[str], runs: Iterable[MeasuredRun]) -> list[str]:
    """Those of some metrics that at least one run has."""
    known = {name for run in runs for name in run.metrics}
    return [name for name in names if name in known]


def frame_of(runs: Sequence[MeasuredRun]) -> pd.DataFrame:
    """A row for each run: its name, the choice on each axis, and its metrics."""
    import pandas as pd

    axes = list(dict.fromkeys(axis for run in runs for axis in run.axes))
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics))
    rows = [
        [run.name, *(run.axes.get(axis) for axis in axes), *(run.metrics.get(name) for name in metrics)]
        for run in runs
    ]
    return pd.DataFrame(rows, columns=["run", *axes, *metrics]).astype(dict.fromkeys(metrics, float))
