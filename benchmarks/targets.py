"""What was asked of the speed, what it was then, and what it is now: ``python benchmarks/targets.py``.

Every figure is a ratio of processor times, the best of several in one run, unless its row says otherwise.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from math import log2
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.line import bare_cpp, cpu_seconds, run  # noqa: E402
from benchmarks.synthetic import write_log  # noqa: E402

LOGS = ROOT.parent / "shared" / "logs"

#: Each log: hosts, then what a run and a run with think-time users took against C++, and may take at most.
RUNS = {
    "KTH-SP2-1996-2.1-cln": (100, 8.1, 5.5, 12.6, 7.0),
    "HPC2N-2002-2.2-cln": (240, 3.9, 2.5, 6.5, 4.0),
    "SDSC-DS-2004-2.1-cln": (1664, 9.9, 3.3, 92.0, 5.0),
    "LLNL-Thunder-2007-1.1-cln": (4008, 11.7, 3.5, 89.0, 6.0),
}

POLICIES = (
    "fcfs",
    "sjf",
    "ljf",
    "filler",
    "multi-queue",
    "user-aware",
    "easy-sjbf",
    "conservative",
    "easy -o order=fair-share",
)

#: Hosts and load of the machine on which conservative backfilling has a long queue.
OVERLOAD = (1000, 1.2)


class Row(NamedTuple):
    """A figure."""

    what: str
    before: str
    asked: str
    now: str


def best(command: str | list[str], rounds: int = 3) -> float:
    """The least processor time of a command."""
    return min(cpu_seconds(command) for _ in range(rounds))


def against_cpp(folder: Path) -> Iterator[Row]:
    """A run against a program in C++ that reads the same log, runs EASY and writes the rows."""
    program = bare_cpp(folder)
    for name, (hosts, plain, most_plain, users, most_users) in RUNS.items():
        log = LOGS / f"{name}.swf.gz"
        if program is None or not log.is_file():
            continue
        bare = best(f"gzip -dc {log} | {program} {hosts}")
        command = run(log, hosts, folder)
        for what, options, before, asked in (
            ("run", (), plain, most_plain),
            ("think-time users", ("--users", "think-time"), users, most_users),
        ):
            ratio = best([*command, *options]) / bare
            yield Row(f"{name}: {what} against C++", f"{before:g}", f"{asked:g}", f"{ratio:.1f}")


def overload(folder: Path) -> Iterator[Row]:
    """Conservative backfilling with a long queue."""
    hosts, load = OVERLOAD
    took = []
    for jobs in (10_000, 20_000, 40_000):
        command = run(write_log(folder / "log.swf", hosts, jobs, load), hosts, folder)
        took.append(best(["conservative" if word == "easy" else word for word in command], 1))
    slope = log2(took[2] / took[1])
    yield Row("conservative at load 1.2, 40,000 jobs", "30.6 s", "3 s", f"{took[2]:.1f} s")
    yield Row("the same from 20,000 to 40,000 jobs: slope", "2.8", "1.3", f"{slope:.1f}")


def policies(folder: Path) -> Iterator[Row]:
    """Every policy against EASY."""
    log = LOGS / "HPC2N-2002-2.2-cln.swf.gz"
    if not log.is_file():
        return
    command = run(log, 240, folder)
    place = command.index("easy")
    easy = best(command)
    for policy in POLICIES:
        ratio = best([*command[:place], *policy.split(), *command[place + 1 :]], 2) / easy
        yield Row(f"HPC2N: {policy} against EASY", "up to 11", "3", f"{ratio:.1f}")


def campaign_run(folder: Path) -> Iterator[Row]:
    """What a run of 3,000 jobs takes in a campaign, without the simulation: its metrics."""
    from batsched_py.campaign.results import _metrics

    log = write_log(folder / "log.swf", 100, 3000, 0.8)
    cpu_seconds(run(log, 100, folder))
    took = []
    for _ in range(8):
        began = time.process_time()
        _metrics(str(folder / "out_jobs.csv"), ())
        took.append(time.process_time() - began)
    yield Row("metrics of a run of 3,000 jobs", "27 ms", "10 ms", f"{1000 * min(took):.0f} ms")


def main(*chosen: str) -> None:
    """Print the table in Markdown, all of it or the chosen sections."""
    sections = {each.__name__: each for each in (against_cpp, overload, policies, campaign_run)}
    print("| | before | asked, at most | now |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen or sections:
            for row in sections[name](Path(folder)):
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
