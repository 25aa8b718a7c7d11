"""The one account of a machine and its jobs, with every rule of Batsim.

Batsim answers a bad decision by dying without a word. A ledger tells which rule was broken, before anything
leaves. A simulator owns one. A policy in the same process looks at that same ledger;
one in another process has its own, which follows the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from batsched_py.errors import RuleBroken
from batsched_py.ledger import rules
from batsched_py.ledger.free import FreeHosts
from batsched_py.ledger.holds import Holds
from batsched_py.ledger.profile import Reservation
from batsched_py.ledger.queue import Condition, JobQueue, Score
from batsched_py.ledger.registry import Registry
from batsched_py.ledger.running import ResizedJob, Running, RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol.dependencies import depends
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.sizes import malleable_of, shaped

if TYPE_CHECKING:
    from batsched_py.ledger.free_nodes import NodeAccount
    from batsched_py.ledger.free_nodes import NodeReservation as NodeReservation

NOWHERE = HostSet()


class RejectedJob(Struct, frozen=True, gc=False, eq=False):
    """A job that was refused for good."""

    job: Job
    time: float


class RegisteredJob(Struct, frozen=True, gc=False, eq=False):
    """A job that was made known while the simulation runs, and waits."""

    job: Job
    time: float
    profile: Profile | None = None
    """What it does, where that was not known before."""
    note: str = ""
    """What was noted about it."""


#: What is to be carried out: a start, a rejection, a registration, a resize, or any other decision.
Effect = RunningJob | RejectedJob | RegisteredJob | ResizedJob | ev.Event


class Ledger:
    """Who waits, who runs where, and which hosts are free, away, asleep or switching.

    Each method that takes a decision down checks it first, and raises :class:`RuleBroken` with the rule.
    """

    def __init__(
        self,
        begins: ev.SimulationBegins,
        registry: Registry | None = None,
        energy: bool = True,
        nb_pstates: list[int] | None = None,
    ) -> None:
        self.hosts = HostSet.range(len(begins.hosts))
        """Those that compute."""
        self.nb_hosts = len(begins.hosts)
        self.queue = JobQueue()
        self.unfit: dict[str, Job] = {}
        """Jobs that wait and ask for no host, or for more than there are."""
        self.deferred: dict[str, tuple[Job, float]] = {}
        """Jobs that wait and are kept from the queue for a while, and how long each is expected to run."""
        self.running = Running()
        self.free = FreeHosts(self.hosts)
        self.unavailable = NOWHERE
        """The hosts that were taken away, whatever runs on them."""
        self.all_available = True
        """Whether there are none of these."""
        self.asleep = NOWHERE
        """The hosts that sleep, or slept when they began to switch."""
        self.switching = NOWHERE
        """The hosts that are on their way to another power state."""
        self._nb_changes = 0
        """How often anything but a submission has happened."""
        self._nb_settled_changes = -1
        self._tried: tuple[Job | None, int, int, int] = (None, 0, 0, 0)
        """Whose reservation all jobs were last tried beside: after how many changes, starts and arrivals."""
        self.nodes: NodeAccount | None = None
        """What jobs have of nodes, if the machine has any."""
        self.holds: Holds | None = None
        """Who waits for other jobs, where somebody looks after them."""
        self.registry = Registry(begins.profiles, begins.settings) if registry is None else registry
        self.estimate: Callable[[Job], float] = attrgetter("walltime")
        """How long a job is expected to run that is submitted."""
        self.is_to_come: Callable[[str], bool] = _nobody
        """Whether a job is known that was not submitted yet; a simulator can tell."""
        self.unheard: set[str] = set()
        """The jobs that are over without the decision process having heard so; it may still name them."""
        self._machines = begins.hosts + begins.storages
        self._energy = energy
        self._nb_pstates = nb_pstates
        storages = HostSet.range(len(self._machines)) - self.hosts
        self._shared = (self.hosts if begins.settings.compute_sharing else NOWHERE) | (
            storages if begins.settings.storage_sharing else NOWHERE
        )
        self._exclusive = not (begins.storages or begins.settings.compute_sharing)
        self._ended = False

    @property
    def nb_machines(self) -> int:
        """All hosts, those for storage included."""
        return len(self._machines)

    def have_nodes(self, nodes: NodeAccount) -> None:
        """The hosts are cores of nodes; this is said before anything happens."""
        self.nodes, self.free = nodes, nodes.free

    def hold_jobs(self, remembers_ends: bool) -> Holds:
        """From now on, jobs that wait for others are held; this is said before anything happens."""
        self.holds = Holds(self._active, remembers_ends)
        return self.holds

    def _active(self) -> Iterator[Job]:
        """The jobs that are submitted and not over."""
        yield from self.unfit.values()
        for running in self.running:
            yield running.job
        yield from self.queue
        yield from [job for job, _ in self.deferred.values()]
        if self.holds is not None:
            yield from [held.job for held in self.holds.held.values()]

    def could_grant(self, job: Job) -> bool:
        """Whether the machine could ever give a job what it asks for."""
        return 0 < job.size <= self.nb_hosts and (self.nodes is None or self.nodes.could_grant(job))

    def fits(self, job: Job) -> bool:
        """Whether what a job asks for is free now."""
        return 0 < job.size <= self.free.count and (self.nodes is None or self.nodes.fits(job))

    @property
    def quiet(self) -> bool:
        """Whether nothing but submissions has happened since :meth:`settle` was last called."""
        return self._nb_changes == self._nb_settled_changes

    def note_change(self) -> None:
        """Something has changed that waiting jobs may profit from."""
        self._nb_changes += 1

    def reservation(self, job: Job, now: float) -> Reservation:
        """When a job can start at the latest, if the running ones end as expected."""
        if self.nodes is not None:
            return self.nodes.reservation(job, now, self.running, self.unavailable)
        extra = self.free.count - job.size
        if job.size <= 0:
            return Reservation(job, now, inf, 0)
        if extra >= 0:
            return Reservation(job, now, now, extra)
        for end, _, running in self.running._by_end:
            extra += running.nb_hosts if self.all_available else self.usable(running)
            if extra >= 0:
                return Reservation(job, now, end if end > now else now, extra)
        return Reservation(job, now, inf, 0)

    def usable(self, running: RunningJob) -> int:
        """How many hosts will be free when a job ends."""
        return running.nb_hosts if self.all_available else len(running.hosts - self.unavailable)

    def fitting(
        self, condition: Condition | None, score: Score | None, only_new: bool, beside: Reservation | None
    ) -> Iterator[Job]:
        """The waiting jobs that fit, meet a condition and do not delay a reservation, one after another.

        If nothing has happened but submissions since all were tried beside a reservation, those that would
        have delayed it still would, and are not looked at again.
        """
        queue, nb_changes = self.queue, self._nb_changes
        behind = queue._nb_settled if only_new else 0
        if beside is None:
            return self._search(behind, condition, score, beside)
        tried = (beside.job, nb_changes, self.running._count)
        if self._tried[:3] == tried:
            behind = max(behind, self._tried[3])
        nb_arrived = queue._nb_arrived
        found = self._search(behind, condition, score, beside)
        return self._noting(found, beside.job, nb_changes, nb_arrived) if condition is None else found

    def _search(
        self, behind: int, condition: Condition | None, score: Score | None, beside: Reservation | None
    ) -> Iterator[Job]:
        if self.nodes is None:
            return self.queue._search(self.free, behind, condition, score, beside)
        found = self.queue._search(self.free, behind, None, score, None)
        return self._placing(self.nodes, found, condition, beside)

    def _noting(self, found: Iterator[Job], job: Job, nb_changes: int, nb_arrived: int) -> Iterator[Job]:
        yield from found
        self._tried = (job, nb_changes, self.running._count, nb_arrived)

    def _placing(
        self,
        nodes: NodeAccount,
        found: Iterator[Job] | None,
        condition: Condition | None,
        beside: Reservation | None,
    ) -> Iterator[Job]:
        """Those of the jobs for which there is a place; each goes there if it is started at once."""
        reservation = cast("NodeReservation | None", beside)
        if reservation is not None and getattr(reservation, "account", None) is not nodes:
            raise ValueError("the reservation is not of this simulation")
        for job in found or ():
            estimate = self.queue.estimate(job)
            placement = nodes.find(job, estimate, reservation)
            if placement is None:
                continue
            if condition is None or (condition(job.size, estimate) and job in self.queue):
                nodes.choose(job, placement)
                try:
                    yield job
                finally:
                    nodes.choose(job, None)

    def begin_asleep(self, hosts: HostSet) -> None:
        """These hosts sleep from the beginning."""
        self.asleep = hosts
        self.free.take(self.free.overlap(hosts))

    # --- what happens ----------------------------------------------------------------------------

    def submit(self, job: Job) -> bool:
        """A job waits; whether it is in the queue.

        One that no state of the machine could ever run is in no policy's way, and neither is one that is
        held until other jobs are over.
        """
        holds = self.holds
        if holds is not None:
            holds.submitted(job)
        if self.registry.collects:
            self.registry.keep(job)
        if not self.could_grant(job):
            self.unfit[job.id] = job
        elif holds is None or not (depends(job) and holds.hold(job)):
            self.queue._append(job, self.estimate(job))
            return True
        return False

    def join(self, job: Job) -> None:
        """A job that was held joins the queue."""
        self.queue._append(job, self.estimate(job))

    def defer(self, job: Job) -> None:
        """A waiting job is kept from the queue."""
        self.deferred[job.id] = job, self.queue._discard(job.id)

    def resume(self, job_id: str) -> None:
        """A job that was kept from the queue joins it again, at its end."""
        self.queue._append(*self.deferred.pop(job_id))

    def release(self, job_id: str) -> RunningJob | None:
        """A job has left its hosts, which are free again, except those that were taken away meanwhile."""
        running = self.running._pop(job_id)
        if running is None:
            return None
        self._nb_changes += 1
        self.queue._epoch += 1
        hosts = running.hosts
        if self.nodes is not None:
            hosts = hosts | self.nodes.ended(running.job)
        if not (self._exclusive and self.all_available):
            hosts = self._without_jobs(hosts - self.unavailable)
        self.free.give(hosts)
        if self.registry.collects:
            self.registry.job_is_over(running.job)
        return running

    def take_away(self, hosts: HostSet) -> None:
        """Hosts became unavailable."""
        self._nb_changes += 1
        self.free.take(self.free.overlap(hosts))
        self.unavailable = self.unavailable | hosts
        self.all_available = False

    def give_back(self, hosts: HostSet) -> None:
        """Hosts became available again; those with a job on them are free when it ends."""
        self._nb_changes += 1
        self.unavailable = self.unavailable - hosts
        self.all_available = not self.unavailable
        self._free_idle(hosts - self.asleep - self.switching)

    def switched(self, hosts: HostSet, pstate: int) -> None:
        """Hosts have reached a power state: those that compute in it are free again."""
        self._nb_changes += 1
        asleep = HostSet.of(host for host in hosts if pstate in self._sleep_pstates[host])
        self.switching = self.switching - hosts
        self.asleep = self.asleep - hosts | asleep
        self._free_idle(hosts - asleep - self.unavailable)

    def learn(self, event: ev.Event) -> None:
        """Something has happened, as a simulator tells it."""
        match event:
            case ev.JobSubmitted(job=job):
                self.registry.meet([job.id])
                self.submit(job)
            case ev.JobCompleted(job_id=job_id):
                self.release(job_id)
            case ev.HostsUnavailable(hosts=hosts):
                self.take_away(hosts)
            case ev.HostsAvailable(hosts=hosts):
                self.give_back(hosts)
            case ev.HostsStateChanged(hosts=hosts, pstate=pstate):
                self.switched(hosts, pstate)
            case ev.SimulationEnds():
                self._ended = True

    def busy(self) -> HostSet:
        """The hosts that run jobs, or that an exclusive job keeps others from."""
        mask = 0 if self.nodes is None else self.nodes.blocked().mask
        for running in self.running:
            mask |= running.hosts.mask
        return HostSet(mask)

    def settle(self) -> None:
        """What has happened so far is no news any more."""
        self._nb_settled_changes = self._nb_changes
        self.queue._settle()

    def _free_idle(self, hosts: HostSet) -> None:
        idle = self._without_jobs(hosts)
        self.queue._epoch += 1
        self.free.give(idle - self.free.overlap(idle))

    def _without_jobs(self, hosts: HostSet) -> HostSet:
        """Those of the hosts that compute and have no job."""
        return (hosts & self.hosts) - self.busy()

    # --- what is decided -------------------------------------------------------------------------

    def start(self, job: Job, hosts: HostSet | None, now: float) -> RunningJob:
        """A waiting job runs, on these hosts or on the free ones with the lowest numbers."""
        self._check_not_ended()
        job, free = self._waiting(job.id), self.free
        size = job.size
        if hosts is None and self.nodes is not None:
            hosts = self.nodes.hosts_for(job) or free.hosts().lowest(size)
        if hosts is not None or not 0 < size <= free.count or self.registry.for_files_only or self.deferred:
            return self._run(
                ev.ExecuteJob(job.id, free.hosts().lowest(size) if hosts is None else hosts), now
            )
        if self.holds is not None:
            self.holds.started(job, now)
        return self.running._add(job, free.take_lowest(size), now, self.queue._discard(job.id), size)

    def execute(self, decision: ev.ExecuteJob, now: float) -> RunningJob:
        """A waiting job runs as the decision says."""
        running = self._run(decision, now)
        force_setattr(running, "decision", decision)
        return running

    def _run(self, decision: ev.ExecuteJob, now: float) -> RunningJob:
        job, hosts = self._waiting(decision.job_id), decision.hosts
        self._check_allocation(decision, job)
        if hosts not in self.free:
            self._check_sharing(hosts)
        shape = job if self.nodes is None else shaped(job, len(hosts))
        placement = None if self.nodes is None else self.nodes.check(shape, hosts)
        self.free.take(hosts if hosts in self.free else self.free.overlap(hosts))
        if self.nodes is not None and placement is not None:
            self.nodes.started(shape, placement)
        if self.holds is not None:
            self.holds.started(job, now)
        return self.running._add(job, hosts, now, self._stop_waiting(job), len(hosts))

    def _check_allocation(self, decision: ev.ExecuteJob, job: Job) -> None:
        malleable = malleable_of(job)
        rules.check_allocation(
            decision, job, self.nb_machines, self._is_moldable(job) or malleable is not None
        )
        if malleable is not None:
            rules.check_malleable_size(job, malleable, len(decision.hosts))
        for_files_only = self.registry.for_files_only
        if for_files_only and (job.workload, job.profile) in for_files_only:
            raise RuleBroken(
                f"profile {job.profile!r} was registered while the simulation ran; Batsim runs one of its "
                "kind from a workload file only"
            )

    def _check_sharing(self, hosts: HostSet) -> None:
        """Some of these hosts are not free: each must run jobs, and may run more than one."""
        if away := hosts & self.unavailable:
            raise RuleBroken(f"hosts {away} are unavailable")
        if asleep := hosts & (self.asleep | self.switching):
            raise RuleBroken(f"hosts {asleep} sleep or are switching their power state")
        if taken := (hosts & self.busy()) - self._shared:
            raise RuleBroken(f"hosts {taken} are busy and may not be shared")

    def resize(self, job_id: str, hosts: HostSet, now: float) -> ResizedJob:
        """A malleable job goes on with these hosts; those that are new to it must be free."""
        self._check_not_ended()
        running = rules.check_resize(self.running.get(job_id), len(hosts))
        before, nodes = running.hosts, self.nodes
        own = before if nodes is None else before | nodes.blocked_by(job_id)
        rules.check_existence(hosts, self.nb_machines)
        if (taken := hosts - own) not in self.free:
            self._check_sharing(taken)
            raise RuleBroken(f"hosts {taken - self.free.overlap(taken)} are not free")
        placement = None if nodes is None else nodes.check_resize(running, hosts)
        self._nb_changes += 1
        self.free.take(taken)
        self.running._resize(job_id, hosts)
        if left := own - hosts:
            self.queue._epoch += 1
            self.free.give(left - self.unavailable)
        if nodes is not None and placement is not None:
            nodes.resized(running.job, placement)
        return ResizedJob(running.job, before, hosts, now)

    def reject(self, job_id: str, now: float) -> RejectedJob:
        """A waiting job is refused for good."""
        job = self._held(job_id) or self._waiting(job_id)
        self._nb_changes += 1
        if self._held(job_id) is None:
            self._stop_waiting(job)
        if self.holds is not None:
            self.holds.over(job, now, success=False)
        if self.registry.collects:
            self.registry.job_is_over(job)
        return RejectedJob(job, now)

    def kill(self, job_ids: list[str]) -> None:
        """Running jobs are to stop; they run until they are heard to have ended."""
        rules.check_kill(job_ids, lambda id: id in self.running or id in self.unheard, self._is_waiting)

    def call(self, at: float, now: float) -> None:
        """A call is asked for."""
        rules.check_call(at, now)

    def register(self, job: Job) -> None:
        """A job is made known that is in no workload file; it waits."""
        self.registry.add_job(job)
        self.submit(job)

    def switch(self, hosts: HostSet, pstate: int, at_once: bool = False) -> None:
        """Hosts go over to a power state; until they are there, they are not free.

        They do so ``at_once`` where a simulator lets them; then even from one sleeping state to another.
        """
        if not self._energy:
            rules.refuse_without_energy(ev.SetHostsState(hosts, pstate))
        if not hosts:
            raise RuleBroken("no host was given")
        rules.check_existence(hosts, self.nb_machines)
        for running in self.running:
            if busy := hosts & running.hosts:
                raise RuleBroken(f"hosts {busy} run job {running.job.id} and cannot change their power state")
        if switching := hosts & self.switching:
            raise RuleBroken(f"hosts {switching} are switching their power state already")
        for host in hosts:
            self._check_pstate(host, pstate, at_once)
        self._nb_changes += 1
        self.free.take(self.free.overlap(hosts))
        self.switching = self.switching | hosts

    def _check_pstate(self, host: int, pstate: int, at_once: bool) -> None:
        states = self._sleep_pstates[host]
        if pstate < 0 or (self._nb_pstates is not None and pstate >= self._nb_pstates[host]):
            raise RuleBroken(f"host {host} has no power state {pstate}")
        if any(pstate in ways for ways in states.values()):
            raise RuleBroken(f"host {host} only passes through power state {pstate}")
        if pstate in states and host in self.asleep and not at_once:
            raise RuleBroken(f"host {host} sleeps already; it can only wake up")

    def note(self, job_id: str, text: str) -> None:
        """A note is left on a job."""
        rules.check_note(text)
        self.tell(job_id)

    def tell(self, job_id: str) -> None:
        """A job is told something."""
        if not (
            job_id in self.running
            or self._is_waiting(job_id)
            or job_id in self.unheard
            or self.is_to_come(job_id)
        ):
            raise RuleBroken(f"job {job_id} is unknown or has completed")

    def query_energy(self, query: ev.QueryEnergy) -> None:
        """The energy is asked for."""
        if not self._energy:
            rules.refuse_without_energy(query)

    def _is_waiting(self, job_id: str) -> bool:
        waits = self.queue.get(job_id) is not None or job_id in self.unfit or job_id in self.deferred
        return waits or self._held(job_id) is not None

    def _held(self, job_id: str) -> Job | None:
        """A job that waits for others, if it does."""
        held = None if self.holds is None else self.holds.held.get(job_id)
        return None if held is None else held.job

    def _waiting(self, job_id: str) -> Job:
        job = self.queue.get(job_id) or self.unfit.get(job_id)
        if job is None and job_id in self.deferred:
            job = self.deferred[job_id][0]
        if job is None:
            raise RuleBroken(self._why_not_waiting(job_id))
        return job

    def _stop_waiting(self, job: Job) -> float:
        """A job waits no longer; how long it is expected to run."""
        if deferred := self.deferred.pop(job.id, None):
            return deferred[1]
        return job.walltime if self.unfit.pop(job.id, None) else self.queue._discard(job.id)

    def _why_not_waiting(self, job_id: str) -> str:
        if self._held(job_id) is not None:
            return "the job is held: it waits for other jobs, and is not in the queue"
        return rules.why_not_waiting(job_id, job_id in self.running)

    def _is_moldable(self, job: Job) -> bool:
        profiles = self.registry.profiles.get(job.workload, {})
        profile = profiles.get(job.profile)
        return profile is not None and profile.is_moldable(profiles)

    @cached_property
    def _sleep_pstates(self) -> list[dict[int, tuple[int, int]]]:
        return [host.sleep_pstates for host in self._machines]

    # --- what is decided, as events --------------------------------------------------------------

    def decide(self, decision: ev.Event, now: float) -> Effect:
        """Take any decision down; what is then to be carried out."""
        self._check_not_ended()
        take_down = DECISIONS.get(type(decision))
        if take_down is None:
            rules.refuse_without_energy(decision)
        assert take_down is not None
        effect = take_down(self, decision, now)
        return decision if effect is None else effect

    def _check_not_ended(self) -> None:
        if self._ended:
            rules.refuse_after_the_end()

    def follow(self, reply: ev.Message, now: float) -> None:
        """Take all decisions of a reply down, which was asked for at ``now``."""
        time = now
        self.registry.next_reply()
        for decision in reply.events:
            try:
                if decision.time < time:
                    raise RuleBroken(f"at {decision.time:g}, before {time:g}; decisions go forward")
                if decision.time > reply.now:
                    raise RuleBroken(f"at {decision.time:g}, after the reply's own time {reply.now:g}")
                time = decision.time
                self.decide(decision, time)
            except RuleBroken as broken:
                raise RuleBroken(f"{describe(decision)}: {broken}") from None


def _nobody(job_id: str) -> bool:
    return False


def describe(decision: ev.Event) -> str:
    """What is decided about which job."""
    name = type(decision).__name__
    match decision:
        case ev.RegisterJob(job=job):
            return f"{name} {job.id}"
        case ev.ExecuteJob() | ev.RejectJob() | ev.SetJobMetadata():
            return f"{name} {decision.job_id}"
        case _:
            return name


#: How each kind of decision is taken down. Nothing can be wrong with those that give nothing.
DECISIONS: dict[type[ev.Event], Callable[[Ledger, Any, float], Effect | None]] = {
    ev.ExecuteJob: lambda ledger, e, now: ledger.execute(e, now),
    ev.RejectJob: lambda ledger, e, now: ledger.reject(e.job_id, now),
    ev.KillJobs: lambda ledger, e, now: ledger.kill(e.job_ids),
    ev.CallMeLater: lambda ledger, e, now: ledger.call(e.at, now),
    ev.CallMeAtOnce: lambda ledger, e, now: None,
    ev.RegisterProfile: lambda ledger, e, now: ledger.registry.add_profile(e.workload, e.name, e.profile),
    ev.RegisterJob: lambda ledger, e, now: ledger.register(e.job),
    ev.RegistrationFinished: lambda ledger, e, now: ledger.registry.finish(),
    ev.ContinueRegistration: lambda ledger, e, now: ledger.registry.reopen(),
    ev.SetHostsState: lambda ledger, e, now: ledger.switch(e.hosts, e.pstate),
    ev.ChangeHostsPState: lambda ledger, e, now: ledger.switch(e.hosts, e.pstate, at_once=True),
    ev.SetJobMetadata: lambda ledger, e, now: ledger.note(e.job_id, e.metadata),
    ev.QueryEnergy: lambda ledger, e, now: ledger.query_energy(e),
    ev.TellJob: lambda ledger, e, now: ledger.tell(e.job_id),
    ev.ChangeJobState: lambda ledger, e, now: rules.refuse_without_energy(e),
    ev.WaitingTimeAnswer: lambda ledger, e, now: None,
}
