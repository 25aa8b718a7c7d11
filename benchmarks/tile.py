"""A log as long as one likes: copies of a log, one after the other.

Run as ``python -m benchmarks.tile LOG PATH JOBS [--new-users]``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from batsched_py.workload.swf.log import COLUMNS
from batsched_py.workload.swf.reader import read_swf

PAUSE = 3600
"""Seconds between the last submission of a copy and the first of the next."""


def tile(log: Path, path: Path, nb_jobs: int, new_users: bool) -> None:
    """Write ``nb_jobs`` records; each copy has users of its own, or all have the same ones."""
    records = read_swf(log)
    columns = [getattr(records, name).tolist() for name in COLUMNS]
    rows = [[str(int(value)) for value in row] for row in zip(*columns, strict=True)]
    span = int(records.submit[-1]) + PAUSE
    number, submit, user = (COLUMNS.index(name) for name in ("job_number", "submit", "user"))
    nb_users = int(records.user.max()) + 1

    def lines() -> Iterator[str]:
        count, start, first_user = 0, 0, 0
        while True:
            for row in rows:
                count += 1
                changed = list(row)
                changed[number] = str(count)
                changed[submit] = str(int(row[submit]) + start)
                changed[user] = str(int(row[user]) + first_user)
                yield " ".join(changed) + "\n"
            start += span
            first_user += nb_users if new_users else 0

    with path.open("w", encoding="ascii") as file:
        file.write(f"; MaxProcs: {records.machine_size}\n")
        file.writelines(islice(lines(), nb_jobs))


if __name__ == "__main__":
    tile(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), new_users="--new-users" in sys.argv)
