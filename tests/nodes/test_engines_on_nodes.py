"""The native engine against the Python engine, on machines of nodes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.submissions import FailureRule
from batsched_py.errors import BatschedError
from batsched_py.protocol import events as ev
from batsched_py.schedulers import SCHEDULERS, Scheduler, Wrapper
from batsched_py.schedulers.node_choice import CHOICES
from batsched_py.simulator.setup import Setup
from tests.nodes.test_reference import as_platform, as_workload, random_jobs, random_machine
from tests.test_engines import Erratic, ErraticUser, native_only, on_both, run
from tests.test_engines_disturbed import chained, random_outages

#: Policies around others are for the Python engine.
POLICIES = sorted(name for name, policy in SCHEDULERS.all().items() if not issubclass(policy, Wrapper))


def compare(seed: int, folder: Path, nb_jobs: int = 40) -> None:
    """All policies and choices of nodes take turns, one pair for each seed, and one that is erratic."""
    policy = POLICIES[seed % len(POLICIES)]
    choice = list(CHOICES)[seed // len(POLICIES) % len(CHOICES)]
    random = Random(seed)
    nodes, licences = random_machine(random)
    platform = as_platform(nodes, licences)
    workload = as_workload(random_jobs(random, nb_jobs), len(platform.hosts))

    def decided(engine: str) -> list[bytes]:
        options = {} if policy == "slurm" else {"nodes": choice}
        process = DecisionProcess(SCHEDULERS.create(policy, options))
        return run(engine, Setup(platform, [workload]), process, str(folder / engine))

    by_python, by_native = on_both(decided)
    assert by_native == by_python, (seed, policy, choice)

    def heard(engine: str) -> tuple[list[str], list[bytes]]:
        erratic = Erratic(seed)
        erratic.nodes, erratic.maps = choice, False
        files = run(engine, Setup(platform, [workload]), DecisionProcess(erratic), str(folder / engine))
        return erratic.heard, files

    by_python, by_native = on_both(heard)
    assert by_native == by_python, (seed, "erratic", choice)


@native_only
def test_both_engines_write_the_same_files_on_machines_of_nodes(tmp_path: Path) -> None:
    for seed in range(20):
        compare(seed, tmp_path, nb_jobs=15)


@native_only
@pytest.mark.slow
def test_both_engines_write_the_same_files_on_two_hundred_machines_of_nodes(tmp_path: Path) -> None:
    """So many that each policy meets each choice of nodes several times."""
    for seed in range(200):
        compare(seed, tmp_path)


def compare_while_hosts_fail(seed: int, folder: Path, nb_jobs: int) -> None:
    """With and without users, under any policy; jobs wait for others, too."""
    random = Random(seed)
    nodes, licences = random_machine(random)
    platform = as_platform(nodes, licences)
    workload = chained(random, as_workload(random_jobs(random, nb_jobs), len(platform.hosts)))
    outages = list(random_outages(random, len(platform.hosts)))
    have_users, launch_time = random.random() < 0.5, random.choice((0.0, 2.0))
    name, choice = random.choice(POLICIES), random.choice(list(CHOICES))
    rule = random.choice((None, FailureRule(), FailureRule(resubmits=False)))

    def heard(engine: str) -> tuple[list[list[str]], object]:
        policy: Scheduler = Erratic(seed)
        policy.nodes = choice
        if seed % 2:
            policy = SCHEDULERS.create(name, {} if name == "slurm" else {"nodes": choice})
        jobs, profiles = list(workload.jobs), dict(workload.profiles)
        users = [ErraticUser(f"u{n}", seed, jobs[n::3], profiles) for n in range(3)] if have_users else []
        allowed = ev.Settings(dynamic_jobs=have_users, profile_reuse=have_users)
        static = [] if have_users else [workload]
        setup = Setup(platform, static, allowed, events=[outages], launch_time=launch_time)
        process = DecisionProcess(policy, users, on_failure=rule)
        try:
            written: object = run(engine, setup, process, str(folder / engine))
        except BatschedError as error:
            written = type(error), str(error)
        return [*(user.heard for user in users), getattr(policy, "heard", [])], written

    by_python, by_native = on_both(heard)
    assert by_native == by_python, (seed, name, choice)


@native_only
def test_both_engines_carry_on_when_hosts_of_nodes_fail(tmp_path: Path) -> None:
    for seed in range(30):
        compare_while_hosts_fail(seed, tmp_path, nb_jobs=15)


@native_only
@pytest.mark.slow
def test_both_engines_carry_on_when_hosts_of_three_hundred_machines_of_nodes_fail(tmp_path: Path) -> None:
    for seed in range(300):
        compare_while_hosts_fail(seed, tmp_path, nb_jobs=40)


@native_only
@pytest.mark.parametrize("seed", [0, 1, 3, 6])
def test_a_plan_of_jobs_that_start_late_is_the_same_in_both(seed: int, tmp_path: Path) -> None:
    """Nodes are cleaned after each job, so jobs start later than planned, and some nodes are overbooked."""
    random = Random(seed)
    nodes, licences = random_machine(random)
    platform = as_platform(nodes, licences)
    workload = as_workload(random_jobs(random, 150), len(platform.hosts))

    def decided(engine: str) -> list[bytes]:
        process = DecisionProcess(SCHEDULERS.create("conservative", {}))
        return run(engine, Setup(platform, [workload], cleaning_time=40.0), process, str(tmp_path / engine))

    by_python, by_native = on_both(decided)
    assert by_native == by_python
