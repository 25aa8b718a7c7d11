"""``python -m tests.kills``: stop commands at random moments, and see what they leave behind.

Each command is run once to its end, so that its files are known. Then it is stopped again and again by a
random signal after a random share of the time that it took, where its files were there before and where they
were not. Afterwards each file must be the old one, the new one or absent, nothing else may be there, and no
traceback of ours may have been printed.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.processes import PATIENCE, start

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "workloads" / "sample.swf"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

#: What is stopped; each writes into the folder in which it is run.
COMMANDS = {
    "run": f"run -w {SAMPLE} -s easy -e out",
    "campaign": "campaign run plan.toml -d results -j 2",
    "convert": f"convert {SAMPLE} out.json",
    "generate": "generate lublin -n 3000 --seed 1 --output out.swf",
    "report": "campaign report results --output report.html",
    "tune": "tune tuning.toml -d tuned -j 2",
}

PLAN = f"""
[logs]
sample = {{ file = "{SAMPLE}" }}

[platforms]
full = {{ hosts = 64 }}

[schedulers]
fcfs = {{}}
easy = {{}}
"""

TUNING = f"""
name = "small"
objectives = ["mean_bounded_slowdown"]
trials = 4
batch = 2
parts = "4d"
search_parts = [2, 3]
held_out_parts = [4]

[logs]
sample = {{ file = "{SAMPLE}" }}

[platforms]
full = {{ hosts = 64 }}

[schedulers]
today = {{ name = "easy" }}
candidate = {{ name = "easy", options = {{ order = "-wait**{{a}}" }} }}

[search]
a = {{ from = 0.0, to = 4.0 }}
"""


def main() -> int:
    """Stop each command so many times; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="How many for all commands together.")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = list(kills(options.kills, Random(options.seed)))
    for line in wrong:
        print(line)
    print(f"{options.kills} kills, {len(wrong)} faults")
    return int(bool(wrong))


def kills(count: int, random: Random) -> Iterator[str]:
    """What went wrong in so many kills."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        seconds = {name: _prepared(room, name) for name in COMMANDS}
        for number in range(count):
            name = list(COMMANDS)[number % len(COMMANDS)]
            place = room / "place"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(room / name / "before", place)
            old = random.random() < 0.5 and name not in ("campaign", "tune")
            for file in _files(room / name / "after") if old else ():
                (place / file).write_bytes(b"old")
            number_of_signal = random.choice(SIGNALS)
            moment = random.uniform(0, 1.1) * seconds[name]
            error = _stopped(COMMANDS[name].split(), place, number_of_signal, moment)
            for fault in _faults(place, room / name, old, error):
                yield f"{name}, {number_of_signal.name} after {moment:.3f} s: {fault}"


def _prepared(room: Path, name: str) -> float:
    """Make the folders as they are before and after a command; how long it took."""
    before, after = room / name / "before", room / name / "after"
    before.mkdir(parents=True)
    (before / "plan.toml").write_text(PLAN)
    (before / "tuning.toml").write_text(TUNING)
    if name == "report":
        shutil.copytree(room / "campaign" / "after" / "results", before / "results")
    shutil.copytree(before, after)
    began = time.monotonic()
    with start(COMMANDS[name].split(), cwd=after) as process:
        _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, error
    return time.monotonic() - began


def _stopped(arguments: list[str], place: Path, number: signal.Signals, moment: float) -> str:
    """What a command said on stderr that got a signal at this moment, if it lasted so long."""
    with start(arguments, cwd=place) as process:
        time.sleep(moment)
        process.send_signal(number)
        _, error = process.communicate(timeout=PATIENCE)
    return error


def _files(folder: Path) -> dict[Path, bytes]:
    """All files that a command writes, but those of campaigns, which have names of their own."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in ("results", "plan.toml", "tuning.toml")
    }


def _faults(place: Path, known: Path, old: bool, error: str) -> Iterator[str]:
    ours = [
        line.strip() for line in error.splitlines() if line.startswith("  File") and "batsched_py" in line
    ]
    if "Traceback" in error and ours:
        yield f"a traceback: {error.strip().splitlines()[-1]} ({ours[-1]})"
    whole = _files(known / "after")
    for path, content in _files(place).items():
        if path not in whole:
            yield f"{path} is left behind"
        elif content != whole[path] and not (old and content == b"old"):
            yield f"{path} is neither the old one nor the new one"
    for run in (place / "results" / "runs").glob("*"):
        finished = known / "after" / "results" / "runs" / run.name
        for path in (finished if finished.is_dir() else run).glob("*_jobs.csv"):
            if (run / path.name).read_bytes() != path.read_bytes():
                yield f"{path.name} of a run is not what it is without a kill"


if __name__ == "__main__":
    sys.exit(main())
