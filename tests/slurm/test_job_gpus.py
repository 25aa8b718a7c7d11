"""GPUs of a whole job (``--gpus``): Slurm takes nodes until they have enough of them.

gpus-2 is a short recording in which later jobs show how many GPUs of which node earlier ones have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.slurm.policy.taking import shared_out
from batsched_py.testing.runs import rows_of
from tests.slurm.scenario import RECORDED, Twin, assert_same_places, read_scenario

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/basic
GresTypes=gpu
NodeName=n1 CPUs=8 CoresPerSocket=8 Gres=gpu:{first}
NodeName=n2 CPUs=8 CoresPerSocket=8 Gres=gpu:{second}
PartitionName=all Nodes=n[1-2] Default=YES
"""


def test_jobs_start_when_and_where_the_real_one_starts_them() -> None:
    assert_same_places(RECORDED / "gpus-2")


@pytest.mark.parametrize(
    ("amount", "free", "given"),
    [
        (5, [4, 4], [4, 1]),
        (4, [4, 4], [3, 1]),
        (1, [4, 4], [0, 1]),
        (2, [4, 4, 4], [0, 1, 1]),
        (5, [3, 3, 3], [3, 1, 1]),
        (3, [1, 2], [1, 2]),
    ],
)
def test_each_node_leaves_a_gpu_for_each_that_follows(amount: int, free: list[int], given: list[int]) -> None:
    """So the real one gave them out."""
    assert [count for _, count in shared_out(amount, range(len(free)), free)] == given


def _jobs() -> dict[str, dict[str, Any]]:
    _, _, workload = read_scenario(RECORDED / "gpus-2")
    return {job.name: dict(job.extra) for job in workload.jobs}


def test_gpus_of_a_job_on_several_nodes_are_told_the_policy() -> None:
    first = _jobs()["1"]
    assert "per_job" not in first["request"] and "per_node" not in first["request"]
    assert first["slurm"]["gpus"] == {"gpu": 5}


def test_gpus_of_a_job_on_one_node_are_those_of_the_node() -> None:
    single = _jobs()["14"]
    assert single["request"]["per_node"] == {"gpu": 1, "gpu:b": 1}
    assert "gpus" not in single.get("slurm", {})


def test_beside_gpus_of_each_node_or_task_they_tell_how_many_there_are() -> None:
    jobs = _jobs()
    assert jobs["17"]["request"]["nodes"] == 2
    assert jobs["17"]["request"]["per_node"] == {"gpu": 2}
    assert jobs["18"]["request"]["per_task"] == {"gpu": 3}


@pytest.mark.parametrize(
    ("arguments", "gpus", "host"),
    [
        ("-n 3 --gpus-per-task=1", (3, 4), "0-2"),
        ("-n 3 --gpus-per-task=1", (2, 4), "8-10"),
        ("-n 1 --gpus-per-task=1", (1, 2), "0"),
        ("-n 2 --gpus-per-task=3", (6, 8), "0-1"),
        ("-n 2 --gpus-per-task=3", (5, 6), "8-9"),
    ],
)
def test_more_gpus_than_all_tasks_need_make_no_node_preferred(
    tmp_path: Path, arguments: str, gpus: tuple[int, int], host: str
) -> None:
    """Nodes with as many as the tasks need come in their order; the first has cores 0 to 7."""
    first, second = gpus
    (tmp_path / "slurm.conf").write_text(CONF.format(first=first, second=second))
    (tmp_path / "jobs.csv").write_text(f"at,run,args\n0,60,-t 5 {arguments}\n")
    configuration, platform, workload = read_scenario(tmp_path)
    (row,) = rows_of(DecisionProcess(Twin(configuration)), workload, platform)
    assert row["allocated_resources"] == host


@pytest.mark.parametrize(
    ("options", "cores", "memory"),
    [
        ("-n 1 --gres=gpu:2", 6, 2000),
        ("-n 1 --gpus=2", 6, 2000),
        ("-n 1 -c 1 --gres=gpu:2", 1, 2000),
        ("-n 1 --gres=gpu:2 --cpus-per-gpu=1 --mem=70", 2, 70),
        ("-n 1 --gres=gpu:2 -p more", 8, 2000),
        ("-n 1", 1, 0),
    ],
)
def test_what_a_cluster_gives_with_each_gpu(tmp_path: Path, options: str, cores: int, memory: int) -> None:
    text = (
        CONF.format(first=4, second=4)
        .replace("CR_Core", "CR_Core_Memory")
        .replace("CPUs=8", "CPUs=8 RealMemory=9000")
    )
    text += "JobDefaults=DefCpuPerGPU=3,DefMemPerGPU=1000\n"
    text += "PartitionName=more Nodes=n1 JobDefaults=DefCpuPerGPU=4\n"
    (tmp_path / "slurm.conf").write_text(text)
    (tmp_path / "jobs.csv").write_text(f"at,run,args\n0,100,{options}\n")
    configuration, _, workload = read_scenario(tmp_path)
    assert configuration.selection.def_cpu_per_gpu == 3
    (job,) = workload.jobs
    request = job.extra["request"]
    assert job.size == cores
    assert (
        request.get("per_node", {}).get("memory", request.get("per_core", {}).get("memory", 0) * cores)
        == memory
    )
