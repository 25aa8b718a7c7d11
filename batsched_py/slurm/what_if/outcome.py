"""Who gains and who loses by a change, over several reactions of users and phases of Slurm's clocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis.levels import mean_level
from batsched_py.analysis.statistics import Estimate
from batsched_py.errors import InputError
from batsched_py.slurm.comparison.comparison import GROUPINGS, STEPS, labels

#: A difference of mean waits that is surely below this many seconds is none.
SMALL = 1.0

Verdict = Literal["gains", "loses", "unclear", "the same"]


class Effect(Struct, frozen=True, kw_only=True):
    """What a change does to the waits of some jobs; times are in seconds."""

    jobs: float
    """How many run before and after the change, in the mean over repetitions; the others do not count."""
    no_more: float
    """How many run before the change and not after it."""
    new: float
    """How many run after the change and not before it."""
    before: float
    """The mean wait."""
    after: float
    difference: Estimate
    """After less before, in the mean over repetitions, with its interval."""

    @property
    def verdict(self) -> Verdict:
        """Whether these jobs gain, as far as the repetitions tell."""
        mean, half = self.difference.mean, self.difference.half_width
        if not self.jobs:
            return "loses" if self.no_more else "gains"
        if abs(mean) + (half or 0.0) < SMALL:
            return "the same"
        if half is not None and abs(mean) <= half:
            return "unclear"
        return "gains" if mean < 0 else "loses"


class Outcome(Struct, frozen=True, kw_only=True):
    """Both schedules, before and after a change."""

    changes: list[str]
    users: str
    seeds: list[int]
    """One repetition for each."""
    all: Effect
    groups: dict[str, dict[str, Effect]]
    """By class, partition, account and user; those who gain most come first."""
    utilization: tuple[float, float]
    """The mean share of the machine that is used until the last job ends, before and after."""
    edges: list[float]
    levels: tuple[list[float], list[float]]
    """How much is in use between these times, before and after, in the first repetition."""


Pair = tuple[pd.DataFrame, pd.DataFrame]


def outcome(pairs: Sequence[Pair], changes: list[str], users: str, seeds: list[int], cores: int) -> Outcome:
    """What comes of pairs of schedules, before and after; one pair a repetition."""
    first = pairs[0]
    for side, table in zip(("before", "after"), first, strict=True):
        if not len(table):
            raise InputError(f"no job runs {side} the change")
    end = max(float(table["end"].max()) for table in first)
    begin = min(float(table["submit"].min()) for table in first)
    edges = np.linspace(begin, max(end, begin + 1.0), STEPS + 1)
    before, after = (mean_level(table["start"], table["end"], table["size"], edges) for table in first)
    return Outcome(
        changes=changes,
        users=users,
        seeds=seeds,
        all=_effect(pairs, None),
        groups={grouping: _grouped(pairs, grouping) for grouping in GROUPINGS},
        utilization=(
            float(np.mean([_utilization(pair[0], cores) for pair in pairs])),
            float(np.mean([_utilization(pair[1], cores) for pair in pairs])),
        ),
        edges=edges.tolist(),
        levels=(before.tolist(), after.tolist()),
    )


def _grouped(pairs: Sequence[Pair], grouping: str) -> dict[str, Effect]:
    marked = [(_marked(before, grouping), _marked(after, grouping)) for before, after in pairs]
    names = {name for pair in marked for table in pair for name in table["group"].unique() if name}
    found = {str(name): _effect(marked, str(name)) for name in sorted(names)}
    return dict(sorted(found.items(), key=lambda item: (item[1].difference.mean, item[0])))


def _marked(jobs: pd.DataFrame, grouping: str) -> pd.DataFrame:
    return jobs.assign(group=labels(jobs, grouping))


def _effect(pairs: Sequence[Pair], group: str | None) -> Effect:
    """The effect on the jobs of a group; repetitions in which none of them run on both sides do not count."""
    means: list[tuple[float, float]] = []
    counts: list[tuple[int, int, int]] = []
    for pair in pairs:
        one, other = (table if group is None else table[table["group"] == group] for table in pair)
        both = one.index.intersection(other.index)
        counts.append((len(both), len(one) - len(both), len(other) - len(both)))
        if len(both):
            means.append((_mean_wait(one.loc[both]), _mean_wait(other.loc[both])))
    before, after = (float(np.mean([pair[side] for pair in means])) if means else 0.0 for side in (0, 1))
    jobs, no_more, new = np.mean(counts, axis=0).tolist()
    return Effect(
        jobs=jobs,
        no_more=no_more,
        new=new,
        before=before,
        after=after,
        difference=Estimate.of([after - before for before, after in means]) if means else Estimate(0.0),
    )


def _mean_wait(jobs: pd.DataFrame) -> float:
    return float((jobs["start"] - jobs["eligible"]).clip(lower=0).mean())


def _utilization(jobs: pd.DataFrame, cores: int) -> float:
    length = float(jobs["end"].max() - jobs["submit"].min())
    work = float(((jobs["end"] - jobs["start"]) * jobs["size"]).sum())
    return work / (cores * length) if length > 0 else 0.0
