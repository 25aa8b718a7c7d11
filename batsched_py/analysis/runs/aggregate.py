"""Results over repetitions: means, intervals, and differences to a baseline in pairs.

What is repeated are parts of a log and seeds. Two runs are a pair when they differ on the axis of the
baseline only, so that both had the same jobs, the same machine and the same random numbers.

Rows may also be told apart by fewer axes than those on which runs differ. Then different experiments are
pooled, such as several loads. They are no repetitions of one experiment, so there are means, but neither
intervals nor tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.analysis.runs.columns import (
    NOTHING,
    REPETITIONS,
    Column,
    ColumnFormat,
    Group,
    MeasuredRun,
    Own,
    Place,
    column_of,
    grouped,
    known_metrics,
    place_without,
)
from batsched_py.analysis.statistics import Estimate, Paired
from batsched_py.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


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
