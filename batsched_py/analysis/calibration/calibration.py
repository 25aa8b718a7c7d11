"""A log that was replayed as it was, compared with what its machine did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.analysis.calibration.causes import causes
from batsched_py.analysis.calibration.verdict import Verdict, verdict
from batsched_py.analysis.calibration.waits import Waits
from batsched_py.analysis.classes import CLASSES, class_numbers
from batsched_py.analysis.schedule import started
from batsched_py.workload.columns import group
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.swf.log import Floats, SwfLog
from batsched_py.workload.wall_clock import DAY, local_time, start_of

#: The ways in which jobs are grouped.
GROUPINGS = ("partition", "class", "month", "user")


class Calibration(Struct, frozen=True, kw_only=True):
    """Simulated beside recorded waits of a log's jobs."""

    log: str
    """The name of its file."""
    scheduler: str
    hosts: int
    jobs: int
    """In the log."""
    waits: Waits | None
    """Of all jobs that can be compared; none if there is none."""
    groups: dict[str, dict[str, Waits]]
    """The same by partition, class, month and user; the busiest partitions and users first."""
    utilization_recorded: float | None
    """The share of the machine that these jobs used, from the first submission to the last finish."""
    utilization_simulated: float | None
    causes: dict[str, int]
    """What may explain differences: how many jobs each concerns."""
    verdict: Verdict
    percentiles: list[tuple[float, float]]
    """Recorded and simulated waits, each in growing order, at every percent."""
    cells: list[tuple[int, int, int]]
    """How many jobs there are by recorded and simulated wait, each as a power of two of minutes."""

    def save(self, path: str | Path) -> None:
        """Write it as a page."""
        from batsched_py.analysis.calibration.page import write_calibration_page

        write_calibration_page(path, self)


def calibration(log: SwfLog, schedule: pd.DataFrame, hosts: int, scheduler: str) -> Calibration:
    """Compare a log with the schedule of its replay on so many hosts.

    Compared are the jobs that were executed in both, and whose recorded wait is known.
    """
    ran = started(schedule)
    simulated_waits = pd.Series(ran["waiting_time"].to_numpy(), index=ran["job_id"])
    waits = simulated_waits.reindex(log.job_number.astype(str)).to_numpy()
    compared = (log.wait >= 0) & ~np.isnan(waits) & ~log.never_started
    part, simulated = log.select(compared), waits[compared]
    overall = Waits.of(part.wait, simulated) if len(part) else None
    return Calibration(
        log=Path(log.path).name or "a log",
        scheduler=scheduler,
        hosts=hosts,
        jobs=len(log),
        waits=overall,
        groups={name: _grouped(part, simulated, name) for name in GROUPINGS},
        utilization_recorded=_utilization(part, part.wait, hosts) if overall else None,
        utilization_simulated=_utilization(part, simulated, hosts) if overall else None,
        causes=causes(log, hosts),
        verdict=verdict(overall),
        percentiles=percentiles_of(part.wait, simulated) if overall else [],
        cells=cells_of(part.wait, simulated),
    )


def _grouped(log: SwfLog, simulated: Floats, grouping: str) -> dict[str, Waits]:
    """The waits of the jobs of each group."""
    names, codes = np.unique(_labels(log, grouping), return_inverse=True)
    places = group(codes, len(names)) if len(names) else []
    found = {
        str(name): Waits.of(log.wait[chosen], simulated[chosen])
        for name, chosen in zip(names.tolist(), places, strict=True)
    }
    if grouping in ("class", "month"):
        return found
    return dict(sorted(found.items(), key=lambda item: -item[1].jobs))


def _labels(log: SwfLog, grouping: str) -> NDArray[Any]:
    if grouping == "class":
        return np.array(CLASSES)[class_numbers(log.run_time, log.processors)]
    if grouping == "month":
        if start_of(log) is None:
            numbers = ((log.submit - log.submit.min(initial=np.inf)) // (30 * DAY)).astype(np.int64) + 1
            return np.array([f"30 days, {number:02}" for number in numbers.tolist()], dtype=object)
        return local_time(log, log.submit).astype("datetime64[M]").astype(str)
    names = names_of(log, grouping).astype(object)
    return np.where(names == "", "unknown", names)


def _utilization(log: SwfLog, waits: Floats, hosts: int) -> float | None:
    starts = log.submit + waits
    length = float((starts + log.run_time).max() - log.submit.min())
    work = float(log.run_time @ np.maximum(log.processors, 0))
    return work / (hosts * length) if length > 0 else None


def percentiles_of(recorded: Floats, simulated: Floats) -> list[tuple[float, float]]:
    """Recorded and simulated waits, each in growing order, at every percent."""
    points = np.arange(101)
    both = (np.percentile(waits, points).tolist() for waits in (recorded, simulated))
    return list(zip(*both, strict=True))


def cells_of(recorded: Floats, simulated: Floats) -> list[tuple[int, int, int]]:
    """How many jobs there are by recorded and simulated wait, each as a power of two of minutes."""
    powers = [np.floor(np.log2(np.maximum(waits / 60, 0.5))).astype(int) for waits in (recorded, simulated)]
    cells, counts = np.unique(np.stack(powers), axis=1, return_counts=True)
    return [(one, two, count) for (one, two), count in zip(cells.T.tolist(), counts.tolist(), strict=True)]
