"""Files that a real Slurm 22.05.8 with a database printed, of two emulated nodes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.reading import Findings
from batsched_py.slurm.scenario import Sources, read_scenario

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations,limits,qos
NodeName=n[1-2] CPUs=4 RealMemory=8000
PartitionName=batch Nodes=n[1-2] Default=YES MaxTime=1-0
"""


def imported(root: Path, folder: Path, *names: str) -> tuple[Configuration, Findings]:
    (folder / "slurm.conf").write_text(CONF)
    data = root / "tests" / "data" / "slurm"
    sources = Sources(
        conf=folder / "slurm.conf",
        accounting=tuple(data / name for name in names),
        jobs=data / "jobs.sacct",
    )
    scenario = read_scenario(sources)
    return scenario.configuration, scenario.findings


@pytest.mark.parametrize("listing", ["dump.cfg", "assoc_tree.txt"])
def test_a_dump_and_a_table_tell_the_same_tree(root: Path, tmp_path: Path, listing: str) -> None:
    found, findings = imported(root, tmp_path, listing, "qos.txt", "sshare.txt")
    accounts = {each.account: (each.parent, each.shares) for each in found.associations if not each.user}
    assert accounts == {"root": ("root", 1), "physics": ("root", 10), "optics": ("physics", 3)}
    users = {(each.account, each.user, each.partition): each for each in found.associations if each.user}
    assert users.keys() == {("root", "root", ""), ("physics", "daemon", "batch"), ("optics", "root", "")}
    daemon, root_user = users["physics", "daemon", "batch"], users["optics", "root", ""]
    assert (daemon.shares, daemon.max_wall, daemon.grp_tres_seconds) == ("parent", 3600, {"cpu": 30000})
    assert (root_user.shares, root_user.max_jobs, root_user.usage) == (5, 7, 31)
    assert root_user.qos == ("high", "normal")
    told = [each.what for each in findings.unmodelled]
    assert "has associations by partition; their usage is not told" in told


def test_a_table_without_the_tree_is_told(root: Path, tmp_path: Path) -> None:
    _, findings = imported(root, tmp_path, "assoc.txt")
    assert any("add `tree`" in each.what for each in findings.unmodelled)


def test_qos(root: Path, tmp_path: Path) -> None:
    found, _ = imported(root, tmp_path, "qos.txt")
    normal, high = found.qos
    assert normal == msgspec.convert({"name": "normal"}, type(normal))
    assert (high.priority, high.preempt, high.grace_time, high.usage_factor) == (100, ("normal",), 60, 2)
    assert (high.max_tres_per_user, high.max_jobs_per_user, high.max_wall) == ({"cpu": 4}, 3, 86400)
    assert (high.grp_tres_seconds, high.flags) == ({"cpu": 60000}, ("deny_on_limit",))


@pytest.mark.filterwarnings("error")
def test_a_log_with_all_columns(root: Path, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    log = root / "tests" / "data" / "slurm" / "jobs.sacct"
    one, two = read_scenario(Sources(conf=tmp_path / "slurm.conf", jobs=log)).jobs
    assert (one.size, one.walltime, one.extra["slurm"]["account"]) == (2, 300, "optics")
    assert one.extra["request"]["per_node"] == {"memory": 1000}, "as its command says"
    assert two.extra["request"]["nodes"] == 2
