"""What a job is given: processors, whole cores or whole sockets, and on which nodes.

The rules are those that recordings show: site-4 (threads), site-7 (sockets, times of grace), site-5 (the
least loaded nodes) and site-2 (``select/linear``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.scenario import simulated_anew

TWO_THREADS = "NodeName=n[1-2] Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=8000"
TWO_SOCKETS = "NodeName=n[1-2] Sockets=2 CoresPerSocket=4 RealMemory=8000"
FOUR_NODES = "NodeName=n[1-4] CPUs=4 RealMemory=8000"


def waits(folder: Path, nodes: str, *jobs: str, select: str = "CR_Core", conf: str = "") -> dict[str, bool]:
    """Which jobs have to wait, if each line of options is a job of some minutes, one after another."""
    plugin = "select/linear" if select == "linear" else "select/cons_tres"
    parameters = "" if select == "linear" else f"SelectTypeParameters={select}\n"
    names = nodes.split()[0].removeprefix("NodeName=")
    partition = "" if "PartitionName" in conf else f"PartitionName=all Nodes={names} Default=YES\n"
    (folder / "slurm.conf").write_text(
        f"SchedulerType=sched/backfill\nSelectType={plugin}\n{parameters}PriorityType=priority/basic\n"
        f"{nodes}\n{partition}{conf}"
    )
    lines = [f"{place * 10},200,{options} -t 5" for place, options in enumerate(jobs)]
    (folder / "jobs.csv").write_text("\n".join(["at,run,args", *lines]) + "\n")
    table = simulated_anew(folder)
    return {
        name: start - submit > 60
        for name, submit, start in zip(table.index, table["submit"], table["start"], strict=True)
    }


def test_no_two_jobs_share_a_core(tmp_path: Path) -> None:
    found = waits(tmp_path, TWO_THREADS, "-n 3 -w n1", "-n 3 -w n1", "-n 1 -w n1", "-n 8")
    assert found == {"1": False, "2": False, "3": True, "4": False}


def test_a_node_whose_processors_are_its_cores_has_no_threads(tmp_path: Path) -> None:
    nodes = "NodeName=n1 CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2"
    assert not any(waits(tmp_path, nodes, "-n 3", "-n 1").values())


@pytest.mark.parametrize(
    ("select", "options"),
    [
        ("CR_Core", "--hint=nomultithread"),
        ("CR_Core", "--threads-per-core=1"),
        ("CR_Core", "--ntasks-per-core=1"),
        ("CR_Core,CR_ONE_TASK_PER_CORE", ""),
    ],
)
def test_a_task_may_have_a_core_of_its_own(tmp_path: Path, select: str, options: str) -> None:
    found = waits(tmp_path, TWO_THREADS, f"-n 3 -w n1 {options}", f"-N 1 -n 2 -w n1 {options}", select=select)
    assert found == {"1": False, "2": True}


@pytest.mark.parametrize("option", ["--hint=nomultithread", "--ntasks-per-core=1"])
def test_jobs_that_differ_only_in_how_they_use_cores_ask_for_different_things(
    tmp_path: Path, option: str
) -> None:
    nodes = TWO_THREADS.replace("n[1-2]", "n1")
    assert not any(waits(tmp_path, nodes, "-n 2", "-n 2", "-n 2").values())
    found = waits(tmp_path, nodes, "-n 2", f"-n 2 {option}", f"-n 2 {option}")
    assert found == {"1": False, "2": False, "3": True}


def test_tasks_with_cores_of_their_own_do_not_share_the_last_one(tmp_path: Path) -> None:
    """Three processors are two cores, so two tasks are four cores and not three."""
    jobs = ["-n 2 -c 3 -w n1", "-n 1 -w n1"]
    assert waits(tmp_path, TWO_THREADS, *jobs) == {"1": False, "2": False}
    found = waits(tmp_path, TWO_THREADS, *jobs, select="CR_Core,CR_ONE_TASK_PER_CORE")
    assert found == {"1": False, "2": True}


def test_memory_is_taken_for_all_processors_of_a_core(tmp_path: Path) -> None:
    jobs = ["-n 1 -w n1 --mem-per-cpu=2500", "-n 1 -w n1 --mem=3000", "-n 1 -w n1 --mem=1000"]
    found = waits(tmp_path, TWO_THREADS, *jobs, select="CR_Core_Memory")
    assert found == {"1": False, "2": False, "3": True}


def test_memory_is_taken_for_the_processors_that_a_job_may_use_of_a_core(tmp_path: Path) -> None:
    """With ``--threads-per-core=1``, 2500 MB and not 5000."""
    jobs = ["-n 1 -w n1 --mem-per-cpu=2500 --threads-per-core=1", "-n 1 -w n1 --mem=5000"]
    assert not any(waits(tmp_path, TWO_THREADS, *jobs, select="CR_Core_Memory").values())


def test_tasks_are_dealt_to_sockets_in_turn_and_sockets_are_given_whole(tmp_path: Path) -> None:
    found = waits(
        tmp_path, TWO_SOCKETS, "-n 2 -w n1", "-n 1 -w n1", "-n 1 -w n2", "-n 1 -w n2", select="CR_Socket"
    )
    assert found == {"1": False, "2": True, "3": False, "4": False}


def test_all_memory_is_more_than_what_a_job_gets_that_does_not_say(tmp_path: Path) -> None:
    jobs = ["-n 1 -w n1", "-n 1 -w n1 --mem=0", "-n 1 -w n2 --mem=0"]
    found = waits(tmp_path, FOUR_NODES, *jobs, select="CR_Core_Memory", conf="DefMemPerCPU=100\n")
    assert found == {"1": False, "2": True, "3": False}


def test_more_memory_than_a_processor_may_have_means_more_processors(tmp_path: Path) -> None:
    conf = "DefMemPerCPU=100\nMaxMemPerCPU=1000\n"
    jobs = ["-n 1 -w n1 --mem-per-cpu=2500", "-N 1 -n 2 -w n1", "-n 1 -w n2 --mem=3000", "-N 1 -n 2 -w n2"]
    found = waits(tmp_path, FOUR_NODES, *jobs, select="CR_Core_Memory", conf=conf)
    assert found == {"1": False, "2": True, "3": False, "4": True}


def test_the_least_loaded_nodes_are_taken_first(tmp_path: Path) -> None:
    jobs = ["-n 1", "-n 1", "-N 1 --exclusive", "-N 1 --exclusive", "-N 1 --exclusive"]
    assert not any(waits(tmp_path, FOUR_NODES, *jobs).values())
    found = waits(tmp_path, FOUR_NODES, *jobs, select="CR_Core,CR_LLN")
    assert [name for name, has_waited in found.items() if has_waited] == ["5"]


def test_nodes_that_must_follow_one_another(tmp_path: Path) -> None:
    jobs = ["-N 1 --exclusive -w n2", "-N 3 --exclusive"]
    assert waits(tmp_path, FOUR_NODES, *jobs) == {"1": False, "2": False}
    assert waits(tmp_path, FOUR_NODES, jobs[0], f"{jobs[1]} --contiguous") == {"1": False, "2": True}


def test_linear_takes_no_notice_of_weights_among_nodes_that_are_enough(tmp_path: Path) -> None:
    """Two light nodes are too few for three; of all nodes, three heavy ones follow one another."""
    conf = "NodeName=r[1-2] CPUs=4 Weight=1\nPartitionName=all Nodes=ALL Default=YES\n"
    jobs = ["-N 3", "-N 2 -w r[1-2]"]
    nodes = "NodeName=n[1-4] CPUs=4 Weight=5"
    assert waits(tmp_path, nodes, *jobs, select="linear", conf=conf) == {"1": False, "2": False}
    assert waits(tmp_path, nodes, *[f"{job} --exclusive" for job in jobs], conf=conf) == {
        "1": False,
        "2": True,
    }


def test_a_job_that_makes_way_goes_on_until_its_time_of_grace_is_over(tmp_path: Path) -> None:
    for grace, least, most in ((0, 0, 3), (50, 50, 82)):
        (tmp_path / "slurm.conf").write_text(
            "SchedulerType=sched/backfill\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
            f"PriorityType=priority/basic\nPreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n{FOUR_NODES}\n"
            f"PartitionName=low Nodes=n[1-4] Default=YES GraceTime={grace}\n"
            "PartitionName=high Nodes=n[1-4] PriorityTier=2\n"
        )
        (tmp_path / "jobs.csv").write_text(
            "at,run,args\n0,900,-N 4 --exclusive -t 20\n100,50,-N 4 -p high -t 5\n"
        )
        table = simulated_anew(tmp_path)
        assert least <= table["end"]["1"] - 100 <= most
        assert table["start"]["2"] >= table["end"]["1"]


def test_a_begin_counts_from_the_second_of_the_submission(tmp_path: Path) -> None:
    """1460.2 + 600 - 1460.2 is a little less than 600."""
    (tmp_path / "slurm.conf").write_text(
        f"SchedulerType=sched/backfill\n{FOUR_NODES}\nPartitionName=all Nodes=ALL Default=YES\n"
    )
    (tmp_path / "jobs.csv").write_text("at,run,args\n1460,50,-N 1 -t 5 --begin=now+10minutes\n")
    table = simulated_anew(tmp_path)
    assert table["eligible"]["1"] == 2060


def test_a_job_is_given_up_that_cannot_end_before_its_deadline(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        f"SchedulerType=sched/backfill\n{FOUR_NODES}\nPartitionName=all Nodes=ALL Default=YES\n"
    )
    jobs = ["0,900,-N 4 -t 20", "10,50,-N 1 -t 5 --deadline=now+15minutes", "20,50,-N 1 -t 5"]
    (tmp_path / "jobs.csv").write_text("\n".join(["at,run,args", *jobs]) + "\n")
    assert simulated_anew(tmp_path).index.tolist() == ["1", "3"]
    (tmp_path / "jobs.csv").write_text("\n".join(["at,run,args", *jobs]).replace("15min", "50min") + "\n")
    assert sorted(simulated_anew(tmp_path).index) == ["1", "2", "3"]
    jobs[1] = "10,50,-N 1 -t 1000 --deadline=now+61500"
    (tmp_path / "jobs.csv").write_text("\n".join(["at,run,args", *jobs]) + "\n")
    assert sorted(simulated_anew(tmp_path).index) == ["1", "2", "3"], "it may begin until 1510 s"
