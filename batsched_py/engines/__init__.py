"""Two engines behind one door: :func:`new_simulation` chooses the one that a simulation runs on.

The choice is made once, before the simulation begins. A :class:`Simulation` is what every engine makes of a
scenario and a decision process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from batsched_py import native as native_library
from batsched_py.decision.observers import ObservedProcess
from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.profiles import Delay
from batsched_py.protocol.sizes import first_malleable, have_sizes
from batsched_py.schedulers import wrapping
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.catalog import is_plain, refusal
from batsched_py.simulator.outputs import CountsHosts, Outputs, Results
from batsched_py.simulator.setup import Setup
from batsched_py.users import Behaviour, UsersOf, Wrapper
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.quick_reader import NativeJobs, RunTimeProfiles

if TYPE_CHECKING:
    from batsched_py.simulator.decision_side import Decides


#: Why the native engine does not run what it could run.
NOT_HERE = "the native engine is not installed, or turned off"


class Situation(Struct, frozen=True):
    """How things stand in a simulation."""

    now: float
    waiting: int
    running: int
    """How many jobs wait and run."""
    resources: dict[str, tuple[int, int]]
    """How much of each resource of the nodes is free, and how much there is; none on a plain machine."""


class Simulation(ABC):
    """One simulation. It can be gone through once, by :meth:`run` or by :meth:`turns`."""

    engine: ClassVar[str]
    """The name of the engine."""

    slower_because = ""
    """Why the native engine does not run what it could run, if that is so."""

    busy: Callable[[float], tuple[float, float] | None] | None = None
    """Tells the utilization until so many percent of the jobs are submitted, and how long that takes, if
    users react; none if only the rows of the jobs tell it."""

    is_looked_at = False
    """Whether other threads ask for its situation or its results while it goes on: it waits for them then."""

    outputs: Outputs
    machines: CountsHosts
    process: Decides

    @property
    def results(self) -> Results:
        """What has come out so far."""
        return self.outputs.results

    @property
    def refused(self) -> Counter[str]:
        """How many jobs a machine of nodes could never run, by the kind of reason."""
        return self.process.refused if isinstance(self.process, DecisionProcess) else Counter()

    @property
    def pending(self) -> Counter[str]:
        """How many jobs were left in the queue in the end, by why they could not start."""
        return self.process.pending if isinstance(self.process, DecisionProcess) else Counter()

    @abstractmethod
    def situation(self) -> Situation:
        """How things stand; another thread may ask while the simulation goes on, if that is looked at."""

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return 0.0

    @abstractmethod
    def run(self) -> Results:
        """Run the whole simulation."""

    @abstractmethod
    def turns(self) -> Iterator[Cluster]:
        """Go through the whole simulation, but leave each turn of the policy to the caller.

        Simulator and users go on by themselves until the policy is to be asked. Then this stops, and the
        caller has the policy's place: it looks at the cluster, says to it what to start, and goes on. Or it
        lets the policy decide after all, by ``process.ask()``, and looks before and after. The simulation is
        the same as :meth:`run` makes, and may be left before its end::

            for cluster in simulation.turns():
                for job in cluster.fitting():
                    cluster.start(job)
        """


def new_simulation(setup: Setup, process: Decides, outputs: Outputs | None = None) -> Simulation:
    """A simulation that is about to begin, by the native engine if that can run it."""
    outputs = Outputs(None) if outputs is None else outputs
    reason: str | None = "a decision process of another kind"
    if isinstance(process, DecisionProcess):
        reason = why_not_native(setup, process, outputs)
        if reason is None:
            from batsched_py.engines.native import NativeSimulation

            return NativeSimulation(setup, process, outputs)
    from batsched_py.engines.python import Batsim, PythonSimulation

    simulation = PythonSimulation(Batsim(setup, outputs), process)
    simulation.slower_because = native_library.describe() if reason == NOT_HERE else ""
    return simulation


def why_not_native(setup: Setup, process: DecisionProcess, outputs: Outputs) -> str | None:
    """What the native engine does not do of a simulation, if there is anything."""
    platform, settings = setup.platform, setup.settings
    sleeps = _lets_hosts_sleep_in_library(setup, process)
    reasons = {
        "monitors, and data that a class computes over time": isinstance(process, ObservedProcess),
        "a decision process of another kind": type(process) is not DecisionProcess,
        "a scheduler that takes time to decide": bool(process.scheduling_delay),
        "a policy around another": isinstance(process.scheduler, wrapping.Wrapper) and not sleeps,
        "a policy that narrows the machine": process.scheduler.narrows_the_machine and not sleeps,
        "energy, where power states may change": setup.energy
        and not (sleeps or _keeps_power_states(setup, process)),
        "a record of what links carry": outputs.links,
        "output files of another kind": type(outputs) is not Outputs,
        "jobs that save their work": process.on_failure is not None
        and process.on_failure.checkpoints is not None,
        "a policy that puts jobs back into the queue": process.scheduler.requeues,
        "closures": process.outlook is not None and bool(process.outlook(platform.as_protocol()[0]).closures),
        "hosts that jobs share": settings.compute_sharing,
        "storage hosts": bool(platform.storages),
        "an allocator of your own": bool(process.scheduler.allocator),
        "a selection of hosts in nodes": platform.has_nodes and process.scheduler.selection != "lowest",
        "messages that take time": setup.tells_of_messages,
        "jobs of workload files beside those of users": bool(setup.workloads and process.users),
        "jobs that the scheduler registers": settings.dynamic_jobs and not process.users,
    }
    asked_for = (reason for reason, holds in reasons.items() if holds)
    missing = NOT_HERE if native_library.library is None else None
    return next(asked_for, None) or _why_not_for_jobs(setup, process) or missing


def _keeps_power_states(setup: Setup, process: DecisionProcess) -> bool:
    """Whether all hosts compute from the beginning on, and the policy lets them do so.

    Of ours, those that do not say that they narrow the machine. One of somebody else may do anything.
    """
    policy = process.scheduler
    is_ours = type(policy).__module__.startswith(("batsched_py.schedulers.", "batsched_py.slurm."))
    computes = all(host.computes_in(host.pstate) for host in setup.platform.hosts)
    return computes and (is_ours or policy.only_starts_jobs)


def _lets_hosts_sleep_in_library(setup: Setup, process: DecisionProcess) -> bool:
    """Whether idle hosts sleep under plain EASY, and nobody wants to know more than what comes of it.

    Then the library takes all turns. All hosts must be there all the time, and begin in the power state in
    which they wake up.
    """
    policy = process.scheduler
    if getattr(process.schedule, "in_library", None) != "sleeping" or not setup.energy:
        return False
    from batsched_py.schedulers.sleeping import Sleeping

    assert isinstance(policy, Sleeping)
    inner: Any = policy.inner  # whose module is part of the code of its own runs only
    platform = setup.platform
    return (
        type(inner).__module__ == "batsched_py.schedulers.easy"
        and inner.order == inner.backfill == "submission"
        and getattr(inner.schedule, "in_library", None) == "easy"
        and policy.selection == "lowest"
        and isfinite(policy.after)
        and not (policy.leaves_jobs or process.is_heeded or process.meter is not None)
        and not (setup.events or setup.failures is not None or process.on_failure is not None)
        and not platform.has_nodes
        and all(
            host.computes_in(host.pstate) and not any(map(host.computes_in, range(host.pstate)))
            for host in platform.hosts
        )
    )


def _why_not_for_jobs(setup: Setup, process: DecisionProcess) -> str | None:
    """What it does not do of the users of a simulation and of its jobs."""
    platform, workloads = setup.platform, setup.workloads
    if process.users:
        if not isinstance(process.users, UsersOf) or not _is_shipped(process.users.behaviour):
            return "users of another kind"
        workloads = process.users.workloads
        if not all(isinstance(workload.jobs, list | NativeJobs) for workload in workloads):
            return "users of a log whose jobs are not kept in memory"
        if any(have_dependencies(workload.jobs) for workload in workloads):
            return "users whose jobs wait for other jobs"
    if not all(_has_plain_profiles(workload, setup.may_send) for workload in workloads):
        return "jobs that do more than compute or sleep"
    if platform.has_nodes and any(have_sizes(workload.jobs) for workload in workloads):
        return "jobs of several sizes on a machine of nodes"
    if any(first_malleable(workload.jobs) is not None for workload in workloads):
        return "jobs that grow and shrink while they run"
    return None


def _has_plain_profiles(workload: Workload, may_send: bool) -> bool:
    """Whether all jobs of a workload only compute or sleep."""
    return isinstance(workload.profiles, RunTimeProfiles) or all(
        refusal(profile, may_send) is None if type(profile) is Delay else is_plain(profile)
        for profile in workload.profiles.values()
    )


def _is_shipped(behaviour: Behaviour) -> bool:
    inner = _is_shipped(behaviour.inner) if isinstance(behaviour, Wrapper) else True
    return inner and type(behaviour).__module__.startswith("batsched_py.users.")
