"""Schedulers compared pair by pair: with the same seed they had the same population, jobs and luck."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isnan

from msgspec import Struct

from batsched_py.analysis.statistics import Paired
from batsched_py.campaign.store import FinishedRun
from batsched_py.campaign.tables import HIGHER_IS_BETTER, NEUTRAL, ColumnFormat


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


def compare(runs: Sequence[FinishedRun], metrics: Sequence[str]) -> Iterator[Comparison]:
    """Every two schedulers that were run with the same seeds, wherever one of them is better on average."""
    settings: dict[tuple[tuple[str, str], ...], dict[str, dict[str, FinishedRun]]] = {}
    for run in runs:
        if "seed" in run.axes:
            common = tuple(
                (axis, name) for axis, name in run.axes.items() if axis not in ("scheduler", "seed")
            )
            settings.setdefault(common, {}).setdefault(run.axes["scheduler"], {})[run.axes["seed"]] = run
    for common, schedulers in settings.items():
        for (one, mine), (two, its) in combinations(schedulers.items(), 2):
            seeds = [seed for seed in mine if seed in its]
            for metric in metrics:
                if metric not in NEUTRAL:
                    yield from _compare(dict(common), metric, (one, two), [(mine[s], its[s]) for s in seeds])


def _compare(
    where: dict[str, str], metric: str, names: tuple[str, str], runs: list[tuple[FinishedRun, FinishedRun]]
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
    lines = ["### Compared seed by seed", "", *(f"- {comparison}" for comparison in comparisons), ""]
    return "\n" + "\n".join(lines)
