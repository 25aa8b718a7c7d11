"""In one process both sides share one ledger, and little happens between a decision and its effect."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import batsched_py
from batsched_py import core
from batsched_py.decision.process import DecisionProcess
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.simulation import simulate
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of

PACKAGE = str(Path(batsched_py.__file__).parent)


class Traced(Scheduler):
    """Starts the only job, and notes which functions of ours are called until it is asked again."""

    name = "traced"

    def __init__(self) -> None:
        self.called: list[str] = []

    def schedule(self, cluster: Cluster) -> None:
        sys.setprofile(None)
        for job in list(cluster.queue):
            sys.setprofile(self._note)
            cluster.start(job)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.called.append(frame.f_code.co_qualname)


def test_a_start_passes_at_most_six_functions() -> None:
    traced = Traced()
    simulate(
        Batsim(Setup(Platform.homogeneous(4), [workload_of([JobSpec("a", 5, 2, 10, 20)])])),
        DecisionProcess(traced),
    )
    between = {
        "Ledger.settle",
        "World.instants",
        "World.carry_out",
        "Agenda.give_notices",
        "Agenda.happen",
        "World._no_more_static_jobs",
        "World._tell",
        "DecisionProcess.hear",
        "Ledger.learn",
        "World.told",
        "DecisionProcess.decide",
        "DecisionProcess._settle",
        "DecisionProcess._take",
    }
    """What ends the decision process's turn, once for all that it has decided."""
    passed = [name for name in traced.called if name not in between]
    if core.compiled:
        assert passed == []
    else:
        assert passed[0] == "Cluster.start"
        assert passed[-1] == "Machines.occupy"
        assert len(passed) <= 6, passed


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
    assert all(queue is batsim.ledger.queue for queue in seen)


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
