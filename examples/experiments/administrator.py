"""The questions of an administrator, on a generated log of a cluster of today.

What would 20 nodes more do? What if no job overtook another? What if none could run for more than 24 hours?
What would fair share change? And what if half of the GPUs were not there? Each is one simulation beside that
of the cluster as it is, `platforms/cluster.toml` under EASY. docs/machines.md tells what came out.

    python examples/experiments/administrator.py
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import batsched_py as bp
from batsched_py.workload.swf.log import COLUMNS, SwfLog, swf_log

CLUSTER = Path(__file__).parents[2] / "platforms" / "cluster.toml"
DAY = 86_400.0
#: So many users, those who used most, are heavy.
HEAVY = 10


def machine(folder: Path, name: str, old: str = "", new: str = "") -> Path:
    """The cluster with one line of its file changed."""
    text = CLUSTER.read_text()
    assert text.count(old) == 1 or not old, f"{old!r} is not one line of {CLUSTER}"
    path = folder / f"{name}.toml"
    path.write_text(text.replace(old, new) if old else text)
    return path


def in_pieces(log: SwfLog, longest: float) -> SwfLog:
    """The log if no job may run for longer: users cut theirs in pieces, and submit each when it can begin.

    That is when the piece before it would have ended, had it not waited.
    """
    pieces = np.maximum(np.ceil(log.run_time / longest), 1).astype(np.int64)
    rows = np.repeat(np.arange(len(log)), pieces)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    columns = {name: getattr(log, name)[rows] for name in COLUMNS if name != "job_number"}
    columns["submit"] = columns["submit"] + place * longest
    columns["run_time"] = np.minimum(columns["run_time"] - place * longest, longest)
    columns["requested_time"] = np.minimum(columns["requested_time"], longest)
    more = {name: column[rows] for name, column in log.more.items()}
    return swf_log(columns, header=log.header, path=log.path, more=more)


def outcome(log: SwfLog, platform: Path, scheduler: str, **options: str) -> dict[str, float]:
    """What a simulation comes to: waiting times in hours, and how much of the machine was used."""
    result = bp.simulate(bp.Log(log), scheduler, options=options, platform=platform)
    number = pd.Series(np.arange(len(log)), index=log.job_number)
    rows = number[result.jobs["job_id"].astype(int)].to_numpy()
    waits = result.jobs["waiting_time"].to_numpy() / 3600
    used = np.bincount(log.user, log.run_time * log.processors)
    heavy = np.isin(log.user[rows], np.argsort(-used)[:HEAVY])
    whole = np.array(["exclusive" in request for request in log.more["request"]])[rows]
    gpu = log.partition[rows] == 2
    return {
        "parts of nodes": waits[~whole & ~gpu].mean(),
        "whole nodes": waits[whole].mean(),
        "GPUs": waits[gpu].mean(),
        "heavy users": waits[heavy].mean(),
        "other users": waits[~heavy].mean(),
        "longest": waits.max(),
        "utilization": result.overview.utilization,
    }


def answers(jobs: int, seed: int) -> pd.DataFrame:
    """A row for the cluster as it is, and one for each question."""
    log = replace(bp.generate("cluster", jobs=jobs, seed=seed).columns, path="cluster")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        as_it_is = machine(folder, "as-it-is")
        more_nodes = machine(folder, "more-nodes", "count = 120", "count = 140")
        fewer_gpus = machine(folder, "fewer-gpus", "gpu = 4", "gpu = 2")
        found = {
            "as it is": outcome(log, as_it_is, "easy"),
            "20 nodes more": outcome(log, more_nodes, "easy"),
            "no backfilling": outcome(log, as_it_is, "fcfs"),
            "at most 24 h": outcome(in_pieces(log, DAY), as_it_is, "easy"),
            "fair share": outcome(log, as_it_is, "easy", order="fair-share"),
            "half of the GPUs": outcome(log, fewer_gpus, "easy"),
        }
    return pd.DataFrame(found).T


def main(jobs: int = 40_000, seeds: int = 5) -> None:
    """Print the means over logs of several seeds, how far apart the logs are, and how many of them agree."""
    tables = [answers(jobs, seed) for seed in range(1, seeds + 1)]
    found = pd.concat(tables).groupby(level=0, sort=False)
    shorter = pd.concat([table < table.loc["as it is"] for table in tables]).groupby(level=0, sort=False)
    print(f"waiting times in hours, and utilization: means over {seeds} logs of {jobs:,} jobs")
    print(found.mean().round(2).to_string())
    print("\nstandard deviations over the logs")
    print(found.std().round(2).to_string())
    print("\nin how many logs it is less than as it is")
    print(shorter.sum().to_string())


if __name__ == "__main__":
    main()
