"""Single rules of Slurm, each in a cluster of a few nodes; how they were found, docs/slurm.md tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.slurm.policy.job import Asked
from batsched_py.slurm.policy.taking import dealt
from batsched_py.slurm.prepared import Prepared
from batsched_py.slurm.scenario import Sources, read_scenario, write_scenario
from tests.processes import call_here
from tests.slurm.scenario import RECORDED, assert_same_places, simulated_anew

CONF = """\
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/basic
NodeName=n[1-4] CPUs=4 CoresPerSocket=4 RealMemory=4000
PartitionName=low Nodes=n[1-4] Default=YES PriorityTier=1
PartitionName=high Nodes=n[1-4] PriorityTier=2
"""


def starts(folder: Path, *jobs: str, conf: str = "") -> dict[str, float]:
    """When jobs start that are given as lines of a jobs.csv."""
    (folder / "slurm.conf").write_text(CONF + conf)
    (folder / "jobs.csv").write_text("\n".join(["at,run,args", *jobs]) + "\n")
    table = simulated_anew(folder)
    found: dict[str, float] = table["start"].to_dict()
    return found | {f"end {name}": end for name, end in table["end"].to_dict().items()}


@pytest.mark.parametrize(
    ("room", "given"),
    [
        ({0: 8, 1: 4}, {0: 8, 1: 3}),
        ({0: 7, 1: 5}, {0: 7, 1: 3}),
        ({0: 6, 1: 6}, {0: 6, 1: 6}),
        ({0: 4, 1: 4, 2: 4}, {0: 4, 1: 3, 2: 3}),
    ],
)
def test_tasks_are_dealt_out_in_turn_and_the_last_ones_are_cut(
    room: dict[int, int], given: dict[int, int]
) -> None:
    """The job of tiers-1 that gets 10 processors for ``-n 4 -c 3``."""
    asked = Asked(
        number=0,
        tasks=4,
        cpus_per_task=3,
        unit=1,
        cpus=12,
        least_nodes=1,
        wanted_nodes=1,
        most_nodes=4,
        nodes=7,
        partition=7,
        cpus_of_node=3,
    )
    assert dealt(asked, room, [1] * 8) == given


def test_a_job_that_runs_out_of_time_goes_on_until_the_next_look(tmp_path: Path) -> None:
    found = starts(tmp_path, "10,300,-N 4 --exclusive -t 2", "20,30,-N 1 -t 2")
    assert found["end 1"] == 145, "130 s and a look at 145 s, 210 s after the start of the controller"
    assert 145 <= found["2"] < 147


@pytest.mark.parametrize(("state", "end"), [("TIMEOUT", 145), ("COMPLETED", 122)])
def test_a_job_of_a_log_that_ran_out_of_time_does_so_too(tmp_path: Path, state: str, end: int) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.sacct").write_text(
        "JobID|Submit|Start|End|State|ElapsedRaw|Timelimit|AllocCPUS\n"
        f"1|2026-03-01T08:00:00|2026-03-01T08:00:01|2026-03-01T08:02:03|{state}|122|00:02:00|4\n"
    )
    scenario = read_scenario(Sources(conf=tmp_path / "slurm.conf", jobs=tmp_path / "jobs.sacct"))
    write_scenario(scenario, tmp_path / "twin")
    prepared = Prepared.of(tmp_path / "twin", (), tmp_path / "files")
    table = prepared.table(prepared.simulated("rigid", {}, {}))
    assert table["end"].tolist() == [end]


def test_a_time_limit_may_be_exceeded_by_over_time_limit(tmp_path: Path) -> None:
    found = starts(tmp_path, "10,300,-N 4 --exclusive -t 2", conf="OverTimeLimit=1\n")
    assert found["end 1"] == 205


def test_a_range_of_nodes_without_tasks_gets_as_many_as_there_are(tmp_path: Path) -> None:
    jobs = ["0,100,-N 3 --exclusive -t 3", "5,100,-N 1-4 -t 3", "10,50,-N 1 --exclusive -t 2"]
    found = starts(tmp_path, *jobs)
    assert found["2"] < 10, "one node is enough"
    assert found["3"] > 100, "and no node is idle then"


def test_nodes_that_a_job_must_have_are_not_all_that_it_gets(tmp_path: Path) -> None:
    found = starts(tmp_path, "0,100,-N 1 -w n3 --exclusive -t 3", "5,50,-N 2 -w n3 --exclusive -t 2")
    assert found["1"] < 2
    assert found["2"] > 100


def test_the_backfill_loop_plans_and_starts_with_the_least_time_limit(tmp_path: Path) -> None:
    """In Slurm 22.05 it is also the time limit that the job then has."""
    jobs = ["0,110,-N 3 --exclusive -t 3", "5,50,-N 4 --exclusive -t 2", "10,100,-N 1 -t 20 --time-min=1"]
    found = starts(tmp_path, *jobs)
    assert found["3"] < 60, "it ends before the second job can start"
    assert found["end 3"] - found["3"] < 91, "its time limit is a minute"


def test_the_backfill_loop_lets_jobs_make_way(tmp_path: Path) -> None:
    """The main loop stops at the first job of the tier; only the backfill loop looks at the next one."""
    conf = (
        "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"
        "NodeName=m[1-2] CPUs=4 CoresPerSocket=4 RealMemory=4000\n"
        "PartitionName=top Nodes=n[1-4],m[1-2] PriorityTier=3\n"
        "PartitionName=base Nodes=m[1-2] PriorityTier=1\n"
    )
    jobs = [
        "0,600,-N 4 --exclusive -t 30 -p top --exclude=m[1-2]",
        "2,600,-N 2 --exclusive -t 30 -p base",
        "4,100,-N 4 --exclusive -t 5 -p top --exclude=m[1-2]",
        "6,60,-N 1 --exclusive -t 2 -p top",
    ]
    found = starts(tmp_path, *jobs, conf=conf)
    assert found["end 2"] < 100
    assert found["4"] < 100 < found["3"]


def test_jobs_of_the_same_moment_are_submitted_in_the_order_of_the_file(tmp_path: Path) -> None:
    first = ["0,100,-N 4 --exclusive -t 3"]
    jobs = [*first, *[f"10,50,-N 4 --exclusive -t {limit}" for limit in range(2, 12)]]
    found = starts(tmp_path, *jobs)
    order = sorted((found[str(number)], number) for number in range(1, 12))
    assert [number for _, number in order] == list(range(1, 12))


def test_a_job_alone_of_its_name_waits_for_no_other(tmp_path: Path) -> None:
    jobs = ["0,100,-N 1 -t 3", "5,50,-N 1 -t 2 -J x -d singleton", "10,50,-N 1 -t 2 -J x -d singleton"]
    found = starts(tmp_path, *jobs)
    assert found["2"] < 10
    assert 55 < found["3"] < 100


def test_nobody_tells_the_loops_that_what_a_job_waits_for_has_started() -> None:
    """In after-1, job 2 starts at 31 s; job 3 waits for that, and starts at the next submission, at 40 s."""
    assert_same_places(RECORDED / "after-1", started=64.35)


def test_a_task_may_wait_for_the_same_task_of_another_array(tmp_path: Path) -> None:
    jobs = ["0,100,--array=1-2 -N 3 --exclusive -t 3", "5,50,--array=1-2 -N 1 -t 2 -d aftercorr:%1"]
    found = starts(tmp_path, *jobs)
    for task in ("1", "2"):
        assert found[f"2_{task}"] >= found[f"end 1_{task}"]
    assert found["2_1"] < found["end 1_2"], "it does not wait for the whole array"


@pytest.mark.parametrize("wrapper", ["sleeping", "capped", "deferring", "capped(sleeping)"])
def test_no_policy_goes_around_that_of_slurm(root: Path, tmp_path: Path, wrapper: str) -> None:
    """Its loops would start jobs on hosts that sleep, and beyond a cap."""
    name = wrapper.replace(")", "(slurm))") if ")" in wrapper else f"{wrapper}(slurm)"
    words = ["run", "-w", root / "workloads" / "sample.swf", "-p", root / "platforms" / "power64.xml"]
    options = ["-o", "watts=9000"] if "capped" in name else []
    code, _, error = call_here([*words, "--energy", "-s", name, *options, "-e", tmp_path / "out"])
    assert code != 0
    assert "cannot go around 'slurm', which heeds neither limits nor hosts that sleep" in error
    assert error.count("\n") == 1
