"""How users reacted, according to the notes at their jobs.

The notes are those of the column ``metadata``; ``docs/users.md`` describes them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from batsched_py.analysis.schedule import started

#: How long after a window jobs that were put off may come back, in seconds.
AFTERMATH = 86400.0


def noted(schedule: pd.DataFrame, key: str) -> pd.Series[str]:
    """The value of a key in the note of each job, if it is there."""
    values: pd.Series[str] = schedule["metadata"].str.extract(rf"(?:^| ){key}=(\S+)", expand=False).dropna()
    return values


def jobs_with_note(schedule: pd.DataFrame, key: str) -> pd.DataFrame | None:
    """The jobs with a note that has this key, if there are some."""
    jobs = schedule.loc[noted(schedule, key).index]
    return None if jobs.empty else jobs


def nb_abandoned(schedule: pd.DataFrame) -> int:
    """How many jobs users who left for good never submitted, or withdrew while they waited."""
    never = noted(schedule, "abandoned").astype(int).sum()
    return int(never) + len(noted(schedule, "withdrawn"))


def joules_around_windows(schedule: pd.DataFrame) -> tuple[float, float] | None:
    """The energy of jobs inside the windows of sober users, and in the day after each, outside all windows.

    A job draws constant power while it runs. None if there are no windows or energy was not measured.
    """
    windows = noted(schedule, "window").str.split(":", expand=True)
    jobs = started(schedule)
    jobs = jobs[jobs["consumed_energy"] >= 0]
    if windows.empty or jobs.empty:
        return None
    bounds = np.unique(windows.to_numpy(float), axis=0)
    starts, ends = jobs["starting_time"].to_numpy(), jobs["finish_time"].to_numpy()
    power = jobs["consumed_energy"].to_numpy() / np.maximum(ends - starts, 1e-9)
    inside = after = 0.0
    for place, (low, high) in enumerate(bounds):
        following = bounds[place + 1][0] if place + 1 < len(bounds) else np.inf
        inside += _drawn(power, starts, ends, low, high)
        after += _drawn(power, starts, ends, high, min(high + AFTERMATH, following))
    return inside, after


def _drawn(power: np.ndarray, starts: np.ndarray, ends: np.ndarray, low: float, high: float) -> float:
    return float(power @ np.maximum(np.minimum(ends, high) - np.maximum(starts, low), 0.0))
