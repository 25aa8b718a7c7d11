"""Reading the remarks of a policy: ``PREFIX_remarks.csv`` beside the other files."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from batsched_py.analysis.beside import beside
from batsched_py.analysis.schedule import open_table
from batsched_py.errors import InputError
from batsched_py.schedulers.decisions import HEADER, Remark


def moment(seconds: float) -> str:
    """A time of a simulation for people, to a tenth of a second.

    >>> moment(263546.4088), moment(3600.0)
    ('263546.4', '3600')
    """
    return f"{seconds:.1f}".removesuffix(".0")


def in_words(remark: Remark) -> str:
    """A remark with its times.

    >>> in_words(Remark(60.0, "w0!7", "heads the queue", 3600.0))
    'at 60: heads the queue, to start by 3600'
    """
    start = "" if remark.start is None else f", to start by {moment(remark.start)}"
    return f"at {moment(remark.time)}: {remark.text}{start}"


def read_remarks(lines: Iterable[str], name: str) -> dict[str, list[Remark]]:
    """The remarks on each job, in the order of time; a line that cannot be read is named."""
    rows = csv.DictReader(lines)
    found: dict[str, list[Remark]] = {}
    try:
        for row in rows:
            start = float(row["start"]) if row["start"] else None
            remark = Remark(float(row["time"]), row["job_id"], row["text"] or "", start)
            found.setdefault(remark.job_id, []).append(remark)
    except (KeyError, ValueError, TypeError, csv.Error):
        raise InputError(f"{name}:{rows.line_num}: this is no line of remarks ({HEADER.strip()})") from None
    return found


def remarks_beside(jobs_file: str | Path) -> dict[str, list[Remark]]:
    """The remarks beside a ``PREFIX_jobs.csv``; none if they were not asked for."""
    path = beside(jobs_file, "remarks")
    if not path.is_file():
        return {}
    with open_table(path) as file:
        return read_remarks(file, str(path))
