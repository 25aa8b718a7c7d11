"""Logs: how long it takes to read, describe, learn from and generate one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from batsched_py.analysis.log_page import write_log_page
from batsched_py.workload.description import describe
from batsched_py.workload.description.jobs import jobs_that_ran
from batsched_py.workload.models.lublin import Lublin
from batsched_py.workload.models.realistic import Realistic
from batsched_py.workload.sources import read_log, write_log

Result = TypeVar("Result")
MILLION = 1_000_000


def timed(what: str, action: Callable[[], Result]) -> Result:
    """Do something and print how long it took."""
    began = perf_counter()
    result = action()
    print(f"{what}: {perf_counter() - began:.1f} s")
    return result


def main(path: Path) -> None:
    """Print a line for each step."""
    with tempfile.TemporaryDirectory() as folder:
        log = timed(f"{path.name}: read", lambda: read_log(path))
        timed("described with its page", lambda: write_log_page(f"{folder}/page.html", describe(log)))
        jobs = len(jobs_that_ran(log))
        model = timed(f"realistic: {jobs:,} jobs fitted", lambda: Realistic().fit(log))
        timed(f"realistic: {jobs:,} jobs generated", lambda: model.generate(jobs, seed=1))
        timed("realistic: 1,000,000 jobs generated", lambda: model.generate(MILLION, seed=1))
        many = timed("lublin: 1,000,000 jobs generated", lambda: Lublin().generate(MILLION, seed=1))
        for kind in ("swf", "csv", "parquet", "sacct", "pbs"):
            file = f"{folder}/many.{kind}"
            timed(f"{kind}: 1,000,000 jobs written", lambda file=file: write_log(file, many))
            timed(f"{kind}: 1,000,000 jobs read", lambda file=file: read_log(file))


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]))
