"""Single policies: what sets each of them apart."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.easy_sjbf import CORRECTIONS, EasySjbf
from batsched_py.testing import JobSpec, Workbench, schedule_of, starts
from batsched_py.testing.runs import Meddler
from tests.scheduling import policy

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def blocked_head() -> list[JobSpec]:
    """a holds 3 of 4 hosts until 10; b needs all and heads the queue; the others could overtake it."""
    return [
        JobSpec("a", 0, 3, 10, 10),
        JobSpec("b", 1, 4, 5, 5),
        JobSpec("c", 2, 1, 50, 50),
        JobSpec("d", 2, 1, 8, 8),
        JobSpec("e", 2, 1, 3, 3),
    ]


@pytest.mark.parametrize(
    ("name", "options", "begun"),
    [
        ("fcfs", {}, {"a": 0, "b": 10, "c": 15, "d": 15, "e": 15}),
        ("easy", {}, {"a": 0, "d": 2, "b": 10, "c": 15, "e": 15}),
        ("easy", {"backfill": "shortest"}, {"a": 0, "e": 2, "b": 10, "c": 15, "d": 15}),
        ("easy", {"order": "shortest"}, {"a": 0, "e": 2, "b": 10, "c": 15, "d": 15}),
        ("conservative", {}, {"a": 0, "d": 2, "b": 10, "c": 15, "e": 15}),
        ("filler", {}, {"a": 0, "c": 2, "d": 10, "e": 10, "b": 52}),
        ("sjf", {}, {"a": 0, "e": 2, "b": 10, "d": 15, "c": 15}),
        ("ljf", {}, {"a": 0, "c": 2, "d": 10, "b": 52, "e": 57}),
        ("reject-all", {}, {}),
    ],
)
def test_who_overtakes_whom(name: str, options: dict[str, str], begun: dict[str, float]) -> None:
    assert starts(policy(name, **options), blocked_head(), 4) == begun


def test_random_choices_depend_on_the_seed_alone() -> None:
    jobs = [JobSpec(f"{number:02}", 0, 1, 1, 1) for number in range(20)]
    once, again, other = (starts(policy("random", seed=seed), jobs, 1) for seed in ("1", "1", "2"))
    assert once == again != other
    assert sorted(once.values()) == [float(second) for second in range(20)]


# --- several queues ------------------------------------------------------------------------------


def test_the_queue_of_shorter_jobs_is_served_first() -> None:
    jobs = [
        JobSpec("first", 0, 1, 10, 10),
        JobSpec("week", 1, 1, 10, 7 * DAY),
        JobSpec("day", 2, 1, 10, DAY),
        JobSpec("hour", 3, 1, 10, HOUR),
        JobSpec("day2", 4, 1, 10, 2 * HOUR),
    ]
    served = starts(policy("multi-queue", limits=f"{HOUR},{DAY}"), jobs, 1)
    assert sorted(served, key=lambda job: served[job]) == ["first", "hour", "day", "day2", "week"]


@pytest.mark.parametrize(("limits", "words"), [("60,5", "ascend"), ("an hour", "'an hour'"), ("", "''")])
def test_limits_of_queues_are_ascending_numbers(limits: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        policy("multi-queue", limits=limits)


# --- users who work on if they are answered soon -------------------------------------------------


def test_a_short_new_job_goes_before_a_long_old_one_if_responsiveness_counts() -> None:
    jobs = [
        JobSpec("first", 0, 1, HOUR, HOUR),
        JobSpec("long", 1, 1, 5 * HOUR, 5 * HOUR),
        JobSpec("short", HOUR / 2, 1, MINUTE, MINUTE),
    ]
    patient = starts(policy("user-aware", alpha="0"), jobs, 1)
    aware = starts(policy("user-aware", alpha="0.9"), jobs, 1)
    assert patient["long"] < patient["short"]
    assert aware["short"] < aware["long"]


def test_a_job_that_has_waited_for_days_goes_before_short_ones() -> None:
    first = [JobSpec("first", 0, 1, 4 * DAY, 4 * DAY), JobSpec("long", 1, 1, 5 * HOUR, 5 * HOUR)]
    short = JobSpec("short", 4 * DAY - 1, 1, MINUTE, MINUTE)
    aware = starts(policy("user-aware", alpha="0.5"), [*first, short], 1)
    assert aware["long"] < aware["short"]


def test_the_weight_of_responsiveness_is_a_share() -> None:
    with pytest.raises(InputError, match="alpha"):
        policy("user-aware", alpha="1.5")


# --- predicted run times -------------------------------------------------------------------------


class Predictions(EasySjbf):
    """Notes each prediction, and what becomes of them as time passes."""

    def __init__(self) -> None:
        self.noted: dict[str, float] = {}
        self.expected: dict[str, list[float]] = {}

    def estimate(self, job: Job) -> float:
        self.noted[job.name] = super().estimate(job)
        return self.noted[job.name]

    def schedule(self, cluster: Cluster) -> None:
        super().schedule(cluster)
        for running in cluster.running:
            lengths = self.expected.setdefault(running.job.name, [])
            if not lengths or lengths[-1] != running.expected_end - running.start:
                lengths.append(running.expected_end - running.start)


def test_a_job_is_expected_to_run_like_the_last_two_of_its_user() -> None:
    jobs = [
        JobSpec(str(number), 100 * number, 1, length, 80) for number, length in enumerate((10, 20, 40, 5, 5))
    ]
    noted = Predictions()
    run_by_one_user(noted, jobs, 1)
    assert noted.noted == {"0": 80, "1": 10, "2": 15, "3": 30, "4": 22.5}


def test_a_prediction_never_exceeds_the_walltime() -> None:
    noted = Predictions()
    run_by_one_user(noted, [JobSpec("0", 0, 1, 50, 80), JobSpec("1", 100, 1, 5, 30)], 1)
    assert noted.noted["1"] == 30


def test_users_are_told_apart() -> None:
    noted = Predictions()
    starts(noted, [JobSpec(str(number), 100 * number, 1, 10, 80) for number in range(4)], 1)
    assert noted.noted == {"0": 80, "1": 80, "2": 80, "3": 10}


def test_a_prediction_that_expires_is_corrected_step_by_step() -> None:
    jobs = [
        JobSpec("0", 0, 1, 10, HOUR),
        JobSpec("1", 100, 1, 40 * MINUTE, HOUR),
        JobSpec("2", 101, 1, 1, HOUR),
    ]
    noted = Predictions()
    run_by_one_user(noted, jobs, 1)
    steps = [10.0]
    for more in CORRECTIONS[:4]:
        steps.append(steps[-1] + more)
    assert noted.expected["1"] == steps


def test_corrections_end_at_the_walltime() -> None:
    jobs = [
        JobSpec("0", 0, 1, 10, HOUR),
        JobSpec("1", 100, 1, HOUR, 3 * MINUTE),
        JobSpec("2", 101, 1, 1, HOUR),
    ]
    noted = Predictions()
    run_by_one_user(noted, jobs, 1)
    assert noted.expected["1"] == [10, 10 + MINUTE, 3 * MINUTE]


def test_what_is_predicted_to_be_short_is_backfilled() -> None:
    """By its walltime c would delay b, by the run time of its user's last job it would not."""
    jobs = [
        JobSpec("0", 0, 1, 5, DAY),
        JobSpec("a", 100, 3, 1000, 1000),
        JobSpec("b", 101, 4, 10, 10),
        JobSpec("c", 102, 1, 5, DAY),
    ]
    assert starts(policy("easy"), jobs, 4)["c"] > 1000
    owned = [replace(job, user=user) for job, user in zip(jobs, "uvwu", strict=True)]
    assert starts(policy("easy-sjbf"), owned, 4)["c"] == 102


def run_by_one_user(scheduler: Scheduler, jobs: list[JobSpec], hosts: int) -> dict[str, float]:
    return starts(scheduler, [replace(job, user="u") for job in jobs], hosts)


# --- a policy of one's own -----------------------------------------------------------------------


class Optimist(Scheduler):
    """Starts what it expects to be short: a tenth of the walltime, and from 1 on next to nothing."""

    name = "optimist"

    def begin(self, cluster: Cluster) -> None:
        cluster.call_at(1.0)

    def estimate(self, job: Job) -> float:
        return job.walltime / 10

    def schedule(self, cluster: Cluster) -> None:
        if cluster.now >= 1.0:
            for job in cluster.queue:
                cluster.expect(job, 0.1)
        for job in cluster.fitting(lambda size, estimate: estimate < 5):
            cluster.start(job)


def test_a_policy_may_expect_other_run_times_than_the_walltimes() -> None:
    jobs = [JobSpec("long", 0, 1, 5, 100), JobSpec("short", 0, 1, 5, 40)]
    assert starts(Optimist(), jobs, 4) == {"short": 0, "long": 1}


class FiveSeconds(Optimist):
    """Expects every job to run for five seconds."""

    def estimate(self, job: Job) -> float:
        return 5.0


def test_an_expectation_of_a_running_job_may_change() -> None:
    bench = Workbench(2, FiveSeconds)
    cluster = bench.cluster
    jobs = [Job(f"w0!{name}", 0.0, 1, 100.0, "p") for name in ("1", "2")]
    bench.start(*jobs)
    cluster.expect(jobs[0], 50.0)
    assert [(running.job, running.expected_end) for running in cluster.running] == [
        (jobs[1], 5),
        (jobs[0], 50),
    ]
    cluster._go_to(3.0)
    bench.end(jobs[0])
    assert [running.job for running in cluster.running] == [jobs[1]]


def test_a_policy_may_reject_kill_and_be_called() -> None:
    jobs = [JobSpec(str(number), 0, 1, 10, inf) for number in range(5)]
    states = schedule_of(Meddler(Caller(), rejects=5, kills=2), jobs, 4)["final_state"]
    assert sorted(states) == [
        "COMPLETED_KILLED",
        "COMPLETED_KILLED",
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_SUCCESSFULLY",
        "REJECTED",
    ]


class Caller(Scheduler):
    """Starts what fits, and asks to be called once."""

    name = "caller"

    def begin(self, cluster: Cluster) -> None:
        cluster.call_at(3.0)

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.fitting():
            cluster.start(job)


class Newsreader(Scheduler):
    """Notes what is new each time it is asked."""

    name = "newsreader"

    def __init__(self) -> None:
        self.seen: list[tuple[list[str], list[str], bool]] = []

    def schedule(self, cluster: Cluster) -> None:
        new = [job.name for job in cluster.fitting(only_new=True)]
        self.seen.append(([type(event).__name__ for event in cluster.events], new, cluster.quiet))
        for job in cluster.queue:
            if cluster.now >= 5:
                cluster.start(job)


def test_what_was_told_once_is_no_news_when_a_policy_is_asked_again() -> None:
    reader = Newsreader()
    schedule_of(reader, [JobSpec("a", 1, 1, 1, 1), JobSpec("b", 5, 1, 1, 1)], 2)
    assert reader.seen == [
        ([], [], True),
        (["JobSubmitted"], ["a"], True),
        (["JobSubmitted"], ["b"], True),
        (["NoMoreStaticJobs"], [], True),
        (["JobCompleted", "JobCompleted"], [], False),
    ]


def test_an_option_that_is_none_of_the_choices_is_answered_with_them() -> None:
    with pytest.raises(InputError, match=r"'easy': .* choose among lowest, contiguous"):
        policy("easy", selection="tallest")


def test_corrections_of_predictions_are_the_published_ones() -> None:
    """1, 5, 15 and 30 minutes; 1, 2, 5, 10, 20, 50 and 100 hours (Tsafrir, Etsion, Feitelson 2007)."""
    hours = [1, 2, 5, 10, 20, 50, 100]
    assert list(CORRECTIONS) == [60, 300, 900, 1800, *(3600 * hour for hour in hours)]


def test_jobs_that_wait_in_the_end_are_left_only_where_that_is_asked_for() -> None:
    assert Easy(stuck="pending").leaves_jobs
    assert not Easy().leaves_jobs
