"""Jobs that a machine of nodes can never run: rejected, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from batsched_py.ledger.nodes import Node, NodeMachine, Refusal, demand_of, why_never
from batsched_py.protocol.requests import read_request
from tests.processes import call_here

GB = 1024**2
MACHINE = NodeMachine(
    [
        Node("a0", 0, 8, {"memory": 32 * GB}, frozenset({"old"}), "", ("cpu",)),
        Node("a1", 8, 8, {"memory": 32 * GB}, frozenset({"old"}), "", ("cpu",)),
        Node("b", 16, 4, {"memory": 64 * GB, "gpu": 2}, frozenset({"a100"}), "", ("gpu",)),
    ],
    {"matlab": 3},
)
REFUSED = [
    (21, {}, "cores", "asks for 21 cores, the machine has 20"),
    (2, {"licences": {"matlab": 4}}, "licences", "asks for 4 licences of matlab, the machine has 3"),
    (2, {"licences": {"comsol": 1}}, "licences", "asks for 1 licences of comsol, the machine has 0"),
    (2, {"per_node": {"fpga": 1}}, "fpga of a node", "asks for fpga, which no node has"),
    (2, {"partitions": ["x", "y"]}, "partition", "asks for partition x or y, which has no nodes"),
    (2, {"features": "v100"}, "features", "asks for nodes with v100, of which there are none"),
    (
        2,
        {"features": "a100", "partitions": ["cpu"]},
        "features",
        "asks for nodes with a100, of which there are none in cpu",
    ),
    (
        1,
        {"per_node": {"memory": "512 GB"}},
        "memory of a node",
        "asks for 512 GB on a node, the largest has 64 GB",
    ),
    (
        8,
        {"per_core": {"memory": "10 GB"}, "nodes": 1},
        "memory of a node",
        "asks for 80 GB on a node, the largest has 64 GB",
    ),
    (
        4,
        {"per_core": {"memory": "10 GB"}, "nodes": 1, "partitions": ["cpu"]},
        "memory of a node",
        "asks for 40 GB on a node, the largest has 32 GB",
    ),
    (9, {"tasks": 1, "cores": 9}, "cores of a node", "asks for 9 cores on a node, the largest has 8 cores"),
    (3, {"per_node": {"gpu": 3}}, "gpu of a node", "asks for 3 gpu on a node, the largest has 2 gpu"),
    (
        8,
        {"tasks": 1, "cores": 8, "per_task": {"gpu": 1}},
        "a node with all of it",
        "asks for more on a node than any single node has of everything",
    ),
    (
        8,
        {"nodes": [1, 2], "tasks_per_node": 3},
        "nodes",
        "asks for at most 2 nodes and 3 tasks on each, too few for 8 tasks",
    ),
    (
        4,
        {"nodes": 3, "features": "old"},
        "nodes",
        "asks for 3 nodes, 2 have what it asks for",
    ),
    (
        20,
        {"per_core": {"memory": "8 GB"}},
        "room for all tasks",
        "asks for 20 tasks, the nodes that it may use have room for 12",
    ),
]


@pytest.mark.parametrize(("size", "request_", "kind", "text"), REFUSED)
def test_that_the_reason_is_named(size: int, request_: dict[str, Any], kind: str, text: str) -> None:
    demand = demand_of(read_request(size, request_), MACHINE)
    assert why_never(demand, MACHINE) == Refusal(kind, text)


@pytest.mark.parametrize(
    ("size", "request_"),
    [
        (20, {}),
        (3, {"nodes": 3}),
        (4, {"per_node": {"gpu": 2, "memory": "64 GB"}}),
        (8, {"tasks": 1, "cores": 8}),
    ],
)
def test_that_there_is_none_for_what_fits(size: int, request_: dict[str, Any]) -> None:
    assert why_never(demand_of(read_request(size, request_), MACHINE), MACHINE) is None


def said_by(*arguments: str | Path) -> str:
    code, stdout, stderr = call_here(arguments)
    assert code == 0, stderr
    return stdout


@pytest.fixture
def files(tmp_path: Path) -> list[str | Path]:
    """A machine, and a workload with a job for each reason among others."""
    machine = tmp_path / "machine.toml"
    machine.write_text(
        """
        [[nodes]]
        count = 2
        name = "a"
        cores = 8
        memory = "32 GB"
        features = ["old"]
        partitions = ["cpu"]
        [[nodes]]
        count = 1
        name = "b"
        cores = 4
        memory = "64 GB"
        gpu = 2
        features = ["a100"]
        partitions = ["gpu"]
        [licences]
        matlab = 3
        """
    )
    asked = [(size, request) for size, request, *_ in REFUSED]
    jobs = [
        {"id": f"{number}", "subtime": number // 2, "res": size, "profile": "p", "walltime": 9,
         "request": request}
        for number, (size, request) in enumerate([each for one in asked for each in (one, (5, {}))])
    ]  # fmt: skip
    workload = tmp_path / "workload.json"
    profiles = {"p": {"type": "delay", "delay": 5}}
    workload.write_text(json.dumps({"nb_res": 20, "jobs": jobs, "profiles": profiles}))
    return ["-w", workload, "-p", machine, "--reject-larger"]


def test_that_run_counts_the_reasons_and_explain_tells_them(files: list[str | Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = said_by("run", *files, "-s", "easy", "-e", out, "--remarks")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "rejected 16 (50.0%), in no mean" in lines
    assert "cannot get: memory of a node 3" in lines
    assert "cannot get: partition 1" in lines
    told = json.loads(said_by("run", *files, "-s", "fcfs", "-e", out, "--remarks", "--json"))
    assert sum(told["refused"].values()) == told["rejected"] == 16
    assert told["refused"]["licences"] == 2
    explained = said_by("explain", out, "14")
    assert "rejected" in explained
    assert "asks for 512 GB on a node, the largest has 64 GB" in explained


@pytest.mark.parametrize("more", [[], ["--users", "rigid"]])
def test_that_both_engines_say_the_same(
    files: list[str | Path], more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for name in ("native", "python"):
        if name == "python":
            monkeypatch.setattr("batsched_py.native.library", None)
        told = said_by("run", *files, *more, "-s", "easy", "-e", tmp_path / name, "--remarks", "--json")
        remarks = (tmp_path / f"{name}_remarks.csv").read_bytes()
        said.append((json.loads(told)["refused"], remarks))
    assert said[0] == said[1]
    assert sum(b"asks for" in line for line in said[0][1].splitlines()) == len(REFUSED)


def test_that_plain_machines_have_no_such_counts(tmp_path: Path, files: list[str | Path]) -> None:
    told = said_by("run", *files[:2], "--hosts", "20", "-s", "easy", "-e", tmp_path / "out", "--json")
    assert "refused" not in json.loads(told)
