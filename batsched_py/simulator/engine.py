"""The built-in Batsim: a reply in, the next request out, no sockets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from batsched_py.errors import Deadlock, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim4 import wire_time
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState, Job, JobState
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.catalog import Catalog
from batsched_py.simulator.execution import Execution, first_task, next_task
from batsched_py.simulator.machines import Machines
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.profiles import Composed, HomogeneousTotal, Task
from batsched_py.simulator.submitter import Submitter
from batsched_py.workload.model import Workload

#: Batsim stretches shorter waits for a call to this.
LEAST_CALL = 1e-5


class Batsim:
    """One simulation, seen from the side that knows what happens.

    :meth:`begin` gives the first request; :meth:`advance` takes the reply to it and gives the next, until
    there is none. Decisions that would make Batsim abort raise :class:`RuleBroken` with the rule.
    """

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        settings: ev.Settings = ev.Settings(),
        outputs: Outputs | None = None,
        ignore_communication: bool = False,
    ) -> None:
        self.clock = 0.0
        self.now = 0.0
        """The clock as a reader of the wire sees it."""
        self.outputs = Outputs(None) if outputs is None else outputs
        self.machines = Machines(len(platform.hosts) + len(platform.storages))
        self._platform = platform
        self._workloads = workloads
        self._settings = settings
        self._agenda = Agenda()
        self._catalog = Catalog(workloads, settings, ignore_communication)
        self._catalog.check()
        self._speeds = [host.speed for host in (*platform.hosts, *platform.storages)]
        self._even = len(set(self._speeds)) == 1
        self._waiting: dict[str, tuple[Job, Task | Composed]] = {}
        self._running: dict[str, Execution] = {}
        self._metadata: dict[str, str] = {}
        self._met: set[str] = (
            {job.id for w in workloads for job in w.jobs} if settings.dynamic_jobs else set()
        )
        self._registration_open = settings.dynamic_jobs
        self._happened: list[ev.Event] = []
        self._decisions: deque[ev.Event] = deque()
        self._reply_now = 0.0
        self._ready = True
        self._ended = False

    # --- the conversation ------------------------------------------------------------------------

    def begin(self) -> ev.Message:
        """What is said first."""
        hosts, storages = self._platform.as_protocol()
        begins = ev.SimulationBegins(
            hosts=hosts,
            storages=storages,
            settings=self._settings,
            workloads={workload.name: workload.path for workload in self._workloads},
            profiles=self._catalog.everything(),
        )
        if self._workloads:
            Submitter(self._workloads, self._agenda, self._submit, self._no_more_static_jobs)
        while not self._instant_is_over():
            self._happen()
        return ev.Message(0.0, [begins])

    def advance(self, reply: ev.Message) -> ev.Message | None:
        """Apply a reply; what is said next, or nothing when the simulation is over."""
        if self._ended:
            if reply.events:
                raise RuleBroken(
                    f"{_name(reply.events[0])} came in the reply to SIMULATION_ENDS, when all is over"
                )
            self.outputs.complete(self.machines)
            return None
        if reply.events or reply.now > self.clock:
            self._read(reply)
            self._ready = False
            self._go_on_deciding(None)
        return self._next_request()

    def _next_request(self) -> ev.Message:
        heap = self._agenda.heap
        while True:
            if self._happened and self._ready and self._instant_is_over():
                happened, self._happened = self._happened, []
                return ev.Message(self.now, happened)
            if not heap:
                return self._end()
            self._happen()

    def _instant_is_over(self) -> bool:
        """Whether nothing but notices is left to happen now."""
        heap = self._agenda.heap
        return not heap or heap[0][0] > self.clock or heap[0][1] == 1

    def _happen(self) -> None:
        """Let the next thing happen."""
        time, action, argument = self._agenda.next()
        if time != self.clock:
            self.clock = time
            self.now = wire_time(time)
        action(argument)

    def _end(self) -> ev.Message:
        if self._waiting:
            raise Deadlock(
                f"deadlock at {self.clock:f}: {len(self._waiting)} jobs wait, {next(iter(self._waiting))} first, "
                "and nothing else will happen; the decision process has to execute or reject them"
            )
        if self._registration_open:
            raise Deadlock(
                f"deadlock at {self.clock:f}: nothing else will happen, yet registration was never finished"
            )
        self._ended = True
        return ev.Message(self.now, [ev.SimulationEnds(time=self.now)])

    def _tell(self, event: ev.Event) -> None:
        event.time = self.now
        self._happened.append(event)

    # --- decisions -------------------------------------------------------------------------------

    def _read(self, reply: ev.Message) -> None:
        """Check a reply's times; registrations come alive while it is read, whatever their time."""
        for decision in reply.events:
            if decision.time > reply.now:
                raise RuleBroken(
                    f"{_name(decision)} at {decision.time:f} lies after its message's `now` {reply.now:f}"
                )
            try:
                if isinstance(decision, ev.RegisterProfile):
                    self._check_registration_open()
                    self._catalog.register(decision.workload, decision.name, decision.profile)
                elif isinstance(decision, ev.RegisterJob):
                    self._check_registration_open()
                    self._register_job(decision.job)
                elif isinstance(decision, ev.RegistrationFinished):
                    self._registration_open = False
            except RuleBroken as broken:
                raise RuleBroken(f"{_name(decision)}: {broken}") from None
        self._decisions.extend(reply.events)
        self._reply_now = reply.now

    def _go_on_deciding(self, _: None) -> None:
        """Apply decisions in order, each at its time; then the decision process is ready again."""
        while self._decisions:
            if self._decisions[0].time > self.clock:
                self._agenda.at(self._decisions[0].time, self._go_on_deciding)
                return
            decision = self._decisions.popleft()
            apply = _APPLY.get(type(decision))
            if apply is None:
                raise RuleBroken(f"{_name(decision)} at {decision.time:f}: Batsim does not know this event")
            try:
                apply(self, decision)
            except RuleBroken as broken:
                raise RuleBroken(f"{_name(decision)} at {decision.time:f}: {broken}") from None
        if self._reply_now > self.clock:
            self._agenda.at(self._reply_now, self._be_ready)
        else:
            self._ready = True

    def _be_ready(self, _: None) -> None:
        self._ready = True

    def _execute(self, decision: ev.ExecuteJob) -> None:
        waiting = self._waiting.get(decision.job_id)
        if waiting is None:
            raise RuleBroken(self._why_not_waiting(decision.job_id))
        job, profile = waiting
        hosts = decision.hosts
        self._check_allocation(job, profile, decision)
        del self._waiting[decision.job_id]
        self.machines.change(hosts, HostState.IDLE, HostState.COMPUTING, self.clock)
        speeds = self._executor_speeds(decision)
        task, frames = first_task(profile, job, self._catalog)
        execution = Execution(job, hosts, speeds, self.clock, job.walltime, task, frames)
        self._running[job.id] = execution
        self._begin_task(execution)

    def _check_allocation(self, job: Job, profile: Task | Composed, decision: ev.ExecuteJob) -> None:
        hosts = decision.hosts
        if not hosts:
            raise RuleBroken("the allocation is empty")
        if hosts.mask >> self.machines.count:
            raise RuleBroken(f"hosts {hosts - HostSet.range(self.machines.count)} do not exist")
        if decision.mapping is not None:
            if len(decision.mapping) != job.size:
                raise RuleBroken(
                    f"job {job.id} has {job.size} executors, the mapping places {len(decision.mapping)}"
                )
            if not all(0 <= place < len(hosts) for place in decision.mapping):
                raise RuleBroken("the mapping names a place outside the allocation")
        elif len(hosts) != job.size and not self._is_moldable(job, profile):
            raise RuleBroken(f"job {job.id} asks for {job.size} hosts and was given {len(hosts)} ({hosts})")
        if taken := hosts - self.machines.hosts_in(HostState.IDLE):
            raise RuleBroken(f"hosts {taken} of the allocation are not idle")

    def _is_moldable(self, job: Job, profile: Task | Composed) -> bool:
        if isinstance(profile, Composed):
            return all(
                self._is_moldable(job, self._catalog.get(job.workload, name)) for name in profile.sequence
            )
        return isinstance(profile, HomogeneousTotal)

    def _executor_speeds(self, decision: ev.ExecuteJob) -> list[float]:
        speeds = self._speeds
        if self._even:
            return speeds[
                : decision.hosts.mask.bit_count() if decision.mapping is None else len(decision.mapping)
            ]
        allocated = [speed for first, last in decision.hosts.runs() for speed in speeds[first : last + 1]]
        return allocated if decision.mapping is None else [allocated[place] for place in decision.mapping]

    def _reject(self, decision: ev.RejectJob) -> None:
        waiting = self._waiting.pop(decision.job_id, None)
        if waiting is None:
            raise RuleBroken(self._why_not_waiting(decision.job_id))
        job, _ = waiting
        self.outputs.rejected(job, self._metadata.pop(job.id, ""))
        self._catalog.job_is_over(job)

    def _kill(self, decision: ev.KillJobs) -> None:
        if not decision.job_ids:
            raise RuleBroken("`job_ids` is empty")
        killed: dict[str, ev.Progress] = {}
        for job_id in decision.job_ids:
            execution = self._running.get(job_id)
            if execution is None:
                state = "is waiting" if job_id in self._waiting else "is unknown or was reported completed"
                raise RuleBroken(f"job {job_id} {state}; only a running job can be killed")
            killed[job_id] = execution.progress(self.clock)
        for job_id in killed:
            execution = self._running[job_id]
            self._agenda.cancel(execution.agenda_number)
            self._finish(execution, JobState.KILLED, execution.task.killed_code)
        self._tell(ev.JobsKilled(list(killed), killed))

    def _call(self, decision: ev.CallMeLater) -> None:
        if decision.at <= self.clock:
            raise RuleBroken(
                f"a call at {decision.at:f} is not in the future (the clock is at {self.clock:f})"
            )
        self._agenda.at(max(decision.at, self.clock + LEAST_CALL), self._make_call)

    def _make_call(self, _: None) -> None:
        self._tell(ev.RequestedCall())

    def _check_registration_open(self) -> None:
        if not self._settings.dynamic_jobs:
            raise RuleBroken("dynamic jobs are not enabled (--enable-dynamic-jobs)")
        if not self._registration_open:
            raise RuleBroken("registration was declared finished")

    def _register_job(self, job: Job) -> None:
        if job.id in self._met:
            raise RuleBroken(f"job {job.id} exists already")
        self._catalog.check_usable(job)
        self._met.add(job.id)
        self._waiting[job.id] = (job, self._catalog.get(job.workload, job.profile))

    def _acknowledge(self, decision: ev.RegisterJob) -> None:
        if self._settings.acknowledge_dynamic_jobs:
            self._announce(decision.job)

    def _continue_registration(self, decision: ev.ContinueRegistration) -> None:
        self._registration_open = True

    def _set_metadata(self, decision: ev.SetJobMetadata) -> None:
        if '"' in decision.metadata:
            raise RuleBroken('metadata may not contain the character "')
        if decision.job_id not in self._waiting and decision.job_id not in self._running:
            raise RuleBroken(f"job {decision.job_id} is unknown or was reported completed")
        self._metadata[decision.job_id] = decision.metadata

    def _nothing(self, decision: ev.Event) -> None:
        """It took effect while the reply was read, or Batsim only logs it."""

    def _why_not_waiting(self, job_id: str) -> str:
        if job_id in self._running:
            return f"job {job_id} is running already"
        return f"job {job_id} is not waiting (it is unknown, not submitted yet, rejected or completed)"

    # --- what happens ----------------------------------------------------------------------------

    def _submit(self, job: Job) -> None:
        self._waiting[job.id] = (job, self._catalog.get(job.workload, job.profile))
        self._announce(job)

    def _announce(self, job: Job) -> None:
        profile = self._catalog.raw(job) if self._settings.forward_profiles else None
        self._tell(ev.JobSubmitted(as_wired(job), profile))

    def _no_more_static_jobs(self, _: None) -> None:
        self._tell(ev.NoMoreStaticJobs())

    def _begin_task(self, execution: Execution) -> None:
        task = execution.task
        execution.task_start = self.clock
        execution.task_seconds = seconds = task.seconds(execution.speeds)
        if task.fits(seconds, execution.remaining):
            number = self._agenda.at(self.clock + seconds, self._end_task, execution)
        else:
            number = self._agenda.at(self.clock + execution.remaining, self._reach_walltime, execution)
        execution.agenda_number = number

    def _end_task(self, execution: Execution) -> None:
        task = execution.task
        execution.spend(self.clock - execution.task_start)
        if task.return_code:
            self._finish(execution, JobState.FAILED, task.return_code)
        elif next_task(execution, self._catalog):
            self._begin_task(execution)
        else:
            self._finish(execution, JobState.SUCCESS, 0)

    def _reach_walltime(self, execution: Execution) -> None:
        self._finish(execution, JobState.WALLTIME_REACHED, -1)

    def _finish(self, execution: Execution, state: JobState, return_code: int) -> None:
        job, hosts = execution.job, execution.hosts
        del self._running[job.id]
        self.machines.change(hosts, HostState.COMPUTING, HostState.IDLE, self.clock)
        self.outputs.finished(
            job, state, hosts, execution.start, self.clock, -1.0, self._metadata.pop(job.id, "")
        )
        self._catalog.job_is_over(job)
        self._tell(ev.JobCompleted(job.id, state, hosts, return_code))


def as_wired(job: Job) -> Job:
    """The job as a reader of the wire sees it, its numbers rounded to six decimals."""
    submission, walltime = (
        wire_time(job.submission_time),
        wire_time(job.walltime) if job.has_walltime else job.walltime,
    )
    if submission == job.submission_time and walltime == job.walltime:
        return job
    return structs.replace(job, submission_time=submission, walltime=walltime)


def _name(decision: ev.Event) -> str:
    return decision.type if isinstance(decision, ev.Unknown) else type(decision).__name__


_APPLY: dict[type[ev.Event], Callable[[Batsim, Any], None]] = {
    ev.ExecuteJob: Batsim._execute,
    ev.RejectJob: Batsim._reject,
    ev.KillJobs: Batsim._kill,
    ev.CallMeLater: Batsim._call,
    ev.RegisterProfile: Batsim._nothing,
    ev.RegisterJob: Batsim._acknowledge,
    ev.RegistrationFinished: Batsim._nothing,
    ev.ContinueRegistration: Batsim._continue_registration,
    ev.SetJobMetadata: Batsim._set_metadata,
    ev.WaitingTimeAnswer: Batsim._nothing,
}
