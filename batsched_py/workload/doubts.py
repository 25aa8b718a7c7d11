"""What makes no sense in a log, as when its units are others than were taken: figures, and what to check."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from batsched_py.workload.swf.log import SwfLog

#: With fewer jobs, shares and loads say little.
_ENOUGH: Final = 50

#: A larger share of estimates is hardly below, or the same as, the run times by chance.
_MANY_BELOW: Final = 0.2
_MANY_EQUAL: Final = 0.9

_YEAR: Final = 365.25 * 86400
_LONGEST_YEARS: Final = 20
_LARGEST_LOAD: Final = 3
_SMALLEST_LOAD: Final = 0.001


class Figures(Struct, frozen=True, kw_only=True):
    """What is looked at in a log."""

    jobs: int
    """Those that ran."""
    estimated: int
    """How many of them requested a time."""
    below: int
    """How many requested less than their run time."""
    equal: int
    """How many requested exactly their run time."""
    span: float
    """From the first submission to the last one."""
    lasts: float
    """From the first submission to the last end, or as long as jobs ran from their submissions on."""
    work: float
    """Processors times seconds."""
    machine: int | None
    """Its processors, if they are known."""
    larger: int = 0
    """How many jobs are larger than it."""


def figures_of(log: SwfLog) -> Figures:
    """Those of a log."""
    ran = ~log.never_started
    submit, run_time, requested, sizes = (
        column[ran] for column in (log.submit, log.run_time, log.requested_time, log.processors)
    )
    return Figures(
        jobs=len(submit),
        estimated=int((requested > 0).sum()),
        below=int(((requested > 0) & (requested < run_time)).sum()),
        equal=int(((requested > 0) & (requested == run_time)).sum()),
        span=float(submit.max() - submit.min()) if len(submit) else 0.0,
        lasts=float((submit + run_time).max() - submit.min()) if len(submit) else 0.0,
        work=float((sizes.clip(0) * run_time).sum()),
        machine=log.machine_size,
        larger=0 if log.machine_size is None else int((sizes > log.machine_size).sum()),
    )


def doubts(of: Figures) -> Iterator[str]:
    """One sentence for each figure that makes no sense."""
    if of.jobs and not of.work:
        yield f"all {of.jobs:,} jobs have run times of 0: check which column has the run times, and its unit"
    if of.span > _LONGEST_YEARS * _YEAR:
        yield f"submissions span {of.span / _YEAR:,.0f} years: check the unit of submit, and the first jobs"
    elif of.lasts > _LONGEST_YEARS * _YEAR:
        yield f"jobs end {of.lasts / _YEAR:,.0f} years after the first submission: check the unit of run_time"
    if of.larger:
        share = f"{of.larger:,} of {of.jobs:,} jobs"
        yield f"{share} are larger than the machine of {of.machine:,} processors: check sizes, and MaxProcs"
    if of.jobs < _ENOUGH:
        return
    if of.below > _MANY_BELOW * of.estimated:
        share = f"{of.below:,} of {of.estimated:,} requested times"
        yield f"{share} are below the run time: check their unit, as in requested_time:limit/min"
    if of.equal > _MANY_EQUAL * of.estimated:
        share = f"{of.equal:,} of {of.estimated:,} requested times"
        yield f"{share} equal the run time, so schedulers know the future: check the column of requested_time"
    if of.work and of.span and of.machine:
        load = of.work / (of.span * of.machine)
        if not _SMALLEST_LOAD <= load <= _LARGEST_LOAD:
            yield (
                f"the load is {load:.3g} on {of.machine:,} processors: "
                "check the units of submit and run_time, what a processor is, and the size of the machine"
            )


def warn_of_doubts(log: SwfLog) -> None:
    """Say what makes no sense in a log that was read."""
    for doubt in doubts(figures_of(log)):
        logging.getLogger(__name__).warning("%s: %s", log.path, doubt)
