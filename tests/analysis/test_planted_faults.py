"""Faults planted into the simulator, one at a time: the validator finds each, and nothing without them.

A fault is a patch of the code that makes schedules. The validator has an account of its own, so it does not
share the fault. Where code moves, only the targets of the patches have to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Facts, Policy, Violation, validate
from batsched_py.outside.closures import Closure, Closures
from batsched_py.outside.curve import Curve
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.protocol.requests import Request, read_request
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.platform import PowerState
from batsched_py.simulator.setup import Setup
from batsched_py.testing.runs import JobSpec, schedule_of, workload_of
from tests.drive import platform
from tests.nodes.test_reference import as_platform, as_workload, random_jobs, random_machine
from tests.power import machine as machine_with_watts
from tests.power import random_jobs as random_power_jobs
from tests.power import run

HOSTS = 8
SEEDS = range(12)

Patch = Callable[[pytest.MonkeyPatch], None]


def some_jobs(seed: int, most: int = HOSTS, dependent: bool = False) -> list[JobSpec]:
    """Jobs of which some end early and some reach their walltimes; they may wait for others."""
    jobs, now, random = [], 0.0, Random(seed)
    for number in range(40):
        now += random.choice((0, 1, 5, 10))
        walltime = random.choice((10, 20, 50))
        run_time = walltime * random.choice((0.2, 0.7, 1.5))
        fields = {"after": f"afterany:{number - 1}"} if dependent and number % 5 == 4 else {}
        jobs.append(JobSpec(str(number), now, random.randint(1, most), run_time, walltime, fields=fields))
    return jobs


def on_hosts(policy: Policy, seed: int, _folder: Path) -> list[Violation]:
    """What is found in a schedule of hosts of two speeds."""
    jobs, machine = some_jobs(seed), platform(HOSTS)
    for host in machine.hosts[HOSTS // 2 :]:
        host.pstates = [PowerState(0.8 * host.speed), *host.pstates[1:]]
    schedule = schedule_of(SCHEDULERS.create(policy, {}), jobs, machine)
    facts = Facts(machine=machine.as_protocol()[0], speeds=[host.speed for host in machine.hosts])
    return validate(schedule, HOSTS, [workload_of(jobs)], policy, facts)


def with_dependencies(policy: Policy, seed: int, _folder: Path) -> list[Violation]:
    """What is found in a schedule of jobs that wait for others."""
    jobs = some_jobs(seed, dependent=True)
    return validate(schedule_of(SCHEDULERS.create(policy, {}), jobs, HOSTS), HOSTS, [workload_of(jobs)])


def on_nodes(policy: Policy, seed: int, _folder: Path) -> list[Violation]:
    """What is found in a schedule on a machine of nodes."""
    random = Random(seed)
    machine = as_platform(*random_machine(random))
    workload = as_workload(random_jobs(random, 40), len(machine.hosts))
    schedule = schedule_of(SCHEDULERS.create(policy, {}), workload, machine)
    facts = Facts(machine=machine.as_protocol()[0])
    return validate(schedule, len(machine.hosts), [workload], policy, facts)


def with_closures(policy: Policy, seed: int, _folder: Path) -> list[Violation]:
    """What is found in a schedule on hosts of which half are closed at times."""
    jobs = some_jobs(seed, HOSTS // 2)
    closures = [Closure(start, start + 40, HostSet.range(HOSTS // 2)) for start in (30.0, 120.0)]
    schedule = schedule_of(SCHEDULERS.create(policy, {}), jobs, HOSTS, closures=closures)
    return validate(schedule, HOSTS, [workload_of(jobs)], None, Facts(closures=closures))


def with_a_cap(policy: Policy, seed: int, folder: Path) -> list[Violation]:
    """What is found in a schedule under a cap on power."""
    workload, machine = random_power_jobs(seed, 40, 5), machine_with_watts(9)
    run(Setup(machine, [workload]), f"capped({policy})", folder, watts="1400")
    facts = Facts(machine=machine.as_protocol()[0], power_cap=Curve([0.0], [1400.0]))
    return validate(read_schedule(folder / "out_jobs.csv"), 9, [workload], None, facts)


# --- the faults ------------------------------------------------------------------------------------------


def asks(**instead: Any) -> Patch:
    """The simulator takes no notice of a part of what jobs ask of nodes."""

    def forgetful(size: int, fields: Any) -> Request:
        request = read_request(size, fields)
        changes = {name: value(request) if callable(value) else value for name, value in instead.items()}
        return replace(request, **changes)

    return lambda patch: patch.setattr("batsched_py.ledger.free_nodes.read_request", forgetful)


def without(resource: str) -> Patch:
    """The simulator takes no notice of a resource that jobs ask for."""

    def others(part: str) -> Callable[[Request], Any]:
        return lambda request: tuple(each for each in getattr(request, part) if each[0] != resource)

    return asks(per_task=others("per_task"), per_node=others("per_node"))


def capacities(patch: pytest.MonkeyPatch) -> None:
    """A node takes as many tasks as it has free cores for, whatever else they need."""
    from batsched_py.ledger.nodes import Demand

    def by_cores(self: Any, free: Any) -> Any:
        return np.clip(free[:, 0] // self.per_task[0], 0, self.request.tasks_per_node)

    patch.setattr(Demand, "capacities", by_cores)


def extra_hosts(patch: pytest.MonkeyPatch) -> None:
    """A reservation says that two more hosts are left at the shadow time than there are."""
    cluster = SCHEDULERS.find("easy").schedule.__globals__["Cluster"]
    right = cluster.reservation

    def generous(self: Any, job: Any) -> Any:
        found = right(self, job)
        return replace(found, extra=found.extra + 2)

    patch.setattr(cluster, "reservation", generous)


def late_profile(patch: pytest.MonkeyPatch) -> None:
    """The profile of free hosts finds a time for a job only if it were twice as long."""
    from batsched_py.ledger.profile import AvailabilityProfile

    right = AvailabilityProfile._earlier

    def late(self: Any, size: int, duration: float, reserved: float, before: float) -> float:
        return right(self, size, 2 * duration, reserved, before)

    patch.setattr(AvailabilityProfile, "_earlier", late)


def last_nodes(patch: pytest.MonkeyPatch) -> None:
    """First fit fills the last nodes first."""
    from batsched_py.schedulers.node_choice import CHOICES

    patch.setitem(CHOICES, "first-fit", lambda offer: (np.arange(len(offer.nodes))[::-1], False))


def any_order(patch: pytest.MonkeyPatch) -> None:
    """FCFS starts whatever fits."""

    def schedule(_self: Any, cluster: Any) -> None:
        for job in cluster.fitting():
            cluster.start(job)

    patch.setattr(SCHEDULERS.find("fcfs"), "schedule", schedule)


def no_walltimes(patch: pytest.MonkeyPatch) -> None:
    """Jobs are never killed."""
    patch.setattr(Homogeneous, "fits", lambda self, seconds, remaining: True)


def early_kills(patch: pytest.MonkeyPatch) -> None:
    """Jobs are taken to need their walltimes that need more than half of them."""
    patch.setattr(Homogeneous, "fits", lambda self, seconds, remaining: 2 * seconds < remaining)


def slow_hosts(patch: pytest.MonkeyPatch) -> None:
    """Hosts compute at nine tenths of their speeds."""
    right = Homogeneous.seconds
    patch.setattr(Homogeneous, "seconds", lambda self, *executors: right(self, *executors) / 0.9)


def no_closures(patch: pytest.MonkeyPatch) -> None:
    """Closures bar nobody."""
    patch.setattr(Closures, "barring", lambda self, user, start, end: [])


def no_cap(patch: pytest.MonkeyPatch) -> None:
    """Whatever is drawn is within the cap."""
    patch.setattr("batsched_py.schedulers.power.PowerAccount.allows", lambda self, watts, start, end: True)


def no_holds(patch: pytest.MonkeyPatch) -> None:
    """Jobs join the queue at once that should wait for others."""
    patch.setattr("batsched_py.ledger.holds.Holds.hold", lambda self, job: None)


@dataclass(frozen=True)
class Fault:
    """What is planted, where it shows, and by which rule it is found."""

    plant: Patch
    found: Callable[[Policy, int, Path], list[Violation]]
    policy: Policy
    rule: str


FAULTS = {
    "capacities": Fault(capacities, on_nodes, "easy", "resources"),
    "memory": Fault(without("memory"), on_nodes, "easy", "resources"),
    "GPUs": Fault(without("gpu"), on_nodes, "easy", "resources"),
    "licences": Fault(asks(licences=()), on_nodes, "easy", "licences"),
    "exclusive": Fault(asks(exclusive=False), on_nodes, "easy", "exclusive"),
    "partitions": Fault(asks(partitions=()), on_nodes, "fcfs", "partition"),
    "features": Fault(asks(features=""), on_nodes, "fcfs", "features"),
    "fewest nodes": Fault(asks(least_nodes=1), on_nodes, "fcfs", "nodes"),
    "tasks of a node": Fault(asks(tasks_per_node=1000), on_nodes, "fcfs", "tasks"),
    "choice of nodes": Fault(last_nodes, on_nodes, "conservative", "conservative-reservation"),
    "reservation": Fault(extra_hosts, on_hosts, "easy", "easy-backfill"),
    "profile": Fault(late_profile, on_hosts, "conservative", "conservative-reservation"),
    "order of the queue": Fault(any_order, on_hosts, "fcfs", "fcfs-order"),
    "walltime": Fault(no_walltimes, on_hosts, "easy", "walltime"),
    "kills before the walltime": Fault(early_kills, on_hosts, "easy", "profile"),
    "speed": Fault(slow_hosts, on_hosts, "easy", "profile"),
    "closures": Fault(no_closures, with_closures, "easy", "closed"),
    "power cap": Fault(no_cap, with_a_cap, "easy", "power"),
    "dependencies": Fault(no_holds, with_dependencies, "fcfs", "dependency"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    fault.plant(monkeypatch)
    assert fault.rule in rules(fault, tmp_path)


def rules(fault: Fault, folder: Path) -> Iterator[str]:
    """The rules that are broken, one schedule after another."""
    for seed in SEEDS:
        yield from (violation.rule for violation in fault.found(fault.policy, seed, folder))


@pytest.mark.parametrize(
    ("found", "policy"), sorted({(fault.found, fault.policy) for fault in FAULTS.values()}, key=str)
)
def test_without_a_fault_nothing_is_found(
    found: Callable[[Policy, int, Path], list[Violation]], policy: Policy, tmp_path: Path
) -> None:
    for seed in SEEDS:
        assert found(policy, seed, tmp_path) == []
