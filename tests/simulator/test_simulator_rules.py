"""What makes the real Batsim abort is refused by the built-in one, which names the decision and the rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import Deadlock, InputError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import JobState
from batsched_py.protocol.profiles import Composed, Delay, Homogeneous
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from tests.drive import Drive, computing, execute, platform, workload

DYNAMIC = ev.Settings(dynamic_jobs=True)
DELAY = {"type": "delay", "delay": 5}


def register_profile(name: str = "p", workload: str = "dyn") -> ev.RegisterProfile:
    return ev.RegisterProfile(workload, name, Delay(5))


def register_job(name: str = "a", profile: str = "p", workload: str = "dyn") -> ev.RegisterJob:
    text = (
        '{"now": 0, "events": [{"timestamp": 0, "type": "REGISTER_JOB", "data": {"job_id": "%s!%s", '
        '"job": {"id": "%s", "subtime": 0, "res": 1, "profile": "%s"}}}]}'
    )
    (event,) = BATSIM4.codec().decode_reply((text % (workload, name, name, profile)).encode()).events
    assert isinstance(event, ev.RegisterJob)
    return event


def started(settings: ev.Settings = ev.Settings(), energy: bool = False) -> Drive:
    """Four hosts for jobs of 1, 2 and 2 hosts; the first runs on host 0 until 10, the others wait.

    A fourth job is submitted later.
    """
    jobs = [
        {"id": "runs"},
        {"id": "waits", "res": 2},
        {"id": "too", "res": 2},
        {"id": "later", "subtime": 50},
    ]
    drive = Drive(Batsim(Setup(platform(4, storages=1), [workload(*jobs)], settings, energy=energy)))
    drive.reply()
    drive.reply(execute("runs", "0"), ev.CallMeLater(1.0))
    assert drive.now <= 1.0
    return drive


BREACHES: dict[str, tuple[Callable[[Drive], object], str]] = {
    "no hosts": (
        lambda d: d.reply(execute("waits", "")),
        "ExecuteJob w0!waits at 0.000000: no host was given",
    ),
    "hosts that do not exist": (lambda d: d.reply(execute("waits", "3-6")), "hosts 5-6 do not exist"),
    "too few hosts": (lambda d: d.reply(execute("waits", "1")), "the job needs 2 hosts and was given 1"),
    "too many hosts": (lambda d: d.reply(execute("waits", "1-3")), "the job needs 2 hosts and was given 3"),
    "a busy host": (lambda d: d.reply(execute("waits", "0-1")), "hosts 0 are busy and may not be shared"),
    "a job that runs": (lambda d: d.reply(execute("runs", "1")), "job w0!runs is running already"),
    "a job that nobody knows": (lambda d: d.reply(execute("nobody", "1")), "job w0!nobody is not waiting"),
    "a job not yet submitted": (lambda d: d.reply(execute("later", "1")), "job w0!later is not waiting"),
    "a rejected job": (
        lambda d: d.reply(ev.RejectJob("w0!waits"), execute("waits", "1-2")),
        "job w0!waits is not waiting",
    ),
    "a mapping of the wrong size": (
        lambda d: d.reply(execute("waits", "1", [0])),
        "has 2 executors, the mapping places 1",
    ),
    "a mapping beyond the allocation": (
        lambda d: d.reply(execute("waits", "1-2", [0, 2])),
        "names a place outside the allocation",
    ),
    "an empty storage mapping": (
        lambda d: d.reply(ev.ExecuteJob("w0!waits", HostSet.parse("1-2"), storage_mapping={})),
        "the storage mapping is empty",
    ),
    "an IO job": (
        lambda d: d.reply(
            ev.ExecuteJob("w0!waits", HostSet.parse("1-2"), io_job=ev.IoJob("io", HostSet.parse("1")))
        ),
        "an additional IO job sends bytes",
    ),
    "rejecting a running job": (
        lambda d: d.reply(ev.RejectJob("w0!runs")),
        "RejectJob w0!runs at 0.000000: job w0!runs is",
    ),
    "rejecting a job twice": (
        lambda d: d.reply(ev.RejectJob("w0!waits"), ev.RejectJob("w0!waits")),
        "job w0!waits is not waiting",
    ),
    "killing nobody": (lambda d: d.reply(ev.KillJobs([])), "KillJobs at 0.000000: no job was named"),
    "killing a waiting job": (lambda d: d.reply(ev.KillJobs(["w0!waits"])), "job w0!waits is waiting"),
    "killing an unknown job": (lambda d: d.reply(ev.KillJobs(["w0!nobody"])), "job w0!nobody is unknown"),
    "killing a job reported completed": (
        lambda d: (d.until(ev.JobCompleted), d.reply(ev.KillJobs(["w0!runs"]))),
        "job w0!runs is unknown or has completed",
    ),
    "a call that is not in the future": (
        lambda d: d.reply(ev.CallMeLater(0.0)),
        "CallMeLater at 0.000000: a call at 0 is not in the future (it is 1)",
    ),
    "a decision after its message": (
        lambda d: d.reply(ev.RejectJob("w0!waits", time=2.0), now=1.0),
        "RejectJob w0!waits at 2.000000 lies after its message's `now` 1.000000",
    ),
    "a profile without dynamic jobs": (lambda d: d.reply(register_profile()), "does not accept dynamic jobs"),
    "a job without dynamic jobs": (lambda d: d.reply(register_job()), "does not accept dynamic jobs"),
    "a power state without energy": (
        lambda d: d.reply(ev.SetHostsState(HostSet.parse("1"), 2)),
        "SetHostsState at 0.000000: power states can be changed with --energy only",
    ),
    "asking for energy without energy": (
        lambda d: d.reply(ev.QueryEnergy()),
        "QueryEnergy at 0.000000: the energy can be asked for with --energy only",
    ),
    "metadata with a quote": (
        lambda d: d.reply(ev.SetJobMetadata("w0!runs", 'a"b')),
        'may not contain the character "',
    ),
    "metadata of an unknown job": (
        lambda d: d.reply(ev.SetJobMetadata("w0!nobody", "")),
        "job w0!nobody is unknown",
    ),
    "metadata of a job reported completed": (
        lambda d: (d.until(ev.JobCompleted), d.reply(ev.SetJobMetadata("w0!runs", ""))),
        "job w0!runs is unknown or has completed",
    ),
    "a message to an unknown job": (
        lambda d: d.reply(ev.TellJob("w0!nobody", "hello")),
        "job w0!nobody is unknown",
    ),
    "a state put by hand": (
        lambda d: d.reply(ev.ChangeJobState("w0!waits", JobState.RUNNING)),
        "cannot be put into a state by hand",
    ),
    "an event that Batsim does not know": (
        lambda d: d.reply(ev.Unknown("FLY", {})),
        "FLY at 0.000000: Batsim does not know such a decision",
    ),
    "a member too many": (
        lambda d: d.reply(ev.RejectJob("w0!waits", extra={"why": "x"})),
        "RejectJob w0!waits at 0.000000: it may not have the members why",
    ),
}

REGISTRATIONS: dict[str, tuple[list[ev.Event], str]] = {
    "a profile twice": (
        [register_profile(), register_profile()],
        "profile 'p' exists already in workload 'dyn'",
    ),
    "a profile that cannot be understood": (
        [ev.RegisterProfile("dyn", "p", Delay(0.0000001))],
        "needs a `delay` above 0",
    ),
    "a profile that needs a network": (
        [ev.RegisterProfile("dyn", "p", Homogeneous(1, bytes_sent=1))],
        "profile 'p' (type parallel_homogeneous) sends bytes",
    ),
    "a job of an unknown workload": ([register_job()], "workload 'dyn' does not exist"),
    "a job with an unknown profile": ([register_profile("q"), register_job()], "profile 'p' does not exist"),
    "a profile of another workload": (
        [register_profile(), register_job(workload="w0")],
        "profile 'p' does not exist",
    ),
    "a job twice": ([register_profile(), register_job(), register_job()], "job dyn!a exists already"),
    "a job under a static name": ([register_job("waits", "sleep", "w0")], "job w0!waits exists already"),
    "registering after the end": (
        [ev.RegistrationFinished(), register_profile()],
        "RegisterProfile at 0.000000: registration was declared finished",
    ),
    "registering in the reply that reopens": (
        [ev.RegistrationFinished(), ev.ContinueRegistration(), register_profile()],
        "registration was declared finished",
    ),
    "executing a composed profile": (
        [
            register_profile(),
            ev.RegisterProfile("dyn", "c", Composed(("p",))),
            register_job(profile="c"),
            ev.ExecuteJob("dyn!a", HostSet.parse("1")),
        ],
        "profile 'c' was registered while the simulation ran",
    ),
}

POWER: dict[str, tuple[list[ev.Event], str]] = {
    "no hosts": ([ev.SetHostsState(HostSet(), 2)], "no host was given"),
    "hosts that do not exist": ([ev.SetHostsState(HostSet.parse("4-6"), 2)], "hosts 5-6 do not exist"),
    "a busy host": ([ev.SetHostsState(HostSet.parse("0-1"), 1)], "hosts 0 run job w0!runs"),
    "a state that does not exist": ([ev.SetHostsState(HostSet.parse("1"), 5)], "host 1 has no power state 5"),
    "a state to pass through": (
        [ev.SetHostsState(HostSet.parse("1"), 3)],
        "host 1 only passes through power state 3",
    ),
    "a negative state": ([ev.SetHostsState(HostSet.parse("1"), -1)], "host 1 has no power state -1"),
    "a switching host": (
        [ev.SetHostsState(HostSet.parse("1"), 2), ev.SetHostsState(HostSet.parse("1"), 0)],
        "hosts 1 are switching their power state already",
    ),
    "a job on a switching host": (
        [ev.SetHostsState(HostSet.parse("1"), 2), execute("waits", "1-2")],
        "hosts 1 sleep or are switching their power state",
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_named(name: str) -> None:
    breach, message = BREACHES[name]
    drive = started()
    with pytest.raises(RuleBroken) as raised:
        breach(drive)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_a_breach_of_registration_is_named(name: str) -> None:
    decisions, message = REGISTRATIONS[name]
    drive = started(DYNAMIC)
    with pytest.raises(RuleBroken) as raised:
        drive.reply(*decisions)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", POWER)
def test_a_breach_of_power_states_is_named(name: str) -> None:
    decisions, message = POWER[name]
    drive = started(energy=True)
    with pytest.raises(RuleBroken) as raised:
        drive.reply(*decisions)
    assert message in str(raised.value)


def test_a_sleeping_host_can_only_wake_up() -> None:
    drive = started(energy=True)
    drive.until(ev.HostsStateChanged, ev.SetHostsState(HostSet.parse("1-3"), 2))
    with pytest.raises(RuleBroken, match="host 1 sleeps already"):
        drive.reply(ev.SetHostsState(HostSet.parse("1"), 2))


def test_a_job_cannot_run_on_a_sleeping_host() -> None:
    drive = started(energy=True)
    drive.until(ev.HostsStateChanged, ev.SetHostsState(HostSet.parse("1-3"), 2))
    with pytest.raises(RuleBroken, match="hosts 1-2 sleep or are switching"):
        drive.reply(execute("waits", "1-2"))


def test_a_storage_host_is_for_one_job_when_sharing_is_disabled() -> None:
    drive = started(ev.Settings(storage_sharing=False))
    drive.reply(execute("waits", "1 4"))
    with pytest.raises(RuleBroken, match="hosts 4 are busy and may not be shared"):
        drive.reply(execute("too", "2 4"))


def test_a_storage_host_cannot_compute() -> None:
    jobs = workload({"id": "a", "res": 2, "profile": "work"}, profiles={"work": computing(1e9)})
    drive = Drive(Batsim(Setup(platform(2, storages=1), [jobs])))
    drive.reply()
    with pytest.raises(RuleBroken, match=r"ExecuteJob w0!a at 0\.000000: job w0!a computes on host 2"):
        drive.reply(execute("a", "1-2"))


def test_a_dropped_profile_is_dead_for_good() -> None:
    drive = Drive(Batsim(Setup(platform(), [], DYNAMIC)))
    drive.reply(register_profile(), register_job(), ev.ExecuteJob("dyn!a", HostSet.parse("0")))
    with pytest.raises(RuleBroken, match=r"RegisterJob \S+ at 0\.000000: profile 'p' was dropped"):
        drive.reply(register_job("b"))


def test_the_parts_of_a_dropped_profile_are_dead_too() -> None:
    profiles = {"part": DELAY, "all": {"type": "composed", "seq": ["part"]}}
    drive = Drive(
        Batsim(Setup(platform(), [workload({"id": "a", "profile": "all"}, profiles=profiles)], DYNAMIC))
    )
    drive.reply()
    drive.until(ev.JobCompleted, execute("a", "0"))
    with pytest.raises(RuleBroken, match="profile 'part' was dropped"):
        drive.reply(register_job("b", "part", "w0"))


def test_deciding_in_reply_to_the_end_is_too_late() -> None:
    drive = Drive(Batsim(Setup(platform(), [workload({"id": "a"})])))
    drive.reply()
    drive.until(ev.SimulationEnds, ev.RejectJob("w0!a"))
    with pytest.raises(RuleBroken, match="CallMeLater came in the reply to SIMULATION_ENDS"):
        drive.reply(ev.CallMeLater(1e6))


def test_a_parallel_job_must_fit_its_profile() -> None:
    profiles = {"two": {"type": "parallel", "cpu": [1, 1], "com": [0] * 4}}
    with pytest.raises(InputError, match="job w0!a asks for 3 hosts, its profile 'two' is made for 2"):
        Batsim(Setup(platform(), [workload({"id": "a", "res": 3, "profile": "two"}, profiles=profiles)]))


def test_a_parallel_part_must_fit_the_job() -> None:
    profiles = {
        "two": {"type": "parallel", "cpu": [1, 1], "com": [0] * 4},
        "all": {"type": "composed", "seq": ["two"]},
    }
    drive = Drive(
        Batsim(Setup(platform(), [workload({"id": "a", "res": 3, "profile": "all"}, profiles=profiles)]))
    )
    drive.reply()
    with pytest.raises(RuleBroken, match="job w0!a has 3 executors, its profile 'two' is made for 2"):
        drive.reply(execute("a", "0-2"))


def test_jobs_that_are_never_started_are_a_deadlock() -> None:
    drive = started()
    with pytest.raises(Deadlock, match="3 jobs wait, w0!too first"):
        drive.finish()


def test_registration_that_is_never_finished_is_a_deadlock() -> None:
    with pytest.raises(Deadlock, match="registration was never finished"):
        Drive(Batsim(Setup(platform(), [], DYNAMIC))).finish()


def test_energy_needs_hosts_that_say_what_they_draw() -> None:
    with pytest.raises(InputError, match="host 'host0' does not say what power it draws"):
        Batsim(Setup(Platform.homogeneous(2), [workload({"id": "a"})], energy=True))


def test_nothing_of_what_was_written_before_a_breach_stays(tmp_path: Path) -> None:
    class Breaker:
        """Runs the first job, and the second after it on a host that does not exist."""

        def react(self, request: ev.Message) -> ev.Message:
            match request.events[0]:
                case ev.JobSubmitted():
                    return ev.Message(request.now, [execute("a", "0")])
                case ev.JobCompleted():
                    return ev.Message(request.now, [execute("b", "9")])
                case _:
                    return ev.Message(request.now, [])

    outputs = Outputs(str(tmp_path / "out"), machine_states=True)
    batsim = Batsim(Setup(platform(1), [workload({"id": "a"}, {"id": "b"})], energy=True), outputs)
    with pytest.raises(RuleBroken):
        simulate(batsim, Breaker())
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_ends_while_one_thinks_can_still_be_named() -> None:
    jobs = workload({"id": "a"}, {"id": "b"})
    drive = Drive(Batsim(Setup(platform(), [jobs])))
    drive.reply()
    decisions: list[ev.Event] = [
        execute("a", "0"),
        ev.KillJobs(["w0!a"], time=15.0),
        ev.KillJobs(["w0!a"], time=15.0),
        ev.SetJobMetadata("w0!a", "too late", time=15.0),
        ev.TellJob("w0!a", "too late", time=15.0),
        ev.RejectJob("w0!b", time=15.0),
    ]
    drive.reply(*decisions, now=20.0)
    (completed,), (killed,) = drive.all(ev.JobCompleted), drive.all(ev.JobsKilled)
    assert (completed.time, completed.state) == (10.0, JobState.SUCCESS)
    assert (killed.time, killed.job_ids, killed.progress) == (15.0, ["w0!a"], {})


def test_two_kills_of_a_job_are_acknowledged_once() -> None:
    drive = started()
    drive.reply(ev.KillJobs(["w0!runs", "w0!runs"]), ev.KillJobs(["w0!runs"]))
    assert len(drive.all(ev.JobsKilled)) == 1


def test_a_job_of_a_file_can_be_annotated_before_it_is_submitted(tmp_path: Path) -> None:
    jobs = workload({"id": "a", "subtime": 50})
    drive = Drive(Batsim(Setup(platform(), [jobs]), Outputs(str(tmp_path / "out"))))
    drive.until(ev.JobSubmitted, ev.SetJobMetadata("w0!a", "early"))
    drive.reply(ev.RejectJob("w0!a"))
    drive.finish()
    assert '"early"' in (tmp_path / "out_jobs.csv").read_text()
