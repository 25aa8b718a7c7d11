"""The simulated world: what there is, what happens in it by itself, and what is done to it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, structs

from batsched_py.errors import EventBroken
from batsched_py.ledger.effects import Effect, RegisteredJob, RejectedJob
from batsched_py.ledger.ledger import Ledger
from batsched_py.ledger.running import ResizedJob, RunningJob
from batsched_py.ledger.waiting import Unfit
from batsched_py.outside.curve import NOTHING_KNOWN
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState, Job, JobState, as_told
from batsched_py.simulator.agenda import UNNOTICED, Action, Agenda, Outside, Submitter
from batsched_py.simulator.catalog import Catalog
from batsched_py.simulator.decision_side import Listener, Messenger
from batsched_py.simulator.energy import EnergyTrace, MachineStateTrace, Power, write_outside
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.machines import Machines, SharedMachines
from batsched_py.simulator.network.tasks import Courier, Message, Record
from batsched_py.simulator.outputs import NO_JOULES, Outputs
from batsched_py.simulator.paje import PajeTrace
from batsched_py.simulator.platform import PlatformHost
from batsched_py.simulator.runner import Runner
from batsched_py.simulator.setup import Setup


class Context(Struct):
    """The hosts, the clock, and the files that tell what happens."""

    setup: Setup
    hosts: Sequence[PlatformHost]
    agenda: Agenda
    machines: Machines
    outputs: Outputs
    energy: EnergyTrace | None
    states: MachineStateTrace | None
    record: Record | None = None
    """Of what links, hosts and storages carry, if that is asked for."""
    trace: PajeTrace | None = None
    """Of the schedule, if that is asked for."""

    @property
    def tells_nothing(self) -> bool:
        """Whether nothing is to be known of running jobs but how long they take."""
        setup, told = self.setup, self.energy or self.states or self.trace
        return not (told or setup.shares_hosts or setup.platform.storages or setup.launch_time)


def context_of(setup: Setup, outputs: Outputs) -> Context:
    """The context of a simulation that begins."""
    platform = setup.platform
    hosts = [*platform.hosts, *platform.storages]
    agenda = Agenda()
    machines = (SharedMachines if setup.shares_hosts else Machines)(
        len(platform.hosts), len(platform.storages)
    )
    return Context(
        setup,
        hosts,
        agenda,
        machines,
        outputs,
        EnergyTrace(hosts, agenda, outputs, setup.known) if setup.energy else None,
        MachineStateTrace(machines, agenda, outputs) if outputs.machine_states else None,
        Record(hosts, len(platform.storages), agenda, outputs) if outputs.links else None,
        PajeTrace([host.name for host in hosts], outputs.open_schedule_trace)
        if outputs.schedule_trace
        else None,
    )


#: Batsim stretches shorter waits for a call to this.
LEAST_CALL = 1e-5


class World:
    """Hosts, jobs and their profiles, and the side that is told what happens to them."""

    def __init__(self, setup: Setup, outputs: Outputs) -> None:
        self._setup = setup
        context = context_of(setup, outputs)
        self.agenda, self.machines, self.outputs = context.agenda, context.machines, outputs
        self._energy, self._trace = context.energy, context.trace
        settings, keep_hosts = setup.settings, _where_jobs_keep_hosts(setup, context.trace)
        self._catalog = catalog = Catalog(setup.workloads, settings, setup.may_send, keep_hosts)
        self.begins = _begins(setup, catalog)
        nb_pstates = [len(host.pstates) for host in context.hosts]
        self.ledger = Ledger(self.begins, catalog, setup.energy, nb_pstates)
        self.messenger = Messenger(self.ledger, catalog, settings.forward_profiles)
        self.listener: Listener = self.messenger
        self.news = False
        """Whether anything has happened since this was last made false."""
        self.ready = True
        """Whether the decision process is; while it thinks, it is not."""
        self.runner = Runner(context, catalog, self._tell, self._tell_end)
        self.courier: Courier | None = None
        """Carries to the master what a job says at its end, where that takes time."""
        if setup.tells_of_messages or catalog.sends_bytes:
            self._employ_courier()
        self._power: Power | None = None
        if context.energy is not None:
            send = None if self.courier is None else self._send_from
            self._power = Power(context, context.energy, self.runner, self._tell, send)
            asleep = HostSet.of(host.id for host in context.hosts if not host.computes_in(host.pstate))
            self.ledger.begin_asleep(asleep)
        self._metadata: dict[str, str] = {}
        self._acknowledged: set[str] = set()
        """Jobs that were killed since the last news."""
        self._ends_of_killed: list[Callable[[], None]] = []
        """Tell of the jobs that are being killed, where that is not told at once."""
        self._take_effect = self._ways_to_take_effect()

    def begin(self) -> None:
        """Set everything going."""
        setup, agenda = self._setup, self.agenda
        if setup.workloads:
            done = partial(self._tell_of, ev.NoMoreStaticJobs)
            send = partial(self._send_from, None)
            submitter = Submitter(setup.workloads, agenda, self._submit, done, send)
            self.ledger.is_to_come = submitter.is_to_come
            if self._energy is not None:
                submitter.begins = self._energy.first_submission
        if setup.events or setup.failures is not None:
            failures = iter(()) if setup.failures is None else setup.failures()
            done = partial(self._tell_of, ev.NoMoreExternalEvents)
            Outside(setup.events, failures, self.machines.count, agenda, self._report, done)

    def speak_in_messages(self) -> None:
        """The decision process is elsewhere, or takes its time: all must be said in messages."""
        self._catalog.speak_in_messages(self._setup.workloads)

    def end_plain(self, running: RunningJob, state: JobState, return_code: int) -> None:
        """A plain job has left its hosts."""
        job, hosts, agenda = running.job, running.hosts, self.agenda
        self.machines.vacate(hosts, running.nb_hosts, agenda.clock)
        if self.runner.mail:
            self.runner.mail.pop(job.id, None)
        self._tell_end(job, hosts, running.start, state, return_code, NO_JOULES)

    def _tell_end(
        self, job: Job, hosts: HostSet, start: float, state: JobState, return_code: int, joules: float
    ) -> None:
        """A job says that it is over, from the first of its hosts. Who was killed says nothing."""
        end = job, state, hosts, start, self.agenda.clock, joules
        if self.courier is None and not self._setup.cleaning_time:
            self._hear_end(end, return_code)
            return
        say = partial(self._hear_end, end, return_code)
        if state is JobState.KILLED:
            self._ends_of_killed.append(say)
            return
        if self.courier is not None:
            say = partial(self._send_from, next(iter(hosts)), say)
        self.runner.clean(say)

    def _hear_end(self, end: tuple[Job, JobState, HostSet, float, float, float], return_code: int) -> None:
        job_id, state = end[0].id, end[1]
        self.runner.let_go(job_id)
        self.outputs.finished((*end, self._metadata.pop(job_id, "") if self._metadata else ""))
        self.news = True
        self.listener.job_ended(job_id, state, return_code, self.agenda.now)

    def _send_from(
        self, host: int | None, arrive: Callable[[], None], then: Callable[[], None] | None = None
    ) -> None:
        """Send a message from a host, or from the master itself; without a courier it arrives at once."""
        if self.courier is None:
            arrive()
        else:
            self.courier.send(Message(host, arrive, then))

    def _employ_courier(self) -> None:
        if self.courier is None and self._setup.network is not None:
            self.courier = Courier(self._setup.network, self.runner.fluid, self.agenda)
            self.runner.ends_are_heard_late = True

    def unnoticed(self, action: Action, argument: Any, time: float) -> float:
        """Below which time until an action SimGrid does not notice that any is left."""
        if isinstance(argument, Message) and self.courier is not None and action == self.courier.arrive:
            return 0.0
        if isinstance(argument, Execution) and action == self.runner.end_task:
            return self.runner.unnoticed(argument, time)
        return UNNOTICED

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return 0.0 if self._energy is None else self._energy.meter.total()

    def end(self) -> None:
        """All is over: complete the output files."""
        if self._energy is not None:
            results = self.outputs.results
            results.consumed_joules, results.bill = self._energy.consumed_joules, self._energy.bill.sums()
        if self._setup.known is not NOTHING_KNOWN:
            write_outside(self._setup.known, self.outputs, self.outputs.results.makespan)
        if self._trace is not None:
            self._trace.complete(self.agenda.clock)
        self.outputs.complete(self.machines)

    def why_stuck(self) -> str | None:
        """Why nothing more can happen, although it should."""
        if waiting := [*self.ledger.queue, *(unfit.job for unfit in self.ledger.waiting.all(Unfit))]:
            return f"{len(waiting)} jobs wait, {waiting[0].id} first; they have to be executed or rejected"
        if held := self.ledger.holds.held:
            return f"{len(held)} jobs are held, {held[0].job.id} first: {self.ledger.holds.why(held[0])}"
        if self.runner.running:
            return f"job {next(iter(self.runner.running))} waits for a message that it was never sent"
        if self.ledger.registry.is_open:
            return "registration was never finished"
        return None

    # --- what happens ----------------------------------------------------------------------------

    def told(self) -> None:
        """What has happened so far was told."""
        self.news = False
        if self._acknowledged:
            self._acknowledged.clear()

    def _tell(self, event: ev.Event) -> None:
        event.time = self.agenda.now
        self.news = True
        self.listener.happened(event)

    def _submit(self, job: Job) -> None:
        told = job
        if not (job.submission_time.is_integer() and job.walltime.is_integer()):
            told = as_told(job)
            if told is not job:
                self.runner.exact[job.id] = job
        self.news = True
        self.listener.job_submitted(told, self.agenda.now)

    def acknowledge(self, job: Job) -> None:
        """Announce a job that the decision process has registered."""
        self.news = True
        self.messenger.announce(job, self.agenda.now)

    def _tell_of(self, kind: type[ev.Event], _: object) -> None:
        """The master tells itself that something has happened of which there is no more to say."""
        self._send_from(None, lambda: self._tell(kind()))

    def _report(self, event: ev.Event) -> None:
        """The time of an event from outside has come."""
        self._send_from(None, partial(self._occur, event))

    def _occur(self, event: ev.Event) -> None:
        """Something happens from outside. Jobs on a host that is taken away go on."""
        machines, now = self.machines, self.agenda.clock
        busy = self.runner.busy()
        unavailable = machines.away[HostState.UNAVAILABLE]
        match event:
            case ev.HostsUnavailable(hosts=hosts):
                if twice := hosts & unavailable:
                    raise EventBroken(
                        f"machine_unavailable at {now:f}: hosts {twice} are unavailable already"
                    )
                machines.turn(hosts, HostState.UNAVAILABLE, busy, now)
            case ev.HostsAvailable(hosts=hosts):
                if there := hosts - unavailable:
                    raise EventBroken(f"machine_available at {now:f}: hosts {there} are not unavailable")
                machines.turn(hosts & busy, HostState.COMPUTING, busy, now)
                idle = hosts - busy
                for state, asleep in () if self._power is None else self._power.asleep.items():
                    machines.turn(hosts & asleep, state, busy, now)
                    idle = idle - asleep
                machines.turn(idle, HostState.IDLE, busy, now)
        self._tell(structs.replace(event))

    # --- what is done ----------------------------------------------------------------------------

    def _ways_to_take_effect(self) -> dict[type[Effect], Callable[[Any], object]]:
        """What is done for each kind of decision. The others are in the ledger, or Batsim only logs them."""
        ways: dict[type[Effect], Callable[[Any], object]] = {
            RunningJob: self.runner.launch,
            RejectedJob: self._reject,
            RegisteredJob: self._register,
            ResizedJob: self.runner.resize,
            ev.KillJobs: self._kill,
            ev.CallMeLater: self._call,
            ev.CallMeAtOnce: lambda _: self._tell(ev.RequestedCall()),
            ev.SetJobMetadata: self._note,
            ev.TellJob: self._deliver,
            ev.RegisterProfile: self._register_profile,
        }
        if self._power is not None:
            ways[ev.SetHostsState] = self._power.request
            ways[ev.ChangeHostsPState] = self._power.change
            ways[ev.QueryEnergy] = lambda _: self._tell(ev.EnergyAnswer(self.drawn_joules))
        return ways

    def carry_out(self, apply: Callable[[], None], then: Callable[[], None] | None = None) -> None:
        """Carry a decision out when the message about it has arrived, and then go on."""
        self._send_from(None, apply, then)

    def apply(self, effect: Effect) -> None:
        """Do what was decided, which is in the ledger already."""
        if (take_effect := self._take_effect.get(type(effect))) is not None:
            take_effect(effect)

    def _reject(self, rejected: RejectedJob) -> None:
        job = self.runner.exact.pop(rejected.job.id, rejected.job)
        self.outputs.rejected(job, self._metadata.pop(job.id, ""))

    def _register_profile(self, decision: ev.RegisterProfile) -> None:
        if decision.profile.sends_bytes:
            self._employ_courier()

    def _register(self, registered: RegisteredJob) -> None:
        if registered.note:
            self._metadata[registered.job.id] = registered.note

    def _kill(self, decision: ev.KillJobs) -> None:
        """Kill jobs; one that ended by itself, which was not told yet, is acknowledged without progress."""
        runner, plain = self.runner, self.runner.plain
        named = [job_id for job_id in dict.fromkeys(decision.job_ids) if job_id not in self._acknowledged]
        for job_id in named:
            self.runner.stop_launching(job_id)
        killed = [runner.running[job_id] for job_id in named if job_id in runner.running]
        numbers = {running.job.id: (number, running) for number, running in plain.running()}
        plainly = [numbers[job_id] for job_id in named if job_id in numbers]
        progress = {execution.job.id: runner.progress(execution) for execution in killed}
        progress |= {running.job.id: plain.progress(running) for _, running in plainly}
        for execution in killed:
            runner.kill(execution)
        for number, running in plainly:
            self.agenda.cancel(number)
            self.end_plain(running, JobState.KILLED, self._catalog.profile_of(running.job).killed_code)
        if named:
            self._acknowledged.update(named)
            ends, self._ends_of_killed = self._ends_of_killed, []
            tell = partial(self._tell_of_killed, ends, ev.JobsKilled(named, progress))
            self.runner.clean(partial(self._send_from, None, tell))

    def _tell_of_killed(self, ends: list[Callable[[], None]], killed: ev.JobsKilled) -> None:
        for tell_end in ends:
            tell_end()
        self._tell(killed)

    def _call(self, decision: ev.CallMeLater) -> None:
        time = max(decision.at, self.agenda.clock + LEAST_CALL)
        self.agenda.at(time, partial(self._tell_of, ev.RequestedCall))

    def _note(self, decision: ev.SetJobMetadata) -> None:
        if decision.job_id not in self.ledger.unheard:
            self._metadata[decision.job_id] = decision.metadata

    def _deliver(self, decision: ev.TellJob) -> None:
        if decision.job_id not in self.ledger.unheard:
            self.runner.deliver(decision.job_id, decision.message)


def _begins(setup: Setup, catalog: Catalog) -> ev.SimulationBegins:
    """What the decision side is told first."""
    hosts, storages = setup.platform.as_protocol()
    paths = {workload.name: workload.path for workload in setup.workloads}
    speeds, switches = [host.speed for host in setup.platform.hosts], setup.platform.switches
    return ev.SimulationBegins(hosts, storages, setup.settings, paths, catalog.profiles, speeds, switches)


def _where_jobs_keep_hosts(setup: Setup, trace: PajeTrace | None) -> str:
    """Why no job may grow or shrink here, in words; nothing if jobs may."""
    if trace is not None:
        return "while a Paje trace is written"
    if setup.launch_time or setup.cleaning_time:
        return "where jobs take time to start or to clean up"
    return "where several may be on a host" if setup.settings.compute_sharing else ""
