"""From the files of a cluster to a scenario."""

from __future__ import annotations

import json
import re
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest

from batsched_py.errors import InputError
from batsched_py.simulator.machine_files import read_toml_machine
from batsched_py.slurm.policy.settings import Configuration, read_configuration
from batsched_py.slurm.scenario import Scenario, Sources, configuration_text, read_scenario, write_scenario
from tests.processes import call_here
from tests.slurm.files import write_cluster


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = write_cluster(tmp_path_factory.mktemp("cluster"))
    return read_scenario(
        Sources(
            conf=folder / "slurm.conf",
            accounting=(folder / "dump.cfg", folder / "qos.txt", folder / "shares.txt"),
            reservations=(folder / "reservations.txt",),
            jobs=folder / "jobs.sacct",
        )
    )


def jobs_of(folder: Path, conf: str, *lines: str) -> tuple[list[dict[str, Any]], Scenario]:
    """The jobs of a ``jobs.csv`` with these options of sbatch, as they are written."""
    (folder / "slurm.conf").write_text(conf)
    rows = [f'{10 * place},60,"{line}"' for place, line in enumerate(lines)]
    (folder / "jobs.csv").write_text("\n".join(["at,run,args", *rows]) + "\n")
    scenario = read_scenario(Sources.of_folder(folder))
    write_scenario(scenario, folder / "twin")
    return json.loads((folder / "twin" / "workload.json").read_text())["jobs"], scenario


SMALL = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n[1-4] CPUs=4 RealMemory=8000 Gres=gpu:2 Features=fast
PartitionName=batch Nodes=ALL Default=YES DefaultTime=30
PartitionName=whole Nodes=ALL OverSubscribe=EXCLUSIVE
"""


def test_that_settings_get_their_values_in_seconds_and_megabytes(scenario: Scenario) -> None:
    found = scenario.configuration
    assert (found.scheduling.bf_interval, found.scheduling.bf_window) == (20, 2 * 86400)
    assert (found.scheduling.bf_yield_sleep, found.scheduling.bf_continue) == (0.1, True)
    assert (found.selection.type, found.selection.consumed, found.selection.memory) == (
        "cons_tres", "core", True,
    )  # fmt: skip
    assert found.selection.lln and found.selection.pack_serial_at_end
    assert found.selection.def_mem_per_cpu == 500
    assert (found.priority.weight_age, found.priority.decay_half_life) == (1000, 14 * 86400)
    assert found.priority.weight_tres == {"cpu": 2000, "mem": 100, "gres/gpu": 3000}
    assert not found.priority.fair_tree and "max_tres" in found.priority.flags
    assert (found.preemption.type, found.preemption.mode, found.preemption.exempt_time) == (
        "qos", "requeue", 600,
    )  # fmt: skip
    assert found.enforce == ("associations", "limits", "qos", "safe")


def test_that_partitions_take_over_what_the_default_line_says(scenario: Scenario) -> None:
    batch, gpu, everywhere = scenario.configuration.partitions
    assert (batch.default, batch.max_time, batch.default_time) == (True, 2 * 86400, 3600)
    assert (gpu.priority_tier, gpu.priority_job_factor, gpu.max_nodes, gpu.qos) == (5, 10, 1, "high")
    assert (gpu.over_subscribe, gpu.over_subscribe_jobs) == ("force", 2)
    assert (everywhere.max_time, everywhere.over_subscribe) == (inf, "exclusive")
    assert everywhere.allow_accounts == ("physics", "maths")


def test_that_sets_of_nodes_stand_for_their_nodes(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "NodeName=n[1-4] CPUs=4 Features=old\nNodeName=m[1-2] CPUs=4 Features=new,fast\n"
        "NodeSet=fast Feature=fast\nNodeSet=some Nodes=n[2-3]\n"
        "PartitionName=p Nodes=fast,n1\nPartitionName=q Nodes=some\n"
    )
    scenario = read_scenario(Sources(conf=conf))
    assert [each.nodes for each in scenario.configuration.partitions] == ["m[1-2],n1", "n[2-3]"]
    assert scenario.findings.unmodelled == []
    assert {kind.partitions for kind in scenario.cluster.machine} == {(), ("p",), ("q",)}


def test_that_accounts_users_shares_and_usage_come_from_several_listings(scenario: Scenario) -> None:
    found = {(each.account, each.user): each for each in scenario.configuration.associations}
    assert found["physics", ""].shares == 10
    assert found["physics", ""].grp_tres == {"cpu": 20, "gres/gpu:tesla": 2}
    ada = found["physics", "ada"]
    assert (ada.shares, ada.max_jobs, ada.max_wall, ada.usage) == (5, 4, 3600, 1800)
    assert (ada.grp_tres_seconds, ada.default_account) == ({"cpu": 600}, True)
    assert found["physics", "bob"].shares == "parent" and not found["physics", "bob"].default_account
    high = next(qos for qos in scenario.configuration.qos if qos.name == "high")
    assert (high.priority, high.preempt, high.preempt_mode, high.usage_factor) == (
        100, ("normal",), "requeue", 2.0,
    )  # fmt: skip
    assert (high.flags, high.max_wall, high.grace_time) == (("deny_on_limit", "no_reserve"), 86400, 120)


def test_that_a_table_of_associations_tells_parents_by_indentation(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path)
    accounting = (folder / "assoc.txt", folder / "qos.txt")
    found = read_scenario(Sources(conf=folder / "slurm.conf", accounting=accounting))
    parents = {each.account: each.parent for each in found.configuration.associations if not each.user}
    assert parents == {"root": "root", "physics": "root", "optics": "physics"}


def test_that_reservations_begin_and_end_on_the_clock_of_the_log(scenario: Scenario) -> None:
    upkeep, course = scenario.configuration.reservations
    assert (upkeep.start, upkeep.end, upkeep.nodes) == (1800, 3000, "n[01-06]")
    assert upkeep.flags == ("maint", "ignore_jobs", "spec_nodes")
    assert (course.start, course.accounts, course.partition) == (0, ("maths",), "gpu"), "it is daily"
    assert course.flags == ()


def test_that_one_line_reservations_are_the_same(tmp_path: Path, scenario: Scenario) -> None:
    folder = write_cluster(tmp_path)
    text = (folder / "reservations.txt").read_text().replace("\n   ", " ").replace("\n\n", "\n")
    (folder / "reservations.txt").write_text(text)
    sources = Sources(
        conf=folder / "slurm.conf",
        reservations=(folder / "reservations.txt",),
        jobs=folder / "jobs.sacct",
    )
    assert read_scenario(sources).configuration.reservations == scenario.configuration.reservations


def test_that_a_log_gives_jobs_with_accounts_and_begin_times(scenario: Scenario) -> None:
    first, second, third, fourth = scenario.jobs
    assert first.user == "ada"
    assert first.extra["slurm"] == {"account": "physics", "qos": "normal", "id": "11", "name": "a"}
    assert second.extra["slurm"]["begin"] == 600 and second.extra["request"]["per_node"] == {"gpu": 1}
    assert third.extra["request"]["exclusive"] is True
    assert (third.extra["slurm"]["time_limit"], third.walltime) == (600, 660), "it ran out of time"
    assert fourth.extra["cancelled_after"] >= 0, "it was cancelled while it waited, and held its place"


def test_that_what_is_left_out_is_listed_with_its_line(scenario: Scenario) -> None:
    found = {str(each).rpartition("/")[2] for each in scenario.findings.unmodelled}
    assert {
        "slurm.conf, lines 6-7: max_rpc_cnt is not modelled",
        "slurm.conf, line 20: JobSubmitPlugins is not modelled",
        "nodes.conf, lines 3-4: MemSpecLimit of nodes is not modelled",
        "slurm.conf: AllowGroups of partition 'batch': nothing tells who is in these groups",
    } <= found
    harmless = [each.what for each in scenario.findings.without_effect]
    assert {"SlurmctldHost", "SlurmctldPort", "no_env_cache", "Port of nodes"} <= set(harmless)


def test_that_a_configuration_is_read_back_as_it_was(tmp_path: Path, scenario: Scenario) -> None:
    (tmp_path / "slurm.toml").write_text(configuration_text(scenario.configuration))
    assert read_configuration(tmp_path / "slurm.toml") == scenario.configuration
    (tmp_path / "empty.toml").write_text("")
    assert read_configuration(tmp_path / "empty.toml") == Configuration()


def test_that_nodes_keep_their_names_and_come_in_slurms_order(tmp_path: Path, scenario: Scenario) -> None:
    write_scenario(scenario, tmp_path)
    hosts = read_toml_machine(tmp_path / "platform.toml").hosts
    names = list(dict.fromkeys(host.properties["node"] for host in hosts))
    assert names == ["g1", "g2", *(f"n{number:02}" for number in range(1, 9))]
    assert hosts[0].properties["resources"] == "memory=32768000kB gpu=4 gpu:a100=4"


@pytest.mark.parametrize(
    ("options", "size", "request_"),
    [
        ("-N 2 -t 5", 2, {"nodes": 2, "partitions": ["batch"]}),
        ("-N2 --ntasks-per-node=3", 6, {"nodes": 2, "tasks_per_node": 3, "partitions": ["batch"]}),
        ("-n 6 -c2", 12, {"partitions": ["batch"]}),
        ("-c2", 2, {"tasks": 1, "cores": 2, "partitions": ["batch"]}),
        ("-n 4 -N 1-2", 4, {"nodes": [1, 2], "partitions": ["batch"]}),
        ("-n 1 -p whole", 1, {"exclusive": True, "partitions": ["whole"]}),
        ("--exclusive --partition=batch,whole", 1, {"exclusive": True, "partitions": ["batch", "whole"]}),
        ("--gres=gpu:a100:2", 1, {"per_node": {"gpu": 2}, "partitions": ["batch"]}),
        ("-n 2 -N 1 -G 2", 2, {"nodes": 1, "per_node": {"gpu": 2}, "partitions": ["batch"]}),
        ("-n 2 --gpus-per-task 1", 2, {"per_task": {"gpu": 1}, "partitions": ["batch"]}),
        ("-C fast", 1, {"features": "fast", "partitions": ["batch"]}),
    ],
)
def test_options_that_ask_for_resources(
    tmp_path: Path, options: str, size: int, request_: dict[str, Any]
) -> None:
    (job,), _ = jobs_of(tmp_path, SMALL, options)
    assert (job["res"], job["request"]) == (size, request_)


def test_options_that_say_when_a_job_may_start(tmp_path: Path) -> None:
    jobs, scenario = jobs_of(
        tmp_path,
        SMALL,
        "-t 0:30 --begin=now+2hours --nice",
        "-t 1-0 --dependency=afterok:%1 --array=1-3%2 -q high -A physics",
        "-H --dependency=afterany:%2?singleton --no-requeue -J x --uid=ada",
        "--dependency=after:%1+5,expand:%1,afterburstbuffer:%1 --signal=B:USR1@10 --export=NONE --frobnicate",
    )
    one, *tasks, last, other = jobs
    assert (one["walltime"], one["slurm"]) == (120, {"nice": 100, "begin": 7200, "time_limit": 60})
    assert [task["id"] for task in tasks] == ["2_1", "2_2", "2_3"]
    assert all((task["array"], task["after"]) == ("2%2", "afterok:1") for task in tasks)
    assert tasks[0]["slurm"] == {"account": "physics", "qos": "high"}
    assert last["after"] == "afterany:2?singleton" and last["user"] == "ada"
    assert last["slurm"] == {"hold": True, "requeue": False, "no_time_limit": True, "name": "x"}
    assert last["walltime"] == 30 * 60
    assert other["after"] == "after:1+300s"
    told = [each.what for each in scenario.findings.unmodelled]
    assert {text.partition(" ")[0] for text in told} >= {
        "--signal", "--frobnicate", "--dependency=expand:1", "--dependency=afterburstbuffer:1",
    }  # fmt: skip
    assert [each.what for each in scenario.findings.without_effect] == ["--export"]


def test_memory_is_asked_for_only_where_it_is_given_out(tmp_path: Path) -> None:
    (job,), scenario = jobs_of(tmp_path, SMALL, "--mem-per-cpu=2G")
    assert "per_core" not in job["request"] and len(scenario.findings.unmodelled) == 1
    with_memory = SMALL.replace("CR_Core", "CR_Core_Memory")
    (one, two, three), _ = jobs_of(tmp_path, with_memory, "--mem-per-cpu=2G", "--mem 3000", "-n 1")
    assert one["request"]["per_core"] == {"memory": 2048}
    assert two["request"]["per_node"] == {"memory": 3000}
    assert three["request"] == {"partitions": ["batch"]}
    (four,), _ = jobs_of(tmp_path, with_memory + "DefMemPerCPU=100\n", "-n 2")
    assert four["request"]["per_core"] == {"memory": 100}


def test_the_limit_of_an_array_in_a_recorded_scenario(tmp_path: Path) -> None:
    jobs, _ = jobs_of(tmp_path, SMALL, "-n 1", "-n 1 --array=1-3%%2 -d afterok:%1")
    assert [job["array"].rpartition("%")[2] for job in jobs[1:]] == ["2", "2", "2"]


def test_recorded_scenarios_as_a_whole(shared: Path, tmp_path: Path) -> None:
    for name, jobs in {"basic-1": 60, "plans-1": 50, "shared-1": 90}.items():
        code, out, err = call_here(["slurm", "import", shared / "slurm" / name, tmp_path / name])
        assert (code, err) == (0, "") and "not modelled" not in out.replace("not-modelled", "")
        assert len(json.loads((tmp_path / name / "workload.json").read_text())["jobs"]) == jobs
    plans = read_configuration(tmp_path / "plans-1" / "slurm.toml")
    assert msgspec.to_builtins(plans.reservations) == (
        {"name": "upkeep", "start": 1770.0, "end": 2970.0, "nodes": "n[1-6]", "users": ("root",),
         "flags": ("maint", "ignore_jobs"), "created": -30.0},
    )  # fmt: skip


def test_the_command_prints_what_is_not_modelled(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path)
    code, out, _ = call_here(
        ["slurm", "import", folder / "slurm.conf", folder / "twin", "--jobs", folder / "jobs.sacct"]
    )
    assert code == 0
    assert "slurm.conf, line 20: JobSubmitPlugins is not modelled" in out
    assert "settings shape no schedule" in out
    assert sorted(path.name for path in (folder / "twin").iterdir()) == [
        "not-modelled.txt", "platform.toml", "slurm.toml", "workload.json", "worth.json",
    ]  # fmt: skip
    listed = (folder / "twin" / "not-modelled.txt").read_text()
    assert "line 20: JobSubmitPlugins" in listed and "line 3: SlurmctldHost" in listed


def test_a_setup_script_is_read_and_not_executed(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text(
        f"# a comment\nscontrol create reservation=a StartTime=now+1hour Duration=30 Nodes=n1 Users=x\n"
        f"touch {tmp_path}/executed\n"
    )
    _, scenario = jobs_of(tmp_path, SMALL, "-N 1 --wrap='$(touch executed)'")
    assert [each.name for each in scenario.configuration.reservations] == ["a"]
    assert [each.where.rpartition(" ")[2] for each in scenario.findings.unmodelled] == ["3"]
    assert not (tmp_path / "executed").exists() and not Path("executed").exists()


def test_a_setup_script_may_add_accounts_users_and_qos(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text(
        "sacctmgr -i add cluster toy\nsacctmgr -i add qos high priority=100 MaxTRESPerUser=cpu=4\n"
        "sacctmgr -i add account physics,maths fairshare=10\n"
        "sacctmgr -i add account optics parent=physics fairshare=3\n"
        "sacctmgr -i add user ada account=optics,maths fairshare=5\nsacctmgr -i modify user ada set x=1\n"
        "sacctmgr -i modify qos high set MaxJobsPerUser=2\n"
        "sacctmgr -i modify account optics set fairshare=4\n"
        "sacctmgr -i modify user ada where account=maths set fairshare=6\n"
    )
    _, scenario = jobs_of(tmp_path, SMALL, "-N 1 -A optics -q high")
    found = scenario.configuration
    assert [(each.account, each.user, each.parent) for each in found.associations] == [
        ("physics", "", "root"), ("maths", "", "root"), ("optics", "", "physics"),
        ("optics", "ada", "root"), ("maths", "ada", "root"),
    ]  # fmt: skip
    assert [each.default_account for each in found.associations] == [False, False, False, True, False]
    assert [each.shares for each in found.associations] == [10, 10, 4, 5, 6]
    (high,) = found.qos
    assert (high.priority, high.max_jobs_per_user, high.max_tres_per_user) == (100, 2, {"cpu": 4})
    assert f"{tmp_path}/setup.sh, line 6" in {each.where for each in scenario.findings.unmodelled}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[scheduling]\nbf_intervall = 3", "unknown field `bf_intervall`"),
        ("[scheduling]\nbf_interval = 'often'", "Expected `float`"),
        ("[scheduling", "at end of document"),
        ("[[partitions]]\nname = 'a'\n[[partitions]]\nname = 'a'", "partitions has 'a' twice"),
        ("[[partitions]]\nname = 'a'\nnodes = 'n[1-'", "not a list of nodes"),
        ("[[reservations]]\nname = 'a'\nstart = 5\nnodes = 'n[3-1]'", "goes backwards"),
    ],
)
def test_that_a_configuration_with_a_mistake_is_refused_in_one_line(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "slurm.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=re.escape(str(file))) as caught:
        read_configuration(file)
    assert words in str(caught.value) and "\n" not in str(caught.value)
