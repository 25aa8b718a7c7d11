"""Schedules of jobs that wait for others, against the slow and obvious reference."""

from __future__ import annotations

from random import Random

import pytest

from batsched_py.analysis.validator import Facts, Policy, validate
from batsched_py.decision.process import DecisionProcess
from batsched_py.ledger.holds import Release
from batsched_py.schedulers import SCHEDULERS
from batsched_py.testing.runs import schedule_of
from batsched_py.workload.dependencies import check_dependencies
from tests.dependencies.reference import Reference, random_jobs, workload_of

HOSTS = 4


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 60))]
)
def test_jobs_start_when_the_definition_says(policy: str, seed: int) -> None:
    random = Random(seed)
    jobs = random_jobs(random, random.randint(3, 18), HOSTS)
    workload = workload_of(jobs, HOSTS)
    process = DecisionProcess(SCHEDULERS.create(policy, {}))
    released: dict[str, float | None] = {}

    def note(release: Release) -> None:
        released[release.job.name] = release.eligible

    process.on_release(note)
    check_dependencies(workload.jobs, "random")
    schedule = schedule_of(process, workload, HOSTS)
    expected = Reference(jobs, policy, HOSTS).run()
    starts = {
        row.job_id: None if row.final_state == "REJECTED" else row.starting_time
        for row in schedule.itertuples()
    }
    assert starts == {job_id: start for job_id, (_, start) in expected.items()}
    late = {job.spec.id: expected[job.spec.id][0] for job in jobs if job.after or job.limit}
    assert released == {
        job.spec.id: late[job.spec.id]
        for job in jobs
        if job.spec.id in late and late[job.spec.id] != job.spec.submission
    }
    assert validate(schedule, HOSTS, [workload]) == []


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize(
    "seed", [*range(100, 104), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(104, 160))]
)
def test_policies_keep_their_promises_to_jobs_that_have_joined_the_queue(policy: Policy, seed: int) -> None:
    random = Random(seed)
    workload = workload_of(random_jobs(random, random.randint(3, 18), HOSTS), HOSTS)
    process = DecisionProcess(SCHEDULERS.create(policy, {}))
    arrivals: dict[str, float] = {}

    def note(release: Release) -> None:
        if release.eligible is not None:
            arrivals[release.job.id] = release.eligible

    process.on_release(note)
    schedule = schedule_of(process, workload, HOSTS)
    assert validate(schedule, HOSTS, [workload], policy, Facts(arrivals=arrivals)) == []
