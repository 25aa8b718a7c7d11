"""Which of the free hosts a job gets."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import InputError
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.schedulers.selection import (
    SelectionName,
    behind_switches,
    best_fit,
    contiguous,
    selection,
    spread,
)
from batsched_py.simulator.network.routing import SimpleNetwork
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.testing import JobSpec, schedule_of, workload_of
from tests.scheduling import policy

SELECTIONS: tuple[SelectionName, ...] = get_args(SelectionName)

#: Those that choose by themselves; the hosts with the lowest numbers are the ledger's own choice.
CHOOSING = [name for name in SELECTIONS if name != "lowest"]


def machine(*speeds: float) -> SimulationBegins:
    """Hosts of these speeds, three behind each switch."""
    return SimulationBegins(
        [Host(number, f"h{number}") for number in range(len(speeds))],
        speeds=list(speeds),
        switches=[f"switch{number // 3}" for number in range(len(speeds))],
    )


def test_these_are_all_there_are() -> None:
    assert set(SELECTIONS) == {
        "lowest",
        "contiguous",
        "best-fit",
        "spread",
        "random",
        "fastest",
        "fewest-switches",
        "least-loaded",
    }


@pytest.mark.parametrize("name", CHOOSING)
@given(free=st.sets(st.integers(0, 40), min_size=1), data=st.data())
def test_a_selection_takes_so_many_of_the_free_hosts(
    name: SelectionName, free: set[int], data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, len(free)))
    select = selection(name, machine(*range(41)), 0)
    assert select is not None
    taken = select(HostSet.of(free), count)
    assert taken <= HostSet.of(free)
    assert len(taken) == count


@pytest.mark.parametrize("name", CHOOSING)
def test_all_hosts_are_all_hosts(name: SelectionName) -> None:
    select = selection(name, machine(1, 2, 1, 2), 0)
    assert select is not None
    assert select(HostSet.range(4), 4) == HostSet.range(4)


def test_contiguous_hosts_are_in_one_row_where_there_is_one() -> None:
    assert str(contiguous(HostSet.parse("0-1 3 5-9"), 3)) == "5-7"
    assert str(contiguous(HostSet.parse("0-1 3 5-9"), 2)) == "0-1"
    assert str(contiguous(HostSet.parse("0-1 3 5-9"), 6)) == "0-1 3 5-7"


def test_best_fit_leaves_long_rows_whole() -> None:
    free = HostSet.parse("0-4 6-7 9-11 20")
    assert [str(best_fit(free, count)) for count in (1, 2, 3, 4)] == ["20", "6-7", "9-11", "0-3"]


def test_best_fit_takes_few_rows_where_one_is_not_enough() -> None:
    free = HostSet.parse("0-4 6-7 9-11 20")
    assert [str(best_fit(free, count)) for count in (6, 7, 8, 10)] == [
        "0-4 20",
        "0-4 6-7",
        "0-4 9-11",
        "0-4 6-7 9-11",
    ]


def test_spread_hosts_are_far_apart() -> None:
    assert str(spread(HostSet.parse("0-3 10-13"), 2)) == "0 10"


def test_random_hosts_are_the_same_for_the_same_seed_only() -> None:
    free = HostSet.range(100)

    def choices(seed: int) -> list[HostSet]:
        choose = selection("random", machine(), seed)
        return [choose(free, 10) for _ in range(5)]

    assert choices(1) == choices(1) != choices(2)
    assert len(set(map(str, choices(1)))) == 5


def test_the_fastest_hosts_come_first_and_equal_ones_by_number() -> None:
    choose = selection("fastest", machine(1, 3, 2, 3, 2), 0)
    assert [str(choose(HostSet.range(5), count)) for count in (1, 2, 3, 4)] == ["1", "1 3", "1-3", "1-4"]


def test_a_job_stays_behind_the_switch_that_just_holds_it() -> None:
    choose = selection("fewest-switches", machine(*range(9)), 0)
    assert choose is not None
    free = HostSet.parse("0 3-4 6-8")
    assert [str(choose(free, count)) for count in (1, 2, 3, 4, 5)] == ["0", "3-4", "6-8", "0 6-8", "3-4 6-8"]


def test_a_job_gets_the_switch_with_the_fewest_busy_hosts_first() -> None:
    choose = selection("least-loaded", machine(*range(9)), 0)
    assert choose is not None
    free = HostSet.parse("0 3-4 6-8")
    assert [str(choose(free, count)) for count in (1, 3, 4, 6)] == ["6", "6-8", "3 6-8", "0 3-4 6-8"]


FAT_TREE = SimpleNetwork("1Gbps", fat_tree="2;2,3;1,2;1,1")
CLUSTER = """<platform version="4.1"><zone id="z" routing="Full">
<host id="master_host" speed="1Gf"/>
<cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="1GBps" lat="1us" topology="{kind}"
 topo_parameters="{shape}"/></zone></platform>"""


def switches_in(platform: Platform) -> list[str]:
    """The hosts behind each switch."""
    begins = SimulationBegins(list(platform.as_protocol()[0]), switches=platform.switches)
    return [str(hosts) for hosts in behind_switches(begins)]


def test_a_network_tells_the_switches() -> None:
    assert switches_in(Platform.homogeneous(6, network=FAT_TREE)) == ["0-1", "2-3", "4-5"]
    assert switches_in(Platform.homogeneous(6, network=SimpleNetwork("1Gbps"))) == ["0-5"]


@pytest.mark.parametrize(
    ("kind", "shape", "switches"),
    [
        ("DRAGONFLY", "2,1;1,1;2,1;2", ["0-1", "2-3", "4-5", "6-7"]),
        ("TORUS", "2,4", [str(host) for host in range(8)]),
        ("FAT_TREE", "3;2,2,2;1,1,1;1,1,1", ["0-1", "2-3", "4-5", "6-7"]),
    ],
)
def test_a_platform_file_tells_the_switches(
    tmp_path: Path, kind: str, shape: str, switches: list[str]
) -> None:
    (tmp_path / "platform.xml").write_text(CLUSTER.format(kind=kind, shape=shape))
    assert switches_in(read_platform(tmp_path / "platform.xml")) == switches


@pytest.mark.parametrize("name", ["fewest-switches", "least-loaded"])
def test_without_a_network_there_are_no_switches_to_choose_by(name: SelectionName) -> None:
    """Over ZeroMQ, too: messages do not tell of it."""
    with pytest.raises(InputError, match="the switches of the hosts are unknown"):
        selection(name, SimulationBegins([Host(0, "a")]), 0)


@pytest.mark.parametrize("name", ["fewest-switches", "least-loaded"])
@pytest.mark.parametrize("pure", [False, True])
def test_both_engines_choose_by_switches(
    name: SelectionName, pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pure:
        monkeypatch.setattr("batsched_py.native.library", None)
    jobs = [JobSpec("1", 0, 1, 9), JobSpec("2", 1, 2, 9), JobSpec("3", 2, 1, 9)]
    platform = Platform.homogeneous(6, network=FAT_TREE)
    schedule = schedule_of(policy("fcfs", selection=name), jobs, platform)
    hosts = {"fewest-switches": ["0", "2-3", "1"], "least-loaded": ["0", "2-3", "4"]}
    assert list(schedule["allocated_resources"]) == hosts[name]


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="AS0" routing="Full">
  <host id="master_host" speed="1Gf"/>
  <host id="a" speed="1Gf">{slow}</host>
  <host id="b" speed="4Gf">{fast}</host>
</zone></platform>
"""


@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    path = tmp_path / "uneven.xml"
    path.write_text(PLATFORM.format(slow="", fast=""))
    return path


def test_the_simulator_tells_the_speeds(uneven: Path) -> None:
    workload = workload_of([JobSpec("1", 0, 1, 8)])
    schedule = schedule_of(
        DecisionProcess(policy("fcfs", selection="fastest")), workload, read_platform(uneven)
    )
    assert list(schedule["allocated_resources"]) == ["1"]


def test_without_speeds_a_property_tells_them() -> None:
    hosts = [Host(0, "a", properties={"speed": "1"}), Host(1, "b", properties={"speed": "4e9"})]
    assert str(selection("fastest", SimulationBegins(hosts), 0)(HostSet.range(2), 1)) == "1"


@pytest.mark.parametrize(
    ("properties", "words"), [({}, "give each host .* a property `speed`"), ({"speed": "2Gf"}, "'2Gf'")]
)
def test_without_either_the_fastest_cannot_be_selected(properties: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        selection("fastest", SimulationBegins([Host(0, "a", properties=properties)]), 0)


def test_a_policy_gives_jobs_the_hosts_of_its_selection() -> None:
    jobs = [JobSpec("1", 0, 2, 5), JobSpec("2", 0, 2, 5)]
    schedule = schedule_of(policy("fcfs", selection="spread"), jobs, 6)
    assert list(schedule["allocated_resources"]) == ["0 3", "1 4"]


class LastHosts(Scheduler):
    """Gives each job the hosts with the highest numbers."""

    name = "last-hosts"

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.fitting():
            cluster.start(job, HostSet.of(list(cluster.free)[-job.size :]))


def test_a_policy_may_choose_hosts_itself() -> None:
    assert list(schedule_of(LastHosts(), [JobSpec("1", 0, 2, 5)], 6)["allocated_resources"]) == ["4-5"]
