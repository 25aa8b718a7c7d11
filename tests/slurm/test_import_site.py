"""Files as large sites have them: what they say counts, and what does not count is listed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from batsched_py.slurm.reading import NotModelled, each, weights
from batsched_py.slurm.scenario import Scenario, Sources, read_scenario
from tests.processes import call_here

CONF = """\
ClusterName=site
SlurmctldHost=ctl1(10.1.0.1)
SlurmctldHost=ctl2
AccountingStorageType=accounting_storage/slurmdbd
SchedulerParameters=bf_window=60
SchedulerParameters=bf_interval=45,\\
bf_busy_nodes,\\
bf_continue
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,OTHER_CONS_TRES
PreemptMode=REQUEUE,GANG
PriorityWeightTRES=CPU=2000,Mem=1G
MaxMemPerNode=UNLIMITED
MaxJobCount=200000
Licenses=matlab:50,ansys@flex:200,empty:0
InteractiveStepOptions="--interactive --pty $SHELL"  # with blanks
Include nodes.conf
Include partitions/%c.conf
"""
NODES = """\
NodeName=DEFAULT Boards=1 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 Weight=10
NodeName=r[01-02]c[1-4] Feature=ib
NodeName=gpu[1-2] Gres=gpu:a100:4(S:0,1),nvme:no_consume:3500G Feature=a100
NodeName=gpu[3,5] Sockets=1 CoresPerSocket=4 Gres=gpu:h100:8,gpu:1g.5gb:2
NodeSet=gpus Nodes=gpu[1-2],gpu[3,5]
NodeSet=fast Feature=ib
"""
PARTITIONS = """\
PartitionName=DEFAULT Nodes=r01c[1-4] MaxTime=1-0 TRESBillingWeights="CPU=1.0,Mem=.25G,GRES/gpu=16"
PartitionName=standard Default=YES
PartitionName=fast Nodes=fast AllowQos=high OverSubscribe=FORCE:4
PartitionName=all Nodes=ALL MaxTime=UNLIMITED
PartitionName=gpu Nodes=gpus
"""
COLUMNS = (
    "JobID|User|Account|Partition|Submit|Start|End|State|ElapsedRaw|Timelimit|NNodes|ReqNodes|ReqCPUS|AllocCPUS"
    "|ReqTRES|SubmitLine"
)


def row(**changed: str) -> str:
    """A line of a log, for a job that asked for one core, unless something else is said."""
    usual = {
        "JobID": "1", "User": "ada", "Account": "bio", "Partition": "standard", "State": "COMPLETED",
        "Submit": "2026-03-01T08:00:00", "Start": "2026-03-01T08:01:00", "End": "2026-03-01T08:02:00",
        "ElapsedRaw": "60", "Timelimit": "00:10:00", "NNodes": "1", "ReqNodes": "1", "ReqCPUS": "1",
        "AllocCPUS": "1", "ReqTRES": "cpu=1,node=1", "SubmitLine": "sbatch job.sh",
    }  # fmt: skip
    return "|".join((usual | changed)[name] for name in COLUMNS.split("|"))


LOG = "\n".join(
    [
        COLUMNS,
        row(),
        row(JobID="1.batch"),
        row(JobID="2", Partition="gpu", ReqTRES="cpu=1,gres/gpu:h100=2,gres/gpu=2,node=1"),
        row(JobID="3", Partition="fast", ReqCPUS="32", AllocCPUS="32", ReqNodes="2", NNodes="2"),
        row(JobID="4", Partition="all", SubmitLine="sbatch -d afterok:1:4:5 job.sh"),
        row(JobID="5", State="RUNNING"),
        row(JobID="6", Submit="2026-03-01T08:00:01", SubmitLine="sbatch -d afterany:4 job.sh"),
        row(JobID="7_1", SubmitLine="sbatch --array=1-2%1 job.sh"),
        row(JobID="7_2", SubmitLine="sbatch --array=1-2%2 job.sh"),
        row(JobID="8") + "|one field more",
    ]
)


def write_site(folder: Path) -> Sources:
    (folder / "partitions").mkdir(parents=True)
    for name, text in {
        "slurm.conf": CONF,
        "nodes.conf": NODES,
        "partitions/site.conf": PARTITIONS,
        "jobs.sacct": LOG + "\n",
    }.items():
        (folder / name).write_text(text)
    return Sources(conf=folder / "slurm.conf", jobs=folder / "jobs.sacct")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return read_scenario(write_site(tmp_path_factory.mktemp("files") / "site"))


def test_nodes_have_their_cores_and_their_gpus_by_type(site: Scenario) -> None:
    found = {kind.names[0]: (kind.cores, dict(kind.resources)) for kind in site.cluster.machine}
    memory = {"memory": 64000 * 1024}
    assert found["r01c1"] == found["r02c1"] == (16, memory)
    assert found["gpu1"] == (16, memory | {"gpu": 4, "gpu:a100": 4})
    assert found["gpu3"] == (4, memory | {"gpu": 10, "gpu:h100": 8, "gpu:1g.5gb": 2})


def test_partitions_have_the_nodes_of_defaults_and_sets(site: Scenario) -> None:
    found = {each.name: each.nodes for each in site.configuration.partitions}
    assert found == {
        "standard": "r01c[1-4]", "fast": "r01c[1-4],r02c[1-4]", "all": "ALL", "gpu": "gpu[1-3,5]",
    }  # fmt: skip
    of_node = {kind.names[0]: kind.partitions for kind in site.cluster.machine}
    assert of_node["r01c1"] == ("standard", "fast", "all")
    assert of_node["r02c1"] == ("fast", "all")


def test_the_unit_of_a_weight_is_what_it_counts_for(site: Scenario) -> None:
    assert site.configuration.partitions[0].tres_billing_weights["mem"] == 0.25 / 1024
    assert site.configuration.priority.weight_tres == {"cpu": 2000, "mem": 1 / 1024}
    assert weights("cpu=-1,mem=2M,gres/gpu=2K") == {"cpu": -1, "mem": 2, "gres/gpu": 2 / 1024}


def test_what_is_not_modelled_leaves_the_rest_of_a_setting(site: Scenario) -> None:
    found = site.configuration
    assert (found.selection.type, found.selection.consumed, found.selection.memory) == (
        "cons_tres", "core", True,
    )  # fmt: skip
    assert found.preemption.mode == "requeue"
    assert (found.scheduling.bf_interval, found.scheduling.bf_continue) == (45, True)
    assert found.scheduling.bf_window == 86400, "the last SchedulerParameters counts alone, as in Slurm"

    def read(word: str) -> str:
        if word.isupper():
            raise NotModelled(f"{word} is not modelled")
        return word

    with pytest.raises(NotModelled, match="A is not modelled; B is not modelled") as caught:
        each(["A", "x", "B"], read)
    assert caught.value.rest == ["x"]


def test_what_is_not_modelled_is_listed_as_it_is_written(site: Scenario) -> None:
    assert [str(each).rpartition("/")[2] for each in site.findings.unmodelled] == [
        "slurm.conf, lines 6-8: bf_busy_nodes is not modelled",
        "slurm.conf, line 10: SelectTypeParameters=CR_Core_Memory,OTHER_CONS_TRES: "
        "'OTHER_CONS_TRES' is not modelled",
        "slurm.conf, line 11: PreemptMode=REQUEUE,GANG: 'GANG' is not modelled",
        "slurm.conf, line 14: MaxJobCount is not modelled",
        "nodes.conf, line 3: Gres nvme, which is not consumed",
        "site.conf, line 3: OverSubscribe=FORCE:4: jobs do not share processors",
        "jobs.sacct: left out: job is running (1 x)",
        "jobs.sacct: left out: dependency on a job that was submitted later (1 x)",
    ]
    told = {str(each).rpartition("/")[2] for each in site.findings.without_effect}
    assert "slurm.conf, line 5: SchedulerParameters, for it is given again" in told


def test_jobs_of_a_log_ask_for_what_they_asked_for(site: Scenario) -> None:
    requests: dict[str, Any] = {job.extra["slurm"]["id"]: job.extra["request"] for job in site.jobs}
    assert requests["2"]["per_node"] == {"gpu": 2, "gpu:h100": 2}
    assert requests["3"]["nodes"] == 2
    assert requests["4"]["partitions"] == ["all"]
    after = {job.extra["slurm"]["id"]: job.extra.get("after") for job in site.jobs}
    assert (after["4"], after["6"]) == ("afterok:1", "afterany:4")


def test_another_delimiter_keeps_lines_with_a_bar_in_a_field(tmp_path: Path) -> None:
    sources = write_site(tmp_path / "site")
    assert sources.jobs is not None
    lines = [line.replace("|", "\x1f") for line in (COLUMNS, row(SubmitLine="sbatch --wrap 'a _ b'"))]
    sources.jobs.write_text("\n".join(lines).replace("a _ b", "a | b") + "\n")
    scenario = read_scenario(sources)
    assert [job.extra["slurm"]["id"] for job in scenario.jobs] == ["1"]


def test_the_printed_command_runs_and_files_are_the_same_again(tmp_path: Path) -> None:
    write_site(tmp_path / "a site")
    folder = tmp_path / "a twin"
    arguments = ["slurm", "import", tmp_path / "a site/slurm.conf", folder]
    written = []
    for _ in range(2):
        code, out, _ = call_here([*arguments, "--jobs", tmp_path / "a site/jobs.sacct"])
        assert code == 0
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1]
    words = shlex.split(out.splitlines()[-1].removeprefix("Now: batsched-py "))
    code, _, err = call_here([*words, "-e", tmp_path / "out"])
    assert (code, err) == (0, "")
    assert len((tmp_path / "out_jobs.csv").read_text().splitlines()) == 9


def test_a_job_may_name_a_partition_called_all_and_a_type_of_gpus(tmp_path: Path) -> None:
    sources = write_site(tmp_path / "site")
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "at,run,args\n0,5,-p all --gres=gpu:a100:2\n1,5,-p gpu --gpus=1g.5gb:1\n2,5,-p gpu -N 2 --gpus=3\n"
    )
    scenario = read_scenario(Sources(conf=sources.conf, jobs=jobs))
    one, two, three = (job.extra["request"] for job in scenario.jobs)
    assert (one["partitions"], one["per_node"]) == (["all"], {"gpu": 2, "gpu:a100": 2})
    assert two["per_node"] == {"gpu": 1, "gpu:1g.5gb": 1}
    assert three["nodes"] == 2
    assert scenario.jobs[-1].extra["slurm"]["gpus"] == {"gpu": 3}


def test_names_that_the_cluster_does_not_have_are_counted(tmp_path: Path) -> None:
    sources = write_site(tmp_path / "site")
    (tmp_path / "assoc.txt").write_text("Account|User|Share\nphysics||1\n")
    lines = [
        COLUMNS + "|Reservation",
        row(Partition="old") + "|course",
        row(JobID="2", Account="physics") + "|",
    ]
    (tmp_path / "jobs.sacct").write_text("\n".join(lines) + "\n")
    (tmp_path / "jobs.csv").write_text("at,run,args\n0,5,-A chemistry --reservation=course -q any\n")

    def told(jobs: str) -> list[str]:
        found = read_scenario(
            Sources(conf=sources.conf, accounting=(tmp_path / "assoc.txt",), jobs=tmp_path / jobs)
        ).findings.unmodelled
        return [str(each).partition(jobs)[2] for each in found if jobs in each.where]

    assert told("jobs.sacct") == [
        ": reservation 'course' is not there (1 x)",
        ": account 'bio' is not there (1 x)",
        ": partition 'old' is not there, its jobs go to the default one (1 x)",
    ]
    assert told("jobs.csv") == [
        ", line 2: reservation 'course' is not there",
        ", line 2: account 'chemistry' is not there",
    ]


def test_a_reservation_of_licences_is_listed(tmp_path: Path) -> None:
    sources = write_site(tmp_path / "site")
    (tmp_path / "res.txt").write_text(
        "ReservationName=lic StartTime=2026-03-01T09:00:00 EndTime=2026-03-01T10:00:00\n"
        "   Nodes=(null) NodeCnt=0 CoreCnt=0 Flags=ANY_NODES\n   Users=root Licenses=matlab:2\n"
    )
    scenario = read_scenario(
        Sources(conf=sources.conf, jobs=sources.jobs, reservations=(tmp_path / "res.txt",))
    )
    assert scenario.configuration.reservations == ()
    assert "reservation lic of licences alone" in " ".join(map(str, scenario.findings.unmodelled))


def test_flags_of_later_versions_do_not_hide_the_others(tmp_path: Path) -> None:
    sources = write_site(tmp_path / "site")
    (tmp_path / "qos.txt").write_text("Name|Flags\nhigh|DenyOnLimit,Relative\n")
    scenario = read_scenario(Sources(conf=sources.conf, accounting=(tmp_path / "qos.txt",)))
    assert scenario.configuration.qos[0].flags == ("deny_on_limit",)
    assert "the flag 'Relative' is not modelled" in str(scenario.findings.unmodelled[-1])
    assert scenario.findings.mistakes == []
