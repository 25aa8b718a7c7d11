"""What a policy remarks on jobs, to tell why it decides as it does."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

#: How a file of remarks begins.
HEADER = "time,job_id,start,text\n"


class Remark(Struct, frozen=True, gc=False):
    """A remark on a job."""

    time: float
    """When it was made."""
    job_id: str
    text: str
    start: float | None = None
    """By when the job is to start, if the remark is about that: its reservation."""


def remark_writer(write: Callable[[str], object]) -> Callable[[Remark], None]:
    """What writes remarks, a line each."""
    import csv
    import io

    def write_line(remark: Remark) -> None:
        line = io.StringIO()
        start = "" if remark.start is None else f"{remark.start:.6f}"
        cells = [f"{remark.time:.6f}", remark.job_id, start, remark.text]
        csv.writer(line, lineterminator="\n").writerow(cells)
        write(line.getvalue())

    return write_line
