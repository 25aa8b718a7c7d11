"""A year of 500,000 jobs on 140 nodes under the twin of Slurm: how much processor time it takes.

Run it with ``python -m benchmarks.slurm [JOBS]``. With fewer jobs, the time is that of as much of a year.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.year import ROOT, cost

JOBS: Final = 500_000
YEAR: Final = 365 * 86_400

#: Of the cores and GPUs of the machine.
LOAD: Final = 0.45

#: What a year may take.
MOST_MINUTES: Final = 5

CONFIGURATION: Final = """\
[scheduling]
bf_continue = true

[selection]
type = "cons_tres"
consumed = "core"
memory = true
def_mem_per_cpu = 2000

[priority]
type = "multifactor"
weight_age = 1000
weight_job_size = 500
"""


def write_workload(folder: Path, jobs: int) -> Path:
    """A made-up log, its times shortened so that 500,000 jobs are a year."""
    made = folder / "made.json"
    cost(
        "generate", "cluster", "-n", str(jobs), "--seed", "2", "-p", f"load={LOAD}", "-o", made, folder=folder
    )
    content: dict[str, Any] = json.loads(made.read_text(encoding="utf-8"))
    factor = YEAR * jobs / JOBS / content["jobs"][-1]["subtime"]
    for job in content["jobs"]:
        job["subtime"] = round(job["subtime"] * factor)
        job["walltime"] = max(60, round(job["walltime"] * factor / 60) * 60)
    for profile in content["profiles"].values():
        for key in ("delay", "cpu"):
            if key in profile:
                profile[key] *= factor
    file = folder / "year.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def main(jobs: int = JOBS) -> None:
    """Simulate it, and say how long a year takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload, configuration = write_workload(folder, jobs), folder / "slurm.toml"
        configuration.write_text(CONFIGURATION, encoding="utf-8")
        spent = cost(
            "run", "-w", workload, "-p", ROOT / "platforms" / "cluster.toml", "-s", "slurm",
            "-o", f"configuration_file={configuration}", "-e", folder / "out", folder=folder,
        )  # fmt: skip
    minutes = spent.cpu / 60 * JOBS / jobs
    print(f"{jobs:,} jobs: {spent.cpu:.1f} s of processor time, {spent.cpu / jobs * 1e3:.2f} ms a job")
    print(f"a year of {JOBS:,} jobs: {minutes:.1f} min (asked for: at most {MOST_MINUTES} min)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS)
