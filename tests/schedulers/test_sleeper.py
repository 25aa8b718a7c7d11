"""The policy that lets idle hosts sleep, against the built-in Batsim."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import PolicyError
from batsched_py.protocol import events as ev
from batsched_py.schedulers import SCHEDULERS, Cluster
from batsched_py.schedulers.sleeper import Sleeper
from batsched_py.simulator.outputs import Outputs, Results
from batsched_py.simulator.platform import SleepState, read_platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.read import read_workload
from tests.drive import platform, workload

ROOT = Path(__file__).parents[2]
POWER60 = ROOT / "tests" / "data" / "golden" / "power60_sleeper"
PLATFORMS = [POWER60 / "power8.xml", ROOT / "platforms" / "power16.xml"]


def run(batsim: Batsim, scheduler: str = "sleeper", **options: str) -> Results:
    return simulate(batsim, DecisionProcess(SCHEDULERS.create(scheduler, options)))


def power60(file: Path) -> Batsim:
    return Batsim(Setup(read_platform(file), [read_workload(POWER60 / "power60.json", "w0")], energy=True))


@pytest.mark.parametrize("file", PLATFORMS, ids=lambda file: file.name)
def test_sleeping_saves_energy_and_runs_every_job(file: Path) -> None:
    awake, asleep = run(power60(file), "fcfs"), run(power60(file))
    assert asleep.nb_success == awake.nb_success == 60
    assert asleep.consumed_joules < 0.95 * awake.consumed_joules
    assert asleep.nb_grouped_switches > 0


def test_hosts_sleep_after_the_idle_time_and_wake_for_a_job(tmp_path: Path) -> None:
    jobs = workload({"id": "a"}, {"id": "b", "subtime": 500, "res": 2})
    outputs = Outputs(str(tmp_path / "out"))
    results = run(Batsim(Setup(platform(3), [jobs], energy=True), outputs), idle_time="60")
    assert (tmp_path / "out_pstate_changes.csv").read_text().splitlines() == [
        "time,machine_id,new_pstate",
        "0,0-2,0",
        "60,1-2,-2",
        "70,1-2,2",
        "70,0,-2",
        "80,0,2",
        "500,0-1,-1",
        "520,0-1,0",
        "590,0-1,-2",
        "600,0-1,2",
    ]
    assert results.makespan == 530.0


def test_a_host_that_may_sleep_within_a_tick_sleeps_now() -> None:
    """A turn a microsecond before a host may sleep is the one for which the policy has asked."""
    profiles = {"long": {"type": "delay", "delay": 69.999999}}
    jobs = workload({"id": "a"}, {"id": "b", "profile": "long"}, profiles=profiles)
    turns: list[tuple[float, str]] = []

    class Spy(Sleeper):
        """Notes which hosts fall asleep."""

        def schedule(self, cluster: Cluster) -> None:
            super().schedule(cluster)
            turns.append((cluster.now, str(cluster.switching)))

    simulate(Batsim(Setup(platform(2), [jobs], energy=True)), DecisionProcess(Spy(idle_time=60.0)))
    assert next(now for now, switching in turns if switching == "0") == 69.999999


def test_hosts_wake_for_all_jobs_that_wait() -> None:
    jobs = workload({"id": "a", "subtime": 100}, {"id": "b", "subtime": 100}, {"id": "c", "subtime": 105})
    results = run(Batsim(Setup(platform(4), [jobs], energy=True)), idle_time="10")
    assert results.makespan == 105 + 20 + 10


def test_hosts_sleep_in_the_state_that_is_asked_for() -> None:
    machine = platform(2)
    for host in machine.hosts:
        host.sleep_states[1] = SleepState(1, switch_off=3, switch_on=4)
    jobs = workload({"id": "a", "subtime": 100})
    changes: list[int] = []

    class Spy(Sleeper):
        """Notes in which power states hosts arrive."""

        def schedule(self, cluster: Cluster) -> None:
            changes.extend(e.pstate for e in cluster.events if isinstance(e, ev.HostsStateChanged))
            super().schedule(cluster)

    simulate(
        Batsim(Setup(machine, [jobs], energy=True)), DecisionProcess(Spy(sleep_pstate=2, idle_time=20.0))
    )
    assert changes == [2, 0, 2]


def test_hosts_that_cannot_sleep_stay_awake() -> None:
    machine = platform(2)
    for host in machine.hosts:
        host.sleep_states.clear()
    results = run(Batsim(Setup(machine, [workload({"id": "a", "subtime": 900})], energy=True)))
    assert (results.nb_success, results.nb_grouped_switches) == (1, 0)


def test_without_energy_hosts_cannot_sleep() -> None:
    with pytest.raises(PolicyError, match="power states can be changed with --energy only"):
        run(Batsim(Setup(platform(2), [workload({"id": "a", "subtime": 900})])))
