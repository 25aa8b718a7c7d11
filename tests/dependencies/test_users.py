"""Users of every behaviour keep what their jobs wait for."""

from __future__ import annotations

import io
from random import Random

import pytest
from msgspec.structs import replace

from batsched_py.analysis.schedule import full_ids, schedule_in
from batsched_py.analysis.validator.job_rules import dependencies
from batsched_py.users.population import WEEK
from batsched_py.workload.model import Workload
from tests.feedback import Arbitrary, Record, replay, rows, workload_of
from tests.users.behaviours import NAMES, POPULATIONS, behaviour

HOSTS = 3
FIELDS = ("afterany:{}", "afterok:{}", "afternotok:{}", "afterany:{}+3s", "singleton")


def log_with_dependencies(seed: int) -> Workload:
    """A log of three users in which jobs wait for earlier ones, mostly of the same user, and arrays."""
    random = Random(seed)
    records = sorted(
        Record(
            random.randint(1, 3), random.randint(0, 60), random.randint(1, 20), random.randint(1, HOSTS), 2
        )
        for _ in range(20)
    )
    records.sort(key=lambda record: record.submit)
    workload = workload_of(records)
    jobs = []
    for place, job in enumerate(workload.jobs):
        own = [other.name for other in workload.jobs[:place] if other.user == job.user]
        fields = {}
        if own and random.random() < 0.5:
            fields["after"] = random.choice(FIELDS).format(random.choice(own))
        elif random.random() < 0.4:
            fields["array"] = f"of{job.user}%1"
        jobs.append(replace(job, extra=job.extra | fields))
    return replace(workload, jobs=jobs)


def broken_rules(jobs_csv: str, workload: Workload) -> list[str]:
    schedule = schedule_in(io.StringIO(jobs_csv), "jobs.csv")
    found = dependencies(schedule.assign(id=full_ids(schedule)), [workload])
    return [str(violation) for violation in found]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(2))
def test_jobs_of_users_wait_for_others_in_process_and_by_messages(name: str, seed: int) -> None:
    """While a scheduler kills and rejects."""
    workload = log_with_dependencies(seed)
    here, wired, slow = (
        replay(behaviour(name).users(workload), HOSTS, policy, wired=wired, delay=delay)
        for policy, wired, delay in ((Arbitrary(), False, 0.0), (Arbitrary(), True, 0.0), ("easy", True, 1.5))
    )
    assert here == wired
    if name not in POPULATIONS:
        assert broken_rules(here, workload) == broken_rules(slow, workload) == []


def test_a_population_waits_for_its_own_jobs() -> None:
    """Two stays of one user: each has jobs of its own that wait for each other."""
    workload = workload_of([Record(1, 0, 50), Record(1, 10, 5), Record(1, WEEK, 50), Record(1, WEEK + 10, 5)])
    first, second, third, fourth = workload.jobs
    jobs = [
        first,
        replace(second, extra=second.extra | {"after": "afterok:1"}),
        replace(third, extra=third.extra | {"array": "a%1"}),
        replace(fourth, extra=fourth.extra | {"after": "afterok:a,afterok:2"}),
    ]
    population = behaviour("resample", weeks="6", rest="0", seed="1")
    found = rows(replay(population.users(replace(workload, jobs=jobs)), 4))
    starts = [float(row["starting_time"]) % WEEK for row in found.values()]
    assert len(starts) > 4
    assert set(starts) == {0.0, 50.0}


@pytest.mark.parametrize("name", ["site-level", "resample(rigid)"])
def test_jobs_of_a_common_mix_wait_for_no_others(name: str) -> None:
    """Whether they are drawn or dealt anew."""
    workload = workload_of([Record(1 + n % 2, n * WEEK / 20, 50) for n in range(20)])
    fields = [{"after": "afternotok:1"}, {"array": "a%1"}]
    first, *others = workload.jobs
    jobs = [first, *(replace(job, extra=job.extra | fields[n % 2]) for n, job in enumerate(others))]
    options = {"shuffle": "true"} if name.startswith("resample") else {}
    found = rows(replay(behaviour(name, **options).users(replace(workload, jobs=jobs)), 40)).values()
    assert len(found) >= 3
    assert all(row["starting_time"] == row["submission_time"] for row in found)


def test_a_namesake_that_is_withdrawn_does_not_let_an_earlier_one_go() -> None:
    """Job 2 is the first of its name, but waits for job 1, too; job 3 is taken back at 25."""
    workload = workload_of([Record(1, 0, 50), Record(2, 10, 5), Record(2, 20, 5)])
    first, second, third = workload.jobs
    jobs = [
        first,
        replace(second, extra=second.extra | {"after": "singleton,afterok:1"}),
        replace(third, extra=third.extra | {"after": "singleton", "cancelled_after": 5.0}),
    ]
    found = rows(replay(behaviour("cancelling").users(replace(workload, jobs=jobs)), 4))
    assert found["3"]["final_state"] == "REJECTED"
    assert float(found["2"]["starting_time"]) == 50


def test_who_waits_for_a_job_that_nobody_submits_is_rejected() -> None:
    """As when its user has left for good."""
    workload = workload_of([Record(1, 0, 50), Record(2, 10, 5), Record(2, 90, 5)])
    first, second, third = workload.jobs
    jobs = [
        first,
        replace(second, extra=second.extra | {"after": "afterany:7"}),
        replace(third, extra=third.extra | {"after": "afternotok:2"}),
    ]
    found = rows(replay(behaviour("rigid").users(replace(workload, jobs=jobs)), 4))
    assert found["2"]["final_state"] == "REJECTED"
    assert float(found["3"]["starting_time"]) == 90
