"""What forecasts are worth, by what became of the jobs that waited at earlier moments of the same queue.

The log and the jobs that are listed now tell who ran and waited then, and when they have started since. The
forecasts for these moments are made as those for now, with what was known then. Intervals for now are
stretched by what theirs would have needed (:mod:`.intervals`).
"""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from msgspec.structs import replace

from batsched_py.api.terminal import shown
from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.forecast.advice import Entrance
from batsched_py.slurm.forecast.forecast import (
    Forecast,
    Proof,
    Simulator,
    by_limits,
    start_of,
    starts_drawn,
    waits,
)
from batsched_py.slurm.forecast.intervals import Stretch
from batsched_py.slurm.forecast.likely import Likely, ahead
from batsched_py.slurm.forecast.queue_log import QueueLog
from batsched_py.slurm.reading import Findings
from batsched_py.slurm.sbatch import Submission
from batsched_py.workload.swf.log import Floats, Random

#: So many earlier moments are asked about.
EARLIER: Final = 10

#: Moments are asked about after this share of the jobs, which are there to learn from.
LEARNED: Final = 1 / 3


def moments_of(submits: Floats, until: Floats, count: int, random: Random) -> list[float]:
    """Moments at which jobs wait, drawn over all times at which some do, in their order; none if few wait."""
    if not len(submits):
        return []
    first = submits[int(len(submits) * LEARNED)]
    waits = np.flatnonzero((until > submits) & (submits >= first))
    edges = _union(submits[waits], until[waits])
    lengths = edges[:, 1] - edges[:, 0]
    if not len(edges) or lengths.sum() < count:
        return []
    places = np.sort(random.uniform(0.0, lengths.sum(), count))
    spans = np.searchsorted(np.cumsum(lengths), places)
    before = np.concatenate([[0.0], np.cumsum(lengths)])[spans]
    found: list[float] = np.round(edges[spans, 0] + places - before, 0).tolist()
    return [moment for moment in found if ((submits <= moment) & (until > moment)).any()]


def _union(begins: Floats, ends: Floats) -> Floats:
    """The times that are in one of some spans, which are in the order of their begins.

    >>> _union(np.array([0.0, 2.0, 9.0]), np.array([5.0, 3.0, 10.0])).tolist()
    [[0.0, 5.0], [9.0, 10.0]]
    """
    reached = np.maximum.accumulate(ends)
    new = np.concatenate([[True], begins[1:] > reached[:-1]]) if len(begins) else np.empty(0, dtype=bool)
    last = np.flatnonzero(np.concatenate([new[1:], [True]])) if len(begins) else np.empty(0, dtype=np.int64)
    return np.column_stack([begins[new], reached[last]])


def proven(queue: QueueLog, cluster: Cluster, repetitions: int) -> tuple[Stretch, Proof]:
    """What intervals for now are stretched by."""
    history, stretch = queue.history, Stretch()
    until = np.where(history.start <= queue.now, history.start, history.submit)
    moments = moments_of(history.submit, until, EARLIER, np.random.default_rng(0))
    tables: list[Floats] = []
    with shown("earlier moments", lambda: (len(tables), len(moments))):
        for moment in moments:
            tables.append(_asked(queue, cluster, moment, repetitions))
            stretch.intervals(moment, *tables[-1].T)
    stretch.intervals(queue.now, *np.empty((4, 0)))
    table = np.concatenate([np.empty((0, 4)), *tables])
    ends = np.concatenate([[], *(np.full(len(each), at) for at, each in zip(moments, tables, strict=True))])
    start, early, _, late = table[ends + table[:, 0] <= queue.now].T
    inside = (early - 1.0 <= start) & (start <= late + 1.0)
    return stretch, Proof(
        moments=len(moments),
        forecasts=stretch.starts,
        covered_as_drawn=float(inside.mean()) if len(inside) else None,
        early=-stretch.early,
        late=stretch.late,
        is_enough=stretch.is_proven,
    )


def _asked(queue: QueueLog, cluster: Cluster, moment: float, repetitions: int) -> Floats:
    """The forecasts for a moment: of each job that waited its start, early, median and late, from then on."""
    then = _cluster_at(queue, cluster, moment)
    present = _with_priorities(queue.at(moment), then, moment)
    jobs = [job for _, job in present]
    likely = Likely(queue, moment, [(queue.history.kind(number), job) for number, job in present])
    with TemporaryDirectory(prefix="forecast-") as room:
        simulator = Simulator(then, moment, Path(room), Findings())
        limited = simulator.starts(jobs, by_limits)
        length = ahead(waits(jobs, limited))
        drawn = list(starts_drawn(simulator, jobs, likely, repetitions, length, True))
    rows = []
    for number, job in present:
        if not job.runs and (job.eligible or 0.0) <= moment:
            start, real = start_of(job.id, limited, *drawn), float(queue.history.start[number])
            if start.median is not None and (real < inf or queue.history.end[number] == inf):
                rows.append((real - moment, start.early, start.median, start.late))
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def _cluster_at(queue: QueueLog, cluster: Cluster, moment: float) -> Cluster:
    """The cluster as it was at a moment, as far as is known."""
    configuration = cluster.configuration
    if configuration.priority.weight_fairshare:
        configuration = queue.with_usage(configuration, moment)
    later = queue.now - moment
    reservations = tuple(
        replace(each, start=max(each.start + later, 0.0), end=each.end + later)
        for each in configuration.reservations
    )
    return Cluster(replace(configuration, reservations=reservations), cluster.machine, cluster.licences)


def _with_priorities(
    present: Sequence[tuple[int, Submission]], cluster: Cluster, moment: float
) -> list[tuple[int, Submission]]:
    """The jobs that may start, with the priorities that they had, as the configuration tells."""
    entrance, found = Entrance(cluster, moment), []
    is_basic = cluster.configuration.priority.type == "basic"
    for place, (number, job) in enumerate(present):
        if not job.runs:
            priority, never = entrance.of(job, aged=True)
            if never:
                continue
            priority = (1 << 30) - place if is_basic else max(priority, 1)
            job = replace(job, fields={**job.fields, "priority": priority})
        found.append((number, job))
    return found


def stretched(found: Forecast, stretch: Stretch, now: float) -> Forecast:
    """A forecast with intervals as long as earlier ones should have been, if enough is known of these."""
    spans = [(job.start.early, job.start.median, job.start.late) for job in found.jobs]
    table = np.array(spans, dtype=np.float64).reshape(len(spans), 3)  # what is not known becomes nan
    intervals = np.column_stack(stretch.intervals(now, np.full(len(spans), inf), *table.T))
    if not stretch.is_proven:
        return found
    jobs = [
        job
        if job.start.median is None
        else replace(job, start=replace(job.start, early=early, median=median, late=late))
        for job, (early, median, late) in zip(found.jobs, intervals.tolist(), strict=True)
    ]
    return replace(found, jobs=jobs)
