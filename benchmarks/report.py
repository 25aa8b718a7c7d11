"""What the page of a campaign costs: processor time, also as a multiple of reading its schedules.

python benchmarks/report.py [RUNS] [JOBS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
from synthetic import write_log

from batsched_py.campaign import html_report
from batsched_py.campaign.store import Campaign

HOSTS = 100
SCHEDULERS = ("fcfs", "easy", "filler", "sjf", "ljf")


def main() -> None:
    """Run a plan of so many runs, and print what its page costs."""
    runs, jobs = (int(word) for word in (sys.argv[1:] + ["20", "30000"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / "log.swf", HOSTS, jobs, load=0.7)
        sizes = range(HOSTS, HOSTS + runs // len(SCHEDULERS))
        lines = ["[logs]", 'log = { file = "log.swf" }', "[platforms]"]
        lines += [f"h{size} = {{ hosts = {size} }}" for size in sizes]
        lines += ["[schedulers]", *(f"{scheduler} = {{}}" for scheduler in SCHEDULERS)]
        (folder / "plan.toml").write_text("\n".join(lines))
        _campaign(folder, "run", "plan.toml", "-d", "results")
        html_report.WORTH_PROCESSES = sys.maxsize
        page = partial(html_report.write_html, folder / "report.html", Campaign.open(folder / "results"))
        files = sorted(folder.glob("results/runs/*/out_jobs.csv"))
        reading, spent = _seconds(lambda: [pd.read_csv(file) for file in files]), _seconds(page)
    print(
        f"report of {len(files)} runs x {jobs:,} jobs: {100 * spent / len(files):.1f} s for 100 runs,",
        end=" ",
    )
    print(f"{spent / reading:.1f} times what pandas takes to read them")


def _seconds(work: Callable[[], object]) -> float:
    """The processor time of something that this process does alone."""
    before = time.process_time()
    work()
    return time.process_time() - before


def _campaign(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "batsched_py", "campaign", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
