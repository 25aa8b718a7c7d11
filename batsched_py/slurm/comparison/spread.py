"""Several recordings of the same jobs beside several simulations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pandas as pd
from msgspec import Struct

from batsched_py.api.progress import shown
from batsched_py.slurm.comparison.comparison import Compared, compare
from batsched_py.slurm.comparison.phases import simulations


class Range(Struct, frozen=True):
    """The mean of some figures, and the least and the largest of them."""

    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Range:
        """That of one figure or more."""
        return cls(fmean(figures), min(figures), max(figures))


class Spread(Struct, frozen=True, kw_only=True):
    """How far simulations are from recordings, and recordings from each other; times are in seconds."""

    recordings: int
    simulations: int
    recorded_wait: Range
    """Of the mean waits of the recordings."""
    wait: Range
    """Of the mean waits of the simulations."""
    deviation: float | None
    """By how much the mean wait of the simulations differs from that of the recordings, as a share of it."""
    recordings_apart: Range | None
    """Of how far apart the starts of a job are in two recordings, in the mean over jobs."""
    starts_apart: Range
    """Of how far apart they are in a simulation and the recordings, in the mean over jobs and recordings."""


def spread(recorded: Sequence[pd.DataFrame], simulated: Sequence[pd.DataFrame]) -> Spread:
    """Compare each recording with each simulation and with each other recording."""
    runs = [[_compared(each, table) for each in recorded] for table in simulated]
    recorded_wait = Range.of([run.waits.mean_recorded for run in runs[0]])
    wait = Range.of([run[0].waits.mean_simulated for run in runs])
    apart = [_compared(one, other).start_difference for one, other in combinations(recorded, 2)]
    return Spread(
        recordings=len(recorded),
        simulations=len(simulated),
        recorded_wait=recorded_wait,
        wait=wait,
        deviation=wait.mean / recorded_wait.mean - 1 if recorded_wait.mean > 0 else None,
        recordings_apart=Range.of(apart) if apart else None,
        starts_apart=Range.of([fmean(each.start_difference for each in run) for run in runs]),
    )


def spread_of_phases(recorded: Sequence[pd.DataFrame], folder: Path, count: int) -> Spread:
    """Compare recordings with so many simulations of an imported scenario."""
    tables: list[pd.DataFrame] = []
    with TemporaryDirectory(prefix="phases-") as room, shown("simulations", lambda: (len(tables), count)):
        for table in simulations(folder, Path(room), count, recorded):
            tables.append(table)
    return spread(recorded, tables)


def _compared(recorded: pd.DataFrame, other: pd.DataFrame) -> Compared:
    return compare([recorded, other], ("the recording", "the other schedule")).all
