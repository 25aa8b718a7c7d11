"""The whole line from a log to written files, as whole processes, against bare loops on the same log."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from batsched_py import native
from benchmarks.synthetic import curie_like, ricc_like, scaled

HERE = Path(__file__).resolve().parent

#: So many jobs, apart from what starting and setting up the machine take, tell the time per job.
WIDTH_JOBS = 40_000

#: What a run is called, and what chooses it.
CORES = {"Python engine": "1"} | ({} if native.library is None else {"native engine": "0"})

#: How users replay a log: as it was, and in answer to what they live through.
BEHAVIOURS = ("rigid", "think-time")


def cpu_seconds(command: str | list[str], **environment: str) -> float:
    """The processor time of a command with all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    variables = os.environ | {"PYTHONPATH": str(HERE.parent)} | environment
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        command,
        env=variables,
        shell=isinstance(command, str),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(log: Path, hosts: int, folder: Path, *options: str) -> list[str]:
    """The command that reads a log, simulates it under EASY and writes the files."""
    command = [
        sys.executable,
        "-m",
        "batsched_py",
        "run",
        "-w",
        str(log),
        "--hosts",
        str(hosts),
        "-s",
        "easy",
    ]
    return [*command, "-e", str(folder / "out"), *options]


def bare_cpp(folder: Path) -> Path | None:
    """The loop in C++, compiled where a compiler is."""
    compiler = os.environ.get("CXX", "c++")
    program = folder / "bare_loop"
    if shutil.which(compiler) is None:
        return None
    done = subprocess.run([compiler, "-std=c++20", "-O2", str(HERE / "bare_loop.cpp"), "-o", str(program)])
    return program if done.returncode == 0 else None


def measure(log: Path, hosts: int, rounds: int) -> None:
    """Print what each way to simulate a log takes, and its ratio to the bare loop in Python."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = bare_cpp(folder)
        bare = [sys.executable, str(HERE / "bare_loop.py"), str(log), str(hosts)]
        least: dict[str, float] = {}

        def note(what: str, seconds: float) -> None:
            least[what] = min(least.get(what, seconds), seconds)

        for _ in range(rounds):
            note("bare loop", cpu_seconds(bare))
            if program is not None:
                unpack = "gzip -dc" if log.suffix == ".gz" else "cat"
                note("bare loop in C++", cpu_seconds(f"{unpack} {log} | {program} {hosts}"))
            for what, pure in CORES.items():
                note(what, cpu_seconds(run(log, hosts, folder), BATSCHED_PY_PURE=pure))
                for users in BEHAVIOURS if rounds > 2 else ():
                    replay = run(log, hosts, folder, "--users", users)
                    note(f"{what}, {users}", cpu_seconds(replay, BATSCHED_PY_PURE=pure))
    print(f"{log.name} on {hosts:,} hosts, EASY, whole processes:")
    for what, seconds in least.items():
        print(f"  {what:24}{seconds:7.2f} s, {seconds / least['bare loop']:5.2f} times the bare loop")
    for what in CORES if rounds > 2 else ():
        static, rigid, thinking = (least[what], *(least[f"{what}, {users}"] for users in BEHAVIOURS))
        print(
            f"  {what}: think-time users take {thinking / rigid:.2f} times the time of rigid ones, "
            f"{thinking / static:.2f} times that of no users"
        )


def widths() -> None:
    """Print the time per job on few hosts and on many, for the same jobs scaled alike."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, pure in CORES.items():

            def seconds(hosts: int, jobs: int, pure: str = pure) -> float:
                command = run(scaled(folder / "log.swf", hosts, jobs), hosts, folder)
                return min(cpu_seconds(command, BATSCHED_PY_PURE=pure) for _ in range(3))

            few, many = (
                1e6 * (seconds(hosts, WIDTH_JOBS) - seconds(hosts, 1)) / WIDTH_JOBS for hosts in (100, 93_300)
            )
            print(f"  {what:24}{few:.1f} us a job on 100 hosts, {many:.1f} on 93,300, ratio {many / few:.2f}")


def conservative(log: Path, hosts: int) -> None:
    """Print what planning for every job takes, compared with EASY."""
    with tempfile.TemporaryDirectory() as name:
        easy = run(log, hosts, Path(name))
        plans = ["conservative" if word == "easy" else word for word in easy]
        first, second = (min(cpu_seconds(command) for _ in range(2)) for command in (easy, plans))
    print(f"  {log.name}: conservative {second:.2f} s, {second / first:.2f} times EASY")


def wide_setup() -> None:
    """Print how much longer it takes to set up a machine of 93,312 hosts than one of 100."""
    with tempfile.TemporaryDirectory() as name:
        log = scaled(Path(name, "log.swf"), 100, 1)
        few, many = (
            min(cpu_seconds(run(log, hosts, Path(name))) for _ in range(5)) for hosts in (100, 93_312)
        )
    print(f"  a machine of 93,312 hosts takes {many - few:.3f} s more to set up than one of 100")


def million() -> None:
    """Print what a million jobs take, compared with a C++ program that only reads the log and runs EASY."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, program = scaled(folder / "log.swf", 1_000, 1_000_000), bare_cpp(folder)
        seconds = cpu_seconds(run(log, 1_000, folder))
        if program is None:
            print(f"  a million jobs: {seconds:.1f} s")
            return
        bare = cpu_seconds(f"{program} 1000 < {log}")
    print(f"  a million jobs: {seconds:.1f} s, {seconds / bare:.2f} times the bare loop in C++")


def synthetic() -> None:
    """Print what wide machines and long queues take."""
    with tempfile.TemporaryDirectory() as name:
        measure(curie_like(Path(name, "curie-like.swf")), 93_312, rounds=1)
        measure(ricc_like(Path(name, "ricc-like.swf")), 8_192, rounds=1)
