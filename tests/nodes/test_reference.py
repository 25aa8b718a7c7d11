"""Schedules on machines of nodes, against the slow and obvious reference."""

from __future__ import annotations

from random import Random

import pytest

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.testing.runs import schedule_of
from batsched_py.workload.model import Workload
from tests.nodes.reference import Node, Reference, RefJob


def random_machine(random: Random) -> tuple[list[Node], int]:
    nodes = []
    for _ in range(random.randint(1, 3)):
        has = {"cores": random.randint(1, 6)}
        if random.random() < 0.7:
            has["memory"] = random.choice((4, 8, 16))
        if random.random() < 0.4:
            has["gpu"] = random.randint(1, 4)
        features = {name for name in ("big", "new") if random.random() < 0.4}
        kind = Node(has, features, random.choice("pq"))
        nodes += [kind] * random.randint(1, 3)
    return nodes, random.randint(0, 3)


def random_jobs(random: Random, count: int) -> list[RefJob]:
    jobs, time = [], 0
    for number in range(count):
        time += random.choice((0, 0, 1, 5, 20))
        tasks = random.randint(1, 6)
        job = RefJob(
            number,
            time,
            random.randint(1, 60),
            random.randint(1, 60),
            tasks,
            {"cores": random.choice((1, 1, 2))},
        )
        if random.random() < 0.4:
            job.per_task["memory"] = random.randint(1, 4)
        if random.random() < 0.2:
            job.per_task["gpu"] = 1
        if random.random() < 0.2:
            job.per_node["memory"] = random.randint(1, 4)
        if random.random() < 0.3:
            job.least = random.randint(1, min(tasks, 3))
        if random.random() < 0.3:
            job.most = random.randint(job.least, 4)
        if random.random() < 0.2:
            job.tasks_per_node = random.randint(1, 3)
        job.exclusive = random.random() < 0.15
        job.feature = random.choice(("", "", "", "big", "new"))
        job.partitions = random.choice(((), (), (), ("p",), ("q", "p")))
        job.licences = random.choice((0, 0, 0, 1, 2))
        jobs.append(job)
    return jobs


def as_platform(nodes: list[Node], licences: int):
    kinds = [
        NodeKind(
            [f"n{number}"],
            node.has["cores"],
            {name: count for name, count in node.has.items() if name != "cores"},
            sorted(node.features),
            (),
            (node.partition,),
        )
        for number, node in enumerate(nodes)
    ]
    return platform_of(kinds, {"matlab": licences} if licences else {}, "machine")


def as_workload(jobs: list[RefJob], nb_hosts: int) -> Workload:
    profiles = {f"{job.run_time}": Delay(float(job.run_time)) for job in jobs}
    return Workload("w0", [as_job(job) for job in jobs], profiles, nb_hosts)


def as_job(job: RefJob) -> Job:
    cores = job.per_task["cores"]
    request = {
        "tasks": job.tasks,
        "cores": cores,
        "per_task": {name: amount(name, count) for name, count in job.per_task.items() if name != "cores"},
        "per_node": {name: amount(name, count) for name, count in job.per_node.items()},
        "nodes": [job.least, min(job.most, 1000)],
        "tasks_per_node": min(job.tasks_per_node, 1000),
        "exclusive": job.exclusive,
        "features": job.feature,
        "partitions": list(job.partitions),
        "licences": {"matlab": job.licences} if job.licences else {},
    }
    return Job(
        f"w0!{job.id:02}",
        float(job.submission),
        job.tasks * cores,
        float(job.walltime),
        f"{job.run_time}",
        {"request": request},
    )


def amount(name: str, count: int) -> int | str:
    return f"{count} kB" if name == "memory" else count


def places(schedule, nodes: list[Node]) -> dict[int, tuple[float, dict[int, int]]]:
    """When each job started, and how many cores of which node it had."""
    node_of = [number for number, node in enumerate(nodes) for _ in range(node.has["cores"])]
    found = {}
    for row in schedule.itertuples():
        if row.final_state != "REJECTED":
            cores: dict[int, int] = {}
            for host in HostSet.parse(str(row.allocated_resources)):
                cores[node_of[host]] = cores.get(node_of[host], 0) + 1
            found[int(row.job_id)] = float(row.starting_time), cores
    return found


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", range(12))
def test_that_schedules_are_those_of_the_reference(seed: int, policy: str) -> None:
    random = Random(seed)
    nodes, licences = random_machine(random)
    jobs = random_jobs(random, 40)
    expected = Reference(nodes, licences, jobs, policy)
    platform = as_platform(nodes, licences)
    schedule = schedule_of(SCHEDULERS.create(policy, {}), as_workload(jobs, len(platform.hosts)), platform)
    by_id = {job.id: job for job in jobs}
    assert places(schedule, nodes) == {
        id: (
            start,
            {node: tasks * by_id[id].per_task["cores"] for node, tasks in expected.places[id].items()},
        )
        for id, start in expected.starts.items()
    }
