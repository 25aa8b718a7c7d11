"""The log of a cluster of today: jobs that share nodes, ask for memory, for whole nodes and for GPUs.

It is made up, and not fitted to any log: shares, sizes and run times are round numbers that an administrator
may find plausible. It serves for questions about machines of nodes where no log with requests is at hand.
"""

import json
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta, Struct

from batsched_py.workload.models import Model
from batsched_py.workload.swf.log import HOUR, SwfLog

#: What users ask for, in seconds: the least of these that is long enough.
WALLTIMES: Final = HOUR * np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24, 48, 72])

#: How busy users are in each hour of a day, from midnight on; at weekends half as much.
DAY: Final = (3, 2, 2, 2, 2, 2, 3, 5, 9, 12, 13, 13, 11, 12, 13, 13, 12, 10, 8, 7, 6, 6, 5, 4)


class Kind(Struct, frozen=True):
    """Jobs that are alike; ``counts`` are of cores, nodes or GPUs, each as likely as the others."""

    share: float
    """Of the jobs in the same partition."""
    unit: str
    counts: tuple[int, ...]
    gigabytes: tuple[int, ...]
    """Of memory for each core, or for each GPU."""
    median: float
    """Of the run times, in seconds."""
    spread: float
    """The standard deviation of their logarithm."""
    together: float
    """How many a user submits at once, on average."""

    def mean_run_time(self) -> float:
        """The mean run time; none is longer than the longest walltime."""
        normal = NormalDist(np.log(self.median), self.spread)
        quantiles = np.exp([normal.inv_cdf((place + 0.5) / 1000) for place in range(1000)])
        return float(np.minimum(quantiles, WALLTIMES[-1]).mean())


KINDS: Final = (
    Kind(0.55, "core", (1,), (1, 2, 4), 0.4 * HOUR, 1.5, 12.0),
    Kind(0.27, "part", (2, 4, 8, 16, 32), (2, 2, 4), 1.0 * HOUR, 1.4, 3.0),
    Kind(0.08, "part", (1, 2, 4, 8), (16, 24, 28), 2.0 * HOUR, 1.2, 2.0),
    Kind(0.10, "node", (1, 1, 1, 2, 2, 4, 4, 8, 16, 32), (2, 3), 2.0 * HOUR, 1.4, 1.5),
    Kind(1.00, "gpu", (1, 1, 1, 1, 2, 2, 4, 8), (32, 48, 60), 3.0 * HOUR, 1.3, 2.0),
)

#: Cores that come with a GPU.
CORES_OF_A_GPU: Final = 8


@dataclass
class Cluster(Model):
    """A made-up cluster of today: partitions cpu and gpu; single cores, parts of nodes, whole nodes, GPUs.

    Its jobs have requests, which workloads of Batsim (.json) and tables (.csv) keep and SWF does not.
    """

    name = "cluster"

    nodes: Annotated[int, Meta(ge=32, description="Nodes without GPUs, 256 GB each, in partition cpu.")] = 120
    cores: Annotated[int, Meta(ge=32, description="Cores of each node.")] = 64
    gpu_nodes: Annotated[int, Meta(ge=2, description="Nodes of 4 GPUs, in partition gpu.")] = 20
    load: Annotated[
        float,
        Meta(gt=0, description="How much of its cores and its GPUs the jobs would use, if none waited."),
    ] = 0.9
    users: Annotated[int, Meta(ge=1, description="How many users there are.")] = 150

    def generate(self, jobs: int, seed: int) -> SwfLog:
        """Groups of jobs that users submit at once, until there are enough."""
        random = np.random.default_rng(seed)
        shares, seconds = self._shares()
        activity = random.gamma(0.3, size=(len(KINDS), self.users)) / np.arange(1, self.users + 1)
        activity /= activity.sum(axis=1, keepdims=True)
        rows: list[tuple[Any, ...]] = []
        while len(rows) < jobs:
            number = int(random.choice(len(KINDS), p=shares))
            kind, user = KINDS[number], int(random.choice(self.users, p=activity[number]))
            when, typical = random.random(), random.normal(np.log(kind.median), kind.spread)
            count, memory = int(random.choice(kind.counts)), int(random.choice(kind.gigabytes))
            for _ in range(min(int(random.geometric(1 / kind.together)), jobs - len(rows))):
                run_time = min(float(np.ceil(np.exp(typical + random.normal(0, 0.2)))), WALLTIMES[-1])
                wanted = min(run_time * random.choice((1.0, 1.5, 2.0, 4.0)), WALLTIMES[-1])
                walltime = WALLTIMES[np.searchsorted(WALLTIMES, wanted)]
                rows.append((when, run_time, walltime, user + 1, *self._request(kind, count, memory)))
        places, run_times, walltimes, users, sizes, partitions, requests = map(
            np.array, zip(*rows, strict=True)
        )
        hours = np.arange(int(np.ceil(jobs * seconds / HOUR)) + 1)
        busy = np.array(DAY)[hours[:-1] % 24] * np.where(hours[:-1] // 24 % 7 >= 5, 0.5, 1.0)
        columns = {
            "submit": np.floor(np.interp(places, np.append(0, busy.cumsum()) / busy.sum(), hours * HOUR)),
            "run_time": run_times,
            "allocated_processors": sizes,
            "requested_processors": sizes,
            "requested_time": walltimes,
            "user": users,
            "partition": partitions,
        }
        order = np.argsort(columns["submit"], kind="stable")
        log = self.to_log(columns, (self.nodes + self.gpu_nodes) * self.cores, seed)
        log.header["Partition"] = "1 cpu\n2 gpu"
        log.more["request"] = requests.astype(object)[order]
        return log

    def _shares(self) -> tuple[list[float], float]:
        """How likely the next group of jobs is of each kind, and the time between jobs, on average.

        Both partitions are to be equally busy.
        """
        *plain, gpu = KINDS
        cores = sum(
            kind.share * kind.mean_run_time() * float(np.mean(kind.counts)) * self._cores_of(kind)
            for kind in plain
        )
        gpus = gpu.mean_run_time() * float(np.mean(gpu.counts))
        per_cpu_job = cores / (self.nodes * self.cores)
        per_gpu_job = gpus / (self.gpu_nodes * 4)
        of_gpus = per_cpu_job / (per_cpu_job + per_gpu_job)
        groups = [kind.share / kind.together * (1 - of_gpus) for kind in plain] + [of_gpus / gpu.together]
        return [each / sum(groups) for each in groups], (1 - of_gpus) * per_cpu_job / self.load

    def _cores_of(self, kind: Kind) -> int:
        return {"node": self.cores, "gpu": CORES_OF_A_GPU}.get(kind.unit, 1)

    def _request(self, kind: Kind, count: int, memory: int) -> tuple[int, int, str]:
        """The size of a job, its partition and what it asks for."""
        size = count * self._cores_of(kind)
        asked: dict[str, Any] = {"per_core": {"memory": f"{memory} GB"}}
        if kind.unit == "gpu":
            each = {"gpu": 1, "memory": f"{memory} GB"}
            asked = {"tasks": count, "cores": CORES_OF_A_GPU, "per_task": each}
        elif kind.unit == "node":
            asked |= {"nodes": count, "exclusive": True}
        elif count > 1:
            asked |= {"nodes": 1}
        asked["partitions"] = ["gpu" if kind.unit == "gpu" else "cpu"]
        return size, 2 if kind.unit == "gpu" else 1, json.dumps(asked)
