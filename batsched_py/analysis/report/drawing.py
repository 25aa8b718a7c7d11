"""What the charts show of many runs, made in this process or in several."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

from batsched_py.analysis.report.figures import curves
from batsched_py.analysis.report.gantt import gantt
from batsched_py.analysis.report.links import most_loaded
from batsched_py.analysis.report.series import Subject

#: Reads a run; None if there is nothing to draw.
Read = Callable[[], Subject | None]

#: Makes what the charts show of each run, in order, with at most so many rectangles in its Gantt chart.
DrawAll = Callable[[Sequence[Read], int | None], Iterable[dict[str, Any]]]

#: At most so many successive runs are read by one process, which keeps their log in memory.
NEIGHBOURS = 8


@contextmanager
def drawing(workers: int) -> Iterator[DrawAll]:
    """A function that makes what the charts show, in so many processes."""
    if workers < 2:
        yield lambda reads, most: map(partial(_drawn, most), reads)
        return
    pool = ProcessPoolExecutor(workers, get_context("forkserver"), _leave_interrupts_to_the_parent)
    try:
        yield lambda reads, most: pool.map(
            partial(_drawn, most), reads, chunksize=together(len(reads), workers)
        )
    finally:
        pool.shutdown(cancel_futures=True)


def together(runs: int, workers: int) -> int:
    """How many successive runs one process reads, so that all have some, and some are ready soon.

    >>> together(4, 2), together(24, 2), together(1000, 2)
    (1, 3, 8)
    """
    return min(NEIGHBOURS, max(1, runs // (4 * workers)))


def _drawn(most_rectangles: int | None, read: Read) -> dict[str, Any]:
    """What the charts show of a run."""
    subject = read()
    if subject is None:
        return {"curves": {}, "gantt": None, "links": []}
    chart = None if most_rectangles is None else gantt(subject.run, most_rectangles)
    return {"curves": curves(subject), "gantt": chart, "links": most_loaded(subject.run)}


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
