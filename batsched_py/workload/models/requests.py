"""How long users say their jobs will run, given how long they do."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.swf.log import Floats, Integers

_BINS_PER_OCTAVE: Final = 2
_HOUR: Final = 3600.0


class Requests(Struct):
    """How often which time was requested, by classes of run time; -1 where none was."""

    classes: list[int]
    times: list[float]
    counts: list[int]


def fit_requests(run_times: Floats, requested: Floats) -> Requests:
    """Learn from the jobs of a log."""
    known = np.where(requested > 0, requested, -1.0)
    rows, counts = np.unique(np.stack([_classes(run_times), known]), axis=1, return_counts=True)
    return Requests(rows[0].astype(np.int64).tolist(), rows[1].tolist(), counts.tolist())


def draw_requests(requests: Requests, run_times: Floats, random: np.random.Generator) -> Floats:
    """A requested time for each run time: one of its class that is not below it, else whole hours."""
    drawn = np.empty(len(run_times))
    classes = _classes(run_times)
    known, times, counts = (
        np.array(column) for column in (requests.classes, requests.times, requests.counts)
    )
    seen = np.unique(known)
    for each in np.unique(classes).tolist():
        members = np.flatnonzero(classes == each)
        rows = known == seen[np.abs(seen - each).argmin()]
        drawn[members] = _at_least(times[rows], counts[rows], run_times[members], random)
    return drawn


def _at_least(times: Floats, counts: Integers, run_times: Floats, random: np.random.Generator) -> Floats:
    """For each run time one of the times not below it, or none at all, as often as they were seen."""
    unsaid = float(counts[times < 0].sum() / counts.sum())
    said, weights = times[times > 0], counts[times > 0]
    if not len(said):
        return np.full(len(run_times), -1.0)
    cumulated = np.concatenate([[0], np.cumsum(weights)])
    least = cumulated[np.searchsorted(said, run_times)]
    chosen = np.searchsorted(
        cumulated, least + random.random(len(run_times)) * (cumulated[-1] - least), side="right"
    )
    above = np.where(
        least < cumulated[-1], said[np.clip(chosen - 1, 0, len(said) - 1)], np.ceil(run_times / _HOUR) * _HOUR
    )
    return np.where(random.random(len(run_times)) < unsaid, -1.0, above)


def _classes(run_times: Floats) -> Integers:
    return np.floor(_BINS_PER_OCTAVE * np.log2(np.maximum(run_times, 1))).astype(np.int64)
