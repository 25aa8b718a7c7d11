"""Schedulers, or other choices, compared in pairs of runs that have part, seed and all else in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isnan

from msgspec import Struct

from batsched_py.analysis.runs.aggregate import Baseline
from batsched_py.analysis.runs.columns import NOTHING, Column, ColumnFormat, Own, column_of
from batsched_py.analysis.runs.measured import REPETITIONS, MeasuredRun, Place, place_without
from batsched_py.analysis.statistics import Paired


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
    runs: Sequence[MeasuredRun],
    metrics: Sequence[str],
    baseline: str = "",
    own: Own = NOTHING,
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
