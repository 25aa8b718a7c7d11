"""Running jobs: launched, then task by task, until they end, reach their walltime or are killed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import reduce
from math import ceil, inf
from operator import or_
from typing import TYPE_CHECKING, Any

from batsched_py.errors import RuleBroken
from batsched_py.ledger.rules import check_existence
from batsched_py.ledger.running import ResizedJob, RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol import profiles as pr
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState, Job, JobState
from batsched_py.protocol.sizes import MALLEABLE
from batsched_py.simulator.agenda import UNNOTICED, UNNOTICED_SHARE, Action
from batsched_py.simulator.catalog import Catalog, check_io_job
from batsched_py.simulator.execution import Computing, Execution, Frame, MalleableTasks, PlainJobs
from batsched_py.simulator.network.solver import Demand, add_computation, add_io
from batsched_py.simulator.network.tasks import FluidTasks
from batsched_py.simulator.paje import shows_kill

if TYPE_CHECKING:
    from batsched_py.simulator.world import Context


#: A storage host may be given less computation than this.
LEAST_FLOPS = 1e-10

_SUCCESS, _FAILED = JobState.SUCCESS, JobState.FAILED

#: Hears that a job is over: its hosts, its start, how it ended, the return code and the joules of its hosts.
OnEnd = Callable[[Job, HostSet, float, JobState, int, float], None]


class Runner:
    """The running jobs.

    A resource manager launches a job, and cleans its hosts afterwards. Both take time in reality, and none in
    Batsim, which therefore underestimates how long jobs wait (Dutot, Mercier, Poquet and Richard, 2016,
    sections 7.2 and 9). So time may pass between the decision to start a job and its start, and between its
    end and its report. The hosts of the job are not free in these times, and compute nothing.
    """

    def __init__(
        self, context: Context, catalog: Catalog, tell: Callable[[ev.Event], None], on_end: OnEnd
    ) -> None:
        self._setup = context.setup
        self._launching: dict[str, tuple[int, RunningJob]] = {}
        self.running: dict[str, Execution] = {}
        self.exact: dict[str, Job] = {}
        """Jobs that wait, where their times are not told exactly."""
        meter = None if context.energy is None else context.energy.meter
        self.computing = Computing(context.hosts, context.agenda, self._plan, meter)
        self._network = context.setup.network
        self.fluid = FluidTasks(self.computing, self._network, context.agenda, meter, context.record)
        self.malleable = MalleableTasks(self.computing, context.agenda, self._plan, meter, context.outputs)
        speeds = self.computing.even_speeds
        speed = speeds.slowest if speeds and context.tells_nothing and not catalog.collects else 0.0
        self._late_jobs_stay = context.setup.late_jobs_stay
        self.plain = PlainJobs(
            context.agenda, context.machines, catalog, self.exact, speed, self._late_jobs_stay
        )
        self._new_demand = Demand if context.record is None else context.record.new_demand
        self._shared = context.setup.settings.compute_sharing
        machines = context.machines
        self._storages = HostSet.range(machines.count) - HostSet.range(machines.count - machines.storages)
        self._storage_names = {context.hosts[host].name: host for host in self._storages}
        self._agenda = context.agenda
        self._machines = machines
        self._catalog = catalog
        self._energy = context.energy
        self._states = context.states
        self._trace = context.trace
        self._tell = tell
        self._on_end = on_end
        self.ends_are_heard_late = False
        """Whether it takes time until the end of a job is known."""
        self._lingering: dict[str, Execution] = {}
        """Jobs that have reached their walltime, of which this is not known yet."""
        self.mail: dict[str, deque[str]] = {}
        """Messages to jobs that were not read yet."""

    def busy(self) -> HostSet:
        """The hosts that run jobs."""
        hosts = [execution.hosts for execution in self.running.values()]
        hosts += [running.hosts for _, running in self.plain.running()]
        return reduce(or_, hosts, HostSet())

    def launch(self, running: RunningJob) -> None:
        """Start a job, which may take time."""
        if not self._setup.launch_time:
            self.start(running)
            return
        now = self._agenda.clock
        number = self._agenda.at(now + self._setup.launch_time, self._launched, running.job.id)
        self._launching[running.job.id] = number, running
        if self._trace is not None:
            self._trace.job_launches(running.hosts, now)

    def _launched(self, job_id: str) -> None:
        self.start(self._launching.pop(job_id)[1])

    def stop_launching(self, job_id: str) -> None:
        """Begin a job at once if it is being launched, because it is to be killed."""
        if job_id in self._launching:
            self._agenda.cancel(self._launching[job_id][0])
            self._launched(job_id)

    def clean(self, then: Callable[[], None]) -> None:
        """Do something when the hosts of a job that has ended are clean."""
        if self._setup.cleaning_time:
            self._agenda.at(self._agenda.clock + self._setup.cleaning_time, lambda _: then())
        else:
            then()

    def start(self, running: RunningJob) -> None:
        """Let a job run."""
        computing, now = self.computing, self._agenda.clock
        job, decision, hosts, nb_hosts = running.job, running.decision, running.hosts, running.nb_hosts
        job = self.exact.pop(job.id, job)
        profile = self._catalog.profile_of(job)
        speeds = computing.even_speeds or computing.speeds(hosts)
        walltime = inf if self._late_jobs_stay else job.walltime
        self.running[job.id] = execution = Execution(
            job, hosts, nb_hosts, speeds, now, walltime, job.profile, profile, now
        )
        if decision is not None:
            if decision.io_job is not None:
                self._add_io(execution, decision.io_job)
            execution.storage_mapping = decision.storage_mapping
            if decision.mapping is not None:
                execution.executors, execution.speeds = computing.executors(hosts, decision.mapping)
        execution.go_into(job.profile, profile, self._catalog.profiles[job.workload])
        if self._energy is not None:
            execution.joules = self._energy.job_starts(hosts)
        self._machines.occupy(hosts, nb_hosts, now)
        if self._trace is not None:
            self._trace.job_begins(job.id, hosts, now)
        if self._states is not None:
            self._states.row()
        if not (self._catalog.malleable and MALLEABLE in job.extra):
            self._begin_task(execution)
            return
        if execution.executors is not None or execution.io is not None or execution.storage_mapping:
            raise RuleBroken(f"job {job.id} is malleable; it cannot have a mapping or an IO job")
        if hosts & self._storages:
            raise RuleBroken(f"job {job.id} is malleable; it cannot run on hosts for storage")
        self.malleable.begin(execution)

    def resize(self, resized: ResizedJob) -> None:
        """Let a malleable job go on with other hosts, if it has not ended meanwhile."""
        execution, now = self.running.get(resized.job.id), self._agenda.clock
        if execution is None:
            return
        left, taken = resized.before - resized.hosts, resized.hosts - resized.before
        self._agenda.cancel(execution.agenda_number)
        if self._energy is not None:
            execution.joules += self._energy.job_resizes(taken, left)
        self._machines.vacate(left, len(left), now)
        self._machines.occupy(taken, len(taken), now)
        execution.hosts, execution.nb_hosts = resized.hosts, len(resized.hosts)
        execution.speeds = self.computing.even_speeds or self.computing.speeds(resized.hosts)
        if self._states is not None:
            self._states.row()
        self.malleable.go_on(execution, resized)

    def kill(self, execution: Execution) -> None:
        """Stop a running job."""
        if execution.agenda_number:
            self._agenda.cancel(execution.agenda_number)
        self._finish(execution, JobState.KILLED, execution.task.killed_code)

    def progress(self, execution: Execution) -> ev.Progress:
        """How far a running job has come."""
        task, done = execution.task, 0.0
        if self.malleable.has(execution):
            done = self.malleable.done(execution)
        elif self.fluid.has(execution):
            done = self.fluid.done(execution)
        elif isinstance(task, pr.Computation):
            done = self.computing.done(execution, task)
        elif isinstance(task, pr.Delay):
            done = min((self._agenda.clock - execution.task_start) / task.seconds, 1.0)
        return execution.progress(done)

    # --- tasks -----------------------------------------------------------------------------------

    def _begin_task(self, execution: Execution) -> None:
        execution.task_start = self._agenda.clock
        _BEGIN[type(execution.task)](self, execution, execution.task)

    def _compute(self, execution: Execution, task: pr.Computation) -> None:
        if self._storages:
            for host, flops in zip(execution.hosts, task.flops(len(execution.hosts)), strict=False):
                if host in self._storages and flops > LEAST_FLOPS:
                    what = f"computes on host {host}, which is for storage only"
                    raise RuleBroken(f"job {execution.job.id} {what}")
        sends = self._network is not None and task.sends_bytes
        if not (self._shared or sends or execution.io is not None):
            self.computing.begin(execution, task)
            return
        demand = self._new_demand()
        add_computation(demand, task, execution.places(), self._network)
        self._flow(execution, demand)

    def _flow(self, execution: Execution, demand: Demand) -> None:
        """Begin a task that shares hosts or links with others."""
        if execution.io is not None:
            add_io(demand, execution, self._catalog.profiles[execution.job.workload], self._network)
        self.fluid.begin(execution, demand, self._plan)

    def _add_io(self, execution: Execution, io_job: ev.IoJob) -> None:
        check_io_job(self._catalog.may_send)
        if self._network is not None:
            if not io_job.hosts:
                raise RuleBroken("no host was given for the IO job")
            check_existence(io_job.hosts, self._machines.count)
            execution.io = io_job.hosts, self._catalog.io_profile(execution.job.workload, io_job)

    def _compute_in_parallel(self, execution: Execution, task: pr.Parallel) -> None:
        executors = execution.nb_executors
        if len(task.work) != executors:
            raise RuleBroken(
                f"job {execution.job.id} has {executors} executors, "
                f"its profile {execution.task_name!r} is made for {len(task.work)}"
            )
        self._compute(execution, task)

    def _sleep(self, execution: Execution, task: pr.Delay) -> None:
        self._plan(execution, task.seconds)

    def _send(self, execution: Execution, task: pr.Send) -> None:
        self._tell(ev.JobSaid(execution.job.id, task.message))
        self._plan(execution, task.seconds)

    def _access_files(self, execution: Execution, task: pr.FileSystemAccess) -> None:
        (storage,), demand = self._storages_for(execution, task), self._new_demand()
        if self._network is not None:
            for host in execution.places():
                demand.send(self._network, host, storage, task.bytes_written)
                demand.send(self._network, storage, host, task.bytes_read)
        self._flow(execution, demand)

    def _stage(self, execution: Execution, task: pr.DataStaging) -> None:
        (source, target), demand = self._storages_for(execution, task), self._new_demand()
        if self._network is not None:
            demand.send(self._network, source, target, task.bytes_moved)
        self._flow(execution, demand)

    def _storages_for(self, execution: Execution, task: pr.Transfer) -> list[int]:
        """The storage hosts that a task uses.

        The decision maps labels to hosts. Without a mapping, the only storage host is meant, or else the one
        that is called like the label; Batsim 4 does not look for names, and Batsim 5 for nothing else.
        """
        mapping, storages = execution.storage_mapping, list(self._storages)
        if self._setup.storages_by_name:
            mapping = self._storage_names | (mapping or {})
        elif mapping is None:
            if not task.needs_mapping and len(storages) == 1:
                return storages
            mapping = self._storage_names
        for label in task.labels:
            if mapping.get(label) not in storages:
                raise RuleBroken(
                    f"job {execution.job.id} needs a `storage_mapping` to a storage host for {label!r}"
                )
        return [mapping[label] for label in task.labels]

    def _plan(self, execution: Execution, seconds: float, then: Action | None = None) -> None:
        """The task will be done in so many seconds from now, if the walltime is not reached before.

        If it will not be done but something else will happen to it, that is given.
        """
        now = self._agenda.clock
        remaining = execution.remaining - (now - execution.task_start)
        if execution.task.fits(seconds, remaining):
            execution.agenda_number = self._agenda.at(now + seconds, then or self.end_task, execution)
        else:
            execution.agenda_number = self._agenda.at(now + remaining, self._reach_walltime, execution)

    def end_task(self, execution: Execution) -> None:
        """A task is done: the next one begins, or the job is over."""
        code: int | None = execution.task.return_code
        if not code and execution.frames:
            execution.spend(self._agenda.clock - execution.task_start)
            if isinstance(execution.task, pr.Activity):
                self._stop(execution)
            code = execution.go_on(self._catalog.profiles[execution.job.workload])
            if code is None:
                self._begin_task(execution)
                return
        self._finish(execution, _FAILED if code else _SUCCESS, code or 0)

    def unnoticed(self, execution: Execution, end: float) -> float:
        """Below which time until the end of a task SimGrid does not notice that any is left."""
        if not isinstance(execution.task, pr.Activity):
            return UNNOTICED
        if self.fluid.has(execution):
            return UNNOTICED_SHARE / self.fluid.rate(execution)
        return UNNOTICED_SHARE * (end - execution.task_start)

    def _stop(self, execution: Execution) -> None:
        """The present task computes and sends no more."""
        if self.malleable.has(execution):
            self.malleable.stop(execution)
        if self.fluid.has(execution):
            self.fluid.stop(execution)
        elif not self._shared:
            self.computing.stop(execution)

    def _reach_walltime(self, execution: Execution) -> None:
        self._finish(execution, JobState.WALLTIME_REACHED, -1)

    def _finish(self, execution: Execution, state: JobState, return_code: int) -> None:
        hosts, job_id = execution.hosts, execution.job.id
        del self.running[job_id]
        if self.mail:
            self.mail.pop(job_id, None)
        self._machines.vacate(hosts, execution.nb_hosts, self._agenda.clock)
        if self._trace is not None:
            away = self._machines.away[HostState.UNAVAILABLE]
            self._trace.job_ends(job_id, hosts, self._agenda.clock, shows_kill(state, return_code), away)
        joules = -1.0
        if state is JobState.WALLTIME_REACHED and self.ends_are_heard_late and self.fluid.has(execution):
            self.fluid.linger(execution)
            self._lingering[job_id] = execution
        else:
            self._stop(execution)
        if self._states is not None:
            self._states.row()
        if self._energy is not None:
            joules = self._energy.job_ends(hosts) - execution.joules
        self._on_end(execution.job, hosts, execution.start, state, return_code, joules)

    def let_go(self, job_id: str) -> None:
        """The end of a job was heard.

        Batsim does not stop the task of a job that its walltime ends. SimGrid cancels it when the process of
        the job is over, which first sends the message about its end. Until then it uses hosts and links.
        """
        execution = self._lingering.pop(job_id, None)
        if execution is not None and self.fluid.has(execution):
            self._agenda.cancel(execution.agenda_number)
            self.fluid.stop(execution)

    # --- messages --------------------------------------------------------------------------------

    def deliver(self, job_id: str, message: str) -> None:
        """Leave a message for a job that waits or runs; who listens finds it when it looks next."""
        self.mail.setdefault(job_id, deque()).append(message)
        execution = self.running.get(job_id)
        if execution is not None and execution.listening:
            assert isinstance(execution.task, pr.Receive)
            poll = execution.task.poll_seconds
            looks = max(ceil((self._agenda.clock - execution.task_start) / poll), 1)
            if looks * poll < execution.remaining:
                execution.listening = False
                if execution.agenda_number:
                    self._agenda.cancel(execution.agenda_number)
                time = execution.task_start + looks * poll
                execution.agenda_number = self._agenda.at(time, self._find_mail, execution)

    def _receive(self, execution: Execution, task: pr.Receive) -> None:
        if self.mail.get(execution.job.id):
            self._find_mail(execution)
        elif task.timeout:
            self._follow_up(execution, task, task.timeout)
        else:
            execution.listening = True
            execution.agenda_number = 0
            if (end := self._agenda.clock + execution.remaining) != inf:
                execution.agenda_number = self._agenda.at(end, self._reach_walltime, execution)

    def _find_mail(self, execution: Execution) -> None:
        assert isinstance(execution.task, pr.Receive)
        execution.spend(self._agenda.clock - execution.task_start)
        message = self.mail[execution.job.id].popleft()
        self._follow_up(execution, execution.task, execution.task.follow_up(message))

    def _follow_up(self, execution: Execution, task: pr.Receive, name: str) -> None:
        execution.task_start = self._agenda.clock
        if not name:
            self.end_task(execution)
            return
        profiles = self._catalog.profiles[execution.job.workload]
        execution.frames += (Frame(execution.task_name, task),)
        execution.go_into(name, profiles[name], profiles)
        self._begin_task(execution)


_BEGIN: dict[type[pr.Profile], Callable[[Runner, Execution, Any], None]] = {
    pr.Delay: Runner._sleep,
    pr.Homogeneous: Runner._compute,
    pr.HomogeneousTotal: Runner._compute,
    pr.Parallel: Runner._compute_in_parallel,
    pr.Send: Runner._send,
    pr.Receive: Runner._receive,
    pr.FileSystemAccess: Runner._access_files,
    pr.DataStaging: Runner._stage,
}
