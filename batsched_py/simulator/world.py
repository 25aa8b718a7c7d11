"""The simulated world: what there is, and what happens in it by itself."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from batsched_py.errors import RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.clock import to_tick
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState, Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.allocation import AllocationRules
from batsched_py.simulator.catalog import Catalog
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.external_events import Outside
from batsched_py.simulator.machines import Machines, SharedMachines
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.power import Power
from batsched_py.simulator.registration import Registration
from batsched_py.simulator.runner import Runner
from batsched_py.simulator.submitter import Submitter
from batsched_py.simulator.traces import EnergyTrace, MachineStateTrace, PowerStateTrace
from batsched_py.workload.model import Workload


class World:
    """Hosts, jobs and their profiles, and the events that nobody was told of yet."""

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        settings: ev.Settings,
        outputs: Outputs,
        ignore_communication: bool,
        energy: bool,
        events: Sequence[Sequence[ev.Event]],
    ) -> None:
        hosts = [*platform.hosts, *platform.storages]
        shared = settings.compute_sharing or (settings.storage_sharing and bool(platform.storages))
        self.settings = settings
        self.outputs = outputs
        self.agenda = Agenda()
        self.machines = (SharedMachines if shared else Machines)(len(platform.hosts), len(platform.storages))
        self.catalog = Catalog(workloads, settings, ignore_communication)
        self.registration = Registration(workloads, settings, self.catalog)
        self.rules = AllocationRules(self.machines, settings, self.catalog, ignore_communication)
        self.energy = EnergyTrace(Meter(hosts, self.agenda), self.agenda, outputs) if energy else None
        states = MachineStateTrace(self.machines, self.agenda, outputs) if outputs.machine_states else None
        self.runner = Runner(
            hosts,
            self.agenda,
            self.machines,
            self.catalog,
            settings.compute_sharing,
            self.energy,
            states,
            self.tell,
            self._job_is_over,
        )
        self.power = None
        if self.energy is not None:
            pstates = PowerStateTrace(hosts, self.agenda, outputs)
            self.power = Power(
                hosts,
                self.agenda,
                self.machines,
                self.runner.computing,
                pstates,
                self.energy,
                states,
                outputs.results,
                self.tell,
            )
        self.waiting: dict[str, tuple[Job, Profile]] = {}
        self.metadata: dict[str, str] = {}
        self.untold: list[ev.Event] = []
        """What has happened and the decision process was not told yet."""
        self._platform = platform
        self._workloads = workloads
        self._events = events
        self._submitter: Submitter | None = None

    def begin(self) -> ev.SimulationBegins:
        """Set everything going; what is to be said about it all."""
        if self._workloads:
            self._submitter = Submitter(self._workloads, self.agenda, self._submit, self._no_more_static_jobs)
            if self.energy is not None and self._submitter.first is not None:
                self.agenda.at(self._submitter.first, self.energy.first_submission)
        if self._events:
            Outside(
                self._events, self.machines.count, self.agenda, self._occur, self._no_more_external_events
            )
        hosts, storages = self._platform.as_protocol()
        return ev.SimulationBegins(
            hosts=hosts,
            storages=storages,
            settings=self.settings,
            workloads={workload.name: workload.path for workload in self._workloads},
            profiles=self.catalog.everything(),
            speeds=[host.speed for host in self._platform.hosts],
        )

    def end(self) -> None:
        """All is over: complete the output files."""
        if self.energy is not None:
            self.outputs.results.consumed_joules = self.energy.consumed_joules
        self.outputs.complete(self.machines)

    def tell(self, event: ev.Event) -> None:
        """Something has happened that the decision process is to hear of."""
        event.time = self.agenda.now
        self.untold.append(event)

    def announce(self, job: Job) -> None:
        """Tell that a job was submitted."""
        profile = self.catalog.get(job.workload, job.profile) if self.settings.forward_profiles else None
        self.tell(ev.JobSubmitted(as_wired(job), profile))

    def has_just_completed(self, job_id: str) -> bool:
        """Whether a job has completed and the decision process was not told yet."""
        return any(isinstance(e, ev.JobCompleted) and e.job_id == job_id for e in self.untold)

    def is_to_come(self, job_id: str) -> bool:
        """Whether a job of a workload file is yet to be submitted."""
        return self._submitter is not None and job_id in self._submitter

    def _submit(self, job: Job) -> None:
        self.waiting[job.id] = (job, self.catalog.get(job.workload, job.profile))
        self.announce(job)

    def _no_more_static_jobs(self, _: None) -> None:
        self.tell(ev.NoMoreStaticJobs())

    def _occur(self, event: ev.Event) -> None:
        """Something happens from outside. Jobs on a host that is taken away go on."""
        machines, now = self.machines, self.agenda.clock
        unavailable = machines.hosts_in(HostState.UNAVAILABLE)
        match event:
            case ev.HostsUnavailable(hosts=hosts):
                if twice := hosts & unavailable:
                    raise RuleBroken(f"machine_unavailable at {now:f}: hosts {twice} are unavailable already")
                machines.turn(hosts, HostState.UNAVAILABLE, now)
            case ev.HostsAvailable(hosts=hosts):
                if there := hosts - unavailable:
                    raise RuleBroken(f"machine_available at {now:f}: hosts {there} are not unavailable")
                busy = HostSet(self.runner.busy())
                machines.turn(hosts & busy, HostState.COMPUTING, now)
                machines.turn(hosts - busy, HostState.IDLE, now)
        self.tell(structs.replace(event))

    def _no_more_external_events(self, _: None) -> None:
        self.tell(ev.NoMoreExternalEvents())

    def _job_is_over(self, execution: Execution, state: JobState, return_code: int, joules: float) -> None:
        job, hosts = execution.job, execution.hosts
        metadata = self.metadata.pop(job.id, "")
        self.outputs.finished(job, state, hosts, execution.start, self.agenda.clock, joules, metadata)
        self.catalog.job_is_over(job)
        self.tell(ev.JobCompleted(job.id, state, hosts, return_code))


def as_wired(job: Job) -> Job:
    """The job as a reader of the wire sees it, its numbers rounded to six decimals."""
    submission, walltime = (
        to_tick(job.submission_time),
        to_tick(job.walltime) if job.has_walltime else job.walltime,
    )
    if submission == job.submission_time and walltime == job.walltime:
        return job
    return structs.replace(job, submission_time=submission, walltime=walltime)
