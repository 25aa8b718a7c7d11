"""The broker with users whose plans are written down."""

from __future__ import annotations

from math import inf

import pytest

from batsched_py.errors import InputError, PolicyError
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Delay
from batsched_py.users import USERS, Submission, User
from batsched_py.users.broker import Broker


class Scripted(User):
    """Submits at given times, and adds a time to its plan whenever a job of its ends."""

    def __init__(self, name: str, *times: float, then: tuple[float, ...] = (), decided: float = 0.0) -> None:
        self.name = name
        self.times = list(times)
        self.then = list(then)
        self.decided = decided
        self.asked: list[float] = []
        self.heard: list[tuple[str, JobState, float]] = []
        self.count = 0

    def next_time(self) -> float:
        return min(self.times, default=inf)

    def submit(self, now: float) -> list[Submission]:
        self.asked.append(now)
        due = [time for time in self.times if time <= now]
        self.times = [time for time in self.times if time > now]
        return [self.submission() for _ in due]

    def submission(self) -> Submission:
        self.count += 1
        job = Job(f"dyn!{self.name}{self.count}", 0.0, 1, inf, "p")
        return Submission(job, Delay(1), decided=self.decided)

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self.heard.append((job.name, state, now))
        if self.then:
            self.times.append(self.then.pop(0))


def names(broker: Broker, now: float) -> list[str]:
    return [action.job.name for action in broker.actions(now) if isinstance(action, Submission)]


def test_users_submit_when_their_time_has_come() -> None:
    broker = Broker([Scripted("a", 1, 5), Scripted("b", 3)])
    assert [names(broker, now) for now in (0, 1, 2, 5)] == [[], ["a1"], [], ["b1", "a2"]]


def test_simultaneous_jobs_come_in_the_order_of_the_decisions_then_user_by_user() -> None:
    broker = Broker([Scripted("a", 1, decided=0.5), Scripted("b", 1), Scripted("c", 1, 1)])
    assert names(broker, 1.0) == ["b1", "c1", "c2", "a1"]


def test_a_user_hears_of_its_own_jobs_only() -> None:
    a, b = Scripted("a", 0), Scripted("b", 0)
    broker = Broker([a, b])
    broker.actions(0.0)
    broker.job_ended("dyn!b1", JobState.KILLED, 7.0)
    broker.job_ended("w0!1", JobState.SUCCESS, 8.0)
    assert (a.heard, b.heard) == ([], [("b1", JobState.KILLED, 7.0)])


def test_nobody_submits_any_more_when_nobody_plans_to_and_no_job_can_end() -> None:
    broker = Broker([Scripted("a", 1, then=(9,)), Scripted("b")])
    assert not broker.done
    broker.actions(1.0)
    assert not broker.done
    broker.job_ended("dyn!a1", JobState.REJECTED, 2.0)
    assert not broker.done
    broker.actions(9.0)
    broker.job_ended("dyn!a2", JobState.SUCCESS, 10.0)
    assert broker.done


def test_one_call_is_pending_as_long_as_somebody_plans_to_submit() -> None:
    broker = Broker([Scripted("a", 1, 5), Scripted("b", 3)])
    calls = [(now, names(broker, now), broker.call_to_ask(now)) for now in (0.0, 0.5, 1.0, 3.0, 4.0, 5.0)]
    assert calls == [
        (0.0, [], 1.0),
        (0.5, [], None),
        (1.0, ["a1"], 3.0),
        (3.0, ["b1"], 5.0),
        (4.0, [], None),
        (5.0, ["a2"], None),
    ]


def test_an_earlier_call_is_asked_for_when_plans_change_and_a_stale_one_is_put_up_with() -> None:
    broker = Broker([Scripted("a", 0, 100, then=(20,))])
    assert (names(broker, 0.0), broker.call_to_ask(0.0)) == (["a1"], 100.0)
    broker.job_ended("dyn!a1", JobState.SUCCESS, 10.0)
    assert broker.call_to_ask(10.0) == 20.0
    assert (names(broker, 20.0), broker.call_to_ask(20.0)) == (["a2"], None)
    assert (names(broker, 100.0), broker.call_to_ask(100.0)) == (["a3"], None)


def test_a_user_may_think_better_of_it() -> None:
    user = Scripted("a", 0, 50, then=(70,))
    broker = Broker([user])
    broker.actions(0.0)
    user.times = []
    broker.job_ended("dyn!a1", JobState.SUCCESS, 10.0)
    assert [names(broker, now) for now in (50.0, 70.0)] == [[], ["a2"]]


@pytest.mark.parametrize("planned", [1.0000004, 0.9999996])
def test_times_have_six_decimals(planned: float) -> None:
    """A time that nobody can tell from 1 has come at 1, and the user is not told a time before its own."""
    user = Scripted("a", planned)
    broker = Broker([user])
    assert broker.call_to_ask(0.0) == 1.0
    assert names(broker, 0.999999) == []
    assert names(broker, 1.0) == ["a1"]
    assert user.asked == [max(1.0, planned)]


class Broken(Scripted):
    """Fails at one of its tasks."""

    def __init__(self, task: str) -> None:
        super().__init__("broken", 2)
        self.task = task

    def _maybe_fail(self, task: str) -> None:
        if task == self.task:
            raise ZeroDivisionError("oops")

    def next_time(self) -> float:
        if self.count:
            self._maybe_fail("next_time")
        return super().next_time()

    def submit(self, now: float) -> list[Submission]:
        self._maybe_fail("submit")
        return super().submit(now)

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self._maybe_fail("job_ended")


@pytest.mark.parametrize("task", ["next_time", "submit", "job_ended"])
def test_a_user_that_fails_is_named_with_time_and_place(task: str) -> None:
    broker = Broker([Broken(task)])
    with pytest.raises(
        PolicyError, match=r"^user broken failed at time 2: ZeroDivisionError: oops \(.*\.py:\d+\)$"
    ):
        broker.actions(2.0)
        broker.job_ended("dyn!broken1", JobState.SUCCESS, 2.0)


class Idler(Scripted):
    """Always wants to submit, and never does."""

    def submit(self, now: float) -> list[Submission]:
        return []


def test_a_user_that_wants_to_submit_must_submit() -> None:
    with pytest.raises(PolicyError, match="user idler wants to submit at time 3, yet submits nothing"):
        Broker([Idler("idler", 3)]).actions(3.0)


def test_behaviours_are_found_by_name() -> None:
    assert list(USERS.all()) == [
        "adjusted",
        "cancelling",
        "distribution",
        "fluid",
        "patience",
        "resample",
        "rigid",
        "site-level",
        "sober",
        "think-time",
    ]
    with pytest.raises(InputError, match="there is no user behaviour 'lazy'; known are adjusted, "):
        USERS.create("lazy", {})


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(InputError, match="user behaviour 'rigid' has no option 'sessions'; it has none"):
        USERS.create("rigid", {"sessions": "arrival:60"})
