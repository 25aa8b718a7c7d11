"""In one process both sides share one ledger."""

from __future__ import annotations

from batsched_py.decision.process import DecisionProcess
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.simulation import simulate
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of


def test_both_sides_look_at_the_same_ledger() -> None:
    seen: list[object] = []

    class Nosy(Scheduler):
        """Keeps what it sees of the machine."""

        name = "nosy"

        def schedule(self, cluster: Cluster) -> None:
            seen.append(cluster.queue)
            for job in cluster.queue:
                cluster.start(job)

    batsim = Batsim(Setup(Platform.homogeneous(4), [workload_of([JobSpec("a", 5, 2, 10, 20)])]))
    simulate(batsim, DecisionProcess(Nosy()))
    assert seen and all(queue is batsim.ledger.queue for queue in seen)


def test_a_policy_sees_the_queue_and_the_running_jobs_and_not_how_they_are_kept() -> None:
    seen: list[tuple[list[str], list[str]]] = []

    class Nosy(Scheduler):
        """Looks at what can be done with what it sees."""

        name = "nosy"

        def schedule(self, cluster: Cluster) -> None:
            seen.append((public(cluster.queue), public(cluster.running)))
            for job in cluster.queue:
                cluster.start(job)

    def public(shown: object) -> list[str]:
        return [name for name in dir(shown) if not name.startswith("_")]

    simulate(
        Batsim(Setup(Platform.homogeneous(4), [workload_of([JobSpec("a", 5, 2, 10, 20)])])),
        DecisionProcess(Nosy()),
    )
    assert seen[0] == (["estimate", "first", "get", "head", "users"], ["get"])
