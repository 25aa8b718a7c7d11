"""How long the runs of a plan will take, judged by those that are done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import Struct

from batsched_py.campaign.run import RUNS, Manifest, Run
from batsched_py.errors import InputError

#: What runs have in common that are expected to take equally long, from the best guess to the last.
_ALIKE = (
    ("log", "platform", "scheduler", "allocator", "users", "load"),
    ("log", "scheduler", "users"),
    ("log",),
    ("scheduler", "users"),
    (),
)


class Estimate(Struct, frozen=True):
    """How many runs there are, and how long those take that are not done."""

    wanted: int
    done: int
    """Those of which there is a folder; whether they are stale is not looked at."""
    seconds: float
    """What the others take, one after another; 0 if nothing is known of them."""


def estimated(runs: Sequence[Run], folder: Path) -> Estimate:
    """The runs of a plan whose results are in a folder."""
    left, times = [], defaultdict[tuple[str, ...], list[float]](list)
    for run in runs:
        try:
            seconds = sum(Manifest.read(folder / RUNS / run.name).seconds.values())
        except InputError:
            left.append(run)
            continue
        for key in _keys(run.axes):
            times[key].append(seconds)
    guesses = (next((fmean(times[key]) for key in _keys(run.axes) if key in times), 0.0) for run in left)
    return Estimate(len(runs), len(runs) - len(left), sum(guesses))


def _keys(axes: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for names in _ALIKE:
        yield tuple(f"{name}={axes.get(name, '')}" for name in names)
