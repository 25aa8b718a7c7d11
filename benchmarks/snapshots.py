"""How good are forecasts of a real queue, of which snapshots were saved while it went on?

Run it with ``python -m benchmarks.snapshots SLURM.CONF FOLDER LOG [ACCOUNTS ...]``. The folder has for each
moment ``TIME.jobs``, what ``scontrol show job`` printed then, ``TIME.sacct``, the log until then, and maybe
``TIME.sshare``, what ``sshare`` printed. LOG is the log of sacct when all was over, and ACCOUNTS are what
``sacctmgr`` printed. All dates are in UTC.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from batsched_py.errors import InputError
from batsched_py.slurm.forecast.forecast import Forecast, Question, answer
from batsched_py.slurm.forecast.intervals import Stretch
from batsched_py.workload.swf.log import Floats

#: So many draws are made of each forecast.
DRAWS: Final = 20

_PLANNED = re.compile(r"JobId=(\d+) .*?StartTime=(\S+)", re.DOTALL)


def moment(text: str) -> float:
    """A date as Slurm writes it, in Unix time; none if it is no date."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return np.nan


def starts_of(log: Path) -> dict[str, float]:
    """When each job of a log really started, with the separator of the documented command."""
    head, *lines = (line.split("\x1f") for line in log.read_text().splitlines())
    rows = (dict(zip(head, line, strict=True)) for line in lines)
    starts = {row["JobID"]: moment(row["Start"]) for row in rows if "." not in row["JobID"]}
    return {name: start for name, start in starts.items() if start == start}


def forecast_at(conf: Path, listing: Path, accounting: tuple[Path, ...]) -> Forecast:
    """What ``slurm forecast`` says of a snapshot."""
    usage = listing.with_suffix(".sshare")
    question = Question(
        conf=conf,
        listing=listing,
        log=listing.with_suffix(".sacct"),
        job=None,
        time=None,
        nodes=None,
        submit=None,
        moment=None,
        repetitions=DRAWS,
        accounting=(*accounting, usage) if usage.exists() else accounting,
        reservations=(),
        zone="UTC",
    )
    return answer(question)


def scored(found: Forecast, listing: Path, starts: dict[str, float]) -> tuple[float, Floats, list[str]]:
    """When a forecast was made, and of each job: its start, the interval, the median, by limits, by Slurm."""
    now = moment(found.now)
    planned = {name: moment(start) - now for name, start in _PLANNED.findall(listing.read_text())}
    known = [
        each
        for each in found.jobs
        if each.id in starts and None not in (each.start.median, each.start.by_limits)
    ]
    rows = [
        (
            starts[each.id] - now, each.start.early, each.start.median, each.start.late, each.start.by_limits,
            planned.get(each.id, np.nan),
        )
        for each in known
    ]  # fmt: skip
    return now, np.array(rows, dtype=np.float64).reshape(-1, 6), [each.id for each in known]


def main(conf: Path, folder: Path, log: Path, *accounting: Path) -> None:
    """Print what came of all forecasts."""
    starts, stretch, names = starts_of(log), Stretch(), set[str]()
    tables = []
    for listing in sorted(folder.glob("*.jobs")):
        try:
            found = forecast_at(conf, listing, accounting)
        except InputError as error:  # before the first job has ended, a log tells nothing
            print(f"{listing.stem}: {error}")
            continue
        now, table, jobs = scored(found, listing, starts)
        low, high = stretch.intervals(now, *table.T[:4])
        tables.append(np.column_stack([table, low, high]))
        names.update(jobs)
    all_of = np.concatenate(tables)
    start, early, median, late, by_limits, planned, low, high = all_of.T
    print(f"{len(tables)} snapshots, {len(start)} forecasts of {len(names)} jobs")
    for title, first, last in (("as drawn", early, late), ("stretched by those before", low, high)):
        inside = (first - 1 <= start) & (start <= last + 1)
        length = np.median(last - first)
        print(f"in the 80 % interval, {title}: {inside.mean():.1%}; median length {length:.0f} s")
    for title, told in (("median", median), ("by limits", by_limits), ("Slurm's StartTime", planned)):
        has = np.isfinite(told)
        print(f"median error, {title}: {np.median(abs(told - start)[has]):.0f} s ({has.sum()} forecasts)")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
