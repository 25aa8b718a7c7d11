"""Machines that go and come back, and other events of event files."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import InputError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.agenda import read_events
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.setup import Setup
from tests.drive import Drive, execute, platform, workload


def gone(hosts: str, time: float) -> ev.Event:
    return ev.HostsUnavailable(HostSet.parse(hosts), time=time)


def back(hosts: str, time: float) -> ev.Event:
    return ev.HostsAvailable(HostSet.parse(hosts), time=time)


def events_file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "events.txt"
    path.write_text("\n".join(lines))
    return path


def test_a_file_is_sorted_by_time_and_type(tmp_path: Path) -> None:
    path = events_file(
        tmp_path,
        '{"type": "machine_unavailable", "resources": "0-3 7", "timestamp": 20}',
        "",
        '{"type": "machine_unavailable", "resources": "1", "timestamp": 5.5}',
        '{"type": "machine_available", "resources": "1", "timestamp": 20}',
    )
    assert read_events(path) == [gone("1", 5.5), back("1", 20.0), gone("0-3 7", 20.0)]


def test_other_events_are_forwarded_as_they_are(tmp_path: Path) -> None:
    path = events_file(tmp_path, '{"type": "heat", "timestamp": 3, "celsius": 41.5}')
    batsim = Batsim(
        Setup(platform(), [workload({"id": "a"})], events=[read_events(path, forward_unknown=True)])
    )
    drive = Drive(batsim)
    drive.reply()
    drive.reply(ev.RejectJob("w0!a"))
    drive.finish()
    (event,) = drive.all(ev.ExternalEvent)
    assert (event.time, event.data) == (3.0, {"type": "heat", "timestamp": 3, "celsius": 41.5})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"type": "heat", "timestamp": 3}', "line 1: type 'heat' is neither machine_available nor"),
        ('{"timestamp": 3}', "line 1: `type` must be a text"),
        ('{"type": "machine_available", "resources": "0"}', "line 1: `timestamp` must be a number"),
        ('{"type": "machine_available", "resources": "0", "timestamp": -1}', "`timestamp` must be a number"),
        ('{"type": "machine_available", "timestamp": 1}', "`resources` must be a text"),
        ('{"type": "machine_available", "resources": "x", "timestamp": 1}', "'x' is not a host"),
        ("[1]", "an event is a JSON object"),
        ("{", "line 1: "),
    ],
)
def test_a_line_that_cannot_be_understood_is_refused(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_events(events_file(tmp_path, line))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read this event file"):
        read_events(tmp_path / "nowhere.txt")


def test_hosts_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="the external event at 5 names unknown hosts 4-6"):
        Drive(Batsim(Setup(platform(4), [workload({"id": "a"})], events=[[gone("3-6", 5.0)]])))


def test_the_end_of_all_lists_is_told_after_the_last_event() -> None:
    lists = [[gone("0", 5.0)], [back("0", 20.0)]]
    drive = Drive(Batsim(Setup(platform(), [workload({"id": "a"})], events=lists)))
    drive.reply()
    drive.reply(ev.RejectJob("w0!a"))
    drive.finish()
    kinds = [type(event) for event in drive.heard]
    assert kinds[-4:] == [ev.HostsUnavailable, ev.HostsAvailable, ev.NoMoreExternalEvents, ev.SimulationEnds]


def test_no_end_is_told_where_there_is_no_list() -> None:
    drive = Drive(Batsim(Setup(platform(), [workload({"id": "a"})])))
    drive.reply()
    drive.reply(ev.RejectJob("w0!a"))
    drive.finish()
    assert not drive.all(ev.NoMoreExternalEvents)


def test_events_keep_the_simulation_alive() -> None:
    drive = Drive(Batsim(Setup(platform(), [workload({"id": "a"})], events=[[gone("0", 500.0)]])))
    drive.reply()
    drive.reply(ev.RejectJob("w0!a"))
    assert drive.finish()[-1].time == 500.0


def test_a_job_on_a_host_that_goes_runs_on() -> None:
    batsim = Batsim(Setup(platform(2), [workload({"id": "a"})], events=[[gone("0", 3.0), back("0", 50.0)]]))
    drive = Drive(batsim)
    drive.reply()
    assert drive.until(ev.JobCompleted, execute("a", "0")).time == 10.0
    assert batsim.machines.away[HostState.UNAVAILABLE] == HostSet.parse("0")
    drive.finish()
    assert batsim.machines.number_in(HostState.IDLE) == 2


def test_a_host_that_comes_back_with_its_job_computes() -> None:
    batsim = Batsim(
        Setup(platform(2), [workload({"id": "a"})], events=[[gone("0-1", 3.0), back("0-1", 5.0)]])
    )
    drive = Drive(batsim)
    drive.reply()
    drive.until(ev.HostsAvailable, execute("a", "0"))
    assert batsim.machines.number_in(HostState.COMPUTING) == 1
    assert batsim.machines.number_in(HostState.IDLE) == 1


def test_a_job_cannot_start_on_a_host_that_is_gone() -> None:
    drive = Drive(
        Batsim(Setup(platform(2), [workload({"id": "a", "subtime": 5})], events=[[gone("0", 3.0)]]))
    )
    drive.until(ev.JobSubmitted)
    with pytest.raises(RuleBroken, match="hosts 0 are unavailable"):
        drive.reply(execute("a", "0"))


def test_a_host_cannot_go_twice() -> None:
    drive = Drive(
        Batsim(Setup(platform(2), [workload({"id": "a"})], events=[[gone("0", 3.0), gone("0-1", 4.0)]]))
    )
    with pytest.raises(RuleBroken, match=r"machine_unavailable at 4\.0+: hosts 0 are unavailable already"):
        drive.finish()


def test_a_host_that_is_there_cannot_come_back() -> None:
    drive = Drive(Batsim(Setup(platform(2), [workload({"id": "a"})], events=[[back("1", 4.0)]])))
    with pytest.raises(RuleBroken, match=r"machine_available at 4\.0+: hosts 1 are not unavailable"):
        drive.finish()


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_policies_keep_off_hosts_that_are_gone(scheduler: str, tmp_path: Path) -> None:
    jobs = [{"id": f"j{n:02}", "subtime": n, "res": 1 + n % 3, "walltime": 20} for n in range(30)]
    events = [[gone("1-2", 5.0), back("1", 60.0), gone("0", 70.0), back("2", 90.0), back("0", 95.0)]]
    outputs = Outputs(str(tmp_path / "out"))
    batsim = Batsim(Setup(platform(4), [workload(*jobs)], events=events), outputs)
    results = simulate(batsim, DecisionProcess(SCHEDULERS.create(scheduler, {})))
    assert results.nb_success == 30


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_a_job_that_needs_all_hosts_waits_until_they_are_back(scheduler: str) -> None:
    jobs = workload({"id": "a", "subtime": 5, "res": 4, "walltime": 20})
    batsim = Batsim(Setup(platform(4), [jobs], events=[[gone("3", 1.0), back("3", 40.0)]]))
    results = simulate(batsim, DecisionProcess(SCHEDULERS.create(scheduler, {})))
    assert results.makespan == 50.0
