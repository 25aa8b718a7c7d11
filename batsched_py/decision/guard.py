"""The guard: no decision leaves that would make Batsim abort.

Batsim answers a bad decision by dying without a word. The guard follows the conversation from both sides
and checks each decision against the rules first, so that a broken policy is told which rule it broke.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from batsched_py.errors import RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Composed, Profile, Trace


class Guard:
    """Knows what Batsim knows of jobs and hosts, as far as the rules need it."""

    def __init__(self, begins: ev.SimulationBegins) -> None:
        self._settings = begins.settings
        self._all = HostSet.range(len(begins.hosts) + len(begins.storages))
        self._exclusive = _exclusive(begins)
        self._busy = 0
        self._unavailable = 0
        self._sleep_pstates = [host.sleep_pstates for host in (*begins.hosts, *begins.storages)]
        self._asleep = 0
        """The hosts that sleep or are switching, of which the latter are also in ``_switching``."""
        self._switching = 0
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, HostSet] = {}
        self._met: set[str] = set()
        """Identifiers that no job can be registered under any more; kept where jobs can be registered."""
        self._profiles: dict[str, dict[str, Profile]] = {w: dict(p) for w, p in begins.profiles.items()}
        self._types: dict[type[Profile], Profile] = {}
        """A profile for each type, to stand for all that were registered: no more than the type matters."""
        self._collects = begins.settings.dynamic_jobs and not begins.settings.profile_reuse
        self._profile_of: dict[str, tuple[str, str]] = {}
        """Which profile dies with which job, by workload and name; kept where profiles are collected."""
        self._dead_profiles: defaultdict[str, set[str]] = defaultdict(set)
        self._registration_open = begins.settings.dynamic_jobs
        self._reopened = False
        self._ended = False

    # --- what happened ---------------------------------------------------------------------------

    def submitted(self, job: Job) -> None:
        """A job waits."""
        self._waiting[job.id] = job
        if self._settings.dynamic_jobs:
            self._met.add(job.id)
        if self._collects:
            self._profile_of[job.id] = (job.workload, job.profile)

    def completed(self, job_id: str) -> None:
        """A job has left its hosts."""
        hosts = self._running.pop(job_id, None)
        if hosts is not None:
            self._busy &= ~hosts.mask
        if self._collects:
            self._collect(job_id)

    def _collect(self, job_id: str) -> None:
        """The name of the profile of a job that is over is dead; jobs submitted before keep what they do."""
        if job_id in self._profile_of:
            workload, name = self._profile_of.pop(job_id)
            self._dead_profiles[workload].add(name)

    def lost(self, hosts: HostSet) -> None:
        """Hosts were taken away."""
        self._unavailable |= hosts.mask

    def regained(self, hosts: HostSet) -> None:
        """Hosts came back."""
        self._unavailable &= ~hosts.mask

    def switched(self, hosts: HostSet, pstate: int) -> None:
        """Hosts have reached a power state."""
        self._switching &= ~hosts.mask
        awake = HostSet.of(host for host in hosts if pstate not in self._sleep_pstates[host])
        self._asleep &= ~awake.mask

    def ended(self) -> None:
        """The simulation is over."""
        self._ended = True

    # --- what shall happen -----------------------------------------------------------------------

    def check(self, reply: ev.Message, now: float) -> None:
        """Raise :class:`RuleBroken` if Batsim would abort on this reply to a request at ``now``."""
        time = now
        if self._reopened:
            self._registration_open, self._reopened = True, False
        for decision in reply.events:
            if self._ended:
                raise RuleBroken(
                    f"{_describe(decision)}: the simulation has ended, nothing can be decided any more"
                )
            if decision.time < time:
                raise RuleBroken(
                    f"{_describe(decision)}: at {decision.time:g}, before {time:g}; decisions go forward"
                )
            if decision.time > reply.now:
                raise RuleBroken(
                    f"{_describe(decision)}: at {decision.time:g}, after the reply's own time {reply.now:g}"
                )
            time = decision.time
            rule = _CHECK.get(type(decision))
            if rule is None:
                raise RuleBroken(f"{_describe(decision)}: Batsim does not know such a decision")
            try:
                rule(self, decision)
            except RuleBroken as broken:
                raise RuleBroken(f"{_describe(decision)}: {broken}") from None

    def _execute(self, decision: ev.ExecuteJob) -> None:
        job = self._waiting.get(decision.job_id)
        if job is None:
            raise RuleBroken(self._why_not_waiting(decision.job_id))
        hosts = decision.hosts
        if not hosts:
            raise RuleBroken("no host was given")
        if not hosts <= self._all:
            raise RuleBroken(f"hosts {hosts - self._all} do not exist")
        mapped, stored = decision.mapping is not None, decision.storage_mapping is not None
        if mapped + stored + (decision.io_job is not None) > 1:
            raise RuleBroken("only one of a mapping, a storage mapping and an IO job can be given")
        if decision.mapping is not None:
            if len(decision.mapping) != job.size and not self._is_moldable(job):
                raise RuleBroken(
                    f"the job has {job.size} executors, the mapping places {len(decision.mapping)}"
                )
            if not all(0 <= place < len(hosts) for place in decision.mapping) or not decision.mapping:
                raise RuleBroken("the mapping names a place outside the allocation")
        elif len(hosts) != job.size and not self._is_moldable(job):
            raise RuleBroken(f"the job needs {job.size} hosts and was given {len(hosts)} ({hosts})")
        if taken := hosts.mask & self._unavailable:
            raise RuleBroken(f"hosts {HostSet(taken)} are unavailable")
        if taken := hosts.mask & self._asleep:
            raise RuleBroken(f"hosts {HostSet(taken)} sleep or are switching their power state")
        if shared := hosts.mask & self._busy & self._exclusive:
            raise RuleBroken(f"hosts {HostSet(shared)} are busy and may not be shared")
        del self._waiting[decision.job_id]
        self._running[decision.job_id] = hosts
        self._busy |= hosts.mask

    def _reject(self, decision: ev.RejectJob) -> None:
        if decision.job_id not in self._waiting:
            raise RuleBroken(self._why_not_waiting(decision.job_id))
        del self._waiting[decision.job_id]
        if self._collects:
            self._collect(decision.job_id)

    def _kill(self, decision: ev.KillJobs) -> None:
        if not decision.job_ids:
            raise RuleBroken("no job was named")
        for job_id in decision.job_ids:
            if job_id in self._waiting:
                raise RuleBroken(f"job {job_id} is waiting; only a running job can be killed")
            if job_id not in self._running:
                raise RuleBroken(
                    f"job {job_id} is unknown or has completed; only a running job can be killed"
                )

    def _call(self, decision: ev.CallMeLater) -> None:
        if decision.at <= decision.time:
            raise RuleBroken(f"a call at {decision.at:g} is not in the future (it is {decision.time:g})")

    def _register_profile(self, decision: ev.RegisterProfile) -> None:
        self._check_registration_open()
        profiles = self._profiles.setdefault(decision.workload, {})
        profile = decision.profile
        if isinstance(profile, Composed | Trace):
            raise RuleBroken(f"a {profile.kind} profile can stand in a workload file only")
        if decision.name in profiles:
            raise RuleBroken(f"profile {decision.name!r} exists already in workload {decision.workload!r}")
        profiles[decision.name] = self._types.setdefault(type(profile), profile)

    def _register_job(self, decision: ev.RegisterJob) -> None:
        self._check_registration_open()
        job = decision.job
        if job.id in self._met:
            raise RuleBroken(f"job {job.id} exists already")
        if job.workload not in self._profiles:
            raise RuleBroken(f"workload {job.workload!r} does not exist; register a profile in it first")
        if job.profile in self._dead_profiles[job.workload]:
            raise RuleBroken(
                f"profile {job.profile!r} was dropped when the first job that used it was over "
                "(--enable-profile-reuse keeps it)"
            )
        if job.profile not in self._profiles[job.workload]:
            raise RuleBroken(f"profile {job.profile!r} does not exist in workload {job.workload!r}")
        self.submitted(job)

    def _check_registration_open(self) -> None:
        if not self._settings.dynamic_jobs:
            raise RuleBroken(
                "the simulator does not accept dynamic jobs (start it with --enable-dynamic-jobs)"
            )
        if not self._registration_open:
            raise RuleBroken("registration was declared finished")

    def _finish(self, decision: ev.RegistrationFinished) -> None:
        self._registration_open = False

    def _continue(self, decision: ev.ContinueRegistration) -> None:
        """It takes effect from the next reply on."""
        self._reopened = True

    def _set_state(self, decision: ev.SetHostsState) -> None:
        hosts, pstate = decision.hosts, decision.pstate
        if not hosts or not hosts <= self._all:
            raise RuleBroken(f"hosts {hosts} do not all exist")
        for job_id, taken in self._running.items():
            if busy := hosts & taken:
                raise RuleBroken(f"hosts {busy} run job {job_id} and cannot change their power state")
        if switching := hosts.mask & self._switching:
            raise RuleBroken(f"hosts {HostSet(switching)} are switching their power state already")
        for host in hosts:
            states = self._sleep_pstates[host]
            if any(pstate in ways for ways in states.values()):
                raise RuleBroken(f"host {host} only passes through power state {pstate}")
            if pstate in states and host in HostSet(self._asleep):
                raise RuleBroken(f"host {host} sleeps already; it can only wake up")
        self._switching |= hosts.mask
        self._asleep |= hosts.mask

    def _metadata(self, decision: ev.SetJobMetadata) -> None:
        if '"' in decision.metadata:
            raise RuleBroken('metadata may not contain the character "')
        if decision.job_id not in self._waiting and decision.job_id not in self._running:
            raise RuleBroken(f"job {decision.job_id} is unknown or has completed")

    def _unchecked(self, decision: ev.Event) -> None:
        """Nothing can be wrong with it."""

    def _why_not_waiting(self, job_id: str) -> str:
        if job_id in self._running:
            return f"job {job_id} is running already"
        return f"job {job_id} is not waiting (it is unknown, not submitted yet, rejected or completed)"

    def _is_moldable(self, job: Job) -> bool:
        profiles = self._profiles.get(job.workload, {})
        profile = profiles.get(job.profile)
        return profile is not None and profile.is_moldable(profiles)


def _exclusive(begins: ev.SimulationBegins) -> int:
    """The hosts that run one job at a time, as a mask."""
    compute = HostSet.range(len(begins.hosts)).mask
    storage = HostSet.range(len(begins.hosts) + len(begins.storages)).mask & ~compute
    return (0 if begins.settings.compute_sharing else compute) | (
        0 if begins.settings.storage_sharing else storage
    )


def _describe(decision: ev.Event) -> str:
    name = type(decision).__name__
    match decision:
        case ev.RegisterJob(job=job):
            return f"{name} {job.id}"
        case ev.ExecuteJob() | ev.RejectJob() | ev.SetJobMetadata():
            return f"{name} {decision.job_id}"
        case _:
            return name


_CHECK: dict[type[ev.Event], Callable[[Guard, Any], None]] = {
    ev.ExecuteJob: Guard._execute,
    ev.RejectJob: Guard._reject,
    ev.KillJobs: Guard._kill,
    ev.CallMeLater: Guard._call,
    ev.RegisterProfile: Guard._register_profile,
    ev.RegisterJob: Guard._register_job,
    ev.RegistrationFinished: Guard._finish,
    ev.ContinueRegistration: Guard._continue,
    ev.SetHostsState: Guard._set_state,
    ev.SetJobMetadata: Guard._metadata,
    ev.QueryEnergy: Guard._unchecked,
    ev.WaitingTimeAnswer: Guard._unchecked,
    ev.TellJob: Guard._unchecked,
}
