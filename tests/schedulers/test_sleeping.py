"""Idle hosts that sleep under any policy; and how policies go around others."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import validate
from batsched_py.errors import InputError
from batsched_py.experiment import Machine
from batsched_py.experiment.build import read_machine
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Known
from batsched_py.protocol.events import HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.platform import read_platform
from batsched_py.simulator.setup import Setup
from batsched_py.simulator.simgrid_xml import simgrid_lines
from batsched_py.testing import workload_of
from tests.drive import GIGA, workload
from tests.power import INNER, machine, node_jobs, nodes_machine, power60, run, sized, starts


@pytest.mark.parametrize("inner", INNER)
def test_sleeping_saves_energy_under_any_policy_and_runs_every_job(inner: str, tmp_path: Path) -> None:
    awake = run(power60(), inner)
    asleep = run(power60(), f"sleeping({inner})", tmp_path)
    assert asleep.nb_success == awake.nb_success == 60
    assert asleep.consumed_joules < 0.95 * awake.consumed_joules
    assert validate(read_schedule(tmp_path / "out_jobs.csv"), 8, power60().workloads) == []


def test_hosts_wake_for_the_head_and_sleep_while_it_waits_for_running_jobs(tmp_path: Path) -> None:
    jobs = workload_of(
        [
            sized("long", 0, 1, 500),
            sized("two", 100, 2, 50),
            sized("all", 300, 4, 10),
            sized("one", 301, 1, 50),
        ]
    )
    run(Setup(machine(4), [jobs], energy=True), "sleeping(easy)", tmp_path, after="60")
    assert starts(tmp_path) == {"long": 0, "two": 120, "one": 321, "all": 520}
    assert (tmp_path / "out_pstate_changes.csv").read_text().splitlines()[1:] == [
        "0,0-3,0",
        "60,1-3,-2",
        "70,1-3,2",
        "100,1-2,-1",
        "120,1-2,0",
        "230,1-2,-2",
        "240,1-2,2",
        "301,1,-1",
        "321,1,0",
        "431,1,-2",
        "441,1,2",
        "500,1-3,-1",
        "520,1-3,0",
        "590,0-3,-2",
        "600,0-3,2",
    ]


def test_a_reservation_counts_on_sleeping_hosts(tmp_path: Path) -> None:
    """Otherwise the head would never start, as far as EASY knows, and anything could delay it."""
    jobs = workload_of(
        [
            sized("five", 0, 5, 1000),
            sized("two", 0, 2, 200),
            sized("head", 205, 10, 10),
            sized("delays", 206, 2, 5000),
            sized("does not", 207, 2, 500),
        ]
    )
    run(Setup(machine(10), [jobs], energy=True), "sleeping(easy)", tmp_path, after="60")
    began = starts(tmp_path)
    assert began["does not"] == 207
    assert began["head"] == 1020
    assert began["delays"] == 1030


@pytest.mark.parametrize("inner", ["fcfs", "easy", "conservative"])
def test_nodes_of_a_toml_machine_sleep_as_a_whole(inner: str, tmp_path: Path) -> None:
    made = nodes_machine(tmp_path)
    awake = run(Setup(made, [node_jobs()], energy=True), inner)
    asleep = run(Setup(made, [node_jobs()], energy=True), f"sleeping({inner})", tmp_path, after="30")
    assert asleep.nb_success == awake.nb_success == 10
    assert asleep.consumed_joules < 0.7 * awake.consumed_joules
    switched = (tmp_path / "out_pstate_changes.csv").read_text().splitlines()[2:]
    nodes = [HostSet.of(range(4 * node, 4 * node + 4)) for node in range(6)]
    assert len(switched) > 10
    for line in switched:
        hosts = HostSet.parse(line.split(",")[1])
        assert all(node <= hosts or not node & hosts for node in nodes)
    assert starts(tmp_path)["memory"] == 540


def test_a_toml_machine_that_sleeps_is_the_same_in_xml(tmp_path: Path) -> None:
    made = nodes_machine(tmp_path)
    (tmp_path / "machine.xml").write_text("\n".join(simgrid_lines(made)))
    again = read_platform(tmp_path / "machine.xml")
    assert [state.idle_watts for state in made.hosts[0].pstates] == [25, 2, 75, 50]
    assert [1 / state.speed for state in made.hosts[0].pstates[2:]] == [10, 40]
    assert [(host.pstates, host.sleep_states) for host in again.hosts] == [
        (host.pstates, host.sleep_states) for host in made.hosts
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sleep_watts = 1", "nodes that sleep need idle_watts and full_watts"),
        ("idle_watts = 9\nfull_watts = 20\nsleep_watts = 1", "switch_off_seconds go together"),
        ("idle_watts = 9\nfull_watts = 20\nswitch_on_watts = 1", "switch_off_seconds go together"),
    ],
)
def test_half_of_a_sleep_is_refused(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(f"[[nodes]]\ncount = 1\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_machine(Machine(file=str(tmp_path / "m.toml")), ())


def test_options_go_to_the_policy_that_has_them() -> None:
    made = SCHEDULERS.create("capped(sleeping(easy))", {"watts": "5", "after": "7", "order": "shortest"})
    assert (made.watts, made.inner.after, made.inner.inner.order) == (5, 7, "shortest")  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"has no option 'watts'; it knows sleeping\.selection"):
        SCHEDULERS.create("sleeping(easy)", {"watts": "5"})
    with pytest.raises(InputError, match="'easy' goes around no other one"):
        SCHEDULERS.create("easy(fcfs)", {})


def test_a_host_that_fails_on_its_way_to_sleep_comes_back_asleep(tmp_path: Path) -> None:
    jobs = workload_of([sized("early", 0, 2, 10), sized("late", 200, 2, 10)])
    away = HostSet.parse("0")
    outage = [HostsUnavailable(away, time=45.0), HostsAvailable(away, time=100.0)]
    setup = Setup(machine(2), [jobs], energy=True, events=[outage])
    run(setup, "sleeping(easy)", tmp_path, after="30")
    assert starts(tmp_path) == {"early": 0, "late": 220}
    seconds = pd.read_csv(tmp_path / "out_schedule.csv").iloc[0]
    assert seconds["time_unavailable"] == 55
    assert seconds["time_sleeping"] == (200 - 100) + (200 - 50)
    assert (seconds["time_switching_off"], seconds["time_switching_on"]) == (5 + 10 + 2 * 10, 20 + 20)


def test_a_plan_on_nodes_counts_on_those_that_sleep(tmp_path: Path) -> None:
    """Six nodes of four cores sleep when the plan is made anew, because a host has come back."""
    jobs = workload_of([sized("early", 0, 4, 10), sized("wide", 400, 24, 50), sized("last", 401, 4, 50)])
    away = HostSet.parse("0")
    outage = [HostsUnavailable(away, time=300.0), HostsAvailable(away, time=310.0)]
    setup = Setup(nodes_machine(tmp_path), [jobs], energy=True, events=[outage])
    run(setup, "sleeping(conservative)", tmp_path, after="60")
    assert starts(tmp_path) == {"early": 0, "wide": 440, "last": 490}


def test_the_nodes_wake_that_a_plan_has_chosen(tmp_path: Path) -> None:
    """Node n0 is closed soon, so a long job is to go to another one, although n0 is the first that sleeps."""
    jobs = workload_of([sized("long", 400, 4, 500)])
    known = Known(closures=(Closure(800.0, 900.0, HostSet.range(4)),))
    run(
        Setup(nodes_machine(tmp_path), [jobs], energy=True),
        "sleeping(conservative)",
        tmp_path,
        known,
        after="60",
    )
    assert starts(tmp_path) == {"long": 440}
    assert read_schedule(tmp_path / "out_jobs.csv")["allocated_resources"].to_list() == ["4-7"]


def test_hosts_wake_for_the_size_that_the_policy_inside_chooses(tmp_path: Path) -> None:
    total = {"type": "parallel_homogeneous_total", "cpu": 80 * GIGA, "com": 0}
    job = {
        "id": "a",
        "subtime": 200,
        "res": 2,
        "walltime": 100,
        "profile": "total",
        "sizes": {"2": 40, "4": 20},
    }
    early = {"id": "early", "walltime": 20, "profile": "total", "res": 4}
    jobs = workload(early, job, profiles={"total": total})
    run(Setup(machine(4), [jobs], energy=True), "sleeping(easy-moldable)", tmp_path, after="30")
    assert starts(tmp_path) == {"early": 0, "a": 220}
    assert read_schedule(tmp_path / "out_jobs.csv")["allocated_resources"].to_list() == ["0-3", "0-3"]
