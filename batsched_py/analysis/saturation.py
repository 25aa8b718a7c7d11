"""The load at which a machine no longer keeps up with a log, found by simulating the log at many loads."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis.schedule import started
from batsched_py.errors import InputError

#: The search goes no further from the recorded load than by this factor.
FARTHEST: Final = 64.0


class Trial(Struct, frozen=True, kw_only=True):
    """What a machine did at one load."""

    factor: float
    """How many times the recorded load it was."""
    offered: float
    """Submitted work over what the machine can do from the first to the last submission."""
    done: float
    """Work that was done by the last submission, over the same."""
    behind: float
    """The share of the work that waiting had kept from being done by the last submission."""
    mean_wait: float
    """In seconds."""


class Saturation(Struct, frozen=True, kw_only=True):
    """Between which loads a machine begins to fall behind."""

    kept_up: Trial
    """The highest load of the search at which it did not."""
    fell_behind: Trial
    """The lowest load of the search at which it did."""
    trials: list[Trial]
    """All of them, by load."""

    @property
    def capacity(self) -> float:
        """The most that was done at any load, as a share of what the machine can do."""
        return max(each.done for each in self.trials)


def trial(jobs: pd.DataFrame, hosts: int, factor: float) -> Trial:
    """What a schedule says about one load."""
    jobs = started(jobs)
    submit, start, run_time, size = (
        jobs[name].to_numpy(dtype=float)
        for name in ("submission_time", "starting_time", "execution_time", "requested_number_of_resources")
    )
    work = float((size * run_time).sum())
    span = float(submit.max() - submit.min()) if len(submit) else 0.0
    if not (work and span):
        raise InputError("a load needs jobs that run, submitted at two times or more")
    end = submit.max()
    done, could_be = (float((size * np.clip(end - since, 0, run_time)).sum()) for since in (start, submit))
    return Trial(
        factor=factor,
        offered=work / (hosts * span),
        done=done / (hosts * span),
        behind=(could_be - done) / work,
        mean_wait=float((start - submit).mean()),
    )


def saturation(try_load: Callable[[float], Trial], behind: float, within: float) -> Saturation:
    """Search for the load at which more than a share of the work is behind, up to a share of that load.

    A machine to which more work is offered than it can do at all does not keep up either. The load is doubled
    or halved until there is one on either side, and then divided again and again.
    """
    trials = {1.0: try_load(1.0)}

    def keeps_up(factor: float) -> bool:
        if factor not in trials:
            trials[factor] = try_load(factor)
        return trials[factor].behind <= behind and trials[factor].offered <= 1

    low = high = 1.0
    while keeps_up(high) and high < FARTHEST:
        low, high = high, 2 * high
    while not keeps_up(low) and low > 1 / FARTHEST:
        low, high = low / 2, low
    if keeps_up(high) or not keeps_up(low):
        word = "keeps up with" if keeps_up(high) else "falls behind at"
        raise InputError(f"the machine {word} {high if keeps_up(high) else low:g} times the load of the log")
    while high > low * (1 + within):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps_up(middle) else (low, middle)
    return Saturation(
        kept_up=trials[low], fell_behind=trials[high], trials=[trials[each] for each in sorted(trials)]
    )
