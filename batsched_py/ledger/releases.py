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
    """A job that was held, and is not any more."""

    job: Job
    eligible: float | None
    """When it joined the queue; nothing if it was rejected."""
    reason: str


def taking_down(write: Callable[[str], object]) -> Callable[[Release], None]:
    """What writes down jobs that were held, a line each."""

    def take_down(release: Release) -> None:
        line = io.StringIO()
        eligible = "" if release.eligible is None else f"{release.eligible:.6f}"
        cells = [release.job.id, f"{release.job.submission_time:.6f}", eligible, release.reason]
        csv.writer(line, lineterminator="\n").writerow(cells)
        write(line.getvalue())

    return take_down
