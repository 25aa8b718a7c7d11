"""EASY backfilling, and which ends at the shadow time count."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from batsched_py.analysis.validator import validate
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.testing import JobSpec, schedule_of, starts
from tests.reference_schedulers import EASY, Running, simulate, simulate_with
from tests.scheduling import policy

HOSTS = 6


def nodes(count: int, cores: int) -> Platform:
    """A machine of nodes that are all alike."""
    return platform_of([NodeKind([f"n{number}" for number in range(count)], cores, {})], {}, "alike")


def begun(ends: str, jobs: list[JobSpec], machine: int | Platform) -> dict[str, float]:
    """When each job starts, with these ends."""
    return starts(policy("easy", ends=ends), jobs, machine)


class Textbook(EASY):
    """EASY as it is defined: extra are the hosts that are free at the shadow time, but for the head's."""

    def reservation(self, head: JobSpec, busy: Sequence[Running]) -> tuple[float, int]:
        def free_at(time: float) -> int:
            return self.hosts - sum(each.job.size for each in busy if each.expected_end > time)

        shadow = min(each.expected_end for each in busy if free_at(each.expected_end) >= head.size)
        return shadow, free_at(shadow) - head.size


def drawn(seed: int) -> list[JobSpec]:
    """Jobs of which many are expected to end together; names sort as text in the order of submission."""
    random = Random(seed)
    jobs, submission = [], 0
    for number in range(40):
        submission += random.choice((0, 0, 10))
        walltime = random.choice((10, 10, 20, 40))
        run_time = random.choice((walltime, walltime, random.randint(1, walltime)))
        size = random.choice((1, 1, 2, 2, 3, 5))
        jobs.append(JobSpec(f"{number:02}", submission, size, run_time, walltime))
    return jobs


def test_two_jobs_end_together_and_the_head_needs_one_of_them() -> None:
    """At 10, 1 + 2 + 2 hosts are free, of which the head needs 3; the last job would run until 22."""
    jobs = [
        JobSpec("a", 0, 2, 10, 10),
        JobSpec("b", 0, 2, 10, 10),
        JobSpec("head", 1, 3, 5, 5),
        JobSpec("last", 2, 1, 20, 20),
    ]
    assert begun("needed", jobs, 5) == {"a": 0, "b": 0, "head": 10, "last": 10}
    assert begun("all", jobs, 5) == {"a": 0, "b": 0, "head": 10, "last": 2}


def test_on_nodes_the_head_may_go_to_any_node_that_is_free_then() -> None:
    """The head can have the second node at 10, so the last job may stay on the first one."""
    jobs = [
        JobSpec("a", 0, 1, 10, 10),
        JobSpec("b", 0, 2, 10, 10, request={"nodes": 1}),
        JobSpec("head", 1, 2, 5, 5, request={"nodes": 1}),
        JobSpec("last", 2, 1, 20, 20),
    ]
    assert begun("needed", jobs, nodes(2, 2)) == {"a": 0, "b": 0, "head": 10, "last": 10}
    assert begun("all", jobs, nodes(2, 2)) == {"a": 0, "b": 0, "head": 10, "last": 2}


@pytest.mark.parametrize("machine", [HOSTS, nodes(2, 3), nodes(HOSTS, 1)], ids=["hosts", "nodes", "one-core"])
def test_all_ends_are_the_textbook(machine: int | Platform) -> None:
    differ = 0
    for seed in range(12):
        jobs = drawn(seed)
        expected, needed = simulate_with(Textbook(HOSTS), jobs, HOSTS), simulate(jobs, HOSTS, "easy")
        assert begun("all", jobs, machine) == expected
        assert begun("needed", jobs, machine) == needed
        differ += expected != needed
    assert differ


def test_all_ends_keep_the_promise_to_the_head() -> None:
    for seed in range(3):
        schedule = schedule_of(policy("easy", ends="all"), drawn(seed), HOSTS)
        assert validate(schedule, HOSTS, policy="easy") == []


def test_a_policy_around_easy_counts_all_ends_too() -> None:
    jobs = drawn(0)
    around = policy("cooled(easy)", ends="all")
    assert starts(around, jobs, HOSTS) == begun("all", jobs, HOSTS)
