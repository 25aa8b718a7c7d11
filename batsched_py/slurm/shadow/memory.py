"""What a shadow keeps in a file: the jobs that it knows, its forecasts, and how good they were."""

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from msgspec import Struct

from batsched_py.slurm.forecast.intervals import Stretch
from batsched_py.slurm.forecast.live import OVER
from batsched_py.workload.swf.log import DAY, Floats

#: A job's start is forecast again for the record after so many seconds.
AGAIN = 3600.0

#: Forecasts of so many days tell how wide intervals must be.
LEARNED = 30 * DAY

_TABLES = """
create table if not exists jobs (id text primary key, state text not null, started real, seen real not null);
create table if not exists forecasts (job text, asked real, early real, median real, late real,
    by_limits real, by_plan real, primary key (job, asked));
create table if not exists intervals (job text, asked real, early real, late real, primary key (job, asked));
"""


class Foreseen(Struct, frozen=True, kw_only=True):
    """A forecast of one start; moments are in Unix time."""

    early: float | None
    """As it was drawn."""
    median: float | None
    late: float | None
    by_limits: float | None
    by_plan: float | None
    """What Slurm itself says (``StartTime``)."""


class Kept(Struct, frozen=True, kw_only=True):
    """How good the forecasts were of jobs that have started since; errors are in seconds."""

    forecasts: int
    covered: float | None
    """The share of starts in their 80 % intervals."""
    covered_as_drawn: float | None
    """The same without what intervals were stretched by."""
    median_error: float | None
    median_error_by_limits: float | None
    median_error_by_plan: float | None


class Memory:
    """A file that outlives both the shadow and the controller."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path)
        self._file.executescript(_TABLES)

    def close(self) -> None:
        """Leave the file as it is."""
        self._file.close()

    def open_jobs(self) -> set[str]:
        """The jobs that are not over, as far as is known."""
        rows = self._file.execute("select id, state from jobs").fetchall()
        return {name for name, state in rows if state not in OVER and state != GONE}

    def note(self, now: float, states: Mapping[str, str], started: Mapping[str, float]) -> None:
        """What is known of jobs from now on."""
        with self._file:
            self._file.executemany(
                "insert into jobs values (?, ?, ?, ?) on conflict (id) do update set state = excluded.state, "
                "started = coalesce(excluded.started, started), seen = excluded.seen",
                [(name, state, started.get(name), now) for name, state in states.items()],
            )

    def foresee(
        self, now: float, found: Mapping[str, Foreseen], intervals: Mapping[str, tuple[float, float]]
    ) -> None:
        """Keep forecasts of jobs that have none of the last hour, with the intervals that were shown."""
        last = dict(self._file.execute("select job, max(asked) from forecasts group by job").fetchall())
        new = [name for name in found if now - last.get(name, -AGAIN) >= AGAIN]
        with self._file:
            self._file.executemany(
                "insert or ignore into intervals values (?, ?, ?, ?)",
                [(name, now, *intervals[name]) for name in new if name in intervals],
            )
            self._file.executemany(
                "insert or ignore into forecasts values (?, ?, ?, ?, ?, ?, ?)",
                [
                    (name, now, each.early, each.median, each.late, each.by_limits, each.by_plan)
                    for name, each in ((name, found[name]) for name in new)
                ],
            )

    def stretch(self, now: float) -> Stretch:
        """What intervals needed whose jobs have started by now, or wait; those of one hour are one moment."""
        rows = self._file.execute(
            "select asked, coalesce(started, 9e999), early, median, late "
            "from forecasts join jobs on id = job where median is not null "
            "and (asked <= started and started <= ? or started is null and state = 'PENDING') "
            "and asked > ? order by asked",
            (now, now - LEARNED),
        ).fetchall()
        stretch = Stretch()
        for _, alike in groupby(rows, key=lambda row: row[0] // AGAIN):
            asked, *moments = np.array(list(alike), dtype=np.float64).T
            stretch.intervals(float(asked[-1]), *(each - asked for each in moments))
        return stretch

    def counts(self) -> dict[str, int]:
        """How many jobs there are of each state."""
        return dict(
            self._file.execute("select state, count(*) from jobs group by state order by state").fetchall()
        )

    def kept(self) -> Kept:
        """The score so far."""
        rows = self._file.execute(
            "select started, f.early, median, f.late, by_limits, by_plan, i.early, i.late "
            "from forecasts as f join jobs on id = f.job "
            "left join intervals as i on i.job = f.job and i.asked = f.asked "
            "where started is not null and f.asked <= started"
        ).fetchall()
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 8)  # what is not known becomes nan
        started, early, median, late, by_limits, by_plan, shown_early, shown_late = table.T
        return Kept(
            forecasts=len(rows),
            covered=_covered(started, shown_early, shown_late),
            covered_as_drawn=_covered(started, early, late),
            median_error=_median(np.abs(median - started)),
            median_error_by_limits=_median(np.abs(by_limits - started)),
            median_error_by_plan=_median(np.abs(by_plan - started)),
        )


#: The state of a job of which nobody knows any more.
GONE = "UNKNOWN"


def _covered(started: Floats, early: Floats, late: Floats) -> float | None:
    """The share of starts in those intervals that are known, to the second."""
    known = ~np.isnan(early)
    is_in = (started >= early - 1.0) & (started <= late + 1.0)
    return float(np.mean(is_in[known])) if known.any() else None


def _median(errors: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    known = np.asarray(errors)[~np.isnan(errors)]
    return float(np.median(known)) if len(known) else None
