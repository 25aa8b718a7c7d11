"""The files that a simulation writes beside its ``PREFIX_jobs.csv``."""

from __future__ import annotations

from pathlib import Path


def beside(jobs_file: str | Path, name: str) -> Path:
    """Where the file ``PREFIX_NAME.csv`` of the same simulation is, if it was written.

    >>> beside("out/easy_jobs.csv", "held").as_posix()
    'out/easy_held.csv'
    """
    jobs_file = Path(jobs_file)
    return jobs_file.with_name(f"{jobs_file.name.removesuffix('jobs.csv')}{name}.csv")
