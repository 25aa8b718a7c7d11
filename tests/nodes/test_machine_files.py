"""Machines in TOML, of Slurm, of AccaSim and of SimGrid."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.experiment import Machine
from batsched_py.experiment.build import read_machine
from batsched_py.ledger.nodes import NodeMachine
from batsched_py.protocol.hosts import compact, expand
from tests.processes import call_here

GB = 1024**2

TOML = """
[[nodes]]
count = 3
name = "cpu"
cores = 4
memory = "16 GB"
partitions = ["long", "short"]
nodes_per_switch = 2

[[nodes]]
count = 2
name = "gpu"
cores = 8
memory = "32 GB"
gpu = 4
features = ["a100", "fast"]
partitions = ["gpu"]

[licences]
matlab = 2
"""

SLURM = """
ClusterName=test  # a comment
NodeName=DEFAULT CPUs=4 RealMemory=16384
NodeName=cpu[0-2] Weight=1
NodeName=gpu[0-1] Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 CPUs=8 \\
    RealMemory=32768 Gres=gpu:a100:4 Features=a100,fast
PartitionName=long Nodes=cpu[0-2] Default=YES
PartitionName=short Nodes=cpu[0-2]
Include gpu.conf
"""


def machine_of(path: Path) -> NodeMachine:
    return NodeMachine.of(read_machine(Machine(file=str(path)), ()).as_protocol()[0])


def test_that_toml_and_slurm_describe_the_same_nodes(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(TOML)
    (tmp_path / "slurm.conf").write_text(SLURM)
    (tmp_path / "gpu.conf").write_text("PartitionName=gpu Nodes=gpu[0-1]\n")
    (tmp_path / "topology.conf").write_text(
        "SwitchName=cpu-switch0 Nodes=cpu[0-1]\nSwitchName=cpu-switch1 Nodes=cpu2\n"
    )
    toml, slurm = machine_of(tmp_path / "m.toml"), machine_of(tmp_path / "slurm.conf")
    assert toml.nodes == slurm.nodes
    assert [(node.name, node.cores, node.resources) for node in toml.nodes] == [
        *((f"cpu{number}", 4, {"memory": 16 * GB}) for number in range(3)),
        *((f"gpu{number}", 8, {"memory": 32 * GB, "gpu": 4}) for number in range(2)),
    ]
    assert [node.switch for node in toml.nodes] == ["cpu-switch0", "cpu-switch0", "cpu-switch1", "", ""]
    assert toml.nodes[4].features == {"a100", "fast"}
    assert toml.nodes[0].partitions == ("long", "short")
    assert toml.licences == {"matlab": 2}


def test_that_nodes_in_toml_may_have_names_and_a_switch(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text("[[nodes]]\nnames = 'n[08-10],login'\ncores = 2\nswitch = 's1'\n")
    nodes = machine_of(tmp_path / "m.toml").nodes
    assert [(node.name, node.first, node.switch) for node in nodes] == [
        ("n08", 0, "s1"), ("n09", 2, "s1"), ("n10", 4, "s1"), ("login", 6, "s1"),
    ]  # fmt: skip


@given(st.lists(st.from_regex(r"[a-z]{1,2}[0-9]{0,3}", fullmatch=True), max_size=8))
def test_that_short_lists_of_nodes_mean_the_same_nodes(names: list[str]) -> None:
    assert expand(compact(names)) == names


def test_that_accasim_machines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "seth.config"
    file.write_text('{"groups": {"g0": {"core": 4, "mem": 1048576}}, "resources": {"g0": 120}}')
    machine = machine_of(file)
    assert len(machine.nodes) == 120
    assert machine.nodes[119].first == 476
    assert machine.nodes[0].resources == {"memory": GB}


def test_that_a_real_batsim_gets_the_same_machine(tmp_path: Path) -> None:
    """Written as a platform of SimGrid and read again, the nodes are the same, in the same order."""
    (tmp_path / "m.toml").write_text(TOML.replace('"gpu"\ncores', '"agpu"\ncores'))
    assert call_here(["platform", tmp_path / "m.toml", "--output", tmp_path / "m.xml"])[0] == 0
    assert machine_of(tmp_path / "m.xml").nodes == machine_of(tmp_path / "m.toml").nodes
    assert machine_of(tmp_path / "m.xml").licences == {"matlab": 2}


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.toml", "[[nodes]]\ncount = 0", "`count`|>= 1"),
        ("a.toml", "nodes = 3", "Expected `array`"),
        ("a.toml", "[[nodes]]\ncores = 2", "either a count of nodes, or names"),
        ("a.toml", "[[nodes]]\ncount = 2\nnames = 'n[1-2]'", "either a count of nodes, or names"),
        ("a.toml", "[[nodes]]\nnames = 'n[1-'", "not a list of nodes"),
        ("a.toml", "[[nodes]]\ncount = 1\nmemory = 'much'", "is not a size of memory"),
        ("a.toml", "[[nodes]]\ncount = 1\ngpu = 1.5", "gpu: 1.5 is not a whole number"),
        ("a.toml", "[[nodes]]\ncount = 1\ngpu = true", "'gpu' is not known"),
        ("a.toml", "[[nodes]]\ncount = 1\nidle_watts = 1", "go together"),
        ("a.toml", "[[nodes]]\ncount = 2\n[[nodes]]\ncount = 2", "two nodes called 'node0'"),
        ("a.toml", "[[nodes]]\ncount = 16385\ncores = 64", "1 to 1048576 cores"),
        ("a.conf", "ClusterName=a", "no line NodeName"),
        ("a.conf", "NodeName=n[3-1] CPUs=2", "line 1: the range '3-1' goes backwards"),
        ("a.conf", "NodeName=n1 CPUs=two", "line 1: cpus='two' is not a positive whole number"),
        ("a.conf", "NodeName=n1\nPartitionName=p Nodes=n2", "partition 'p' has node 'n2'"),
        ("a.conf", "Include a.conf", "line 1: this file includes itself"),
        ("a.config", "{}", "missing required field"),
        ("a.config", '{"groups": {}, "resources": {"g": 1}}', "names group 'g'"),
        ("a.config", '{"groups": {"g": {"mem": 1}}, "resources": {"g": 1}}', "have no `core`"),
    ],
)
def test_that_bad_files_are_refused_in_one_line(tmp_path: Path, name: str, text: str, fault: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=fault) as error:
        machine_of(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)


def test_that_host_lists_are_expanded() -> None:
    assert expand("n[08-10,3],login") == ["n08", "n09", "n10", "n3", "login"]
    for bad in ("n[1-", "n[]", "n[a-b]", "n]1", "n[0-99999999]"):
        with pytest.raises(ValueError, match=r"nodes|range"):
            expand(bad)
