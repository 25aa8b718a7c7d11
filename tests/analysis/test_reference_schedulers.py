"""The slow schedulers that others are checked against, checked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.testing import JobSpec
from batsched_py.testing.strategies import workloads
from tests.reference_schedulers import Conservative, jobs_csv, simulate, simulate_with

HOSTS = 4


def blocked_head() -> list[JobSpec]:
    """a holds 3 of 4 hosts until 10; b needs all of them and heads the queue; c and d could overtake it."""
    return [
        JobSpec("a", 0, 3, 10, 10),
        JobSpec("b", 1, 4, 5, 5),
        JobSpec("c", 2, 1, 8, 8),
        JobSpec("d", 3, 1, 8, 8),
    ]


def test_fcfs_lets_nobody_overtake() -> None:
    assert simulate(blocked_head(), HOSTS, "fcfs") == {"a": 0, "b": 10, "c": 15, "d": 15}


def test_easy_backfills_what_ends_by_the_shadow_time() -> None:
    assert simulate(blocked_head(), HOSTS, "easy") == {"a": 0, "b": 10, "c": 2, "d": 15}


def test_easy_backfills_onto_extra_hosts_and_uses_them_up() -> None:
    jobs = [
        JobSpec("a", 0, 2, 10, 10),
        JobSpec("b", 1, 3, 5, 5),
        JobSpec("c", 2, 1, 50),
        JobSpec("d", 2, 1, 50),
    ]
    assert simulate(jobs, HOSTS, "easy") == {"a": 0, "b": 10, "c": 2, "d": 15}


def test_easy_moves_the_reservation_forward_when_a_job_ends_early() -> None:
    jobs = [JobSpec("a", 0, 4, 2, 100), JobSpec("b", 1, 4, 5, 5)]
    assert simulate(jobs, HOSTS, "easy") == {"a": 0, "b": 2}


def test_easy_may_delay_the_second_in_the_queue_and_conservative_does_not() -> None:
    jobs = [
        JobSpec("a", 0, 2, 10, 10),
        JobSpec("b", 1, 3, 10, 10),
        JobSpec("c", 2, 4, 10, 10),
        JobSpec("d", 3, 1, 30, 30),
    ]
    assert simulate(jobs, HOSTS, "easy") == {"a": 0, "b": 10, "c": 33, "d": 3}
    assert simulate(jobs, HOSTS, "conservative") == {"a": 0, "b": 10, "c": 20, "d": 30}


def test_conservative_moves_waiting_jobs_forward_in_queue_order() -> None:
    jobs = [
        JobSpec("a", 0, 4, 2, 100),
        JobSpec("b", 1, 3, 5, 5),
        JobSpec("c", 1, 2, 5, 5),
        JobSpec("d", 1, 1, 5, 5),
    ]
    assert simulate(jobs, HOSTS, "conservative") == {"a": 0, "b": 2, "c": 7, "d": 2}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_job_is_killed_at_its_walltime(policy: str) -> None:
    jobs = [JobSpec("a", 0, 4, 100, 7), JobSpec("b", 0, 4, 1, 1)]
    assert simulate(jobs, HOSTS, policy) == {"a": 0, "b": 7}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_job_of_no_length_frees_its_hosts_at_once(policy: str) -> None:
    jobs = [JobSpec("a", 0, 4, 0, 7), JobSpec("b", 0, 4, 1, 1)]
    assert simulate(jobs, HOSTS, policy) == {"a": 0, "b": 0}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_job_that_is_too_wide_never_starts(policy: str) -> None:
    assert simulate([JobSpec("a", 0, 5, 1, 1), JobSpec("b", 0, 4, 1, 1)], HOSTS, policy) == {"b": 0}


class Watched(Conservative):
    """Remembers the first reservation of each job."""

    def __init__(self, hosts: int) -> None:
        super().__init__(hosts)
        self.promised: dict[str, float] = {}

    def earliest(self, now: float, job: JobSpec, plan: list[tuple[float, float, int]]) -> float:
        start = super().earliest(now, job, plan)
        self.promised.setdefault(job.id, start)
        return start


@given(workloads(HOSTS))
def test_conservative_keeps_every_reservation_given_on_arrival(jobs: list[JobSpec]) -> None:
    scheduler = Watched(HOSTS)
    starts = simulate_with(scheduler, jobs, HOSTS)
    assert all(starts[job] <= promised for job, promised in scheduler.promised.items())


@given(workloads(HOSTS), st.sampled_from(["fcfs", "easy", "conservative"]))
def test_every_job_that_fits_is_started_after_its_submission(jobs: list[JobSpec], policy: str) -> None:
    starts = simulate(jobs, HOSTS, policy)
    assert set(starts) == {job.id for job in jobs if job.size <= HOSTS}
    assert all(starts[job.id] >= job.submission for job in jobs if job.id in starts)


@given(workloads(HOSTS))
def test_the_written_schedule_has_a_row_for_each_job(jobs: list[JobSpec]) -> None:
    assert len(jobs_csv(jobs, simulate(jobs, HOSTS, "easy"), HOSTS).splitlines()) == len(jobs) + 1
