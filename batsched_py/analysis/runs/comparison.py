"""Schedulers compared in pairs of runs: with the same part and seed both had the same jobs and users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isnan

from msgspec import Struct

from batsched_py.analysis.runs.measured import REPETITIONS, MeasuredRun, Place, place_without
from batsched_py.analysis.runs.tables import HIGHER_IS_BETTER, NEUTRAL, ColumnFormat
from batsched_py.analysis.statistics import Paired


class Comparison(Struct, frozen=True):
    """Two schedulers, and by how much the better one is better in a metric."""

    where: dict[str, str]
    """What both have in common: log, platform, users."""
    metric: str
    better: str
    worse: str
    paired: Paired
    """The better one less the worse one."""

    def __str__(self) -> str:
        form = ColumnFormat.of(self.metric, [self.paired.difference])
        difference = self.paired.difference
        amount = f"{abs(difference.mean) / form.scale:.3g} ± {(difference.half_width or 0) / form.scale:.2g}"
        common, amount = ", ".join(self.where.values()), f"{amount} {form.unit}".rstrip()
        return (
            f"{common}: {self.better} is better than {self.worse} in {self.metric} by {amount}, "
            f"with {self.paired.confidence:.1%} confidence ({self.paired.nb_pairs} pairs)."
        )


def compare(runs: Sequence[MeasuredRun], metrics: Sequence[str], baseline: str = "") -> Iterator[Comparison]:
    """Every two schedulers that had the same repetitions, wherever one of them is better on average.

    With a ``baseline``, only others are compared with that scheduler.
    """
    settings: dict[Place, dict[str, dict[Place, MeasuredRun]]] = {}
    for run in runs:
        repetition = tuple((axis, name) for axis, name in run.axes.items() if axis in REPETITIONS)
        common = place_without(run, "scheduler", *REPETITIONS)
        if repetition:
            settings.setdefault(common, {}).setdefault(run.axes["scheduler"], {})[repetition] = run
    for common, schedulers in settings.items():
        for (one, mine), (two, its) in combinations(schedulers.items(), 2):
            if baseline in ("", one, two):
                pairs = [(mine[place], its[place]) for place in mine if place in its]
                for metric in metrics:
                    if metric not in NEUTRAL:
                        yield from _compare(dict(common), metric, (one, two), pairs)


def _compare(
    where: dict[str, str], metric: str, names: tuple[str, str], runs: list[tuple[MeasuredRun, MeasuredRun]]
) -> Iterator[Comparison]:
    values = [(one.metrics.get(metric), two.metrics.get(metric)) for one, two in runs]
    pairs = [(one, two) for one, two in values if one is not None and two is not None]
    if len(pairs) < 2:
        return
    first, second = zip(*pairs, strict=True)
    paired = Paired.of(first, second)
    mean = paired.difference.mean
    if not mean or isnan(mean):
        return
    if (mean > 0) != (metric in HIGHER_IS_BETTER):
        names, paired = (names[1], names[0]), Paired.of(second, first)
    yield Comparison(where, metric, *names, paired)


def comparisons_markdown(comparisons: Sequence[Comparison]) -> str:
    """The comparisons in Markdown, if there are any."""
    if not comparisons:
        return ""
    lines = ["### Compared in pairs", "", *(f"- {comparison}" for comparison in comparisons), ""]
    return "\n" + "\n".join(lines)
