"""Files that are absurd: too deep, too long, too many. Each is refused by name, before it takes memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from batsched_py.cli.main import batsched_py

NINES = "9" * 5000
JOB = {"id": 1, "subtime": 0, "res": 1, "walltime": 20, "profile": "p"}
DELAY = {"type": "delay", "delay": 1}
NO_WORK = {"type": "parallel_homogeneous", "cpu": 0, "com": 0}
RECORD = "1 0 0 10 1 -1 -1 1 15 -1 1 1 1 1 1 1 -1 -1\n"
PLAN = '[logs]\nw = { file = "w.json" }\n[schedulers]\nrandom = {}\n'


def workload(nb_res: int = 4, job: dict[str, Any] = JOB, **profiles: dict[str, Any]) -> str:
    return json.dumps({"nb_res": nb_res, "jobs": [job], "profiles": {"p": DELAY} | profiles})


def composed(repeat: int, *parts: str) -> dict[str, Any]:
    return {"type": "composed", "repeat": repeat, "seq": list(parts)}


CHAIN = {f"c{n}": composed(1, f"c{n + 1}") for n in range(5000)} | {"c5000": DELAY}
WIDE = {f"c{n}": composed(1, *[f"c{n + 1}"] * 2) for n in range(60)} | {"c60": DELAY}

#: What is given to `run`: files by their names, options; and what is said.
RUNS: dict[str, tuple[dict[str, str], str, str]] = {
    "deep JSON": ({"w.json": '{"nb_res": 4, "jobs": ' + "[" * 100_000}, "", "w.json: not a Batsim workload"),
    "a long number": ({"w.json": workload().replace('"delay": 1', f'"delay": {NINES}')}, "", "w.json: not a"),
    "nb_res": ({"w.json": workload(10**12)}, "", "a platform has at most 1048576 hosts, not 1000000000000"),
    "hosts": ({"w.json": workload()}, "--hosts 999999999", "a platform has at most 1048576 hosts, not 9999"),
    "deep profiles": (
        {"w.json": workload(job=JOB | {"profile": "c0"}, **CHAIN)},
        "",
        "workload 'w0': profile 'c101' is a part of parts, more than 100 deep",
    ),
    "wide profiles": (
        {"w.json": workload(job=JOB | {"profile": "c0"}, **WIDE)},
        "",
        "workload 'w0': profile 'c36' is made of 16777216 tasks",
    ),
    "repeated nothing": (
        {"w.json": workload(p=composed(10**9, "q"), q=composed(10**9, "r"), r=NO_WORK)},
        "",
        "workload 'w0': profile 'q' is made of 1000000000 tasks; 10000000 are the most",
    ),
    "deep events": (
        {"w.json": workload(), "e.txt": '{"timestamp": 1, "type": ' + "[" * 100_000 + "\n"},
        "--events e.txt",
        "e.txt, line 1: ",
    ),
    "a long time": (
        {"w.json": workload(), "e.txt": f'{{"timestamp": {NINES[:310]}, "type": "machine_available"}}\n'},
        "--events e.txt",
        "e.txt, line 1: ",
    ),
    "deep XML": (
        {"w.json": workload(), "p.xml": "<platform>" + '<zone id="x" routing="Full">' * 50_000},
        "-p p.xml",
        "p.xml: this is not well-formed XML",
    ),
    "radical": (
        {
            "w.json": workload(),
            "p.xml": '<platform version="4.1"><zone id="a" routing="Full"><cluster id="c" prefix="h" '
            'suffix="" radical="0-999999999999" speed="1Gf" bw="1GBps" lat="1us"/></zone></platform>',
        },
        "-p p.xml",
        "p.xml: cluster 'c': interval '0-999999999999'",
    ),
    "a long header": ({"w.swf": f"; MaxProcs: {NINES}\n{RECORD}"}, "", "no workload says how large"),
    "MaxProcs": (
        {"w.swf": f"; MaxProcs: 999999999999\n{RECORD}"},
        "",
        "a platform has at most 1048576 hosts",
    ),
    "a long record": ({"w.swf": RECORD.replace("15", NINES)}, "", "w.swf: no usable record of an SWF log"),
}

PLANS = {
    "deep": ("x = " + "[" * 100_000, "plan.toml: is not TOML: maximum recursion depth exceeded"),
    "a long number": (f"repetitions = {NINES}", "plan.toml: is not TOML: Exceeds the limit (4300 digits)"),
    "repetitions": (f"repetitions = 1000000000\n{PLAN}", "plan.toml:1: repetitions: must be at most 100000"),
    "axes": (
        f"repetitions = 60000\n{PLAN}other = {{ name = 'random' }}\n",
        "plan.toml: asks for 120000 runs; 100000 are the most",
    ),
    "length": ("#" * (1 << 21), "plan.toml: is longer than the 1048576 characters that a plan may have"),
}


def said(*arguments: str) -> str:
    result = CliRunner().invoke(batsched_py, arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("batsched-py: error: ")


@pytest.mark.parametrize("case", RUNS)
def test_run_refuses_by_name(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, options, error = RUNS[case]
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert said("run", "-w", next(iter(files)), "-s", "fcfs", *options.split()).startswith(error)
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_is_refused_by_name(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, error = PLANS[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(text)
    (tmp_path / "w.json").write_text(workload())
    assert said("campaign", "plan", "plan.toml").startswith(error)
