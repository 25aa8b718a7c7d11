"""A year of 500,000 jobs on 140 nodes under the twin of Slurm: how much processor time it takes, by load.

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

#: Of the cores and GPUs of the machine: the one that is asked for, and a busy one.
LOADS: Final = (0.45, 0.9)

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


def write_workload(folder: Path, jobs: int, load: float) -> Path:
    """A made-up log, its times shortened so that 500,000 jobs are a year."""
    made = folder / "made.json"
    cost(
        "generate",
        "cluster",
        "-n",
        str(jobs),
        "--seed",
        "2",
        "-p",
        f"load={load}",
        "--output",
        made,
        folder=folder,
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


def measure(jobs: int, load: float) -> float:
    """The processor time of a simulation, in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload, configuration = write_workload(folder, jobs, load), folder / "slurm.toml"
        configuration.write_text(CONFIGURATION, encoding="utf-8")
        return cost(
            "run", "-w", workload, "-p", ROOT / "platforms" / "cluster.toml", "-s", "slurm",
            "-o", f"configuration_file={configuration}", "-e", folder / "out", folder=folder,
        ).cpu  # fmt: skip


def main(jobs: int = JOBS) -> None:
    """Simulate each load, and say how long a year takes."""
    print(f"{jobs:,} jobs; asked for: at most {MOST_MINUTES} min for a year of {JOBS:,} jobs")
    for load in LOADS:
        seconds = measure(jobs, load)
        of_job, minutes = seconds / jobs * 1e3, seconds / 60 * JOBS / jobs
        print(
            f"load {load}: {seconds:.1f} s of processor time, {of_job:.2f} ms a job, {minutes:.1f} min a year"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS)
