"""Logs that nobody recorded: wide machines and long queues, always the same for a seed."""

from __future__ import annotations

from math import exp, log
from pathlib import Path
from random import Random


def write_log(
    path: Path, hosts: int, jobs: int, load: float, widest: float = 0.5, scale: int = 1, seed: int = 1
) -> Path:
    """A log of jobs that would keep this share of the hosts busy; the queue grows where that is above 1.

    Sizes are log-uniform up to a part of the hosts, given in units of ``scale`` hosts, so that machines of
    different widths can be given the same jobs scaled alike. Run times are log-uniform from a minute to a
    day, requested times up to ten times as long.
    """
    random = Random(seed)
    rows = []
    for _ in range(jobs):
        size = scale * max(1, round(exp(random.uniform(0, log(widest * hosts / scale)))))
        run_time = round(exp(random.uniform(log(60), log(86_400))))
        rows.append((size, run_time, round(run_time * random.uniform(1, 10))))
    span = sum(size * run_time for size, run_time, _ in rows) / (load * hosts)
    times = sorted(random.uniform(0, span) for _ in rows)
    with path.open("w") as file:
        file.write(f"; MaxProcs: {hosts}\n")
        for number, (time, (size, run_time, requested)) in enumerate(zip(times, rows, strict=True), 1):
            job = (
                number,
                round(time),
                -1,
                run_time,
                size,
                -1,
                -1,
                size,
                requested,
                -1,
                1,
                random.randint(1, 200),
            )
            print(*job, 1, -1, 1, 1, -1, -1, file=file)
    return path


def curie_like(path: Path) -> Path:
    """93,312 hosts, jobs of all widths, hardly any queue."""
    return write_log(path, 93_312, 60_000, load=0.75)


def ricc_like(path: Path) -> Path:
    """8,192 hosts, narrow jobs, and thousands that wait."""
    return write_log(path, 8_192, 30_000, load=1.3, widest=0.1)


def scaled(path: Path, hosts: int, jobs: int) -> Path:
    """The same jobs on any number of hundreds of hosts, each the same part of the machine wide."""
    return write_log(path, hosts, jobs, load=0.8, scale=hosts // 100)
