"""What was asked of the speed, what it was then, and what it is now: ``python benchmarks/targets.py``.

Every figure is a ratio of processor times, the best of several in one run, unless its row says otherwise.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from math import log2
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.line import bare_cpp, cpu_seconds, run  # noqa: E402
from benchmarks.synthetic import write_log  # noqa: E402
from benchmarks.tile import tile  # noqa: E402

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


def best(command: str | list[str], rounds: int = 3, **environment: str) -> float:
    """The least processor time of a command."""
    return min(cpu_seconds(command, **environment) for _ in range(rounds))


def against_cpp(folder: Path) -> Iterator[Row]:
    """A run against a program in C++ that reads the log and runs EASY; in brackets, if that writes rows."""
    program = bare_cpp(folder)
    for name, (hosts, plain, most_plain, users, most_users) in RUNS.items():
        log = LOGS / f"{name}.swf.gz"
        if program is None or not log.is_file():
            continue
        bare, writing = _bare(program, log, hosts, folder)
        command = run(log, hosts, folder)
        for what, options, before, asked in (
            ("run", (), plain, most_plain),
            ("think-time users", ("--users", "think-time"), users, most_users),
        ):
            took = best([*command, *options])
            now = f"{took / bare:.1f} ({took / writing:.1f})"
            yield Row(f"{name}: {what} against C++", f"{before:g}", f"{asked:g}", now)


def _bare(program: Path, log: Path, hosts: int, folder: Path) -> tuple[float, float]:
    """What the program in C++ takes, without rows and with them."""
    command = f"gzip -dc {log} | {program} {hosts}"
    return best(command), best(f"{command} {folder / 'rows.csv'}")


def million(folder: Path) -> Iterator[Row]:
    """The same with a million jobs: a log five times."""
    name, program = "HPC2N-2002-2.2-cln", bare_cpp(folder)
    source = LOGS / f"{name}.swf.gz"
    if program is None or not source.is_file():
        return
    tile(source, folder / "million.swf", 1_000_000, new_users=False)
    subprocess.run(["gzip", folder / "million.swf"], check=True)
    log, hosts = folder / "million.swf.gz", RUNS[name][0]
    bare, writing = _bare(program, log, hosts, folder)
    took = best(run(log, hosts, folder), 2)
    yield Row("1 M jobs: run against C++", "7.1", "2", f"{took / bare:.1f} ({took / writing:.1f})")


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


def features(folder: Path) -> Iterator[Row]:
    """What the Python engine does, against the native engine and against the Python engine without it."""
    log = LOGS / "KTH-SP2-1996-2.1-cln.swf.gz"
    if not log.is_file():
        return
    powered = _platform(folder / "powered.xml", [_POWERED] * 100)
    uneven = _platform(folder / "uneven.xml", [_HOST] * 50 + [_HOST.replace("1Gf", "1.5Gf")] * 50)
    closure = _table(folder / "closure.csv", "start,end,hosts", ["15000000,15028800,all"])
    price = _table(folder / "price.csv", "time,value", [f"{hour * 3600},{20 + hour}" for hour in range(24)])
    outages = [
        f"{start},{start + 4000},{start // 200_000 % 100}" for start in range(205_000, 28_000_000, 200_000)
    ]
    failures = _table(folder / "failures.csv", "down,up,hosts", outages)
    prices = ("--price", price, "--outside-period", "86400")
    fails = ("--failure-trace", failures, "--on-failure", "resubmit")
    command = run(log, 100, folder)
    on_platform = ["-p" if word == "--hosts" else word for word in command]
    place = command.index("100")

    def on(platform: str, policy: str = "easy") -> list[str]:
        words = [*on_platform[:place], platform, *on_platform[place + 1 :]]
        return [policy if word == "easy" else word for word in words]

    native, plain = best(command), best(command, BATSCHED_PY_PURE="1")
    for what, before, asked, words in (
        ("energy", "14", "2.5", [*on(powered), "--energy"]),
        ("failures", "19", "3", [*command, *fails]),
        ("hosts of two speeds", "7.3", "1.5", on(uneven)),
        ("dependencies", "-", "2", [*run(_chained(log, folder), 100, folder), "--preceding", "wait"]),
    ):
        yield Row(f"KTH: {what} against native EASY", before, asked, f"{best(words, 2) / native:.1f}")
    for what, before, words in (
        ("a closure of 8 hours", "17", [*command, "--closures", closure]),
        ("sleeping hosts, with energy", "10", [*on(powered, "sleeping(easy)"), "--energy"]),
        ("prices, with energy", "2.5", [*on(powered), "--energy", *prices]),
    ):
        yield Row(f"KTH: {what} against the Python engine", before, "1.5", f"{best(words, 2) / plain:.1f}")


_HOST = '<host id="{}" coordinates="0 0 0" speed="1Gf"/>'
_POWERED = (
    '<host id="{}" coordinates="0 0 0" speed="1Gf, 1f, 0.2f, 0.025f" pstate="0">'
    '<prop id="wattage_per_state" value="90:110:200, 8:8:8, 95:95:95, 130:130:130"/>'
    '<prop id="sleep_pstates" value="1:2:3"/></host>'
)


def _chained(log: Path, folder: Path) -> Path:
    """A log in which every tenth job waits for the one before it."""
    chained = folder / "chained.swf"
    with gzip.open(log, "rt") as lines, chained.open("w") as file:
        before = "-1"
        for place, line in enumerate(lines):
            fields = line.split()
            if not line.startswith(";") and place % 10 == 0:
                line = " ".join([*fields[:16], before, "0"]) + "\n"
            before = fields[0] if fields and not line.startswith(";") else before
            file.write(line)
    return chained


def _platform(path: Path, hosts: list[str]) -> str:
    """A SimGrid platform of these hosts, and a master."""
    named = "".join(host.format(f"host{number:03}") for number, host in enumerate(hosts))
    zone = f'<zone id="main" routing="Vivaldi">{hosts[0].format("master_host")}{named}</zone>'
    doctype = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    path.write_text(f"<?xml version='1.0'?>{doctype}<platform version='4.1'>{zone}</platform>")
    return str(path)


def _table(path: Path, header: str, rows: list[str]) -> str:
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def campaign_run(folder: Path) -> Iterator[Row]:
    """What a run of 3,000 jobs takes in a campaign, whose log was read before, and its metrics alone."""
    from batsched_py.campaign.results import _measure, simulate_into
    from batsched_py.experiment import Choice, Experiment
    from batsched_py.settings import struct_from

    log = write_log(folder / "log.swf", 100, 3000, 0.8)
    experiment = struct_from(Experiment, {"files": (str(log),), "scheduler": Choice("easy"), "hosts": 100})
    simulate_into(folder, experiment, None, None)

    def least(action: Callable[[], object]) -> str:
        took = []
        for _ in range(8):
            began = time.process_time()
            action()
            took.append(time.process_time() - began)
        return f"{1000 * min(took):.0f} ms"

    whole = least(lambda: simulate_into(folder, experiment, None, None))
    yield Row("a campaign's run of 3,000 jobs", "47 ms", "10 ms", whole)
    jobs = next(folder.glob("*_jobs.csv"))
    yield Row("the metrics of it", "27 ms", "-", least(lambda: _measure(folder, str(jobs), (), {})))


def memory(folder: Path) -> Iterator[Row]:
    """What figures of many jobs need."""
    log = write_log(folder / "log.swf", 1000, 2_000_000, 0.8)
    cpu_seconds(run(log, 1000, folder))
    program = [sys.executable, "-m", "batsched_py"]
    for what, before, words in (
        ("metrics", "1,525 MB", ["metrics", str(folder / "out_jobs.csv")]),
        ("validate", "2,242 MB", ["validate", str(folder / "out_jobs.csv"), "-w", str(log)]),
    ):
        process = subprocess.Popen([*program, *words], stdout=subprocess.DEVNULL, cwd=ROOT)
        _, _, usage = os.wait4(process.pid, 0)
        yield Row(f"{what} of 2 M jobs", before, "400 MB", f"{usage.ru_maxrss / 1024:,.0f} MB")


def start(folder: Path) -> Iterator[Row]:
    """Commands that have next to nothing to do."""
    log = write_log(folder / "log.swf", 4, 1, 0.8)
    command = run(log, 4, folder)
    cpu_seconds(command)
    if shutil.which("valgrind"):
        told = folder / "callgrind.txt"
        counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={told}"]
        cpu_seconds([*counter, *command])
        count = re.search(r"Collected : (\d+)", told.read_text())
        if count is not None:
            millions = f"{int(count[1]) / 1e6:.0f} M"
            yield Row("a run of one job, instructions", "400 M", "280 M", millions)
    few = write_log(folder / "few.swf", 100, 300, 0.8)
    cpu_seconds(run(few, 100, folder))
    took = best([sys.executable, "-m", "batsched_py", "metrics", str(folder / "out_jobs.csv")])
    yield Row("metrics of 300 jobs", "0.47 s", "0.15 s", f"{took:.2f} s")


def many(folder: Path) -> Iterator[Row]:
    """Ten thousand short simulations in one process: a thousand of each of ten logs."""
    import batsched_py as bp

    logs = [write_log(folder / f"{seed}.swf", 100, 256, 0.8, seed=seed) for seed in range(1, 11)]
    bp.simulate_many(logs[:1], "easy", hosts=100)
    began = time.process_time()
    table = bp.simulate_many(logs, ["easy"] * 1000, hosts=100)
    took = time.process_time() - began
    yield Row(f"{len(table):,} simulations of 256 jobs", "46 s", "15 s", f"{took:.1f} s")


def main(*chosen: str) -> None:
    """Print the table in Markdown, all of it or the chosen sections."""
    sections = {
        each.__name__: each
        for each in (against_cpp, million, overload, policies, features, campaign_run, many, memory, start)
    }
    print("| | before | asked, at most | now |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen or sections:
            for row in sections[name](Path(folder)):
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
