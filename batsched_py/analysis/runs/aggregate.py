"""Results over repetitions: means, intervals, and differences to a baseline in pairs.

What is repeated are parts of a log and seeds. Two runs are a pair when they differ on the axis of the
baseline only, so that both had the same jobs, the same machine and the same random numbers.

Rows may also be told apart by fewer axes than those on which runs differ. Then different experiments are
pooled, such as several loads. They are no repetitions of one experiment, so there are means, but neither
intervals nor tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import floor, isnan, log10
from pathlib import Path
from statistics import median_high
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, Literal, Protocol, TypeVar, get_args

from msgspec import Struct

from batsched_py.analysis.runs import Estimate, Paired
from batsched_py.errors import InputError

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


class Baseline(Struct, frozen=True):
    """What others are compared with: a choice on one axis."""

    name: str
    axis: str = "scheduler"

    @classmethod
    def parse(cls, text: str) -> Baseline | None:
        """A scheduler, or ``AXIS=NAME``; nothing if nothing is said.

        >>> Baseline.parse("easy"), Baseline.parse("users=rigid")
        (Baseline(name='easy', axis='scheduler'), Baseline(name='rigid', axis='users'))
        """
        axis, equals, name = text.partition("=")
        return cls(name, axis) if equals else cls(text) if text else None

    def is_of(self, run: MeasuredRun) -> bool:
        """Whether a run makes this choice."""
        return run.axes.get(self.axis) == self.name


class Measured(Struct, frozen=True):
    """A metric over the runs of one group."""

    estimate: Estimate
    count: int
    """How many of them have it."""
    nb_pairs: int = 0
    """How many of them make a pair with a run of the baseline."""
    difference: Estimate | None = None
    """To the baseline, if there are two pairs or more."""
    paired: Paired | None = None
    """The test of this difference, unless different experiments are pooled."""
    relative: float | None = None
    """The mean difference as a part of the baseline's mean."""


class Aggregate(Struct, frozen=True):
    """The results of a campaign over its repetitions."""

    by: list[str]
    """The axes that tell rows apart."""
    metrics: list[str]
    baseline: Baseline | None
    rows: list[tuple[Group[MeasuredRun], dict[str, Measured]]]
    """Runs that make the same choices, with what is measured of them by metric."""
    pooled: dict[str, list[str]]
    """The axes on which runs of one row differ although they are no repetitions, with the choices there."""
    own: Own
    """What is known of metrics that are not ours."""

    def frame(self) -> pd.DataFrame:
        """A row for each combination and metric: what is known of both, as numbers.

        ``low`` and ``high`` are the ends of the 95 % confidence interval of a mean; ``p_value`` is that of
        Student's t-test for pairs, two-sided; ``effect_size`` is Cohen's d of pairs.
        """
        import pandas as pd

        records = [
            {**group.axes, "metric": metric, **_figures(found)}
            for group, measured in self.rows
            for metric, found in measured.items()
        ]
        return pd.DataFrame(records)


def _figures(measured: Measured) -> dict[str, float | int | None]:
    paired = measured.paired
    figures: dict[str, float | int | None] = {"count": measured.count, **_interval("", measured.estimate)}
    return figures | {
        "pairs": measured.nb_pairs,
        **_interval("difference_", measured.difference or Estimate(float("nan"))),
        "relative_difference": measured.relative,
        "p_value": None if paired is None else paired.p_value,
        "effect_size": None if paired is None else paired.effect_size,
    }


def _interval(prefix: str, estimate: Estimate) -> dict[str, float | None]:
    width = estimate.half_width
    return {
        f"{prefix}mean": estimate.mean,
        f"{prefix}low": None if width is None else estimate.mean - width,
        f"{prefix}high": None if width is None else estimate.mean + width,
    }


def aggregate(
    runs: Sequence[MeasuredRun],
    metrics: Sequence[str],
    by: Sequence[str] = (),
    baseline: Baseline | None = None,
    own: Own = NOTHING,
) -> Aggregate:
    """The means of some metrics over all runs that make the same choice on the axes ``by``.

    Unless they are given, these are the axes on which runs differ and that are no repetitions. If they leave
    out such an axis, there are no intervals and no tests.
    """
    axes = list(by) or varying_axes(runs)
    known = list(dict.fromkeys(axis for run in runs for axis in run.axes))
    for axis in [*axes, *([] if baseline is None else [baseline.axis])]:
        if axis not in known:
            raise InputError(f"the runs have no axis {axis!r}; they have {', '.join(known)}")
    if baseline is not None:
        if baseline.axis not in axes:
            raise InputError(
                f"rows must be told apart by the {baseline.axis}, to be compared with {baseline.name}"
            )
        if not any(baseline.is_of(run) for run in runs):
            raise InputError(f"no run has the {baseline.axis} {baseline.name!r}, to compare others with")
    partners = {} if baseline is None else _partners(runs, baseline)
    shown = known_metrics(metrics, runs)
    groups = grouped(runs, lambda run: tuple((axis, run.axes.get(axis, "")) for axis in axes))
    pooled = _pooled(groups, axes)
    rows = [
        (group, {name: _measured(name, group, partners, bool(pooled)) for name in shown}) for group in groups
    ]
    return Aggregate(axes, shown, baseline, rows, pooled, own)


def varying_axes(runs: Sequence[MeasuredRun]) -> list[str]:
    """The axes on which runs differ and that are no repetitions; the scheduler, if there is none."""
    axes = dict.fromkeys(axis for run in runs for axis in run.axes if axis not in REPETITIONS)
    return [axis for axis in axes if len({run.axes.get(axis) for run in runs}) > 1] or ["scheduler"]


def _pooled(groups: Sequence[Group[MeasuredRun]], axes: Sequence[str]) -> dict[str, list[str]]:
    """The axes that are neither among ``axes`` nor repetitions, but on which runs of one group differ."""
    pooled: dict[str, dict[str, None]] = {}
    for group in groups:
        for axis in dict.fromkeys(axis for run in group.runs for axis in run.axes):
            choices = dict.fromkeys(run.axes.get(axis, "none") for run in group.runs)
            if axis not in (*axes, *REPETITIONS) and len(choices) > 1:
                pooled.setdefault(axis, {}).update(choices)
    return {axis: list(choices) for axis, choices in pooled.items()}


def _partners(runs: Sequence[MeasuredRun], baseline: Baseline) -> dict[str, MeasuredRun]:
    """For each run, by its name, the run of the baseline that it makes a pair with.

    A baseline without chance has no seed: it is the partner of every seed.
    """
    axis = baseline.axis
    its = {place_without(run, axis): run for run in runs if baseline.is_of(run)}
    partners = {}
    for run in runs:
        if not baseline.is_of(run):
            found = its.get(place_without(run, axis)) or its.get(place_without(run, axis, "seed"))
            if found is not None:
                partners[run.name] = found
    return partners


def _measured(
    metric: str, group: Group[MeasuredRun], partners: dict[str, MeasuredRun], are_pooled: bool
) -> Measured:
    values = group.values(metric)
    estimate = Estimate.of(values)
    pairs = [
        (mine, its)
        for run in group.runs
        if run.name in partners
        and (mine := run.metrics.get(metric)) is not None
        and (its := partners[run.name].metrics.get(metric)) is not None
    ]
    if are_pooled:
        estimate = Estimate(estimate.mean)
    if len(pairs) < 2:
        return Measured(estimate, len(values), len(pairs))
    ours, theirs = zip(*pairs, strict=True)
    paired, mean = Paired.of(ours, theirs), sum(theirs) / len(theirs)
    difference = paired.difference
    return Measured(
        estimate,
        len(values),
        len(pairs),
        Estimate(difference.mean) if are_pooled else difference,
        None if are_pooled else paired,
        difference.mean / mean if mean else None,
    )


class Comparison(Struct, frozen=True):
    """Two schedulers or other choices, and by how much the better one is better in a metric."""

    where: dict[str, str]
    """What both have in common: log, platform, users."""
    metric: str
    unit: str
    better: str
    worse: str
    paired: Paired
    """The better one less the worse one."""

    def __str__(self) -> str:
        form = ColumnFormat.of(self.unit, [self.paired.difference])
        difference = self.paired.difference
        amount = f"{abs(difference.mean) / form.scale:.3g} ± {(difference.half_width or 0) / form.scale:.2g}"
        common, amount = ", ".join(self.where.values()), f"{amount} {form.unit}".rstrip()
        return (
            f"{common}: {self.better} is better than {self.worse} in {self.metric} by {amount}, "
            f"with {self.paired.confidence:.1%} confidence ({self.paired.nb_pairs} pairs)."
        )


def compare(
    runs: Sequence[MeasuredRun], metrics: Sequence[str], baseline: str = "", own: Own = NOTHING
) -> Iterator[Comparison]:
    """Every two schedulers that had the same repetitions, wherever one of them is better on average.

    With a ``baseline``, as a plan names it, only others are compared with that choice, on its axis.
    """
    chosen = Baseline.parse(baseline) or Baseline("")
    settings: dict[Place, dict[str, dict[Place, MeasuredRun]]] = {}
    for run in runs:
        repetition = tuple((axis, name) for axis, name in run.axes.items() if axis in REPETITIONS)
        common = place_without(run, chosen.axis, *REPETITIONS)
        if repetition:
            choice = run.axes.get(chosen.axis, "")
            settings.setdefault(common, {}).setdefault(choice, {})[repetition] = run
    for common, choices in settings.items():
        for (one, mine), (two, its) in combinations(choices.items(), 2):
            if chosen.name in ("", one, two):
                pairs = [(mine[place], its[place]) for place in mine if place in its]
                for metric in metrics:
                    yield from _compare(dict(common), metric, column_of(metric, own), (one, two), pairs)


def _compare(
    where: dict[str, str],
    metric: str,
    column: Column,
    names: tuple[str, str],
    runs: list[tuple[MeasuredRun, MeasuredRun]],
) -> Iterator[Comparison]:
    values = [(one.metrics.get(metric), two.metrics.get(metric)) for one, two in runs]
    pairs = [(one, two) for one, two in values if one is not None and two is not None]
    if len(pairs) < 2 or column.better == "neither":
        return
    first, second = zip(*pairs, strict=True)
    paired = Paired.of(first, second)
    mean = paired.difference.mean
    if not mean or isnan(mean):
        return
    if (mean > 0) != (column.better == "higher"):
        names, paired = (names[1], names[0]), Paired.of(second, first)
    yield Comparison(where, metric, column.unit, *names, paired)


def comparisons_markdown(comparisons: Sequence[Comparison]) -> str:
    """The comparisons in Markdown, if there are any."""
    if not comparisons:
        return ""
    lines = ["### Compared in pairs", "", *(f"- {comparison}" for comparison in comparisons), ""]
    return "\n" + "\n".join(lines)
