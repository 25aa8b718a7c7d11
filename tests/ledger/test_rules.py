"""Each rule of the ledger, broken once."""

from __future__ import annotations

from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import PolicyError, RuleBroken
from batsched_py.ledger.ledger import Ledger
from batsched_py.ledger.rules import check_allocation
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.protocol.profiles import Composed, Delay, HomogeneousTotal
from batsched_py.schedulers import Cluster, Scheduler

NOW = 10.0
HOSTS = [Host(number, f"h{number}") for number in range(4)]
STORAGE = Host(4, "disk")
PROFILES = {
    "w0": {
        "delay": Delay(5),
        "total": HomogeneousTotal(1e9),
        "totals": Composed(("total", "total")),
        "mixed": Composed(("total", "delay")),
    }
}


def job(name: str, size: int = 2, profile: str = "delay") -> Job:
    return Job(name, 0.0, size, 100.0, profile)


def ledger(**settings: Any) -> Ledger:
    """A ledger that knows of waiting jobs, one that runs on hosts 0 and 1, and one that has completed."""
    kept = Ledger(ev.SimulationBegins(HOSTS, [STORAGE], ev.Settings(**settings), profiles=PROFILES))
    for name in ("w0!waits", "w0!also", "w0!runs", "w0!done"):
        submit(kept, job(name))
    for profile in ("total", "totals", "mixed"):
        submit(kept, job(f"w0!{profile}", profile=profile))
    execute(kept, "w0!done", "2-3")
    kept.release("w0!done")
    execute(kept, "w0!runs", "0-1")
    return kept


def submit(kept: Ledger, job: Job) -> None:
    kept.learn(ev.JobSubmitted(job))


def execute(kept: Ledger, name: str, hosts: str) -> None:
    decide(kept, ev.ExecuteJob(name, HostSet.parse(hosts)))


def runs_on(kept: Ledger) -> dict[str, str]:
    """The running jobs, and their hosts."""
    return {running.job.id: str(running.hosts) for running in kept.running}


def decide(kept: Ledger, *decisions: ev.Event, at: float = NOW) -> None:
    """Take decisions down; those without a time of their own are taken now."""
    for decision in decisions:
        decision.time = decision.time or at
    kept.follow(ev.Message(at, list(decisions)), at)


def run(name: str, hosts: str, **more: Any) -> ev.ExecuteJob:
    return ev.ExecuteJob(name, HostSet.parse(hosts), **more)


NOT_WAITING = "is not waiting (it is unknown, not submitted yet, rejected or completed)"
NOT_DYNAMIC = "the simulator does not accept dynamic jobs (start it with --enable-dynamic-jobs)"


@pytest.mark.parametrize(
    ("decisions", "rule"),
    [
        ([ev.RejectJob("w0!waits", time=9.0)], "RejectJob w0!waits: at 9, before 10; decisions go forward"),
        (
            [ev.RejectJob("w0!waits", time=11.0)],
            "RejectJob w0!waits: at 11, after the reply's own time 10",
        ),
        (
            [ev.Unknown("NONSENSE", {})],
            "Unknown: Batsim does not know such a decision",
        ),
        ([run("w0!nobody", "2-3")], f"ExecuteJob w0!nobody: job w0!nobody {NOT_WAITING}"),
        ([run("w0!done", "2-3")], f"ExecuteJob w0!done: job w0!done {NOT_WAITING}"),
        ([run("w0!runs", "2-3")], "ExecuteJob w0!runs: job w0!runs is running already"),
        (
            [ev.RejectJob("w0!waits"), run("w0!waits", "2-3")],
            f"ExecuteJob w0!waits: job w0!waits {NOT_WAITING}",
        ),
        ([run("w0!waits", "")], "ExecuteJob w0!waits: no host was given"),
        ([run("w0!waits", "4-5")], "ExecuteJob w0!waits: hosts 5 do not exist"),
        ([run("w0!waits", "2")], "ExecuteJob w0!waits: the job needs 2 hosts and was given 1 (2)"),
        ([run("w0!mixed", "3")], "ExecuteJob w0!mixed: the job needs 2 hosts and was given 1 (3)"),
        (
            [run("w0!waits", "3", mapping=[0])],
            "ExecuteJob w0!waits: the job has 2 executors, the mapping places 1",
        ),
        (
            [run("w0!waits", "3", mapping=[0, 1])],
            "ExecuteJob w0!waits: the mapping is empty or names a place outside the allocation",
        ),
        (
            [run("w0!waits", "3", mapping=[0, 0], storage_mapping={"pfs": 4})],
            "ExecuteJob w0!waits: only one of a mapping, a storage mapping and an IO job can be given",
        ),
        ([run("w0!waits", "1-2")], "ExecuteJob w0!waits: hosts 1 are busy and may not be shared"),
        (
            [run("w0!waits", "2-3"), run("w0!also", "2-3")],
            "ExecuteJob w0!also: hosts 2-3 are busy and may not be shared",
        ),
        ([ev.RejectJob("w0!runs")], "RejectJob w0!runs: job w0!runs is running already"),
        ([ev.RejectJob("w0!done")], f"RejectJob w0!done: job w0!done {NOT_WAITING}"),
        ([ev.KillJobs([])], "KillJobs: no job was named"),
        (
            [ev.KillJobs(["w0!waits"])],
            "KillJobs: job w0!waits is waiting; only a running job can be killed",
        ),
        (
            [ev.KillJobs(["w0!runs", "w0!done"])],
            "KillJobs: job w0!done is unknown or has completed; only a running job can be killed",
        ),
        ([ev.CallMeLater(10.0)], "CallMeLater: a call at 10 is not in the future (it is 10)"),
        ([ev.RegisterProfile("dyn", "p", Delay(1))], f"RegisterProfile: {NOT_DYNAMIC}"),
        ([ev.RegisterJob(job("w0!new"))], f"RegisterJob w0!new: {NOT_DYNAMIC}"),
        ([ev.SetHostsState(HostSet.parse("7"), 1)], "SetHostsState: hosts 7 do not exist"),
        (
            [ev.SetHostsState(HostSet.parse("1-2"), 1)],
            "SetHostsState: hosts 1 run job w0!runs and cannot change their power state",
        ),
        (
            [ev.SetJobMetadata("w0!waits", 'a "quote"')],
            'SetJobMetadata w0!waits: metadata may not contain the character "',
        ),
        (
            [ev.SetJobMetadata("w0!done", "note")],
            "SetJobMetadata w0!done: job w0!done is unknown or has completed",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_decision_that_would_abort_batsim_is_named(decisions: list[ev.Event], rule: str) -> None:
    with pytest.raises(RuleBroken) as broken:
        decide(ledger(), *decisions)
    assert str(broken.value) == rule


@pytest.mark.parametrize(
    ("decisions", "rule"),
    [
        (
            [ev.RegisterProfile("w0", "delay", Delay(1))],
            "RegisterProfile: profile 'delay' exists already in workload 'w0'",
        ),
        ([ev.RegisterJob(job("w0!waits"))], "RegisterJob w0!waits: job w0!waits exists already"),
        ([ev.RegisterJob(job("w0!runs"))], "RegisterJob w0!runs: job w0!runs exists already"),
        ([ev.RegisterJob(job("w0!done"))], "RegisterJob w0!done: job w0!done exists already"),
        (
            [ev.RegisterJob(job("w0!new")), ev.RegisterJob(job("w0!new"))],
            "RegisterJob w0!new: job w0!new exists already",
        ),
        (
            [ev.RegisterJob(job("dyn!new"))],
            "RegisterJob dyn!new: workload 'dyn' does not exist; register a profile in it first",
        ),
        (
            [ev.RegisterJob(job("w0!new", profile="other"))],
            "RegisterJob w0!new: profile 'other' does not exist in workload 'w0'",
        ),
        (
            [
                ev.RegisterProfile("dyn", "p", Composed(sequence=("delay",))),
                ev.RegisterJob(job("dyn!new", profile="p")),
                run("dyn!new", "2-3"),
            ],
            "ExecuteJob dyn!new: profile 'p' was registered while the simulation ran; Batsim runs one of its "
            "kind from a workload file only",
        ),
        (
            [ev.RegistrationFinished(), ev.RegisterJob(job("w0!new"))],
            "RegisterJob w0!new: registration was declared finished",
        ),
        (
            [ev.RegistrationFinished(), ev.ContinueRegistration(), ev.RegisterJob(job("w0!new"))],
            "RegisterJob w0!new: registration was declared finished",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_registration_that_would_abort_batsim_is_named(decisions: list[ev.Event], rule: str) -> None:
    with pytest.raises(RuleBroken) as broken:
        decide(ledger(dynamic_jobs=True, profile_reuse=True), *decisions)
    assert str(broken.value) == rule


@pytest.mark.parametrize("acknowledge", [False, True])
def test_a_registered_job_can_run_at_once(acknowledge: bool) -> None:
    asked = ledger(dynamic_jobs=True, profile_reuse=True, acknowledge_dynamic_jobs=acknowledge)
    decide(asked, ev.RegisterJob(job("w0!new")), run("w0!new", "2-3"))
    assert runs_on(asked) == {"w0!runs": "0-1", "w0!new": "2-3"}


@pytest.mark.parametrize("ending", ["completion", "rejection"])
def test_a_profile_is_dead_when_the_first_job_that_used_it_is_over(ending: str) -> None:
    asked = ledger(dynamic_jobs=True)
    decide(asked, ev.RegisterProfile("dyn", "p", Delay(1)))
    decide(asked, ev.RegisterJob(job("dyn!1", profile="p")), ev.RegisterJob(job("dyn!2", profile="p")))
    if ending == "completion":
        execute(asked, "dyn!1", "2-3")
        asked.release("dyn!1")
    else:
        decide(asked, ev.RejectJob("dyn!1"))
    with pytest.raises(RuleBroken, match="'p' was dropped when the first job that used it was over"):
        decide(asked, ev.RegisterJob(job("dyn!3", profile="p")))
    with pytest.raises(RuleBroken, match="'p' exists already"):
        decide(asked, ev.RegisterProfile("dyn", "p", Delay(1)))
    execute(asked, "dyn!2", "2-3")


def test_a_profile_lives_on_where_reuse_is_enabled() -> None:
    asked = ledger(dynamic_jobs=True, profile_reuse=True)
    decide(asked, ev.RegisterProfile("dyn", "p", Delay(1)))
    decide(asked, ev.RegisterJob(job("dyn!1", profile="p")), ev.RejectJob("dyn!1"))
    decide(asked, ev.RegisterJob(job("dyn!2", profile="p")))
    assert asked.queue.get("dyn!1") is None
    assert asked.queue.get("dyn!2") is not None


def test_unavailable_hosts_cannot_be_given() -> None:
    asked = ledger()
    asked.take_away(HostSet.parse("2"))
    with pytest.raises(RuleBroken, match="hosts 2 are unavailable"):
        execute(asked, "w0!waits", "2-3")
    asked.give_back(HostSet.parse("2"))
    execute(asked, "w0!waits", "2-3")


def test_nothing_can_be_decided_after_the_end() -> None:
    asked = ledger()
    asked.learn(ev.SimulationEnds())
    with pytest.raises(RuleBroken, match="the simulation has ended, nothing can be decided any more"):
        decide(asked, ev.CallMeLater(20.0))


def test_storage_is_shared_unless_it_is_not() -> None:
    def twice(asked: Ledger) -> None:
        decide(asked, run("w0!waits", "2 4"), run("w0!also", "3-4"))

    twice(ledger())
    with pytest.raises(RuleBroken, match="hosts 4 are busy and may not be shared"):
        twice(ledger(storage_sharing=False))


def test_hosts_are_shared_when_the_simulator_allows_it() -> None:
    shared = ledger(compute_sharing=True)
    execute(shared, "w0!waits", "0-1")
    assert runs_on(shared) == {"w0!runs": "0-1", "w0!waits": "0-1"}


@pytest.mark.parametrize(
    ("decisions", "started"),
    [
        ([run("w0!waits", "2-3"), ev.RejectJob("w0!also")], {"w0!waits": "2-3"}),
        ([run("w0!total", "2")], {"w0!total": "2"}),
        ([run("w0!totals", "2-4")], {"w0!totals": "2-4"}),
        ([run("w0!waits", "3", mapping=[0, 0])], {"w0!waits": "3"}),
        ([run("w0!total", "2-3", mapping=[0, 1, 1])], {"w0!total": "2-3"}),
        ([ev.KillJobs(["w0!runs"]), ev.KillJobs(["w0!runs"])], {}),
        ([ev.CallMeLater(10.000001)], {}),
        ([ev.SetJobMetadata("w0!waits", "a note"), ev.SetJobMetadata("w0!runs", "another")], {}),
        ([ev.SetHostsState(HostSet.parse("2-3"), 1)], {}),
        ([ev.QueryEnergy(), ev.WaitingTimeAnswer("w0!waits", 3.0), ev.TellJob("w0!runs", "hello")], {}),
    ],
)
def test_what_batsim_accepts_passes(decisions: list[ev.Event], started: dict[str, str]) -> None:
    """A job that is killed runs until the simulator says that it has ended."""
    asked = ledger()
    decide(asked, *decisions)
    assert runs_on(asked) == {"w0!runs": "0-1", **started}


def sleeping_ledger() -> Ledger:
    """A ledger of hosts that sleep in state 2, of which host 0 sleeps and host 1 is falling asleep."""
    hosts = [Host(number, f"h{number}", sleep_pstates={2: (3, 4)}) for number in range(4)]
    kept = Ledger(ev.SimulationBegins(hosts))
    submit(kept, job("w0!waits"))
    decide(kept, ev.SetHostsState(HostSet.of([0]), 2), ev.SetHostsState(HostSet.of([1]), 2))
    kept.switched(HostSet.of([0]), 2)
    return kept


@pytest.mark.parametrize(
    ("decision", "rule"),
    [
        (run("w0!waits", "0 2"), "ExecuteJob w0!waits: hosts 0 sleep or are switching their power state"),
        (run("w0!waits", "1-2"), "ExecuteJob w0!waits: hosts 1 sleep or are switching their power state"),
        (ev.SetHostsState(HostSet.of([0]), 2), "SetHostsState: host 0 sleeps already; it can only wake up"),
        (
            ev.SetHostsState(HostSet.of([1]), 0),
            "SetHostsState: hosts 1 are switching their power state already",
        ),
        (ev.SetHostsState(HostSet.of([2]), 3), "SetHostsState: host 2 only passes through power state 3"),
    ],
)
def test_hosts_that_sleep_or_switch_are_left_alone(decision: ev.Event, rule: str) -> None:
    with pytest.raises(RuleBroken) as broken:
        decide(sleeping_ledger(), decision)
    assert str(broken.value) == rule


def test_hosts_that_woke_up_can_run_jobs() -> None:
    asked = sleeping_ledger()
    decide(asked, ev.SetHostsState(HostSet.of([0]), 0))
    asked.switched(HostSet.of([0]), 0)
    execute(asked, "w0!waits", "0 2")
    assert runs_on(asked) == {"w0!waits": "0 2"}


def test_registration_goes_on_after_the_reply_that_reopened_it() -> None:
    asked = ledger(dynamic_jobs=True)
    decide(asked, ev.RegistrationFinished(), ev.ContinueRegistration())
    decide(asked, ev.RegisterProfile("dyn", "p", Delay(1)), at=11.0)
    decide(asked, ev.RegisterJob(job("dyn!1", profile="p")), run("dyn!1", "2-3"), at=12.0)
    assert runs_on(asked) == {"w0!runs": "0-1", "dyn!1": "2-3"}


class StartsTwice(Scheduler):
    """A policy that gives the same hosts to two jobs."""

    name = "starts-twice"

    def schedule(self, cluster: Cluster) -> None:
        for waiting in list(cluster.queue):
            cluster.start(waiting, HostSet.parse("0-1"))


class KillsTheDead(Scheduler):
    """A policy that kills a job that has completed."""

    name = "kills-the-dead"

    def __init__(self) -> None:
        self.met: list[Job] = []

    def schedule(self, cluster: Cluster) -> None:
        for gone in self.met:
            cluster.kill(gone)
        for waiting in list(cluster.queue):
            self.met.append(waiting)
            cluster.start(waiting)


class CallsThePast(Scheduler):
    """A policy that wants to be called at once."""

    name = "calls-the-past"

    def schedule(self, cluster: Cluster) -> None:
        cluster.call_at(cluster.now)


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (
            StartsTwice,
            "scheduler 'starts-twice' broke a rule at time 10: "
            "ExecuteJob w0!2: hosts 0-1 are busy and may not be shared",
        ),
        (
            KillsTheDead,
            "scheduler 'kills-the-dead' broke a rule at time 15: "
            "KillJobs: job w0!1 is unknown or has completed; only a running job can be killed",
        ),
        (
            CallsThePast,
            "scheduler 'calls-the-past' broke a rule at time 0: "
            "CallMeLater: a call at 0 is not in the future (it is 0)",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, type) else "",
)
def test_a_policy_that_breaks_a_rule_is_told_which(policy: type[Scheduler], error: str) -> None:
    process = DecisionProcess(policy())
    with pytest.raises(PolicyError) as raised:
        process.react(ev.Message(0.0, [ev.SimulationBegins(HOSTS, profiles=PROFILES)]))
        process.react(ev.Message(NOW, [ev.JobSubmitted(job("w0!1")), ev.JobSubmitted(job("w0!2"))]))
        process.react(
            ev.Message(15.0, [ev.JobCompleted("w0!1", JobState.SUCCESS, HostSet.parse("0-1"), time=15.0)])
        )
    assert str(raised.value).startswith(f"{error} ({__file__}:")


@pytest.mark.parametrize(
    "given",
    [
        {"mapping": (0, 1), "storage_mapping": {"disk": 4}},
        {"mapping": (0, 1), "io_job": ev.IoJob("io", HostSet.parse("1"))},
        {"storage_mapping": {"disk": 4}, "io_job": ev.IoJob("io", HostSet.parse("1"))},
    ],
    ids=lambda given: "+".join(given),
)
def test_only_one_of_a_mapping_a_storage_mapping_and_an_io_job_is_given(given: dict[str, Any]) -> None:
    decision = ev.ExecuteJob("w0!waits", HostSet.parse("2-3"), **given)
    with pytest.raises(RuleBroken, match="only one of a mapping, a storage mapping and an IO job"):
        check_allocation(decision, job("w0!waits"), 4, False)
