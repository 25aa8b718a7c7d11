"""Nodes of one core, without anything else, are hosts: schedules are those of a plain machine."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import get_args

import pytest

from batsched_py import native
from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers import SCHEDULERS, Wrapper
from batsched_py.schedulers.selection import SelectionName
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing.runs import schedule_of
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.test_engines import HOSTS, Erratic, random_workload, run

ENGINES = ["python", "native"] if native.library is not None else ["python"]

#: Policies around others are for the Python engine.
PAIRS = [
    (name, engine)
    for name, policy in sorted(SCHEDULERS.all().items())
    for engine in ENGINES
    if engine == "python" or not issubclass(policy, Wrapper)
]

#: Selections that know the network need one.
SELECTIONS = [name for name in get_args(SelectionName) if name not in ("fewest-switches", "least-loaded")]


def one_core_nodes(count: int) -> Platform:
    names = [f"n{number:03}" for number in range(count)]
    return platform_of([NodeKind(names, 1, {})], {}, "machine")


def files(
    engine: str, platform: Platform, workload: Workload, policy: str, folder: Path, selection: str = "lowest"
) -> list[bytes]:
    process = DecisionProcess(SCHEDULERS.create(policy, {"selection": selection}))
    return run(engine, Setup(platform, [workload]), process, str(folder / "out"))


@pytest.mark.parametrize(("policy", "engine"), PAIRS)
@pytest.mark.parametrize("nb_jobs", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_one_core_nodes_give_the_schedules_of_hosts(
    root: Path, tmp_path: Path, policy: str, engine: str, nb_jobs: int
) -> None:
    sample = read_workload(root / "workloads" / "sample.swf", "w0")
    sample = Workload("w0", list(sample.jobs)[:nb_jobs], sample.profiles)
    for count, workload in [(64, sample), *((HOSTS, random_workload(Random(seed))) for seed in range(2))]:
        plain = files(engine, Platform.homogeneous(count), workload, policy, tmp_path)
        assert files(engine, one_core_nodes(count), workload, policy, tmp_path) == plain


@pytest.mark.parametrize("engine", ENGINES)
def test_one_core_nodes_look_like_hosts_to_a_policy(tmp_path: Path, engine: str) -> None:
    for seed in range(3):
        heard = []
        for platform in (Platform.homogeneous(HOSTS), one_core_nodes(HOSTS)):
            policy = Erratic(seed)
            setup = Setup(platform, [random_workload(Random(seed))])
            heard.append((run(engine, setup, DecisionProcess(policy), str(tmp_path / "out")), policy.heard))
        assert heard[0] == heard[1]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_hosts_are_selected_among_one_core_nodes_as_among_hosts(tmp_path: Path, selection: str) -> None:
    workload = random_workload(Random(1))
    plain = files("python", Platform.homogeneous(HOSTS), workload, "easy", tmp_path, selection)
    assert files("python", one_core_nodes(HOSTS), workload, "easy", tmp_path, selection) == plain


def test_requests_are_heard_on_one_core_nodes() -> None:
    """Such a machine is not just plain: what none of its nodes has is refused."""
    jobs = [
        Job("w0!any", 0.0, 2, 10.0, "p", {"request": {"cores": 1, "nodes": 2}}),
        Job("w0!wide", 0.0, 2, 10.0, "p", {"request": {"cores": 2}}),
        Job("w0!large", 0.0, 2, 10.0, "p", {"request": {"per_node": {"memory": "1 GB"}}}),
    ]
    schedule = schedule_of(
        SCHEDULERS.create("conservative", {}), Workload("w0", jobs, {"p": Delay(5.0)}), one_core_nodes(4)
    )
    states = dict(zip(schedule["job_id"], schedule["final_state"], strict=True))
    assert states == {"any": "COMPLETED_SUCCESSFULLY", "wide": "REJECTED", "large": "REJECTED"}
