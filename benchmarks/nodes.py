"""Machines of nodes: what they cost beside plain hosts, and AccaSim's example machine with its log.

Run it with ``python -m benchmarks.nodes [JOBS]``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.memory import Cost
from benchmarks.year import ROOT, cost

JOBS: Final = 200_000
NODES: Final = 1_000
CORES: Final = 64

#: As many as a large machine runs in a year.
YEAR: Final = 500_000

#: At most so many times the processor time of plain hosts.
MOST: Final = 3

MACHINE: Final = f"""\
[[nodes]]
count = {NODES * 9 // 10}
name = "cpu"
cores = {CORES}
memory = "256 GB"

[[nodes]]
count = {NODES // 10}
name = "gpu"
cores = {CORES}
memory = "256 GB"
gpu = 4
"""

#: AccaSim's own example: 120 nodes of 4 cores and 1 GB, two cores for each processor of that machine's log.
SETH: Final = (
    '{"equivalence": {"processor": {"core": 2}}, "groups": {"g0": {"core": 4, "mem": 1000000}}, '
    '"resources": {"g0": 120}}'
)
HPC2N: Final = ROOT.parent / "shared" / "logs" / "HPC2N-2002-2.2-cln.swf.gz"


def write_workload(path: Path, jobs: int, load: float, seed: int = 1) -> Path:
    """Jobs that ask for cores, memory and now and then GPUs, at this load of all cores."""
    random = Random(seed)
    asked = [_job(random) for _ in range(jobs)]
    work = sum(job["res"] * job["run_time"] for job in asked)
    span = work / (NODES * CORES * load)
    times = sorted(random.random() * span for _ in asked)
    profiles = {f"{job['run_time']}": {"type": "delay", "delay": job["run_time"]} for job in asked}
    content = {
        "nb_res": NODES * CORES,
        "jobs": [
            {"id": number, "subtime": int(time), "profile": f"{job.pop('run_time')}", **job}
            for number, (time, job) in enumerate(zip(times, asked, strict=True))
        ],
        "profiles": profiles,
    }
    path.write_text(json.dumps(content))
    return path


def _job(random: Random) -> dict[str, Any]:
    kind = random.random()
    if kind < 0.5:
        tasks, cores = 1, random.choice((1, 2, 4, 8, 16, 32))
    elif kind < 0.8:
        tasks, cores = random.choice((2, 4, 8, 16)), random.choice((8, 16, 32, 64))
    else:
        tasks, cores = random.choice((64, 128, 256, 512)), random.choice((1, 2, 4))
    request: dict[str, Any] = {"cores": cores, "per_core": {"memory": f"{random.choice((1, 2, 4))} GB"}}
    if random.random() < 0.1:
        tasks = min(tasks, 16)
        request["per_task"] = {"gpu": 1}
    run_time = int(min(86400, max(30, random.lognormvariate(7.5, 1.6))))
    return {
        "res": tasks * cores,
        "run_time": run_time,
        "walltime": run_time * random.choice((1, 2, 3, 5)),
        "request": request,
    }


def main(jobs: int = JOBS) -> None:
    """Measure it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "machine.toml").write_text(MACHINE)
        for load in (0.95, 1.1):
            workload = write_workload(folder / "jobs.json", jobs, load)
            run = ("run", "-w", workload, "-s", "easy", "-e", "out")
            plain = cost(*run, "--hosts", str(NODES * CORES), folder=folder)
            nodes = cost(*run, "-p", "machine.toml", folder=folder)
            print(f"{jobs:,} jobs, {NODES:,} nodes x {CORES} cores, load {load:g} (aim: {MOST} times):")
            _tell("plain hosts", plain, plain)
            _tell("nodes with memory and GPUs", nodes, plain)
        workload = write_workload(folder / "jobs.json", YEAR, 0.8)
        year = cost("run", "-w", workload, "-s", "easy", "-e", "out", "-p", "machine.toml", folder=folder)
        print(f"{YEAR:,} jobs on these nodes, load 0.8 (aim: a minute):")
        print(f"  {year.cpu:.1f} s of CPU, {year.megabytes:.0f} MB")
        if HPC2N.is_file():
            (folder / "seth.config").write_text(SETH)
            print("HPC2N on AccaSim's machine Seth, which takes it 366 s for EASY with first fit:")
            for policy, choice in product(("fcfs", "sjf", "ljf", "easy"), ("first-fit", "best-fit")):
                taken = cost(
                    *("run", "-w", HPC2N, "-p", "seth.config", "-s", policy, "-o", f"nodes={choice}"),
                    *("-e", "seth"),
                    folder=folder,
                )
                print(f"  {policy:6} {choice:10} {taken.cpu:7.1f} s of CPU, {taken.megabytes:5.0f} MB")


def _tell(what: str, taken: Cost, plain: Cost) -> None:
    print(
        f"  {what:28}{taken.cpu:7.1f} s of CPU, {taken.cpu / plain.cpu:4.1f} times plain hosts, "
        f"{taken.megabytes:5.0f} MB"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
