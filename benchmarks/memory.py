"""The memory of a run against the length of its log, which should hardly matter."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
KTH = ROOT.parent / "shared" / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz"
SAMPLE = ROOT / "workloads" / "sample.swf"

#: The last is the size of the largest log that the literature replays.
LENGTHS = (100_000, 1_000_000, 5_700_000)

#: How the jobs are submitted, and whether each copy of the log has users of its own.
CASES = (
    ("no users", (), False),
    ("rigid users", ("--users", "rigid"), False),
    ("think-time users, the same in every copy", ("--users", "think-time"), False),
    ("think-time users, others in every copy", ("--users", "think-time"), True),
)


class Cost(NamedTuple):
    """What a process took."""

    megabytes: float
    """At most, at any time."""
    cpu: float
    """Seconds."""


def run(log: Path, options: tuple[str, ...], prefix: Path) -> Cost:
    """Simulate a log with FCFS in a process of its own.

    Its peak counts from that of the process that starts it, so this one must stay small.
    """
    program = "from batsched_py.cli.main import main; main()"
    command = ["run", "-w", str(log), "-s", "fcfs", *options, "-e", str(prefix), "--json"]
    process = subprocess.Popen([sys.executable, "-c", program, *command], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{log}: the run failed")
    return Cost(usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def main(lengths: tuple[int, ...] = LENGTHS) -> None:
    """Measure every case at every length."""
    source = KTH if KTH.is_file() else SAMPLE
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.swf")
        for length in lengths:
            made = None
            for title, options, new_users in CASES:
                if new_users != made:
                    arguments = [source, log, str(length), *(["--new-users"] if new_users else [])]
                    subprocess.run(
                        [sys.executable, "-m", "benchmarks.tile", *arguments], cwd=ROOT, check=True
                    )
                    made = new_users
                began = perf_counter()
                cost = run(log, options, Path(folder, "out"))
                print(
                    f"{length:9,} jobs, {title:42}{cost.megabytes:6.0f} MB, {cost.cpu:7.1f} s of CPU, "
                    f"{perf_counter() - began:7.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main(tuple(int(length) for length in sys.argv[1:]) or LENGTHS)
