"""The choice between the engines, made once, before a simulation begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batsched_py import native
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.simulation import Simulation
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.protocol.sizes import first_malleable, have_sizes
from batsched_py.schedulers import wrapping
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.runnable import is_plain, refusal
from batsched_py.simulator.setup import Setup
from batsched_py.users.base import Behaviour, UsersOf, Wrapper
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.quick_reader import NativeJobs, RunTimeProfiles

if TYPE_CHECKING:
    from batsched_py.simulator.decision_side import Decides


def new_simulation(setup: Setup, process: Decides, outputs: Outputs | None = None) -> Simulation:
    """A simulation that is about to begin, by the native engine if that can run it."""
    outputs = Outputs(None) if outputs is None else outputs
    if isinstance(process, DecisionProcess) and why_not_native(setup, process, outputs) is None:
        from batsched_py.engines.native import NativeSimulation

        return NativeSimulation(setup, process, outputs)
    from batsched_py.engines.python import PythonSimulation
    from batsched_py.simulator.engine import Batsim

    return PythonSimulation(Batsim(setup, outputs), process)


def why_not_native(setup: Setup, process: DecisionProcess, outputs: Outputs) -> str | None:
    """What the native engine does not do of a simulation, if there is anything."""
    platform, settings = setup.platform, setup.settings
    reasons = {
        "the native engine is not installed, or turned off": native.library is None,
        "a decision process of another kind": type(process) is not DecisionProcess,
        "a scheduler that takes time to decide": bool(process.scheduling_delay),
        "a policy around another": isinstance(process.scheduler, wrapping.Wrapper),
        "energy and power states": setup.energy,
        "traces of machine states": outputs.machine_states,
        "a record of what links carry": outputs.links,
        "output files of another kind": type(outputs) is not Outputs,
        "failures, and other events from outside": bool(setup.events) or process.on_failure is not None,
        "a policy that puts jobs back into the queue": process.scheduler.requeues,
        "closures, prices and whatever else is known of outside": process.outlook is not None,
        "hosts that jobs share": settings.compute_sharing,
        "storage hosts": bool(platform.storages),
        "a selection of hosts in nodes": platform.has_nodes and process.scheduler.selection != "lowest",
        "messages that take time": setup.network is not None and setup.network.delays_messages,
        "hosts of different speeds": platform.even_speed is None,
        "jobs of workload files beside those of users": bool(setup.workloads and process.users),
        "jobs that the scheduler registers": settings.dynamic_jobs and not process.users,
    }
    for reason, holds in reasons.items():
        if holds:
            return reason
    workloads = setup.workloads
    if process.users:
        if not isinstance(process.users, UsersOf) or not _is_shipped(process.users.behaviour):
            return "users of another kind"
        workloads = process.users.workloads
        if not all(isinstance(workload.jobs, list | NativeJobs) for workload in workloads):
            return "users of a log whose jobs are not kept in memory"
    if not all(_has_plain_profiles(workload, setup.may_send) for workload in workloads):
        return "jobs that do more than compute or sleep"
    if any(have_dependencies(workload.jobs) for workload in workloads):
        return "jobs that wait for other jobs"
    if platform.has_nodes and any(have_sizes(workload.jobs) for workload in workloads):
        return "jobs of several sizes on a machine of nodes"
    if any(first_malleable(workload.jobs) is not None for workload in workloads):
        return "jobs that grow and shrink while they run"
    return None


def _has_plain_profiles(workload: Workload, may_send: bool) -> bool:
    """Whether all jobs of a workload only compute or sleep."""
    return isinstance(workload.profiles, RunTimeProfiles) or all(
        _is_simple(profile, may_send) for profile in workload.profiles.values()
    )


def _is_simple(profile: Profile, may_send: bool) -> bool:
    if type(profile) is Delay:
        return refusal(profile, may_send) is None
    return is_plain(profile)


def _is_shipped(behaviour: Behaviour) -> bool:
    inner = _is_shipped(behaviour.inner) if isinstance(behaviour, Wrapper) else True
    return inner and type(behaviour).__module__.startswith("batsched_py.users.")
