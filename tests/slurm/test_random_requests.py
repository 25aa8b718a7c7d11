"""Random jobs on random machines: what the twin gives them is what the simulator has.

The simulator keeps an account of its own of cores and memory, and refuses a decision that exceeds it.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.slurm.scenario import simulated_anew

JOBS = 50


def some_cluster(random: Random) -> str:
    """A ``slurm.conf`` with cores of several threads, sockets, memory, and ways to choose nodes."""
    select = random.choice(["CR_Core", "CR_CPU", "CR_Socket"]) + random.choice(["", "_Memory"])
    lines = [
        "SchedulerType=sched/backfill",
        "SelectType=select/cons_tres",
        f"SelectTypeParameters={select}" + random.choice(["", ",CR_ONE_TASK_PER_CORE", ",CR_LLN"]),
        "PriorityType=priority/basic",
    ]
    if select.endswith("_Memory"):
        lines += random.choice([[], [f"DefMemPerCPU={random.choice([100, 500])}"]])
        lines += random.choice([[], [f"MaxMemPerCPU={random.choice([500, 1500])}"]])
    sockets, cores, threads = random.choice([1, 2]), random.choice([2, 4]), random.choice([1, 2, 4])
    of_node = f"Sockets={sockets} ThreadsPerCore={threads}"
    lines += [
        f"NodeName=n[1-4] {of_node} CoresPerSocket={cores} RealMemory=16000",
        f"NodeName=m[1-2] {of_node} CoresPerSocket={2 * cores} RealMemory=32000 Weight=5",
        f"PartitionName=batch Nodes=ALL Default=YES LLN={random.choice(['YES', 'NO'])}",
    ]
    return "\n".join(lines) + "\n"


def some_options(random: Random) -> str:
    """The options of a job."""
    options = [
        random.choice(
            [
                f"-n {random.randint(1, 10)}",
                f"-N {random.randint(1, 3)} -n {random.randint(3, 9)}",
                f"-n {random.randint(1, 4)} -c {random.randint(1, 5)}",
                f"-N {random.randint(1, 3)} --ntasks-per-node={random.randint(1, 3)}",
                f"-N {random.randint(1, 2)}-{random.randint(2, 4)}",
                f"-N {random.randint(1, 2)} --exclusive",
            ]
        ),
        random.choice(["", "", "--mem-per-cpu=300", "--mem-per-cpu=2500", "--mem=0", "--mem=6000"]),
        random.choice(["", "", "", "--hint=nomultithread", "--ntasks-per-core=1", "--contiguous"]),
        f"-t {random.randint(2, 12)}",
    ]
    return " ".join(filter(None, options))


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 120), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_what_jobs_are_given_is_there(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        (tmp_path / "slurm.conf").write_text(some_cluster(random))
        times = sorted(random.randint(0, 1000) for _ in range(JOBS))
        jobs = [f"{time},{random.randint(30, 400)},{some_options(random)}" for time in times]
        (tmp_path / "jobs.csv").write_text("\n".join(["at,run,args", *jobs]) + "\n")
        table = simulated_anew(tmp_path)
        assert len(table) > JOBS / 2, f"seed {seed}"
