"""The validator on machines of nodes: planted violations are found, schedules of policies are clean."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, get_args

import pandas as pd
import pytest
from msgspec.structs import replace

from batsched_py.analysis.schedule import INSTANT
from batsched_py.analysis.validator import Facts, Policy, validate
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers import SCHEDULERS
from batsched_py.schedulers.node_choice import CHOICES
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.testing.runs import schedule_of
from batsched_py.workload.model import Workload
from tests.nodes.test_reference import as_platform, as_workload, random_jobs, random_machine

GB = 1024**2
POLICIES = sorted(SCHEDULERS.all())

#: Nodes a (hosts 0-3) and b (4-7) have 8 GB, 2 GPUs; nodes c (8-11) has neither and is in another partition.
MACHINE = platform_of(
    [
        NodeKind(["a", "b"], 4, {"memory": 8 * GB, "gpu": 2}, ["a100"], (), ("gpu",)),
        NodeKind(["c"], 4, {}, [], (), ("cpu",)),
    ],
    {"matlab": 1},
    "machine",
)
NODES = Facts(machine=MACHINE.as_protocol()[0])

#: A job that is at its place in the schedule: when it starts, how long it runs, its hosts and its request.
Row = tuple[float, float, str, dict[str, Any]]


def planted(rows: Sequence[Row]) -> tuple[pd.DataFrame, Workload]:
    """A schedule in which jobs 0, 1, ... are where a test says, submitted when they start."""
    jobs, lines = [], []
    for number, (start, ran, hosts, request) in enumerate(rows):
        size = sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in hosts.split())
        jobs.append(Job(f"w0!{number}", start, size, 100.0, f"{ran}", {"request": request}))
        lines.append((number, start, ran, hosts, size))
    schedule = pd.DataFrame(
        {
            "job_id": [str(number) for number, *_ in lines],
            "workload_name": "w0",
            "profile": [f"{ran}" for _, _, ran, _, _ in lines],
            "submission_time": [start for _, start, *_ in lines],
            "requested_number_of_resources": [size for *_, size in lines],
            "requested_time": 100.0,
            "success": 1,
            "final_state": "COMPLETED_SUCCESSFULLY",
            "starting_time": [start for _, start, *_ in lines],
            "execution_time": [ran for _, _, ran, _, _ in lines],
            "finish_time": [start + ran for _, start, ran, _, _ in lines],
            "waiting_time": 0.0,
            "turnaround_time": [ran for _, _, ran, _, _ in lines],
            "stretch": [1.0 if ran > INSTANT else float("nan") for _, _, ran, _, _ in lines],
            "allocated_resources": [hosts for *_, hosts, _ in lines],
            "consumed_energy": -1.0,
            "metadata": "",
        }
    )
    profiles = {f"{ran}": Delay(ran) for _, _, ran, _, _ in lines}
    return schedule, Workload("w0", jobs, profiles, len(MACHINE.hosts))


def found(rows: Sequence[Row], policy: Policy | None = None) -> list[str]:
    schedule, workload = planted(rows)
    return [str(each) for each in validate(schedule, len(MACHINE.hosts), [workload], policy, NODES)]


@pytest.mark.parametrize(
    ("rows", "violation"),
    [
        (
            [(0, 9, "0-1", {"per_task": {"memory": "3 GB"}}), (1, 9, "2", {"per_node": {"memory": "3 GB"}})],
            "resources at 1.000000: with job w0!1, node a has 9 GB of memory in use, but only 8 GB of memory",
        ),
        (
            [(0, 9, "0-2", {"per_core": {"gpu": 1}})],
            "resources at 0.000000: with job w0!0, node a has 3 gpu in use, but only 2 gpu",
        ),
        (
            [(0, 9, "0-2", {}), (5, 9, "2-3", {})],
            "resources at 5.000000: with job w0!1, node a has 5 cores in use, but only 4 cores",
        ),
        (
            [(0, 9, "8", {"per_task": {"memory": 1}})],
            "resources at 0.000000: with job w0!0, node c has 1 MB of memory in use, but only 0 kB of memory",
        ),
        (
            [(0, 9, "0-1", {"per_task": {"gpu": 1}}), (5, 0, "2", {"per_task": {"gpu": 1}})],
            "resources at 4.999997: with job w0!1, node a has 3 gpu in use, but only 2 gpu",
        ),
        (
            [(0, 9, "0", {"licences": {"matlab": 1}}), (1, 9, "4", {"licences": {"matlab": 1}})],
            "licences at 1.000000: with job w0!1, 2 licences of matlab are in use, but there are 1",
        ),
        (
            [(0, 9, "0", {}), (1, 9, "1-4", {"exclusive": True})],
            "exclusive at 1.000000: jobs w0!0 and w0!1 share node a, which w0!1 must have alone",
        ),
        (
            [(0, 9, "0", {"exclusive": True}), (1, 9, "3", {})],
            "exclusive at 1.000000: jobs w0!0 and w0!1 share node a, which w0!0 must have alone",
        ),
        (
            [(0, 9, "7-8", {"partitions": ["gpu", "cpu"]})],
            "partition at 0.000000: job w0!0 is not on nodes of one of its partitions: gpu, cpu",
        ),
        (
            [(0, 9, "7-8", {"features": "a100"})],
            "features at 0.000000: job w0!0 is on node c, which is not what it asks for: a100",
        ),
        ([(0, 9, "0-1", {"nodes": 2})], "nodes at 0.000000: job w0!0 is on 1 nodes instead of 2"),
        (
            [(0, 9, "3-8", {"nodes": [1, 2]})],
            "nodes at 0.000000: job w0!0 is on 3 nodes instead of 1 to 2",
        ),
        (
            [(0, 9, "0-2 4", {"tasks_per_node": 2})],
            "tasks at 0.000000: job w0!0 has 3 tasks on node a, but at most 2 may be",
        ),
        (
            [(0, 9, "2-4 6", {"cores": 4})],
            "tasks at 0.000000: job w0!0 has 2 cores of node a, but its tasks need 4 each",
        ),
    ],
)
def test_that_a_planted_violation_is_found(rows: Sequence[Row], violation: str) -> None:
    assert violation in found(rows)


def test_that_a_job_asks_for_the_same_when_it_begins_again_after_a_failure() -> None:
    schedule, workload = planted([(0, 9, "0", {"per_node": {"memory": "7 GB"}}), (9, 9, "1", {})])
    schedule["metadata"] = ["failed=0", "recorded=0 restart=1"]
    schedule["job_id"] = ["0", "0#1"]
    again = Workload("w0", workload.jobs[:1], workload.profiles)
    assert [each.rule for each in validate(schedule, len(MACHINE.hosts), [again], None, NODES)] == []
    small = [
        replace(host, properties=host.properties | {"resources": "memory=1MB"}) for host in NODES.machine
    ]
    found = validate(schedule, len(MACHINE.hosts), [again], None, Facts(machine=small))
    assert [(each.rule, each.jobs) for each in found] == [
        ("resources", ("w0!0",)),
        ("resources", ("w0!0#1",)),
    ]


def test_that_what_is_just_enough_is_no_violation() -> None:
    full = {"per_task": {"memory": "2 GB"}, "nodes": 2, "tasks_per_node": 4, "exclusive": True}
    rows: list[Row] = [
        (0, 9, "0-7", full | {"features": "a100", "licences": {"matlab": 1}}),
        (9, 9, "0-7", full | {"partitions": ["cpu", "gpu"], "licences": {"matlab": 1}}),
        (9, 0, "8-11", {"cores": 2}),
        (9, 9, "8-11", {"cores": 4}),
    ]
    assert found(rows) == []


def late(rows: Sequence[Row], number: int, submission: float) -> list[str]:
    """What EASY broke in a schedule in which one job was submitted earlier than it started."""
    schedule, workload = planted(rows)
    wait = schedule.loc[number, "starting_time"] - submission
    schedule.loc[number, ["submission_time", "waiting_time"]] = submission, wait
    schedule.loc[number, "turnaround_time"] += wait
    schedule.loc[number, "stretch"] = schedule.loc[number, "turnaround_time"] / rows[number][1]
    jobs = [
        Job(job.id, submission, job.size, job.walltime, job.profile, job.extra) if place == number else job
        for place, job in enumerate(workload.jobs)
    ]
    workload = Workload("w0", jobs, workload.profiles, workload.nb_hosts)
    return [each.rule for each in validate(schedule, 12, [workload], "easy", NODES)]


def test_that_a_head_that_could_have_started_is_found() -> None:
    rows: list[Row] = [(0, 9, "0", {"per_task": {"memory": "6 GB"}}), (5, 9, "4", {"per_node": {"gpu": 2}})]
    assert late(rows, 1, 2.0) == ["easy-idle", "easy-reservation"]


def test_that_a_head_that_waits_for_memory_while_cores_are_free_is_none() -> None:
    large = {"per_node": {"memory": "6 GB"}, "nodes": 2}
    rows: list[Row] = [(0, 9, "0", {"per_task": {"memory": "6 GB"}}), (9, 9, "0 4", large)]
    assert late(rows, 1, 2.0) == []


def test_that_a_job_that_takes_the_memory_of_the_head_is_found() -> None:
    """Cores are left for the head at its shadow time, 100; its memory is not."""
    large = {"per_node": {"memory": "6 GB"}, "nodes": 2}
    rows: list[Row] = [
        (0, 9, "0", {"per_task": {"memory": "6 GB"}}),
        (15, 9, "0 4", large),
        (5, 10, "4", {"per_task": {"memory": "3 GB"}}),
    ]
    assert late(rows, 1, 2.0) == ["easy-backfill"]
    rows[2] = (5, 10, "4", {"per_task": {"memory": "2 GB"}})
    assert "easy-backfill" not in late(rows, 1, 2.0)


def clean(seed: int, policy: str, choice: Any) -> None:
    random = Random(seed)
    nodes, licences = random_machine(random)
    platform = as_platform(nodes, licences)
    workload = as_workload(random_jobs(random, 25), len(platform.hosts))
    options = {} if policy == "slurm" else {"nodes": choice}
    schedule = schedule_of(SCHEDULERS.create(policy, options), workload, platform)
    facts = Facts(machine=platform.as_protocol()[0], nodes=choice)
    promise = policy if policy in get_args(Policy) else None
    assert validate(schedule, len(platform.hosts), [workload], promise, facts) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_that_schedules_of_policies_on_machines_of_nodes_are_clean(policy: str) -> None:
    for seed, choice in enumerate(CHOICES):
        clean(seed, policy, choice)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_that_many_schedules_of_policies_are_clean(policy: str) -> None:
    for seed in range(80):
        clean(seed, policy, list(CHOICES)[seed % len(CHOICES)])


def test_that_the_promise_of_conservative_is_that_of_its_own_choice_of_nodes() -> None:
    """A schedule of another policy breaks it somewhere."""
    broken = 0
    for seed in range(10):
        random = Random(seed)
        nodes, licences = random_machine(random)
        platform = as_platform(nodes, licences)
        workload = as_workload(random_jobs(random, 25), len(platform.hosts))
        schedule = schedule_of(SCHEDULERS.create("fcfs", {}), workload, platform)
        facts = Facts(machine=platform.as_protocol()[0])
        rules = {each.rule for each in validate(schedule, None, [workload], "conservative", facts)}
        assert rules <= {"conservative-reservation"}
        broken += bool(rules)
    assert broken
