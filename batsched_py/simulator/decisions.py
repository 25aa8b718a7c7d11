"""What each decision does to the world, and the rules that it may break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batsched_py.errors import RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.simulator.world import World, as_wired

#: Batsim stretches shorter waits for a call to this.
LEAST_CALL = 1e-5


def apply(world: World, decision: ev.Event) -> None:
    """Let a decision take effect; raise :class:`RuleBroken` where it would make Batsim abort."""
    rule = _APPLY.get(type(decision))
    try:
        if rule is None:
            raise RuleBroken("Batsim does not know this event")
        rule(world, decision)
    except RuleBroken as broken:
        raise RuleBroken(f"{name_of(decision)} at {decision.time:f}: {broken}") from None


def read(world: World, decision: ev.Event) -> None:
    """Take notice of a decision: registrations come alive when they are read, whatever their time."""
    rule = _READ.get(type(decision))
    try:
        if decision.extra and type(decision) in _EXACT:
            raise RuleBroken(f"it may not have the members {', '.join(decision.extra)}")
        if rule is not None:
            rule(world, decision)
    except RuleBroken as broken:
        raise RuleBroken(f"{name_of(decision)} at {decision.time:f}: {broken}") from None


def name_of(decision: ev.Event) -> str:
    """How a decision is called."""
    return decision.type if isinstance(decision, ev.Unknown) else type(decision).__name__


def _register_profile(world: World, decision: ev.RegisterProfile) -> None:
    world.registration.add_profile(decision)


def _register_job(world: World, decision: ev.RegisterJob) -> None:
    job = as_wired(decision.job)
    world.registration.add_job(job)
    world.waiting[job.id] = (job, world.catalog.get(job.workload, job.profile))


def _finish_registration(world: World, decision: ev.RegistrationFinished) -> None:
    world.registration.is_open = False


def _execute(world: World, decision: ev.ExecuteJob) -> None:
    waiting = world.waiting.get(decision.job_id)
    if waiting is None:
        raise RuleBroken(_why_not_waiting(world, decision.job_id))
    job, profile = waiting
    world.rules.check(decision, job, profile)
    del world.waiting[decision.job_id]
    world.runner.start(job, profile, decision)


def _reject(world: World, decision: ev.RejectJob) -> None:
    waiting = world.waiting.pop(decision.job_id, None)
    if waiting is None:
        raise RuleBroken(_why_not_waiting(world, decision.job_id))
    job, _ = waiting
    world.outputs.rejected(job, world.metadata.pop(job.id, ""))
    world.catalog.job_is_over(job)


def _why_not_waiting(world: World, job_id: str) -> str:
    if job_id in world.runner.running:
        return f"job {job_id} is running already"
    return f"job {job_id} is not waiting (it is unknown, not submitted yet, rejected or completed)"


def _kill(world: World, decision: ev.KillJobs) -> None:
    """Kill jobs; one that ended by itself, which was not told yet, is acknowledged without progress."""
    if not decision.job_ids:
        raise RuleBroken("`job_ids` is empty")
    asked_before = {job for e in world.untold if isinstance(e, ev.JobsKilled) for job in e.job_ids}
    named: list[str] = []
    progress: dict[str, ev.Progress] = {}
    for job_id in dict.fromkeys(decision.job_ids):
        execution = world.runner.running.get(job_id)
        if execution is not None:
            progress[job_id] = world.runner.progress(execution)
        elif not world.has_just_completed(job_id):
            state = "is waiting" if job_id in world.waiting else "is unknown or was reported completed"
            raise RuleBroken(f"job {job_id} {state}; only a running job can be killed")
        if job_id not in asked_before:
            named.append(job_id)
    for job_id in progress:
        world.runner.kill(world.runner.running[job_id])
    if named:
        world.tell(ev.JobsKilled(named, progress))


def _call(world: World, decision: ev.CallMeLater) -> None:
    now = world.agenda.clock
    if decision.at <= now:
        raise RuleBroken(f"a call at {decision.at:f} is not in the future (the clock is at {now:f})")
    world.agenda.at(max(decision.at, now + LEAST_CALL), _make_call, world)


def _make_call(world: World) -> None:
    world.tell(ev.RequestedCall())


def _acknowledge(world: World, decision: ev.RegisterJob) -> None:
    if world.settings.acknowledge_dynamic_jobs:
        world.announce(decision.job)


def _continue_registration(world: World, decision: ev.ContinueRegistration) -> None:
    world.registration.is_open = True


def _set_state(world: World, decision: ev.SetHostsState) -> None:
    if world.power is None:
        raise RuleBroken("power states can be changed with --energy only")
    world.power.request(decision.hosts, decision.pstate, world.runner.busy())


def _answer_energy(world: World, decision: ev.QueryEnergy) -> None:
    if world.energy is None:
        raise RuleBroken("the energy can be asked for with --energy only")
    world.tell(ev.EnergyAnswer(world.energy.meter.total()))


def _set_metadata(world: World, decision: ev.SetJobMetadata) -> None:
    if '"' in decision.metadata:
        raise RuleBroken('metadata may not contain the character "')
    if _is_open(world, decision.job_id):
        world.metadata[decision.job_id] = decision.metadata


def _deliver(world: World, decision: ev.TellJob) -> None:
    if _is_open(world, decision.job_id):
        world.runner.deliver(decision.job_id, decision.message)


def _is_open(world: World, job_id: str) -> bool:
    """Whether something can still be done about a job: not if it has completed, which was not told yet."""
    if job_id in world.waiting or job_id in world.runner.running or world.is_to_come(job_id):
        return True
    if world.has_just_completed(job_id):
        return False
    raise RuleBroken(f"job {job_id} is unknown or was reported completed")


def _change_state(world: World, decision: ev.ChangeJobState) -> None:
    raise RuleBroken(
        f"job {decision.job_id} cannot be put into a state by hand, Batsim dies of it; "
        "execute, reject or kill it"
    )


def _nothing(world: World, decision: ev.Event) -> None:
    """It took effect when it was read, or Batsim only logs it."""


#: The decisions of which Batsim counts the members.
_EXACT: set[type[ev.Event]] = {
    ev.ExecuteJob,
    ev.RejectJob,
    ev.KillJobs,
    ev.CallMeLater,
    ev.SetHostsState,
    ev.SetJobMetadata,
    ev.QueryEnergy,
}

_READ: dict[type[ev.Event], Callable[[World, Any], None]] = {
    ev.RegisterProfile: _register_profile,
    ev.RegisterJob: _register_job,
    ev.RegistrationFinished: _finish_registration,
}

_APPLY: dict[type[ev.Event], Callable[[World, Any], None]] = {
    ev.ExecuteJob: _execute,
    ev.RejectJob: _reject,
    ev.KillJobs: _kill,
    ev.CallMeLater: _call,
    ev.RegisterProfile: _nothing,
    ev.RegisterJob: _acknowledge,
    ev.RegistrationFinished: _nothing,
    ev.ContinueRegistration: _continue_registration,
    ev.SetHostsState: _set_state,
    ev.SetJobMetadata: _set_metadata,
    ev.ChangeJobState: _change_state,
    ev.QueryEnergy: _answer_energy,
    ev.WaitingTimeAnswer: _nothing,
    ev.TellJob: _deliver,
}
