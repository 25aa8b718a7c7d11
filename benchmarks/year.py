"""A year of 500,000 jobs: what takes how long, as a multiple of EASY in the same run, and how much memory.

Run it with ``python -m benchmarks.year [JOBS]``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.memory import Cost
from benchmarks.synthetic import write_log

ROOT: Final = Path(__file__).resolve().parents[1]

JOBS: Final = 500_000
HOSTS: Final = 2_000

#: What a year may take: multiples of EASY's processor time, and megabytes.
MOST_TIME: Final = 10
MOST_MEMORY: Final = 1_000

PLAN: Final = """\
[logs]
year = { file = "year.swf" }
[platforms]
machine = { hosts = 2000 }
[schedulers]
easy = {}
"""


def cost(*arguments: str | Path, folder: Path) -> Cost:
    """What a command takes. It has one core, so that it does all by itself and nothing goes uncounted."""
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "batsched_py", *map(str, arguments)],
        cwd=folder,
        env=variables,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(map(str, arguments))}: failed")
    return Cost(usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def with_steps(accounting: Path, target: Path) -> Path:
    """The same accounting, with three steps for each job, as sacct prints them."""
    with accounting.open() as lines, target.open("w") as file:
        file.write(f"{next(lines).rstrip()}|MaxRSS\n")
        for line in lines:
            number, _, rest = line.rstrip().partition("|")
            file.write(f"{number}|{rest}|\n")
            file.writelines(f"{number}.{step}|{rest}|{number}K\n" for step in ("batch", "extern", "0"))
    return target


def main(jobs: int = JOBS) -> None:
    """Measure all of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = write_log(folder / "year.swf", HOSTS, jobs, load=0.95, widest=0.02)
        run = ("run", "-w", log, "--hosts", str(HOSTS), "-s", "easy")
        easy = cost(*run, "-e", "easy", folder=folder)
        cost("convert", log, "jobs.sacct", folder=folder)
        with_steps(folder / "jobs.sacct", folder / "steps.sacct")
        (folder / "plan.toml").write_text(PLAN)
        cost("campaign", "run", "plan.toml", "-d", "campaign", folder=folder)
        measured = {
            "EASY": easy,
            "EASY in fair-share order": cost(*run, "-o", "order=fair-share", "-e", "fair", folder=folder),
            "convert 2 million lines of sacct": cost("convert", "steps.sacct", "out.swf", folder=folder),
            "plot gantt": cost("plot", "gantt", "easy_jobs.csv", "--output", "gantt.png", folder=folder),
            "campaign report, one run": cost(
                "campaign", "report", "campaign", "--output", "page.html", folder=folder
            ),
        }
    print(f"A year of {jobs:,} jobs (aims: {MOST_TIME} times EASY, {MOST_MEMORY:,} MB):")
    for what, taken in measured.items():
        print(
            f"  {what:34}{taken.cpu:7.1f} s of CPU, {taken.cpu / easy.cpu:5.1f} times EASY, "
            f"{taken.megabytes:5.0f} MB"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
