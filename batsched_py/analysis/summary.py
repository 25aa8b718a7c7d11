"""Reading the summary that a simulation left beside its jobs: Batsim's ``PREFIX_schedule.csv``."""

from __future__ import annotations

import csv
from math import isfinite
from pathlib import Path

from msgspec import Struct


class Summary(Struct, frozen=True):
    """What only the summary tells, as far as it does."""

    nb_hosts: int | None = None
    consumed_joules: float | None = None


def read_summary(jobs_file: str | Path) -> Summary:
    """What the summary beside a ``PREFIX_jobs.csv`` says; nothing where it is missing.

    A simulation that does not account for energy writes 0 joules.
    """
    jobs_file = Path(jobs_file)
    path = jobs_file.with_name(jobs_file.name.removesuffix("jobs.csv") + "schedule.csv")
    if not path.is_file():
        return Summary()
    with path.open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file), {})
    return Summary(_size(row.get("nb_computing_machines", "")), _joules(row.get("consumed_joules", "")))


def _size(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _joules(text: str) -> float | None:
    try:
        joules = float(text)
    except ValueError:
        return None
    return joules if joules > 0 and isfinite(joules) else None
