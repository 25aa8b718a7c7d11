"""What tables and pages need to know of a run, and runs that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Literal, Protocol, TypeVar, get_args

from msgspec import Struct

from batsched_py.analysis.statistics import Estimate

if TYPE_CHECKING:
    import pandas as pd

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
