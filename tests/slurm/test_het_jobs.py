"""Heterogeneous jobs: their parts start together, and the importer reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.hosts import HostSet
from batsched_py.slurm.policy.job import fields_of
from batsched_py.slurm.scenario import Sources
from batsched_py.slurm.scenario import read_scenario as imported
from batsched_py.testing.runs import rows_of
from tests.slurm.scenario import Twin, read_scenario

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n[1-3] CPUs=4 CoresPerSocket=4
NodeName=g1 CPUs=4 CoresPerSocket=4
PartitionName=all Nodes=n[1-3] Default=YES
PartitionName=gpu Nodes=g1
"""


def run(folder: Path, *jobs: str, conf: str = CONF) -> dict[str, tuple[float, set[str]]]:
    """When and where jobs run."""
    (folder / "slurm.conf").write_text(conf)
    (folder / "jobs.csv").write_text("at,run,args\n" + "\n".join(jobs) + "\n")
    configuration, platform, workload = read_scenario(folder)
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


def test_parts_start_together_on_nodes_of_their_own(tmp_path: Path) -> None:
    found = run(tmp_path, "0,100,-N 2 --exclusive -t 5 : -p gpu -n 2 -t 5 : -n 1 -t 5")
    assert found.keys() == {"1", "1+1", "1+2"}
    assert len({start for start, _ in found.values()}) == 1
    assert (found["1"][1], found["1+1"][1], found["1+2"][1]) == ({"n1", "n2"}, {"g1"}, {"n3"})


def test_a_part_waits_for_the_others_and_lets_jobs_pass_that_end_before(tmp_path: Path) -> None:
    """The GPU is busy until 600 s, by its limit for 20 minutes; a short job passes the first part."""
    found = run(
        tmp_path,
        "0,600,-p gpu -n 4 -t 20",
        "10,100,-N 3 --exclusive -t 5 : -p gpu -n 4 -t 5",
        "20,100,-N 3 --exclusive -t 10",
        "30,100,-N 3 --exclusive -t 40",
    )
    assert found["3"][0] < 120
    assert 600 < found["2"][0] < 760
    assert found["2"][0] == found["2+1"][0]
    assert found["4"][0] > found["2"][0], "it would not end before all parts are planned to start"


def test_the_main_loop_does_not_start_them(tmp_path: Path) -> None:
    conf = CONF + "SchedulerParameters=bf_interval=300\n"
    found = run(tmp_path, "0,10,-n 1 -t 5", "100,100,-n 1 -t 5 : -n 1 -t 5", conf=conf)
    assert found["2"][0] > 200


def test_a_limit_holds_all_parts_together(tmp_path: Path) -> None:
    made = "qos few MaxTRESPerUser=cpu=4", "account a", "user root account=a"
    (tmp_path / "setup.sh").write_text("".join(f"sacctmgr -i add {each}\n" for each in made))
    conf = CONF + "AccountingStorageEnforce=limits\nAccountingStorageType=accounting_storage/slurmdbd\n"
    found = run(
        tmp_path,
        "0,300,-n 2 -q few -A a -t 10",
        "10,100,-n 2 -q few -A a -t 5 : -n 1 -q few -A a -t 5",
        "20,100,-n 3 -q few -A a -t 5 : -n 3 -q few -A a -t 5",
        conf=conf,
    )
    assert 300 < found["2"][0] == found["2+1"][0]
    assert "3" not in found and "3+1" not in found, "together they exceed it for ever"


LOG = """\
JobID|User|Partition|Submit|Start|End|State|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS|NNodes|NodeList|SubmitLine
7+0|ann|all|2026-03-01T08:00:00|2026-03-01T08:00:30|2026-03-01T08:10:30|COMPLETED|600|00:30:00|2|2|1|n1|{line}
7+1|ann|gpu|2026-03-01T08:00:00|2026-03-01T08:00:30|2026-03-01T08:10:30|COMPLETED|600|00:30:00|4|4|1|g1|{line}
9|ann|all|2026-03-01T08:01:00|2026-03-01T08:01:30|2026-03-01T08:02:30|COMPLETED|60|00:30:00|1|1|1|n1|
"""


@pytest.mark.parametrize("line", ["", "sbatch -n 2 -t 30 : -p gpu -n 2 -c 2 -t 30 --wrap x"])
def test_a_log_tells_which_jobs_are_parts_of_one(tmp_path: Path, line: str) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.sacct").write_text(LOG.format(line=line))
    scenario = imported(Sources(conf=tmp_path / "slurm.conf", jobs=tmp_path / "jobs.sacct"))
    told = [(fields_of(job).het, fields_of(job).het_size, job.size) for job in scenario.jobs]
    assert told == [("7", 2, 2), ("7", 2, 4), ("", 0, 1)]
    tasks = scenario.jobs[1].extra["request"].get("tasks", 4)
    assert scenario.jobs[1].extra["request"]["partitions"] == ["gpu"]
    assert (tasks == 2 or fields_of(scenario.jobs[1]).cpus_per_task == 2) == bool(line)
