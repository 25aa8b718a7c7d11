"""A simulation that is over leaves nothing behind, whatever its policy has kept."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import PolicyError
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from tests.hostile.outcomes import JOBS, PROFILES, needs_both, simulate

ENGINES = ["python", pytest.param("native", marks=needs_both)]


class Keeper(Scheduler):
    """Keeps something that it was given."""

    name = "keeper"

    def __init__(self, keep: Callable[[Any, Any], object]) -> None:
        self.keep = keep
        self.kept: list[object] = []
        self.ballast = bytearray(100_000)

    def schedule(self, cluster: Cluster) -> None:
        if cluster.queue and cluster.running:
            self.kept.append(self.keep(self, cluster))
        for job in cluster.fitting():
            cluster.start(job)


def fails(policy: Any, cluster: Any) -> None:
    policy.kept.append(cluster.fitting(lambda size, estimate: policy is None))
    raise ValueError("in the middle")


KEPT: dict[str, Callable[[Any, Any], object]] = {
    "a condition on itself": lambda policy, cluster: cluster.fitting(lambda size, estimate: policy is None),
    "an order of itself": lambda policy, cluster: cluster.fitting(
        order=lambda jobs, now: [id(policy)] * len(jobs)
    ),
    "an order of the queue": lambda policy, cluster: cluster.order_queue(
        lambda jobs, now: [id(policy)] * len(jobs)
    ),
    "a listener": lambda policy, cluster: cluster.on_end(lambda ended: policy.kept.append(ended)),
    "the cluster": lambda policy, cluster: cluster,
    "a method": lambda policy, cluster: (cluster.start, cluster.fits),
    "the queue": lambda policy, cluster: (cluster.queue, iter(cluster.queue), cluster.queue.first(3)),
    "running jobs": lambda policy, cluster: (cluster.running, list(cluster.running)),
    "reservations": lambda policy, cluster: (
        cluster.reservation(cluster.queue.head),
        cluster.plan(),
        cluster.profile(),
    ),
    "news": lambda policy, cluster: (cluster.events, cluster.decided),
    "a condition, and then it fails": fails,
}


def play(engine: str, keep: Callable[[Any, Any], object]) -> list[weakref.ref[Any]]:
    """Simulate; what must be gone afterwards."""
    process = DecisionProcess(Keeper(keep))
    setup = Setup(Platform.homogeneous(4), [Workload("w0", JOBS, PROFILES)])
    try:
        simulate(engine, setup, process, Outputs(None))
    except PolicyError:
        assert keep is fails
    return [weakref.ref(process), weakref.ref(process.scheduler), weakref.ref(process.cluster)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kept", KEPT)
def test_what_a_policy_keeps_is_freed_with_it(kept: str, engine: str) -> None:
    left = play(engine, KEPT[kept])
    gc.collect()
    assert [reference() for reference in left] == [None, None, None]


def used() -> int:
    """The bytes of memory that this process has in use, whoever has asked for them."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or "ASAN_OPTIONS" in os.environ,
    reason="needs Linux, and memory that is given back at once",
)
@pytest.mark.parametrize("engine", ENGINES)
def test_many_simulations_take_no_more_memory_than_a_few(engine: str) -> None:
    """Each has 100 kB of ballast; objects of all kinds are counted as well."""

    def some(number: int) -> tuple[int, int]:
        for _ in range(number):
            for keep in KEPT.values():
                play(engine, keep)
            gc.collect()
        return used(), len(gc.get_objects())

    some(3)
    memory, objects = some(3)
    memory_later, objects_later = some(50 // len(KEPT) + 1)
    assert objects_later - objects < 50
    assert memory_later - memory < 2_000_000
