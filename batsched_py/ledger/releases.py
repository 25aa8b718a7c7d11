"""What became of jobs that were held, and how that is written down."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from msgspec import Struct

from batsched_py.protocol.jobs import Job

#: How a file of such jobs begins.
HEADER = "job_id,submission_time,eligible_time,reason\n"


class Release(Struct, frozen=True, gc=False):
    """A job that is not held any more."""

    job: Job
    eligible: float | None
    """When it joined the queue; nothing if it was rejected."""
    reason: str


def release_writer(write: Callable[[str], object]) -> Callable[[Release], None]:
    """A function that writes a line for each job that was held."""

    def write_line(release: Release) -> None:
        line = io.StringIO()
        eligible = "" if release.eligible is None else f"{release.eligible:.6f}"
        cells = [release.job.id, f"{release.job.submission_time:.6f}", eligible, release.reason]
        csv.writer(line, lineterminator="\n").writerow(cells)
        write(line.getvalue())

    return write_line
