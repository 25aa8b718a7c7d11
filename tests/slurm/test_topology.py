"""Nodes behind leaf switches, as ``select/cons_tres`` chooses them with ``topology/tree``."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.hosts import HostSet, expand
from batsched_py.slurm.policy.plan import PYTHON
from batsched_py.slurm.policy.settings import read_configuration
from batsched_py.slurm.policy.setup import Setup
from batsched_py.slurm.prepared import Prepared
from batsched_py.slurm.scenario import Sources, write_scenario
from batsched_py.slurm.scenario import read_scenario as imported
from batsched_py.testing.runs import rows_of
from tests.slurm.scenario import RECORDED, Twin, assert_same_places, read_scenario

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TopologyPlugin=topology/tree
NodeName=n[1-2] CPUs=4 CoresPerSocket=4
NodeName=n[3-8] CPUs=4 CoresPerSocket=4
PartitionName=all Nodes=n[1-8] Default=YES
"""
#: Two nodes behind one switch, three behind each of two others.
TOPOLOGY = """\
SwitchName=s1 Nodes=n[1-2]
SwitchName=s2 Nodes=n[3-5]
SwitchName=s3 Nodes=n[6-8]
SwitchName=top Switches=s[1-3]
"""


FLAT = CONF.replace("topology/tree", "topology/none")


def places(tmp_path: Path, *jobs: str, conf: str = CONF) -> dict[str, tuple[float, set[str]]]:
    """When and where jobs run that are told by submission, run time and options."""
    (tmp_path / "slurm.conf").write_text(conf)
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    (tmp_path / "jobs.csv").write_text("at,run,args\n" + "\n".join(jobs) + "\n")
    configuration, platform, workload = read_scenario(tmp_path)
    rows = rows_of(DecisionProcess(Twin(configuration)), workload, platform)
    return {
        row["job_id"]: (
            float(row["starting_time"]),
            {
                str(platform.hosts[host].properties["node"])
                for host in HostSet.parse(row["allocated_resources"])
            },
        )
        for row in rows
        if row["starting_time"]
    }


def nodes(text: str) -> set[str]:
    return {f"n{number}" for number in text}


@pytest.mark.parametrize(("name", "started"), [("switches-1", 64.5), ("switches-2", 71.0)])
def test_jobs_start_when_and_where_the_real_one_starts_them(name: str, started: float) -> None:
    """Two levels of switches with weights, and three levels; jobs wait for few switches."""
    assert_same_places(RECORDED / name, started)


def test_the_switch_that_fits_best_is_taken(tmp_path: Path) -> None:
    found = places(tmp_path, "0,900,-N 2 --exclusive -t 20", "1,900,-N 3 --exclusive -t 20")
    assert (found["1"][1], found["2"][1]) == (nodes("12"), nodes("345"))
    flat = places(tmp_path, "0,9,-N 1 --exclusive -w n2 -t 20", "1,9,-N 2 --exclusive -t 9", conf=FLAT)
    assert flat["2"][1] == nodes("34"), "the set of neighbours that fits best"


def test_nodes_that_a_job_must_have_tell_which_switch(tmp_path: Path) -> None:
    assert places(tmp_path, "0,900,-N 2 --exclusive -w n2 -t 20")["1"][1] == nodes("12")
    assert places(tmp_path, "0,900,-N 2 -n 8 -w n7 -t 20")["1"][1] == nodes("67")


def test_lighter_nodes_are_used_up_before_others_are_looked_at(tmp_path: Path) -> None:
    conf = CONF.replace("NodeName=n[3-8]", "NodeName=n[3-8] Weight=5")
    assert places(tmp_path, "0,900,-N 1 --exclusive -t 20", conf=conf)["1"][1] == nodes("1")
    assert places(tmp_path, "0,900,-N 3 --exclusive -t 20", conf=conf)["1"][1] == nodes("123")


def test_a_job_waits_for_one_switch_and_then_does_without(tmp_path: Path) -> None:
    """Two nodes of each larger switch are busy until 900 s: three nodes of one switch are not free."""
    busy = [f"0,900,-N 2 --exclusive -w n[{pair}] -t 20" for pair in ("3-4", "6-7")]
    found = places(tmp_path, *busy, "10,60,-N 3 --exclusive -t 5")
    assert found["3"][0] < 60
    waits = places(tmp_path, *busy, "10,60,-N 3 --exclusive -t 5 --switches=1@2:00")
    assert 130 <= waits["3"][0] < 200
    assert len(waits["3"][1]) == 3
    usual = places(tmp_path, *busy, "10,60,-N 3 --exclusive -t 5 --switches=1")
    assert 310 <= usual["3"][0] < 380, "max_switch_wait is 300 s"
    patient = CONF + "SchedulerParameters=max_switch_wait=5000\n"
    free = places(tmp_path, *busy, "10,60,-N 3 --exclusive -t 5 --switches=1", conf=patient)
    assert 900 < free["3"][0] < 1000
    assert free["3"][1] in (nodes("345"), nodes("678"))


def test_switches_may_count_for_those_only_who_ask(tmp_path: Path) -> None:
    conf = CONF + "TopologyParam=TopoOptional\n"
    jobs = "0,9,-N 3 --exclusive -t 20", "100,9,-N 3 --exclusive --switches=1 -t 20"
    found = places(tmp_path, *jobs, conf=conf)
    assert found["1"][1] == nodes("123")
    assert found["2"][1] == nodes("345")


@pytest.mark.parametrize("options", ["-n 5", "-n 3 -c 2", "-N 3 -n 3", "-n 13", "-N 2-4 -n 4"])
def test_jobs_that_share_nodes_get_what_they_ask_for(tmp_path: Path, options: str) -> None:
    found = places(tmp_path, "0,900,-n 3 -t 20", f"1,900,{options} -t 20", "2,900,-n 30 -t 20")
    assert found["2"][0] < 60
    assert found["3"][0] > 900


def test_python_chooses_nodes_where_switches_count(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    (tmp_path / "jobs.csv").write_text("at,run,args\n0,9,-t 1\n")
    configuration, platform, _ = read_scenario(tmp_path)
    assert Setup(configuration, platform.as_protocol()[0]).state().kernel == PYTHON


def test_new_nodes_are_behind_the_switch_of_the_one_that_they_are_like(tmp_path: Path) -> None:
    folder = RECORDED / "switches-2"
    write_scenario(imported(Sources.of_folder(folder)), tmp_path / "twin")
    prepared = Prepared.of(tmp_path / "twin", ["+2 nodes like n4"], tmp_path / "room")
    changed = read_configuration(prepared.configuration)
    assert expand(changed.switches[1].nodes) == ["n4", "n5", "n13", "n14"]
    assert changed.switches[4].below == ("l1", "l2")
