"""Reading which jobs waited for others: ``PREFIX_held.csv`` beside the other files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from batsched_py.analysis.beside import beside
from batsched_py.analysis.schedule import open_table
from batsched_py.errors import InputError
from batsched_py.ledger.holds import RELEASES_HEADER


@dataclass(frozen=True)
class HeldJob:
    """A job that was held until others were over."""

    eligible: float | None
    """When it joined the queue; nothing if it was rejected."""
    reason: str


def read_held(lines: Iterable[str], name: str) -> dict[str, HeldJob]:
    """The jobs that were held, by their identifiers; a line that cannot be read is named."""
    rows = csv.DictReader(lines)
    try:
        return {
            row["job_id"]: HeldJob(
                float(row["eligible_time"]) if row["eligible_time"] else None, row["reason"]
            )
            for row in rows
        }
    except (KeyError, ValueError, TypeError, csv.Error):
        raise InputError(
            f"{name}:{rows.line_num}: this is no line of held jobs ({RELEASES_HEADER.strip()})"
        ) from None


def held_beside(jobs_file: str | Path) -> dict[str, HeldJob]:
    """The jobs that were held, beside a ``PREFIX_jobs.csv``; none if no such file was written."""
    path = beside(jobs_file, "held")
    if not path.is_file():
        return {}
    with open_table(path) as file:
        return read_held(file, str(path))


def arrivals_of(held: Mapping[str, HeldJob]) -> dict[str, float]:
    """When the jobs joined the queue that were held, and were not rejected."""
    return {name: job.eligible for name, job in held.items() if job.eligible is not None}
