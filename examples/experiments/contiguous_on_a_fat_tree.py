"""Does contiguous allocation pay on a fat tree?

Jobs that compute and exchange bytes run on 64 hosts, eight to a switch, with fewer cables between the
switches than to the hosts. What differs between the simulations is which of the free hosts a job gets, and
how much jobs send: alone behind one switch, each uses a quarter or three quarters of its links' bandwidth.

    python examples/experiments/contiguous_on_a_fat_tree.py
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import batsched_py as bp
from batsched_py.analysis.runs import Estimate

HOSTS = 64
#: Two levels: eight hosts to each of eight switches, which share two switches above.
TREE = "2;8,8;1,2;1,1"
SELECTIONS = ("fewest-switches", "contiguous", "best-fit", "lowest", "least-loaded", "spread", "random")
#: How busy the machine would be if sending took no time.
LOAD = 0.7
MEAN_SECONDS = 600.0
#: The shares of its links' bandwidth that a job uses while it computes, alone behind one switch.
SHARES = (0.25, 0.75)
JOBS = 300
SEEDS = range(1, 11)

#: What is measured of a simulation, in the order of the columns.
MEASURES = ("run time / computing time", "run time / alone", "mean waiting time (s)")


def communicating_jobs(path: Path, jobs: int, share: float, seed: int) -> Path:
    """A workload of jobs of 2 to 16 hosts, which use this share of their links' bandwidth."""
    random, time, listed, profiles = Random(seed), 0.0, [], {}
    mean_size = 6.0
    for number in range(jobs):
        time += random.expovariate(LOAD * HOSTS / (mean_size * MEAN_SECONDS))
        size, seconds = random.choice((2, 2, 4, 4, 8, 16)), random.expovariate(1 / MEAN_SECONDS)
        sent = share * seconds * 125e6 / (size - 1)
        name = f"p{number}"
        profiles[name] = {"type": "parallel_homogeneous", "cpu": seconds * 1e9, "com": sent}
        listed.append({"id": str(number), "subtime": time, "res": size, "profile": name})
    path.write_text(json.dumps({"nb_res": HOSTS, "jobs": listed, "profiles": profiles}))
    return path


def measured(workload: Path, selection: str, seed: int = 0) -> tuple[float, float, float]:
    """What comes out with a selection: means over the jobs, as :data:`MEASURES` has them."""
    result = bp.simulate(
        workload,
        "easy",
        options={"selection": selection, "selection_seed": seed},
        hosts=HOSTS,
        bandwidth="1Gbps",
        latency="10us",
        fat_tree=TREE,
        links=True,
    )
    profiles = json.loads(workload.read_text())["profiles"]
    computing = result.jobs["profile"].map({name: each["cpu"] / 1e9 for name, each in profiles.items()})
    ratio = float((result.jobs["execution_time"] / computing).mean())
    alone, waiting = (result.metrics[name] for name in ("mean_slowdown_by_contention", "mean_waiting_time"))
    return ratio, alone, waiting


def table(jobs: int = JOBS, seeds: Sequence[int] = SEEDS) -> Iterator[str]:
    """The results in Markdown: means over workloads with their intervals of 95%."""
    yield "| share | `selection` | " + " | ".join(MEASURES) + " |"
    yield "|---|---|" + "---|" * len(MEASURES)
    with tempfile.TemporaryDirectory() as folder:
        for share in SHARES:
            files = [
                communicating_jobs(Path(folder, f"{share}-{seed}.json"), jobs, share, seed) for seed in seeds
            ]
            for selection in SELECTIONS:
                runs = [measured(file, selection, seed) for file, seed in zip(files, seeds, strict=True)]
                estimates = [Estimate.of(values) for values in zip(*runs, strict=True)]
                ratios, waiting = estimates[:2], estimates[2]
                cells = [f"{each.mean:.2f} ± {each.half_width or 0:.2f}" for each in ratios]
                cells.append(f"{waiting.mean:,.0f} ± {waiting.half_width or 0:,.0f}")
                yield f"| {share:.0%} | `{selection}` | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
