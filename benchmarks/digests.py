"""Whether two versions give the same bytes: digests of what many simulations write.

    python benchmarks/digests.py write new.json               # with this version
    python benchmarks/digests.py write old.json --package ../old   # with another checkout, by its own Python
    python benchmarks/digests.py compare old.json new.json

Every policy, with and without users, on hosts and on nodes, in both engines, with hosts of two speeds, power,
closures, prices and failures; all users; conversations over ZeroMQ in both protocols; twins of recorded Slurm
clusters; recorded networks. Other workloads are made from a seed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent

#: Recordings of real simulators and of a real Slurm; without them, their runs are left out.
SHARED: Final = (ROOT.parent / "shared").resolve()

POLICIES: Final = (
    "conservative",
    "easy",
    "easy -o order=smallest-area",
    "easy -o backfill=shortest",
    "easy-moldable",
    "easy-sjbf",
    "fcfs",
    "filler",
    "ljf",
    "malleable-easy",
    "multi-queue",
    "random",
    "sjf",
    "user-aware",
)
#: Policies around others; the last ones need a platform with power states.
WRAPPED: Final = ("cooled(conservative)", "cooled(easy)", "deferring(conservative)", "deferring(easy)")
POWERED: Final = (
    "capped(conservative)",
    "capped(easy)",
    "capped(malleable-easy)",
    "capped(sleeping(conservative))",
    "capped(sleeping(easy))",
    "sleeper",
    "sleeping(conservative)",
    "sleeping(easy)",
    "sleeping(easy-moldable)",
)
USERS: Final = ("", "--users think-time --sessions arrival:60", "--users rigid")
#: The other behaviours; both engines have all of them.
OTHER_USERS: Final = ("adjusted", "distribution", "fluid", "patience", "resample", "site-level", "sober")
SELECTIONS: Final = ("contiguous", "best-fit", "spread", "random")
CHOICES: Final = (
    "best-fit",
    "worst-fit",
    "consolidate",
    "spread",
    "dominant-resource",
    "fewest-switches",
)


def commands() -> Iterator[str]:
    """What is run, in folder with the files that :func:`prepare` makes."""
    for policy in POLICIES:
        for users in USERS:
            yield f"run -w sample.swf --hosts 64 -s {policy} {users}"
        yield f"run -w sample.swf -p nodes.toml -s {policy} {USERS[1]}"
        for seed in (1, 2):
            yield f"run -w jobs{seed}.json --hosts 40 -s {policy}"
            yield f"run -w nodes{seed}.json -p nodes.toml -s {policy}"
            yield f"run -w jobs{seed}.json --hosts 40 -s {policy} --failure-trace failures.csv"
            yield f"run -w nodes{seed}.json -p nodes.toml -s {policy} --closures closures.csv"
            yield f"run -w jobs{seed}.json --hosts 40 -s {policy} --closures closures.csv"
            yield f"run -w chains{seed}.json --hosts 40 -s {policy}"
            yield f"run -w sizes{seed}.json --hosts 40 -s {policy}"
            yield f"run -w sizes{seed}.json -p nodes.toml -s {policy}"
    for policy in ("easy", "conservative", "fcfs"):
        yield from (f"run -w jobs1.json --hosts 40 -s {policy} -o selection={name}" for name in SELECTIONS)
        yield from (f"run -w nodes1.json -p nodes.toml -s {policy} -o nodes={name}" for name in CHOICES)
    for users in OTHER_USERS:
        for machine in ("--hosts 64", "-p nodes.toml"):
            yield f"run -w sample.swf {machine} -s easy --users {users}"
    for policy in WRAPPED:
        for machine in ("-w jobs1.json --hosts 40", "-w nodes1.json -p nodes.toml"):
            yield f"run {machine} -s {policy} --price price.csv --temperature temperature.csv"
    for policy in POWERED:
        for seed in (1, 2):
            for platform, watts in (("power64.xml", 9000), ("powered.toml", 1100)):
                cap = f" -o watts={watts}" if "capped" in policy else ""
                yield f"run -w powered{seed}.json -p {platform} --energy -s {policy}{cap}"
    for policy in POLICIES:
        for users in USERS[:2]:
            yield f"run -w sample.swf -p power64.xml --energy -s {policy} {users} --price price.csv"
            yield f"run -w sample.swf -p uneven8.xml --reject-larger -s {policy} {users}"
    for policy in POLICIES:
        for protocol in (4, 5):
            yield f"wire {protocol} -s {policy}"
    for scenario in sorted(SHARED.glob("slurm/*/jobs.csv")):
        yield f"twin {scenario.parent}"
    for recording in sorted(SHARED.glob("golden/network/*/platform.xml")):
        policy = recording.parent.name.split("_")[1]
        yield f"run -w {recording.parent}/workload.json -p {recording} -s {policy}"


def prepare(folder: Path) -> None:
    """Make the workloads and machines that the commands name."""
    for name in ("workloads/sample.swf", "platforms/power64.xml", "platforms/uneven8.xml"):
        (folder / Path(name).name).write_bytes((ROOT / name).read_bytes())
    nodes = [
        {"count": 4, "name": "c", "cores": 8, "memory": "64 GB"},
        {"count": 2, "name": "g", "cores": 4, "memory": "32 GB", "gpu": 2, "features": ["fast"]},
    ]
    (folder / "nodes.toml").write_text(_machine(nodes) + "[licences]\nmatlab = 3\n")
    powered = [
        {
            "count": 8,
            "name": "p",
            "cores": 8,
            "idle_watts": 95,
            "full_watts": 190,
            "sleep_watts": 9,
            "switch_on_seconds": 120,
            "switch_off_seconds": 40,
        }
    ]
    (folder / "powered.toml").write_text(_machine(powered))
    (folder / "failures.csv").write_text("down,up,hosts\n4000,9000,0-7\n20000,30000,10-25\n31000,33000,all\n")
    (folder / "closures.csv").write_text("start,end,hosts\n5000,9000,0-7\n20000,26000,all\n")
    (folder / "price.csv").write_text("time,value\n0,30\n7000,10\n15000,50\n24000,20\n")
    (folder / "temperature.csv").write_text("time,value\n0,20\n6000,33\n9000,25\n22000,40\n25000,21\n")
    for seed in (1, 2):
        for kind in ("jobs", "nodes", "chains", "sizes", "powered"):
            workload = _workload(Random(f"{kind}{seed}"), kind)
            (folder / f"{kind}{seed}.json").write_text(json.dumps(workload))


def _machine(groups: list[dict[str, Any]]) -> str:
    return "".join(
        "[[nodes]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in group.items()) + "\n"
        for group in groups
    )


def _workload(random: Random, kind: str) -> dict[str, Any]:
    jobs: list[dict[str, Any]] = []
    time = 0.0
    for number in range(300):
        time += random.expovariate(1 / 150)
        run_time = round(random.lognormvariate(6.5, 1.5), random.choice((0, 3)))
        size = min(32, max(1, round(random.lognormvariate(1.2, 1.0))))
        job = {
            "id": number,
            "subtime": round(time, 2),
            "res": size,
            "walltime": round(run_time * random.choice((1, 1, 1.5, 4)) + 1, 1),
            "profile": f"t{number}",
            "user": f"u{random.randrange(9)}",
        }
        if kind == "nodes":
            job["request"] = _request(random, size)
        elif kind == "chains" and number and random.random() < 0.4:
            job["after"] = f"{random.choice(('afterany', 'afterok'))}:{random.randrange(number)}"
        elif kind == "sizes" and random.random() < 0.5:
            job["malleable"] = {"min": max(1, size // 2), "max": min(32, 2 * size)}
        jobs.append(job | {"_run_time": run_time})
    profiles = {
        job["profile"]: {
            "type": "parallel_homogeneous_total",
            "cpu": job.pop("_run_time") * job["res"] * 1e9,
            "com": 0,
        }
        if kind == "sizes"
        else {"type": "delay", "delay": job.pop("_run_time")}
        for job in jobs
    }
    return {"nb_res": 40, "jobs": jobs, "profiles": profiles}


def _request(random: Random, size: int) -> dict[str, Any]:
    request: dict[str, Any] = {}
    if random.random() < 0.5:
        request["per_task"] = {"memory": f"{random.choice((1, 4, 8))} GB"}
    if random.random() < 0.15 and size <= 4:
        request["per_node"] = {"gpu": 1}
    if random.random() < 0.1:
        request["exclusive"] = True
    if random.random() < 0.1:
        request["licences"] = {"matlab": 1}
    return request


def digests(checkout: Path, pure: bool, only: str) -> dict[str, str]:
    """The digest of all files that each command writes, or its last line of error."""
    found = {}
    environment = os.environ | {"BATSCHED_PY_PURE": "1" if pure else "0", "PYTHONPATH": str(checkout)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        program = [sys.executable, "-c", RUN, json.dumps([c for c in commands() if only in c])]
        done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
    return {f"{'pure' if pure else 'native'}: {command}": value for command, value in found.items()}


#: Runs commands one after another, and prints their digests: `run`, a conversation of `serve` and `batsim`
#: over ZeroMQ, or the twin of a Slurm cluster.
RUN: Final = """
import contextlib, hashlib, io, json, pathlib, subprocess, sys
from batsched_py.cli.main import main

def call(*words):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise

def execute(words, folder):
    if words[0] == "wire":
        endpoint = f"ipc://{folder}/socket"
        program = [sys.executable, "-m", "batsched_py"]
        server = [*program, "serve", "--endpoint", endpoint, *words[2:]]
        serve = subprocess.Popen(server, stderr=subprocess.DEVNULL)
        socket = ["--edc-socket-str", endpoint, ""] if words[1] == "5" else ["-s", endpoint]
        words = ["batsim", "--protocol", words[1], *socket, "-w", "jobs1.json", "--hosts", "40"]
        subprocess.run([*program, *words, "-e", f"{folder}/x"], check=True, capture_output=True)
        serve.wait(600)
    elif words[0] == "twin":
        call("slurm", "import", words[1], f"{folder}/twin")
        twin = folder / "twin"
        machine = ["-w", f"{twin}/workload.json", "-p", f"{twin}/platform.toml"]
        policy = ["-s", "slurm", "-o", f"configuration_file={twin}/slurm.toml"]
        call("run", *machine, *policy, "-e", f"{folder}/x")
    else:
        call(*words, "-e", f"{folder}/x")

found = {}
commands = json.loads(sys.argv[1])
for number, command in enumerate(commands):
    folder = pathlib.Path(f"out{number}")
    folder.mkdir()
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            execute(command.split(), folder)
    except (SystemExit, subprocess.CalledProcessError) as error:
        lines = told.getvalue().strip().splitlines()
        found[command] = f"error: {lines[-1] if lines else error}"
        continue
    digest = hashlib.sha256()
    for path in sorted(folder.glob("x*")):
        digest.update(path.name.encode() + path.read_bytes())
    found[command] = digest.hexdigest()
print(json.dumps(found))
"""


def main() -> None:
    """Write digests, or compare two files of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--package", type=Path, default=ROOT, help="the checkout whose package is run")
    parser.add_argument("--only", default="", help="only commands that contain this text")
    options = parser.parse_args()
    if options.action == "write":
        found = {}
        for pure in (False, True):
            found |= digests(options.package.resolve(), pure, options.only)
        options.files[0].write_text(json.dumps(found, indent=1))
        failed = sum(value.startswith("error") for value in found.values())
        print(f"{len(found)} runs, {failed} of them end in an error")
        return
    old, new = (json.loads(path.read_text()) for path in options.files)
    differing = [command for command in old if old[command] != new.get(command)]
    for command in differing:
        print(command, old[command][:100], new.get(command, "was not run")[:100], sep="\n  ")
    print(f"{len(old) - len(differing)} of {len(old)} runs gave the same bytes")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
