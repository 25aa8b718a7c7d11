"""What a simulated year of a resampled population takes: as much in the tenth year as in the first.

python -m benchmarks.population [YEARS ...]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.memory import KTH, SAMPLE, run

#: How long the populations are there.
YEARS = (1, 2, 5, 10)
USERS = ("--users", "resample(fluid)", "-u", "seed=1", "-u")


def main(years: tuple[int, ...] = YEARS) -> None:
    """Simulate populations of growing length, made of one log."""
    log = KTH if KTH.is_file() else SAMPLE
    with tempfile.TemporaryDirectory() as folder:
        for each in years:
            prefix = Path(folder, "out")
            cost = run(log, (*USERS, f"weeks={52 * each}"), prefix)
            with Path(f"{prefix}_jobs.csv").open() as rows:
                nb_jobs = sum(1 for _ in rows) - 1
            print(
                f"{each:3} years, {nb_jobs:9,} jobs: {cost.megabytes:6.0f} MB, "
                f"{cost.cpu / each:6.2f} s of CPU a year, {1e6 * cost.cpu / nb_jobs:6.1f} us a job",
                flush=True,
            )


if __name__ == "__main__":
    main(tuple(int(year) for year in sys.argv[1:]) or YEARS)
