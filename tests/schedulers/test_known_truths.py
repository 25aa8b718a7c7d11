"""Policies agree with what is known about them: by definition, by proof, by queueing theory."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import factorial, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.analysis.validator import validate
from batsched_py.schedulers import Cluster
from batsched_py.schedulers.conservative import Conservative
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.orders import OrderName
from batsched_py.testing import JobSpec, schedule_of, starts
from batsched_py.testing.strategies import workloads
from batsched_py.workload.swf.reader import read_swf
from tests.reference_schedulers import simulate
from tests.scheduling import policy

HOSTS = 4

Times = np.ndarray[tuple[int], np.dtype[np.float64]]


def exact(jobs: list[JobSpec]) -> list[JobSpec]:
    """The same jobs, with walltimes that say how long they run; those of no length are left out."""
    return [replace(job, walltime=job.run_time) for job in jobs if job.run_time]


# --- by definition -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fcfs", "easy", "conservative"])
@given(jobs=workloads(HOSTS, max_jobs=25))
def test_it_starts_jobs_when_the_slow_reference_does(name: str, jobs: list[JobSpec]) -> None:
    assert starts(policy(name), jobs, HOSTS) == simulate(jobs, HOSTS, name)


@pytest.mark.parametrize("name", ["fcfs", "easy", "conservative"])
@given(jobs=workloads(HOSTS, max_jobs=25))
def test_it_keeps_its_promises(name: str, jobs: list[JobSpec]) -> None:
    assert validate(schedule_of(policy(name), jobs, HOSTS), HOSTS, policy=name) == []  # type: ignore[arg-type]


@given(jobs=workloads(HOSTS, max_jobs=25).map(exact))
def test_easy_never_delays_the_head_beyond_its_first_reservation(jobs: list[JobSpec]) -> None:
    assert validate(schedule_of(policy("easy"), jobs, HOSTS), HOSTS, policy="easy") == []


@given(jobs=workloads(HOSTS))
def test_easy_is_fcfs_when_every_job_needs_the_whole_machine(jobs: list[JobSpec]) -> None:
    whole = [replace(job, size=HOSTS) for job in jobs]
    assert starts(policy("easy"), whole, HOSTS) == starts(policy("fcfs"), whole, HOSTS)


@given(jobs=workloads(HOSTS))
def test_easy_is_first_fit_when_no_job_ever_waits(jobs: list[JobSpec]) -> None:
    room = sum(job.size for job in jobs)
    begun = starts(policy("easy"), jobs, room)
    assert begun == starts(policy("filler"), jobs, room)
    assert begun == {job.id: job.submission for job in jobs}


@given(jobs=workloads(HOSTS))
def test_the_user_aware_scheduler_without_weight_on_responsiveness_is_easy(jobs: list[JobSpec]) -> None:
    assert starts(policy("user-aware", alpha="0"), jobs, HOSTS) == starts(policy("easy"), jobs, HOSTS)


class Forgetful(Easy):
    """Is always asked, and tries all waiting jobs each time."""

    only_starts_jobs = False

    def schedule(self, cluster: Cluster) -> None:
        queue = cluster.queue
        while queue and cluster.fits(head := queue.head):
            cluster.start(head)
        if len(queue) > 1:
            reservation = cluster.reservation(head)
            for job in cluster.fitting(lambda size, estimate: True, self.backfill_order, beside=reservation):
                reservation.admit(cluster.start(job))


@pytest.mark.parametrize("order", ["submission", "shortest", "longest", "expansion-factor"])
def test_easy_misses_nothing_by_trying_only_new_jobs(order: OrderName, root: Path) -> None:
    log = read_swf(root / "workloads" / "sample.swf")
    columns = zip(log.submit, log.processors, log.run_time, strict=True)
    jobs = [
        JobSpec(str(number), float(submit), int(size), float(run_time), 2 * float(run_time) + 60)
        for number, (submit, size, run_time) in enumerate(columns)
    ][:500]
    always = Forgetful(order=order, backfill="submission")
    assert starts(Easy(order=order, backfill="submission"), jobs, 64) == starts(always, jobs, 64)


class Watched(Conservative):
    """Remembers the first reservation of each job."""

    def __init__(self) -> None:
        self.promised: dict[str, float] = {}

    def schedule(self, cluster: Cluster) -> None:
        super().schedule(cluster)
        for job, start in self.plan.reservations():
            self.promised.setdefault(job.name, start)


@given(jobs=workloads(HOSTS, max_jobs=25))
def test_conservative_never_starts_a_job_later_than_its_reservation(jobs: list[JobSpec]) -> None:
    watched = Watched()
    begun = starts(watched, jobs, HOSTS)
    assert watched.promised.keys() <= begun.keys()
    assert all(begun[job] <= promised for job, promised in watched.promised.items())


# --- by proof ------------------------------------------------------------------------------------


@given(run_times=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_no_order_has_a_smaller_mean_wait_than_shortest_job_first(run_times: list[int]) -> None:
    jobs = [JobSpec(str(number), 0, 1, length, length) for number, length in enumerate(run_times)]

    def total_wait(order: tuple[int, ...]) -> int:
        return sum(length * (len(order) - 1 - place) for place, length in enumerate(order))

    assert sum(starts(policy("sjf"), jobs, 1).values()) == min(map(total_wait, permutations(run_times)))


@given(run_times=st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_longest_job_first_ends_at_most_a_third_after_the_best_schedule(run_times: list[int]) -> None:
    jobs = [JobSpec(str(number), 0, 1, length, length) for number, length in enumerate(run_times)]
    begun = starts(policy("ljf"), jobs, 2)
    sums = {0}
    for length in run_times:
        sums |= {part + length for part in sums}
    best = min(max(part, sum(run_times) - part) for part in sums)
    makespan = max(begun[job.id] + job.run_time for job in jobs)
    assert best <= makespan
    assert 6 * makespan <= 7 * best, "Graham's bound on two machines: 4/3 - 1/6"


# --- by queueing theory --------------------------------------------------------------------------

JOBS, WARM_UP, BATCHES = 42_000, 2_000, 40
#: Of Student's distribution with 39 degrees of freedom: 99 % lie between plus and minus this.
T_99 = 2.7079


def waits(interarrivals: Times, run_times: Times, hosts: int) -> Times:
    """How long each job of one host waits under FCFS."""
    submissions = np.cumsum(interarrivals).round(6)
    jobs = [
        JobSpec(f"{number:05}", submission, 1, run_time)
        for number, (submission, run_time) in enumerate(
            zip(submissions.tolist(), run_times.round(6).tolist(), strict=True)
        )
    ]
    begun = starts(policy("fcfs"), jobs, hosts)
    return np.array([begun[job.id] - job.submission for job in jobs])


def confidence_interval(values: Times) -> tuple[float, float]:
    """Where the mean of a stationary process lies with 99 % confidence, by batch means."""
    means = values[WARM_UP:].reshape(BATCHES, -1).mean(axis=1)
    half = T_99 * means.std(ddof=1) / sqrt(BATCHES)
    return means.mean() - half, means.mean() + half


def test_waiting_times_of_m_m_c_agree_with_erlang() -> None:
    hosts, load = 4, 0.7
    random = np.random.default_rng(1)
    low, high = confidence_interval(
        waits(random.exponential(1 / (hosts * load), JOBS), random.exponential(1.0, JOBS), hosts)
    )
    offered = hosts * load
    all_busy = offered**hosts / factorial(hosts) / (1 - load)
    must_wait = all_busy / (sum(offered**n / factorial(n) for n in range(hosts)) + all_busy)
    assert low <= must_wait / (hosts - offered) <= high


@pytest.mark.slow
def test_waiting_times_of_m_d_1_agree_with_pollaczek_and_khinchine() -> None:
    load = 0.6
    random = np.random.default_rng(1)
    low, high = confidence_interval(waits(random.exponential(1 / load, JOBS), np.ones(JOBS), 1))
    assert low <= load / (2 * (1 - load)) <= high
