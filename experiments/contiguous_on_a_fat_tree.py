"""Does contiguous allocation pay on a fat tree?

Jobs that compute and exchange bytes run on 64 hosts, eight to a switch, with fewer cables between the
switches than to the hosts. The only difference between the simulations is which of the free hosts a job gets.

    python experiments/contiguous_on_a_fat_tree.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

import batsched_py as bp

HOSTS = 64
#: Two levels: eight hosts to each of eight switches, which share two switches above.
TREE = "2;8,8;1,2;1,1"
SELECTIONS = ("contiguous", "best-fit", "lowest", "spread", "random")
#: How busy the machine would be if sending took no time.
LOAD = 0.7
MEAN_SECONDS = 600.0
#: The part of its run time in which a job's links would be busy.
SENDING = 0.75


def communicating_jobs(path: Path, jobs: int, seed: int) -> Path:
    """A workload of jobs of 2 to 16 hosts. Alone on one switch, each would send for most of its run time."""
    random, time, listed, profiles = Random(seed), 0.0, [], {}
    mean_size = 6.0
    for number in range(jobs):
        time += random.expovariate(LOAD * HOSTS / (mean_size * MEAN_SECONDS))
        size, seconds = random.choice((2, 2, 4, 4, 8, 16)), random.expovariate(1 / MEAN_SECONDS)
        sent = SENDING * seconds * 125e6 / (size - 1)
        name = f"p{number}"
        profiles[name] = {"type": "parallel_homogeneous", "cpu": seconds * 1e9, "com": sent}
        listed.append({"id": str(number), "subtime": time, "res": size, "profile": name})
    path.write_text(json.dumps({"nb_res": HOSTS, "jobs": listed, "profiles": profiles}))
    return path


def slowdowns(workload: Path) -> dict[str, tuple[float, float]]:
    """By selection: how much longer jobs ran than they compute, and the mean waiting time."""
    settings = {"hosts": HOSTS, "bandwidth": "1Gbps", "latency": "10us", "fat_tree": TREE}
    alone = bp.simulate(workload, "fcfs", ignore_communication=True, **settings).jobs
    computing = alone.set_index("job_id")["execution_time"]
    found = {}
    for selection in SELECTIONS:
        options = {"selection": selection}
        jobs = bp.simulate(workload, "easy", options=options, **settings).jobs.set_index("job_id")
        ratio = jobs["execution_time"] / computing
        found[selection] = float(ratio.mean()), float(jobs["waiting_time"].mean())
    return found


def main(jobs: int = 500, seed: int = 1) -> None:
    """Print what each selection comes to."""
    with tempfile.TemporaryDirectory() as folder:
        found = slowdowns(communicating_jobs(Path(folder, "jobs.json"), jobs, seed))
    print(f"{'hosts':12}{'run time / computing time':>28}{'mean waiting time':>20}")
    for selection, (slowdown, waiting) in found.items():
        print(f"{selection:12}{slowdown:28.2f}{waiting:18.0f} s")


if __name__ == "__main__":
    main()
