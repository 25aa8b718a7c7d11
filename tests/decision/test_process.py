"""The decision process by hand: a request in, a reply out."""

from __future__ import annotations

from math import inf

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import PolicyError, ProtocolError
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers import Cluster, Scheduler

ALL = HostSet.range(4)


def begins() -> ev.Message:
    return ev.Message(0.0, [ev.SimulationBegins([Host(number, f"h{number}") for number in range(4)])])


def submitted(name: str, size: int, now: float, walltime: float = inf) -> ev.JobSubmitted:
    return ev.JobSubmitted(Job(f"w0!{name}", now, size, walltime, "p"), time=now)


def completed(name: str, hosts: str, now: float) -> ev.JobCompleted:
    return ev.JobCompleted(f"w0!{name}", JobState.SUCCESS, HostSet.parse(hosts), time=now)


class Watcher(Scheduler):
    """Notes what it sees, and does what it is told."""

    name = "watcher"

    def __init__(self) -> None:
        self.begun_with: list[HostSet] = []
        self.seen: list[tuple[float, list[str], str]] = []
        self.starts = True

    def begin(self, cluster: Cluster) -> None:
        self.begun_with.append(cluster.free)

    def schedule(self, cluster: Cluster) -> None:
        self.seen.append((cluster.now, [job.name for job in cluster.queue], str(cluster.free)))
        while self.starts and cluster.queue and cluster.fits(cluster.queue.head):
            cluster.start(cluster.queue.head)


def test_the_scheduler_is_told_of_the_machine_before_it_is_asked() -> None:
    watcher = Watcher()
    assert DecisionProcess(watcher).react(begins()) == ev.Message(0.0, [])
    assert watcher.begun_with == [ALL]


def test_the_scheduler_is_asked_once_a_message_after_all_its_events() -> None:
    watcher = Watcher()
    process = DecisionProcess(watcher)
    process.react(begins())
    process.react(ev.Message(5.0, [submitted("1", 3, 5.0), submitted("2", 2, 5.0)]))
    process.react(ev.Message(9.0, [completed("1", "0-2", 9.0), submitted("3", 1, 9.0)]))
    assert watcher.seen == [(0.0, [], "0-3"), (5.0, ["1", "2"], "0-3"), (9.0, ["2", "3"], "0-3")]


def test_decisions_bear_the_time_of_the_request() -> None:
    process = DecisionProcess(Watcher())
    process.react(begins())
    assert process.react(ev.Message(5.5, [submitted("1", 3, 5.25)])) == ev.Message(
        5.5, [ev.ExecuteJob("w0!1", HostSet.parse("0-2"), time=5.5)]
    )


class Waker(Scheduler):
    """Wants to be called at a time between two microseconds."""

    name = "waker"

    def __init__(self, by_name: bool) -> None:
        self.by_name = by_name
        self.asked_at: list[float] = []

    def schedule(self, cluster: Cluster) -> None:
        if not self.asked_at:
            if self.by_name:
                cluster.call_at(2.0000004)
            else:
                cluster.decide(ev.CallMeLater(2.0000004))
        self.asked_at.append(cluster.now)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_call_is_asked_for_at_the_first_microsecond_that_is_not_before_its_time(by_name: bool) -> None:
    reply = DecisionProcess(Waker(by_name)).react(begins())
    assert reply.events == [ev.CallMeLater(2.000001, time=0.0)]


@pytest.mark.parametrize("by_name", [True, False])
def test_a_call_that_a_simulator_makes_too_early_is_asked_for_again(by_name: bool) -> None:
    """A Batsim 4 does not say which call it is; the policy hears of the one that comes in time only."""
    waker = Waker(by_name)
    process = DecisionProcess(waker)
    process.react(begins())
    again = process.react(ev.Message(2.0, [ev.RequestedCall(time=2.0)]))
    assert again == ev.Message(2.0, [ev.CallMeLater(2.000001, time=2.0)])
    assert process.react(ev.Message(2.000001, [ev.RequestedCall(time=2.000001)])).events == []
    assert waker.asked_at == [0.0, 2.000001]


def test_jobs_that_can_never_fit_are_rejected_without_asking() -> None:
    watcher = Watcher()
    process = DecisionProcess(watcher)
    process.react(begins())
    reply = process.react(ev.Message(1.0, [submitted("wide", 5, 1.0), submitted("empty", 0, 1.0)]))
    assert reply.events == [ev.RejectJob("w0!wide", time=1.0), ev.RejectJob("w0!empty", time=1.0)]
    assert watcher.seen[-1] == (1.0, [], "0-3")


def test_hosts_that_are_taken_away_are_not_free_until_they_come_back() -> None:
    watcher = Watcher()
    process = DecisionProcess(watcher)
    process.react(begins())
    process.react(ev.Message(1.0, [submitted("1", 2, 1.0)]))
    process.react(ev.Message(2.0, [ev.HostsUnavailable(HostSet.parse("1-2"))]))
    process.react(ev.Message(3.0, [completed("1", "0-1", 3.0)]))
    process.react(ev.Message(4.0, [ev.HostsAvailable(HostSet.parse("1-2"))]))
    assert [free for _, _, free in watcher.seen[2:]] == ["3", "0 3", "0-3"]


def test_hosts_that_come_back_under_a_running_job_stay_taken() -> None:
    watcher = Watcher()
    process = DecisionProcess(watcher)
    process.react(begins())
    process.react(ev.Message(1.0, [submitted("1", 2, 1.0)]))
    process.react(ev.Message(2.0, [ev.HostsUnavailable(HostSet.parse("0-3"))]))
    process.react(ev.Message(3.0, [ev.HostsAvailable(HostSet.parse("0-3"))]))
    assert [free for _, _, free in watcher.seen[2:]] == ["", "2-3"]


def test_the_end_is_noticed_and_the_scheduler_is_not_asked_any_more() -> None:
    watcher = Watcher()
    process = DecisionProcess(watcher)
    process.react(begins())
    assert not process.finished
    assert process.react(ev.Message(7.0, [ev.SimulationEnds(time=7.0)])) == ev.Message(7.0, [])
    assert process.finished
    assert watcher.seen == [(0.0, [], "0-3")]


def test_events_that_no_policy_needs_are_no_fault() -> None:
    process = DecisionProcess(Watcher())
    process.react(begins())
    others: list[ev.Event] = [
        ev.NoMoreStaticJobs(),
        ev.RequestedCall(),
        ev.Unknown("NEW_EVENT", {"a": 1}),
        ev.ExternalEvent({"type": "weather"}),
        completed("nobody", "0", 1.0),
    ]
    assert process.react(ev.Message(1.0, others)) == ev.Message(1.0, [])


@pytest.mark.parametrize(
    ("requests", "error"),
    [
        ([ev.Message(0.0, [])], "the conversation must begin with SIMULATION_BEGINS"),
        ([ev.Message(0.0, [submitted("1", 1, 0.0)])], "the conversation must begin with SIMULATION_BEGINS"),
        ([begins(), begins()], "SIMULATION_BEGINS came in the middle of a simulation"),
        ([begins(), ev.Message(2.0, []), ev.Message(1.0, [])], "time runs backwards: 1 comes after 2"),
    ],
)
def test_a_simulator_out_of_order_is_told_so(requests: list[ev.Message], error: str) -> None:
    process = DecisionProcess(Watcher())
    with pytest.raises(ProtocolError) as raised:
        for request in requests:
            process.react(request)
    assert str(raised.value) == error


class Fails(Scheduler):
    """Fails when it is asked."""

    name = "fails"

    def schedule(self, cluster: Cluster) -> None:
        raise KeyError("no such thing")


def test_a_scheduler_that_raises_is_named_with_the_place() -> None:
    with pytest.raises(PolicyError) as raised:
        DecisionProcess(Fails()).react(begins())
    assert str(raised.value).startswith("scheduler 'fails' failed at time 0: KeyError: 'no such thing' (")
    assert f"{__file__}:" in str(raised.value)


def test_a_scheduler_without_a_name_is_called_as_its_class() -> None:
    class Nameless(Scheduler):
        def schedule(self, cluster: Cluster) -> None:
            raise KeyError("no such thing")

    with pytest.raises(PolicyError, match="scheduler 'Nameless' failed at time 0: KeyError"):
        DecisionProcess(Nameless()).react(begins())


def test_a_slow_scheduler_answers_and_acts_later() -> None:
    process = DecisionProcess(Watcher(), scheduling_delay=2.5)
    assert process.react(begins()) == ev.Message(2.5, [])
    reply = process.react(ev.Message(5.0, [submitted("1", 3, 5.0)]))
    assert reply == ev.Message(7.5, [ev.ExecuteJob("w0!1", HostSet.range(3), time=7.5)])


def test_a_slow_scheduler_is_asked_when_it_has_answered() -> None:
    process = DecisionProcess(Watcher(), scheduling_delay=2.5)
    process.react(begins())
    process.react(ev.Message(5.0, [submitted("1", 3, 5.0)]))
    reply = process.react(ev.Message(7.5, [submitted("2", 1, 6.0)]))
    assert reply == ev.Message(10.0, [ev.ExecuteJob("w0!2", HostSet.of([3]), time=10.0)])


class Curious(Scheduler):
    """Asks for the energy whenever it is told something, and notes what it hears."""

    name = "curious"

    def __init__(self) -> None:
        self.heard: list[ev.Event] = []
        self.config = ""

    def begin(self, cluster: Cluster) -> None:
        self.config = cluster.settings.scheduler_config

    def schedule(self, cluster: Cluster) -> None:
        self.heard += cluster.events
        cluster.decide(ev.QueryEnergy())


def test_a_policy_may_say_and_hear_all_that_the_protocol_knows() -> None:
    curious = Curious()
    process = DecisionProcess(curious)
    message = begins()
    assert process.react(message) == ev.Message(0.0, [ev.QueryEnergy()])
    heat = ev.ExternalEvent({"type": "heat"}, time=3.0)
    assert process.react(ev.Message(3.0, [heat])).events == [ev.QueryEnergy(time=3.0)]
    assert curious.heard == [heat]


def test_the_text_of_the_simulator_reaches_the_policy() -> None:
    curious = Curious()
    settings = ev.Settings(scheduler_config="depth=3")
    DecisionProcess(curious).react(ev.Message(0.0, [ev.SimulationBegins([Host(0, "h0")], settings=settings)]))
    assert curious.config == "depth=3"


def test_what_the_simulator_says_is_not_changed() -> None:
    first = begins()
    first.events.append(submitted("a", 1, 0.0))
    for _ in range(2):
        reply = DecisionProcess(Watcher()).react(first)
        assert [type(event) for event in reply.events] == [ev.ExecuteJob]
        assert [type(event) for event in first.events] == [ev.SimulationBegins, ev.JobSubmitted]


@pytest.mark.parametrize("known", ["waits", "runs", "has ended"])
def test_a_job_that_is_submitted_twice_is_an_error(known: str) -> None:
    watcher = Watcher()
    watcher.starts = known != "waits"
    process = DecisionProcess(watcher)
    process.react(begins())
    process.react(ev.Message(1.0, [submitted("1", 2, 1.0)]))
    if known == "has ended":
        process.react(ev.Message(2.0, [completed("1", "0-1", 2.0)]))
    with pytest.raises(ProtocolError, match=r"^the simulator submits job w0!1 a second time$"):
        process.react(ev.Message(3.0, [submitted("1", 2, 3.0)]))


def test_a_job_that_a_policy_registers_runs_once_although_it_is_announced() -> None:
    job = Job("dyn!1", 0.0, 1, inf, "p")

    class Registers(Watcher):
        def begin(self, cluster: Cluster) -> None:
            cluster.decide(ev.RegisterProfile("dyn", "p", Delay(5.0)))
            cluster.decide(ev.RegisterJob(job))

    process = DecisionProcess(Registers())
    first = begins()
    assert isinstance(first.events[0], ev.SimulationBegins)
    first.events[0].settings = ev.Settings(dynamic_jobs=True, acknowledge_dynamic_jobs=True)
    replies = [process.react(first), process.react(ev.Message(0.0, [ev.JobSubmitted(job)]))]
    assert [type(event).__name__ for reply in replies for event in reply.events].count("ExecuteJob") == 1
