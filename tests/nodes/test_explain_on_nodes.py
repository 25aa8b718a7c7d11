"""Why a job waited on a machine of nodes: which resource it waited for, and on which nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.processes import call_here

MACHINE = """
licences = { matlab = 1 }
[[nodes]]
name = "fast"
count = 1
cores = 4
memory = "8 GB"
features = ["a100"]
partitions = ["gpu"]
[[nodes]]
name = "slow"
count = 1
cores = 4
memory = "8 GB"
partitions = ["cpu"]
"""


def explained(folder: Path, request: dict[str, Any], first: dict[str, Any], size: int = 1) -> list[str]:
    """What is told of a job that waits behind another, which runs for ten minutes on 2 hosts."""
    jobs = [
        {"id": "1", "subtime": 0, "res": 2, "walltime": 900, "profile": "p", "request": first},
        {"id": "2", "subtime": 60, "res": size, "walltime": 900, "profile": "p", "request": request},
    ]
    profiles = {"p": {"type": "delay", "delay": 600}}
    workload, machine = folder / "jobs.json", folder / "machine.toml"
    workload.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    machine.write_text(MACHINE)
    inputs = ["-w", workload, "-p", machine]
    assert call_here(["run", "-s", "easy", *inputs, "-e", folder / "out"])[0] == 0
    code, out, err = call_here(["explain", folder / "out", "2", *inputs])
    assert (code, err) == (0, "")
    return [line.strip() for line in out.splitlines()]


LARGE = {"per_node": {"memory": "7 GB"}, "features": "a100"}


@pytest.mark.parametrize(
    ("request_", "first", "size", "told"),
    [
        (
            {"per_task": {"memory": "2 GB"}, "features": "a100"},
            LARGE,
            1,
            "for memory on nodes with a100, 9.00 min",
        ),
        ({"partitions": ["gpu"]}, {"features": "a100"}, 3, "for cores on nodes of gpu, 9.00 min"),
        ({"licences": {"matlab": 1}}, {"licences": {"matlab": 1}}, 1, "for matlab, 9.00 min"),
        (
            {"exclusive": True, "features": "a100"},
            {"features": "a100"},
            1,
            "for empty nodes with a100, 9.00 min",
        ),
        ({"per_node": {"memory": "2 GB"}, "nodes": 2}, LARGE, 8, "for cores and memory, 9.00 min"),
    ],
)
def test_that_the_resource_is_named(
    tmp_path: Path, request_: dict[str, Any], first: dict[str, Any], size: int, told: str
) -> None:
    (line,) = [line for line in explained(tmp_path, request_, first, size) if line.startswith("waited")]
    assert line.split(maxsplit=1)[1] == told
