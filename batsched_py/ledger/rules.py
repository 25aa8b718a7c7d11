"""Batsim's rules for decisions, for every account of a machine and its jobs."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NoReturn

from batsched_py.errors import RuleBroken
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.sizes import Malleable, malleable_of


def check_existence(hosts: HostSet, nb_machines: int) -> None:
    """Hosts are named that must exist."""
    if hosts.runs()[-1][1] >= nb_machines:
        raise RuleBroken(f"hosts {hosts - HostSet.range(nb_machines)} do not exist")


def check_allocation(decision: ev.ExecuteJob, job: Job, nb_machines: int, moldable: bool) -> None:
    """A job is to run on hosts that suit what it asks for."""
    hosts, mapping, storages = decision.hosts, decision.mapping, decision.storage_mapping
    if not hosts:
        raise RuleBroken("no host was given")
    check_existence(hosts, nb_machines)
    if (mapping is not None) + (storages is not None) + (decision.io_job is not None) > 1:
        raise RuleBroken("only one of a mapping, a storage mapping and an IO job can be given")
    if mapping is not None:
        if len(mapping) != job.size and not moldable:
            raise RuleBroken(f"the job has {job.size} executors, the mapping places {len(mapping)}")
        if not mapping or not all(0 <= place < len(hosts) for place in mapping):
            raise RuleBroken("the mapping is empty or names a place outside the allocation")
    elif len(hosts) != job.size and not moldable:
        raise RuleBroken(f"the job needs {job.size} hosts and was given {len(hosts)} ({hosts})")
    if storages is not None and not storages:
        raise RuleBroken("the storage mapping is empty")


def check_malleable_size(job: Job, malleable: Malleable, size: int) -> None:
    """A malleable job is to have so many hosts."""
    if not malleable.least <= size <= malleable.most:
        raise RuleBroken(f"job {job.id} runs on {malleable} and was given {size}")


def check_resize(running: RunningJob | None, size: int) -> RunningJob:
    """A job is to go on with so many hosts; it, if it may."""
    if running is None:
        raise RuleBroken("the job does not run; only a running job can grow and shrink")
    malleable = malleable_of(running.job)
    if malleable is None:
        raise RuleBroken(f"the job is not malleable: it keeps its {running.nb_hosts} hosts until it ends")
    check_malleable_size(running.job, malleable, size)
    return running


def check_kill(
    job_ids: Sequence[str], can_be_killed: Callable[[str], bool], is_waiting: Callable[[str], bool]
) -> None:
    """Running jobs are to stop."""
    if not job_ids:
        raise RuleBroken("no job was named")
    for job_id in job_ids:
        if not can_be_killed(job_id):
            state = "is waiting" if is_waiting(job_id) else "is unknown or has completed"
            raise RuleBroken(f"job {job_id} {state}; only a running job can be killed")


def check_call(at: float, now: float) -> None:
    """A call is asked for."""
    if not isfinite(at):
        raise RuleBroken(f"a call at {at:g} will never come")
    if at <= now:
        raise RuleBroken(f"a call at {at:g} is not in the future (it is {now:g})")


def check_note(text: str) -> None:
    """A note is to be left on a job."""
    if '"' in text:
        raise RuleBroken('metadata may not contain the character "')


#: Why a job cannot be started that waits for others.
HELD = "the job is held: it waits for other jobs, and is not in the queue"


def why_not_waiting(job_id: str, is_running: bool) -> str:
    """Why a job cannot be started or rejected."""
    if is_running:
        return f"job {job_id} is running already"
    return f"job {job_id} is not waiting (it is unknown, not submitted yet, rejected or completed)"


def refuse_after_the_end() -> NoReturn:
    """Somebody decides something when all is over."""
    raise RuleBroken("the simulation has ended, nothing can be decided any more")


def refuse_without_energy(decision: ev.Event) -> None:
    """Refuse a decision that no simulator without an account of energy accepts, or none at all."""
    match decision:
        case ev.SetHostsState():
            raise RuleBroken("power states can be changed with --energy only")
        case ev.QueryEnergy():
            raise RuleBroken("the energy can be asked for with --energy only")
        case ev.ChangeJobState(job_id=job_id):
            raise RuleBroken(
                f"job {job_id} cannot be put into a state by hand, Batsim dies of it; "
                "execute, reject or kill it"
            )
        case _:
            raise RuleBroken("Batsim does not know such a decision")
