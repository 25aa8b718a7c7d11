"""The decision process with users, by hand: what they submit is registered, and they hear what happens."""

from __future__ import annotations

from math import inf

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.errors import PolicyError, ProtocolError
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM5
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.simulator.setup import Setup
from batsched_py.users import Action, Remark, Submission, User, Withdrawal
from tests.drive import platform

WORK = Delay(3)


class Chain(User):
    """Submits jobs of given sizes one by one, each a while after the end of the one before."""

    def __init__(self, *sizes: int, first: float = 0.0, think_time: float = 0.0) -> None:
        self.name = "chain"
        self.sizes = sizes
        self.think_time = think_time
        self.next = first
        self.count = 0
        self.heard: list[tuple[str, JobState, float]] = []

    def next_time(self) -> float:
        return self.next if self.count < len(self.sizes) else inf

    def submit(self, now: float) -> list[Submission]:
        job = Job(f"dyn!{self.count + 1}", 0.0, self.sizes[self.count], 10.0000001, "work")
        self.count += 1
        self.next = inf
        return [Submission(job, WORK, f"link {self.count}")]

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self.heard.append((job.name, state, now))
        self.next = now + self.think_time


class Picky(Scheduler):
    """Starts what fits, rejects jobs of unwanted sizes, and counts how often it is asked."""

    name = "picky"

    def __init__(self, *unwanted: int) -> None:
        self.unwanted = unwanted
        self.passes: list[list[str]] = []

    def schedule(self, cluster: Cluster) -> None:
        self.passes.append([job.name for job in cluster.queue])
        for job in list(cluster.queue):
            if job.size in self.unwanted:
                cluster.reject(job)
            elif cluster.fits(job):
                cluster.start(job)


def begins(workload: str = "", **settings: bool) -> ev.Message:
    """A simulation on four hosts that accepts jobs begins."""
    hosts = [Host(number, f"h{number}") for number in range(4)]
    allowed = ev.Settings(**({"dynamic_jobs": True} | settings))
    workloads = {workload: "file.json"} if workload else {}
    return ev.Message(0.0, [ev.SimulationBegins(hosts, settings=allowed, workloads=workloads)])


def told(now: float, *events: ev.Event) -> ev.Message:
    for event in events:
        event.time = now
    return ev.Message(now, list(events))


def completed(name: str, state: JobState = JobState.SUCCESS) -> ev.JobCompleted:
    return ev.JobCompleted(f"dyn!{name}", state, HostSet.parse("0"))


def kinds(reply: ev.Message) -> list[str]:
    return [type(event).__name__ for event in reply.events]


def test_a_submission_is_registered_noted_and_started_in_one_reply() -> None:
    reply = DecisionProcess(Picky(), [Chain(2)]).react(begins())
    profile, registration, note, execution = reply.events
    assert profile == ev.RegisterProfile("dyn", "job_1", WORK)
    assert isinstance(registration, ev.RegisterJob)
    job = registration.job
    assert (job.id, job.submission_time, job.size, job.profile) == ("dyn!1", 0.0, 2, "job_1")
    assert note == ev.SetJobMetadata("dyn!1", "link 1")
    assert execution == ev.ExecuteJob("dyn!1", HostSet.parse("0-1"))


def test_the_submission_time_is_that_of_the_message_and_the_walltime_has_six_decimals() -> None:
    process = DecisionProcess(Picky(), [Chain(1, first=4.9999996)])
    process.react(begins())
    reply = process.react(told(5.0, ev.RequestedCall()))
    (job,) = [event.job for event in reply.events if isinstance(event, ev.RegisterJob)]
    assert (job.submission_time, job.walltime) == (5.0, 10.0)


def test_a_call_is_asked_for_until_the_first_submission() -> None:
    process = DecisionProcess(Picky(), [Chain(1, first=5.0)])
    assert process.react(begins()).events == [ev.CallMeLater(5.0)]
    assert process.react(told(2.0, ev.NoMoreStaticJobs())).events == []
    assert "RegisterJob" in kinds(process.react(told(5.0, ev.RequestedCall())))


def test_users_hear_how_their_jobs_end_and_go_on() -> None:
    user = Chain(1, 1, 1, think_time=2.0)
    process = DecisionProcess(Picky(), [user])
    process.react(begins())
    assert process.react(told(3.0, completed("1"))).events == [ev.CallMeLater(5.0, time=3.0)]
    process.react(told(5.0, ev.RequestedCall()))
    process.react(told(6.0, completed("2", JobState.KILLED), ev.JobsKilled(["dyn!2"], {})))
    assert user.heard == [("1", JobState.SUCCESS, 3.0), ("2", JobState.KILLED, 6.0)]


def test_registration_is_finished_once_when_the_last_user_is_done() -> None:
    process = DecisionProcess(Picky(), [Chain(1), Chain()])
    assert "RegistrationFinished" not in kinds(process.react(begins()))
    assert kinds(process.react(told(3.0, completed("1")))) == ["RegistrationFinished"]
    assert kinds(process.react(told(4.0, ev.RequestedCall()))) == []
    assert kinds(process.react(told(4.0, ev.SimulationEnds()))) == []


def test_without_users_registration_is_finished_at_once() -> None:
    process = DecisionProcess(Picky())
    assert kinds(process.react(begins())) == ["RegistrationFinished"]


def test_a_job_too_wide_for_the_machine_is_rejected_and_its_user_goes_on_at_once() -> None:
    user = Chain(5, 6, 1)
    policy = Picky()
    reply = DecisionProcess(policy, [user]).react(begins())
    assert [event.job_id for event in reply.events if isinstance(event, ev.RejectJob)] == ["dyn!1", "dyn!2"]
    assert user.heard == [("1", JobState.REJECTED, 0.0), ("2", JobState.REJECTED, 0.0)]
    assert policy.passes == [["3"]]


def test_a_job_that_the_policy_rejects_makes_its_user_go_on_at_once() -> None:
    policy = Picky(2)
    reply = DecisionProcess(policy, [Chain(2, 2, 1)]).react(begins())
    assert policy.passes == [["1"], ["2"], ["3"]]
    assert [event.job_id for event in reply.events if isinstance(event, ev.ExecuteJob)] == ["dyn!3"]


def test_users_hear_of_a_rejection_by_a_slow_scheduler_when_it_takes_effect() -> None:
    user = Chain(2, 1, think_time=3.0)
    reply = DecisionProcess(Picky(2), [user], scheduling_delay=1.5).react(begins())
    assert user.heard == [("1", JobState.REJECTED, 1.5)]
    assert [event.at for event in reply.events if isinstance(event, ev.CallMeLater)] == [4.5]


def test_a_job_is_started_before_its_acknowledgement_which_is_no_news() -> None:
    policy = Picky()
    process = DecisionProcess(policy, [Chain(1, think_time=1.0)])
    reply = process.react(begins(acknowledge_dynamic_jobs=True))
    assert kinds(reply) == ["RegisterProfile", "RegisterJob", "SetJobMetadata", "ExecuteJob"]
    (job,) = [event.job for event in reply.events if isinstance(event, ev.RegisterJob)]
    assert process.react(told(0.0, ev.JobSubmitted(job))).events == []
    assert policy.passes == [["1"]]


def test_news_beside_an_acknowledgement_is_heard() -> None:
    policy = Picky()
    process = DecisionProcess(policy, [Chain(1, think_time=1.0)])
    reply = process.react(begins(acknowledge_dynamic_jobs=True))
    (job,) = [event.job for event in reply.events if isinstance(event, ev.RegisterJob)]
    process.react(told(0.0, ev.JobSubmitted(job), ev.JobSubmitted(Job("w0!7", 0.0, 1, inf, "p"))))
    assert policy.passes == [["1"], ["7"]]


@pytest.mark.parametrize(
    ("reuse", "names"), [(False, ["job_1", "job_2"]), (True, ["work"])], ids=["fresh", "reused"]
)
def test_profiles_have_fresh_names_unless_they_may_be_reused(reuse: bool, names: list[str]) -> None:
    process = DecisionProcess(Picky(), [Chain(1, 1)])
    replies = [process.react(begins(profile_reuse=reuse)), process.react(told(3.0, completed("1")))]
    registered = [
        event.name for reply in replies for event in reply.events if isinstance(event, ev.RegisterProfile)
    ]
    assert registered == names


def test_a_simulator_that_accepts_no_jobs_is_refused() -> None:
    with pytest.raises(ProtocolError, match="start it with --enable-dynamic-jobs"):
        DecisionProcess(Picky(), [Chain(1)]).react(begins(dynamic_jobs=False))


def test_a_simulator_that_plays_the_workload_itself_is_refused() -> None:
    with pytest.raises(ProtocolError, match="the simulator plays workload 'dyn' itself"):
        DecisionProcess(Picky(), [Chain(1)]).react(begins(workload="dyn"))


def test_a_user_who_submits_a_job_twice_is_told_the_rule() -> None:
    user = Chain(1, 1)
    process = DecisionProcess(Picky(), [user])
    process.react(begins(profile_reuse=True))
    user.count = 0
    with pytest.raises(
        PolicyError, match=r"or a user broke a rule at time 3: RegisterJob dyn!1: .*exists already"
    ):
        process.react(told(3.0, completed("1")))


class Restless(Chain):
    """Takes its first job back at a given time, and remembers when jobs start."""

    def __init__(self, *sizes: int, withdraws: float, job: str = "dyn!1") -> None:
        super().__init__(*sizes, think_time=inf)
        self.withdraws = withdraws
        self.job = job
        self.started: list[tuple[str, float]] = []

    def next_time(self) -> float:
        return min(super().next_time(), self.withdraws)

    def submit(self, now: float) -> list[Action]:
        actions: list[Action] = []
        if self.withdraws <= now:
            self.withdraws = inf
            actions.append(Withdrawal(self.job, "taken back"))
        if super().next_time() <= now:
            actions += super().submit(now)
        return actions

    def job_started(self, job: Job, now: float) -> None:
        self.started.append((job.name, now))


@pytest.mark.parametrize("delay", [0.0, 1.5])
def test_users_hear_when_their_jobs_start(delay: float) -> None:
    user = Restless(4, withdraws=inf)
    DecisionProcess(Picky(), [user], delay).react(begins())
    assert user.started == [("1", delay)]


def test_a_job_that_is_withdrawn_while_it_waits_is_rejected_and_its_user_hears_so() -> None:
    blocker, user = Chain(4), Restless(1, withdraws=2.0)
    process = DecisionProcess(Picky(), [blocker, user])
    blocker_job = Job("dyn!0", 0.0, 4, inf, "work")
    blocker.submit = lambda now: [*_once(blocker, blocker_job)]  # type: ignore[method-assign]
    process.react(begins())
    reply = process.react(told(2.0, ev.RequestedCall()))
    assert kinds(reply)[:2] == ["SetJobMetadata", "RejectJob"]
    assert user.heard == [("1", JobState.REJECTED, 2.0)]
    assert user.started == []


def _once(user: Chain, job: Job) -> list[Submission]:
    user.count, user.next = 1, inf
    return [Submission(job, WORK)]


def test_a_job_that_is_withdrawn_while_it_runs_is_killed_and_its_user_hears_when_it_ended() -> None:
    user = Restless(1, withdraws=2.0)
    process = DecisionProcess(Picky(), [user])
    process.react(begins())
    reply = process.react(told(2.0, ev.RequestedCall()))
    assert kinds(reply) == ["SetJobMetadata", "KillJobs"]
    assert user.heard == []
    process.react(told(2.5, completed("1", JobState.KILLED), ev.JobsKilled(["dyn!1"], {})))
    assert user.heard == [("1", JobState.KILLED, 2.5)]


def test_a_user_can_withdraw_only_jobs_of_its_own() -> None:
    process = DecisionProcess(Picky(), [Chain(1), Restless(withdraws=1.0)])
    process.react(begins())
    with pytest.raises(PolicyError, match="withdrawal of job dyn!1, which is not one of its own that waits"):
        process.react(told(1.0, ev.RequestedCall()))


class Undecided(Restless):
    """Withdraws its job again and again."""

    def submit(self, now: float) -> list[Action]:
        return [Withdrawal(self.job)] if self.count else list(Chain.submit(self, now))


def test_a_job_is_withdrawn_once() -> None:
    process = DecisionProcess(Picky(), [Undecided(1, withdraws=1.0)])
    process.react(begins())
    with pytest.raises(PolicyError, match="withdraws job dyn!1 a second time"):
        process.react(told(1.0, ev.RequestedCall()))


class Chatty(Restless):
    """Remarks on its job instead of withdrawing it."""

    def submit(self, now: float) -> list[Action]:
        actions = super().submit(now)
        return [Remark(a.job_id, "still here") if isinstance(a, Withdrawal) else a for a in actions]


def test_a_user_may_change_what_stands_at_its_job() -> None:
    process = DecisionProcess(Picky(), [Chatty(1, withdraws=1.0)])
    process.react(begins())
    reply = process.react(told(1.0, ev.RequestedCall()))
    assert reply.events == [ev.SetJobMetadata("dyn!1", "still here", time=1.0)]


@pytest.mark.parametrize(
    ("wanted", "called"),
    [
        (12.345, [12.345]),
        (12.3451, [12.345, 12.3451]),
        (12.345004, [12.344, 12.345004]),
        (12.0, [12.0]),
        (0.0004, [0.0004]),
        (1e6, [1e6]),
    ],
)
def test_over_protocol_5_a_user_submits_at_its_very_microsecond(wanted: float, called: list[float]) -> None:
    """Although a simulator is asked for calls in milliseconds."""
    allowed = ev.Settings(dynamic_jobs=True, profile_reuse=True)
    simulates, decides = BATSIM5.codec(), BATSIM5.codec()
    process = DecisionProcess(Picky(), [Chain(1, first=wanted)])
    simulates.open(lambda said: decides.answer(said, process.needs) or b"")
    batsim = Batsim(Setup(platform(), [], allowed))
    request: ev.Message | None = batsim.begin()
    calls, submissions = [], []
    while request is not None:
        heard = decides.decode_request(simulates.encode_request(request))
        calls += [event.time for event in heard.events if isinstance(event, ev.RequestedCall)]
        reply = simulates.decode_reply(decides.encode_reply(process.react(heard)))
        submissions += [event.time for event in reply.events if isinstance(event, ev.RegisterJob)]
        request = batsim.advance(reply)
    assert calls == called
    assert submissions == [wanted]
