"""Files that are absurd: too deep, too long, too many. Each is refused by name, before it takes memory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from batsched_py.cli.main import batsched_py
from tests.processes import COMMAND, environment

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


def clusters(radical: str, count: int = 1) -> str:
    """A platform with so many clusters, each with hosts of these numbers."""
    hosts = "".join(
        f'<cluster id="c{n}" prefix="c{n}-" suffix="" radical="{radical}" speed="1Gf" bw="1GBps" lat="1us"/>'
        for n in range(count)
    )
    return f'<platform version="4.1"><zone id="a" routing="Full">{hosts}</zone></platform>'


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
        "p.xml: cluster 'c': radical '0-999999999999' has more than 1048576 numbers, which are the most",
    ),
    "a repeated radical": (
        {"w.json": workload(), "p.xml": clusters(",".join(["0-999999"] * 30))},
        "-p p.xml",
        "p.xml: cluster 'c0': radical '0-999999,0-999999,",
    ),
    "nested zones": (
        {
            "w.json": workload(),
            "p.xml": '<platform version="4.1">'
            + '<zone id="x" routing="Full">' * 1000
            + "</zone>" * 1000
            + "</platform>",
        },
        "-p p.xml",
        "p.xml: zones are nested more than 100 deep",
    ),
    "endless events": (
        {"w.json": workload()},
        "--events /dev/zero",
        "/dev/zero: has no end within 256 MiB; if it has one, save it to a file",
    ),
    "memory as events": (
        {"w.json": workload()},
        "--events /proc/self/mem",
        "/proc/self/mem: cannot read this",
    ),
    "a long field": (
        {"w.csv": f"submit,run_time,requested_processors\n{NINES * 400},1,1\n"},
        "",
        "w.csv: no record of a finished job: 1 bad line (line 2: submit is no number or time)",
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
    assert {path.name for path in tmp_path.iterdir()} == files.keys()


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_is_refused_by_name(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, error = PLANS[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(text)
    (tmp_path / "w.json").write_text(workload())
    assert said("campaign", "plan", "plan.toml").startswith(error)


@pytest.mark.parametrize("arguments", ["run -w /proc/self/mem -s fcfs", "describe /proc/self/mem"])
def test_a_log_that_cannot_be_read_is_refused_by_name(arguments: str) -> None:
    assert said(*arguments.split()).startswith("/proc/self/mem: cannot be read: ")


def test_many_clusters_have_no_more_hosts_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batsched_py.simulator.simgrid_xml.MOST_HOSTS", 1000)
    (tmp_path / "p.xml").write_text(clusters("0-499", 3))
    (tmp_path / "w.json").write_text(workload())
    error = said("run", "-w", str(tmp_path / "w.json"), "-p", str(tmp_path / "p.xml"), "-s", "fcfs")
    assert "p.xml: it declares more than 1000 hosts, which are the most" in error


@pytest.mark.parametrize("load", ["inf", "nan", "1e300"])
def test_an_absurd_load_is_refused(load: str, tmp_path: Path) -> None:
    (tmp_path / "w.swf").write_text(RECORD)
    arguments = ("resample", str(tmp_path / "w.swf"), "--load", load, "--output", str(tmp_path / "x.swf"))
    assert "'resample': Expected `float`" in said(*arguments)
    assert not (tmp_path / "x.swf").exists()


@pytest.mark.parametrize("events", ["/dev/stdin", "/dev/null"])
def test_pipes_are_files(events: str, tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(workload())
    arguments = ["run", "-w", "w.json", "-s", "fcfs", "-e", "out", "--events", events]
    run = subprocess.run(
        [*COMMAND, *arguments],
        input='{"timestamp": 1, "type": "machine_unavailable", "resources": "0"}\n',
        cwd=tmp_path,
        env=environment(),
        text=True,
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


def equal_rows(path: Path) -> None:
    """Six million of them."""
    import pyarrow
    import pyarrow.parquet

    columns = ("submit", "run_time", "requested_processors")
    piece = pyarrow.table({name: np.ones(500_000, dtype=np.int64) for name in columns})
    with pyarrow.parquet.ParquetWriter(path, piece.schema) as writer:
        for _ in range(12):
            writer.write_table(piece)


def equal_texts(path: Path) -> None:
    """One of 100 kB in each of 50,000 rows."""
    import pyarrow
    import pyarrow.parquet

    columns = ("submit", "run_time", "requested_processors")
    table = {name: np.ones(50_000, dtype=np.int64) for name in columns}
    users = pyarrow.DictionaryArray.from_arrays(np.zeros(50_000, dtype=np.int32), ["x" * 100_000])
    pyarrow.parquet.write_table(pyarrow.table(table | {"user": users}), path)


@pytest.mark.parametrize("bomb", [equal_rows, equal_texts])
def test_a_table_that_is_much_larger_than_its_file_is_refused(
    bomb: Callable[[Path], None], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    bomb(tmp_path / "w.parquet")
    assert (tmp_path / "w.parquet").stat().st_size < 1 << 19
    error = said("run", "-w", str(tmp_path / "w.parquet"), "-s", "fcfs")
    assert "w.parquet: unpacks to more than" in error
    assert "if it is a log nevertheless, write it as CSV" in error
