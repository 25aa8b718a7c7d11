"""What hosts draw, in cases small enough to work out by hand; ``tests/drive.py`` has the hosts' figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsched_py.engines.python import Batsim
from batsched_py.errors import RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.setup import Setup
from tests.drive import GIGA, Drive, computing, execute, platform, workload


def drive_one(
    profile: dict[str, Any], hosts: int = 1, cores: int = 1, size: int = 1, walltime: float = -1
) -> Drive:
    """A machine on which a single job waits."""
    jobs = workload({"id": "a", "res": size, "profile": "p", "walltime": walltime}, profiles={"p": profile})
    drive = Drive(Batsim(Setup(platform(hosts, cores=cores), [jobs], energy=True)))
    drive.reply()
    return drive


def joules(drive: Drive) -> float:
    """What has been drawn until now."""
    for event in drive.reply(ev.QueryEnergy()):
        if isinstance(event, ev.EnergyAnswer):
            return event.joules
    raise AssertionError("there was no answer")


def test_a_computing_host_draws_its_full_power() -> None:
    drive = drive_one(computing(10 * GIGA))
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert drive.now == 10
    assert joules(drive) == pytest.approx(10 * 200)


def test_an_idle_host_draws_its_idle_power() -> None:
    drive = drive_one(computing(10 * GIGA), hosts=3)
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert joules(drive) == pytest.approx(10 * (200 + 100 + 100))


def test_a_host_whose_job_only_sleeps_draws_its_idle_power() -> None:
    drive = drive_one({"type": "delay", "delay": 10})
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert joules(drive) == pytest.approx(10 * 100)


def test_one_of_four_cores_is_a_quarter_of_the_load() -> None:
    drive = drive_one(computing(10 * GIGA), cores=4)
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert joules(drive) == pytest.approx(10 * (120 + 80 / 4))


def test_executors_on_one_host_use_its_cores_together() -> None:
    drive = drive_one(computing(10 * GIGA), cores=4, size=2)
    drive.until(ev.JobCompleted, execute("a", "0", mapping=[0, 0]))
    assert drive.now == 10
    assert joules(drive) == pytest.approx(10 * (120 + 80 / 2))


def test_executors_on_one_core_take_turns() -> None:
    drive = drive_one(computing(10 * GIGA), size=2)
    drive.until(ev.JobCompleted, execute("a", "0", mapping=[0, 0]))
    assert drive.now == 20
    assert joules(drive) == pytest.approx(20 * 200)


def test_a_host_with_less_work_is_partly_loaded() -> None:
    drive = drive_one({"type": "parallel", "cpu": [10 * GIGA, 5 * GIGA], "com": [0] * 4}, hosts=2, size=2)
    drive.until(ev.JobCompleted, execute("a", "0-1"))
    assert joules(drive) == pytest.approx(10 * (200 + 120 + 80 / 2))


def test_switching_draws_the_power_of_its_own_states() -> None:
    drive = drive_one({"type": "delay", "delay": 1})
    drive.until(ev.HostsStateChanged, ev.SetHostsState(HostSet.parse("0"), 2))
    assert drive.now == 10
    assert joules(drive) == pytest.approx(10 * 110)
    drive.until(ev.RequestedCall, ev.CallMeLater(100.0))
    assert joules(drive) == pytest.approx(10 * 110 + 90 * 10)
    drive.until(ev.HostsStateChanged, ev.SetHostsState(HostSet.parse("0"), 0))
    assert drive.now == 120
    assert joules(drive) == pytest.approx(10 * 110 + 90 * 10 + 20 * 130)


def test_a_slower_power_state_is_entered_at_once_and_computes_slower() -> None:
    drive = drive_one(computing(10 * GIGA))
    (changed,) = [
        event
        for event in drive.reply(ev.SetHostsState(HostSet.parse("0"), 1), execute("a", "0"))
        if isinstance(event, ev.HostsStateChanged)
    ]
    assert (changed.time, changed.pstate) == (0.0, 1)
    drive.until(ev.JobCompleted)
    assert drive.now == 20
    assert joules(drive) == pytest.approx(20 * 100)


def test_a_power_state_that_is_changed_at_once_costs_nothing_even_to_sleep() -> None:
    """As ``ChangeHostsPStateEvent`` of Batsim 5 does it."""
    drive = drive_one(computing(10 * GIGA))
    host = HostSet.parse("0")
    changed = drive.until(ev.HostsPStateChanged, ev.ChangeHostsPState(host, 2))
    assert (changed.time, changed.pstate) == (0.0, 2)
    drive.until(ev.RequestedCall, ev.CallMeLater(100.0))
    assert joules(drive) == pytest.approx(100 * 10)
    drive.until(ev.HostsPStateChanged, ev.ChangeHostsPState(host, 1))
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert drive.now == 120
    assert joules(drive) == pytest.approx(100 * 10 + 20 * 100)


def test_a_host_that_sleeps_in_a_state_that_was_changed_at_once_can_be_turned_on() -> None:
    drive = drive_one(computing(10 * GIGA))
    host = HostSet.parse("0")
    drive.until(ev.HostsPStateChanged, ev.ChangeHostsPState(host, 2))
    drive.until(ev.HostsStateChanged, ev.SetHostsState(host, 0))
    assert drive.now == 20
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert drive.now == 30


def test_a_host_that_sleeps_or_was_turned_off_does_not_compute() -> None:
    host = HostSet.parse("0")
    drive = drive_one(computing(10 * GIGA))
    drive.until(ev.HostsPStateChanged, ev.ChangeHostsPState(host, 2))
    with pytest.raises(RuleBroken, match="hosts 0 sleep or are switching"):
        drive.reply(execute("a", "0"))
    drive = drive_one(computing(10 * GIGA))
    drive.until(ev.HostsStateChanged, ev.SetHostsState(host, 2))
    with pytest.raises(RuleBroken, match="hosts 0 were turned off; they have to be turned on"):
        drive.reply(ev.ChangeHostsPState(host, 0))


def test_a_host_wakes_up_in_the_state_that_was_asked_for() -> None:
    drive = drive_one(computing(10 * GIGA))
    drive.until(ev.HostsStateChanged, ev.SetHostsState(HostSet.parse("0"), 2))
    drive.until(ev.HostsStateChanged, ev.SetHostsState(HostSet.parse("0"), 1))
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert drive.now == 10 + 20 + 20


def test_a_killed_job_stops_drawing() -> None:
    drive = drive_one(computing(100 * GIGA))
    drive.until(ev.RequestedCall, execute("a", "0"), ev.CallMeLater(30.0))
    drive.until(ev.RequestedCall, ev.KillJobs(["w0!a"]), ev.CallMeLater(50.0))
    assert joules(drive) == pytest.approx(30 * 200 + 20 * 100)


def test_a_job_that_reaches_its_walltime_stops_drawing() -> None:
    drive = drive_one(computing(100 * GIGA), walltime=30)
    drive.until(ev.RequestedCall, execute("a", "0"), ev.CallMeLater(50.0))
    assert joules(drive) == pytest.approx(30 * 200 + 20 * 100)


def test_the_tasks_of_a_composed_profile_draw_one_by_one() -> None:
    profiles = {
        "p": {"type": "composed", "seq": ["nap", "work"], "repeat": 2},
        "nap": {"type": "delay", "delay": 3},
        "work": computing(2 * GIGA),
    }
    drive = Drive(
        Batsim(Setup(platform(1), [workload({"id": "a", "profile": "p"}, profiles=profiles)], energy=True))
    )
    drive.reply()
    drive.until(ev.JobCompleted, execute("a", "0"))
    assert drive.now == 10
    assert joules(drive) == pytest.approx(2 * (3 * 100 + 2 * 200))


def test_requests_are_answered_when_their_last_host_is_done() -> None:
    hosts = platform(2)
    hosts.hosts[1].pstates = [*hosts.hosts[1].pstates]
    hosts.hosts[1].pstates[3] = hosts.hosts[1].pstates[4]
    drive = Drive(Batsim(Setup(hosts, [workload({"id": "a"})], energy=True)))
    drive.reply()
    changed = drive.until(ev.HostsStateChanged, ev.SetHostsState(HostSet.parse("0-1"), 2))
    assert (changed.time, str(changed.hosts)) == (20.0, "0-1")


def test_the_energy_of_a_job_is_that_of_its_hosts(tmp_path: Path) -> None:
    jobs = workload({"id": "a", "res": 2, "profile": "p"}, profiles={"p": computing(10 * GIGA)})
    batsim = Batsim(Setup(platform(3), [jobs], energy=True), Outputs(str(tmp_path / "out")))
    drive = Drive(batsim)
    drive.reply()
    drive.reply(execute("a", "0-1"))
    drive.finish()
    assert ",0-1,4000.000000," in (tmp_path / "out_jobs.csv").read_text()


def test_consumed_joules_count_from_the_first_submission_to_the_last_end(tmp_path: Path) -> None:
    jobs = workload({"id": "a", "subtime": 100})
    batsim = Batsim(Setup(platform(1), [jobs], energy=True), Outputs(str(tmp_path / "out")))
    drive = Drive(batsim)
    drive.until(ev.JobSubmitted)
    drive.reply(execute("a", "0"), ev.CallMeLater(500.0))
    drive.finish()
    assert batsim.outputs.results.consumed_joules == pytest.approx(10 * 100)


def test_a_row_that_follows_at_once_has_no_mean_power(tmp_path: Path) -> None:
    jobs = workload({"id": "a"}, {"id": "b"})
    drive = Drive(Batsim(Setup(platform(2), [jobs], energy=True), Outputs(str(tmp_path / "out"))))
    drive.reply()
    drive.reply(execute("a", "0"), execute("b", "1"))
    drive.finish()
    assert (tmp_path / "out_consumed_energy.csv").read_text().splitlines() == [
        "time,energy,event_type,wattmin,epower",
        "0.000000,0.000000,s,240.000000,NA",
        "0.000000,0.000000,s,240.000000,NA",
        "10.000000,2000.000000,e,240.000000,200.000000",
        "10.000000,2000.000000,e,240.000000,NA",
    ]
