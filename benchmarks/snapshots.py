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
from batsched_py.slurm.forecast.forecast import Forecast
from batsched_py.slurm.forecast.question import Question, answer
from batsched_py.workload.swf.log import Floats

#: So many draws are made of each forecast.
DRAWS: Final = 10

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
    """Print what came of all forecasts, and of those that had enough to stretch their intervals by."""
    starts, names = starts_of(log), set[str]()
    tables, proven = [], []
    for listing in sorted(folder.glob("*.jobs")):
        try:
            found = forecast_at(conf, listing, accounting)
        except InputError as error:  # before the first job has ended, a log tells nothing
            print(f"{listing.stem}: {error}")
            continue
        _, table, jobs = scored(found, listing, starts)
        print(f"{listing.stem}: {len(jobs)} jobs, {found.proof}", flush=True)
        tables.append(table)
        proven.append(np.full(len(jobs), found.proof is not None and found.proof.is_enough))
        names.update(jobs)
    all_of, is_proven = np.concatenate(tables), np.concatenate(proven)
    moments = np.concatenate([np.full(len(table), place) for place, table in enumerate(tables)])
    print(f"{len(tables)} snapshots, {len(all_of)} forecasts of {len(names)} jobs")
    for title, chosen in (
        ("all", np.ones(len(all_of), dtype=bool)),
        ("not stretched", ~is_proven),
        ("stretched", is_proven),
        ("stretched, first half of the snapshots", is_proven & (moments < len(tables) / 2)),
        ("stretched, second half of the snapshots", is_proven & (moments >= len(tables) / 2)),
    ):
        if chosen.any():
            tell(title, all_of[chosen])


def tell(title: str, forecasts: Floats) -> None:
    """Print how good some forecasts were."""
    start, early, median, late, by_limits, planned = forecasts.T
    before, after = (start < early - 1).mean(), (start > late + 1).mean()
    print(f"{title}: {len(start)} forecasts")
    print(
        f"  in the 80 % interval {1 - before - after:.1%}, before it {before:.1%}, after it {after:.1%}; "
        f"median length {np.median(late - early):.0f} s, median wait {np.median(start):.0f} s"
    )
    for by, told in (("median", median), ("by limits", by_limits), ("Slurm's StartTime", planned)):
        has = np.isfinite(told)
        print(f"  median error, {by}: {np.median(abs(told - start)[has]):.0f} s ({has.sum()} forecasts)")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
