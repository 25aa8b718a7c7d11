"""The one account of a machine and its jobs, with every rule of Batsim.

Batsim answers a bad decision by dying without a word. A ledger tells which rule was broken, before anything
leaves. A simulator owns one. A policy in the same process looks at that same ledger;
one in another process has its own, which follows the conversation.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import force_setattr

from batsched_py.errors import RuleBroken
from batsched_py.ledger import rules
from batsched_py.ledger.effects import Effect, RejectedJob, describe
from batsched_py.ledger.free import FreeHosts
from batsched_py.ledger.holds import Holds
from batsched_py.ledger.profile import Ahead, Reservation
from batsched_py.ledger.queue import Condition, Score
from batsched_py.ledger.registry import Registry
from batsched_py.ledger.running import ResizedJob, Running, RunningJob
from batsched_py.ledger.states import HostStates
from batsched_py.ledger.waiting import Apart, Deferred, Held, Unfit, WaitingJobs
from batsched_py.protocol import events as ev
from batsched_py.protocol.dependencies import depends
from batsched_py.protocol.hosts import NOWHERE, HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.sizes import malleable_of, shaped


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
        machines = begins.hosts + begins.storages
        self.hosts = HostSet.range(len(begins.hosts))
        """Those that compute."""
        self.nb_hosts = len(begins.hosts)
        self.nb_machines = len(machines)
        """All hosts, those for storage included."""
        self.waiting = WaitingJobs()
        self.queue = self.waiting.queue
        """Those of the waiting jobs that policies see."""
        self.running = Running()
        self.free = FreeHosts(self.hosts)
        self.states = HostStates(machines, energy, nb_pstates)
        self.holds = Holds(self.waiting, self._active)
        self.registry = Registry(begins.profiles, begins.settings) if registry is None else registry
        self.estimate: Callable[[Job], float] = attrgetter("walltime")
        """How long a job is expected to run that is submitted."""
        self.is_to_come: Callable[[str], bool] = _nobody
        """Whether a job is known that was not submitted yet; a simulator can tell."""
        self.unheard: set[str] = set()
        """The jobs that are over without the decision process having heard so; it may still name them."""
        self._nb_changes = 0
        """How often anything but a submission has happened."""
        self._nb_settled_changes = -1
        self._tried: tuple[Job | None, int, int, int] = (None, 0, 0, 0)
        """Whose reservation all jobs were last tried beside: after how many changes, starts and arrivals."""
        storages = HostSet.range(len(machines)) - self.hosts
        self._shared = (self.hosts if begins.settings.compute_sharing else NOWHERE) | (
            storages if begins.settings.storage_sharing else NOWHERE
        )
        self._exclusive = not (begins.storages or begins.settings.compute_sharing)
        self._ended = False

    def _active(self) -> Iterator[Job]:
        """The jobs that are submitted and not over."""
        yield from [unfit.job for unfit in self.waiting.all(Unfit)]
        yield from [running.job for running in self.running]
        yield from self.queue
        yield from [deferred.job for deferred in self.waiting.all(Deferred)]
        yield from [held.job for held in self.waiting.all(Held)]

    @property
    def quiet(self) -> bool:
        """Whether nothing but submissions has happened since :meth:`settle` was last called."""
        return self._nb_changes == self._nb_settled_changes

    def note_change(self) -> None:
        """Something has changed that waiting jobs may profit from."""
        self._nb_changes += 1

    def settle(self) -> None:
        """What has happened so far is no news any more."""
        self._nb_settled_changes = self._nb_changes
        self.queue._settle()

    def reservation(
        self,
        job: Job,
        now: float,
        to_wake: HostSet = NOWHERE,
        limits: Sequence[Ahead] = (),
        all_ends: bool = False,
    ) -> Reservation:
        """When a job can start at the latest, if the running ones end as expected."""
        unavailable = self.states.unavailable
        return self.free.reservation(job, now, self.running, unavailable, to_wake, limits, all_ends)

    def fitting(
        self,
        condition: Condition | None,
        score: Score | None,
        only_new: bool,
        beside: Reservation | None,
        all_ends: bool = False,
    ) -> Iterator[Job]:
        """The waiting jobs that fit, meet a condition and do not delay a reservation, one after another.

        If nothing has happened but submissions since all were tried beside a reservation, those that would
        have delayed it still would, and are not looked at again. Not so with ``all_ends`` where jobs run on
        after their expected ends: the shadow time is now, and as time goes by more of them count.
        """
        queue, nb_changes = self.queue, self._nb_changes
        behind = queue._nb_settled if only_new else 0
        if beside is None:
            return self.free.search(queue, behind, condition, score, beside)
        tried = (beside.job, nb_changes, self.running._count)
        if self._tried[:3] == tried and not (all_ends and beside.shadow_time <= beside.now):
            behind = max(behind, self._tried[3])
        nb_arrived = queue._nb_arrived
        found = self.free.search(queue, behind, condition, score, beside)
        return self._noting(found, beside.job, nb_changes, nb_arrived) if condition is None else found

    def _noting(self, found: Iterator[Job], job: Job, nb_changes: int, nb_arrived: int) -> Iterator[Job]:
        yield from found
        self._tried = (job, nb_changes, self.running._count, nb_arrived)

    # --- what happens ----------------------------------------------------------------------------

    def submit(self, job: Job) -> Apart | None:
        """A job waits, in the queue or apart from it.

        One that no state of the machine could ever run is in no policy's way, and neither is one that is
        held until other jobs are over.
        """
        self.holds.submitted(job)
        if self.registry.collects:
            self.registry.keep(job)
        if not self.free.could_grant(job):
            return self.waiting.set_apart(Unfit(job))
        if depends(job) and (held := self.holds.hold(job)) is not None:
            return held
        self.queue._append(job, self.estimate(job))
        return None

    def join(self, job: Job) -> None:
        """A job that was held joins the queue."""
        self.queue._append(job, self.estimate(job))

    def release(self, job_id: str) -> RunningJob | None:
        """A job has left its hosts, which are free again, except those that were taken away meanwhile."""
        running = self.running._pop(job_id)
        if running is None:
            return None
        self._nb_changes += 1
        self.queue._epoch += 1
        hosts, unavailable = running.hosts, self.states.unavailable
        if (blocked := self.free.ended(running.job)) is not NOWHERE:
            hosts = hosts | blocked
        if unavailable is not NOWHERE or not self._exclusive:
            hosts = self._without_jobs(hosts - unavailable)
        self.free.give(hosts)
        if self.registry.collects:
            self.registry.job_is_over(running.job)
        return running

    def begin_asleep(self, hosts: HostSet) -> None:
        """These hosts sleep from the beginning."""
        self.states.asleep = hosts
        self.free.take(self.free.overlap(hosts))

    def take_away(self, hosts: HostSet) -> None:
        """Hosts became unavailable."""
        self._nb_changes += 1
        self.free.take(self.free.overlap(hosts))
        self.states.unavailable = self.states.unavailable | hosts

    def give_back(self, hosts: HostSet) -> None:
        """Hosts became available again; those with a job on them are free when it ends."""
        self._nb_changes += 1
        states = self.states
        states.unavailable = states.unavailable - hosts
        self._free_idle(hosts - states.asleep - states.switching)

    def switched(self, hosts: HostSet, pstate: int) -> None:
        """Hosts have reached a power state: those that compute in it are free again."""
        self._nb_changes += 1
        self._free_idle(self.states.switched(hosts, pstate) - self.states.unavailable)

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
        mask = self.free.blocked().mask
        for running in self.running:
            mask |= running.hosts.mask
        return HostSet(mask)

    def _free_idle(self, hosts: HostSet) -> None:
        idle = self._without_jobs(hosts)
        self.queue._epoch += 1
        self.free.give(idle - self.free.overlap(idle))

    def _without_jobs(self, hosts: HostSet) -> HostSet:
        """Those of the hosts that compute and have no job."""
        return (hosts & self.hosts) - self.busy()

    # --- what is decided -------------------------------------------------------------------------

    def start(self, job: Job, hosts: HostSet | None, now: float) -> RunningJob:
        """A waiting job runs, on these hosts or on free ones that are chosen for it."""
        self._check_not_ended()
        waiting, free = self.queue.get(job.id), self.free
        if waiting is None or hosts is not None or free.selection is not None or self.registry.for_files_only:
            job = self._waiting(job.id)
            return self._run(ev.ExecuteJob(job.id, free.hosts_for(job) if hosts is None else hosts), now)
        size = waiting.size
        if not 0 < size <= free.count:
            return self._run(ev.ExecuteJob(job.id, free.hosts_for(waiting)), now)
        self.holds.started(waiting, now)
        return self.running._add(waiting, free.take_lowest(size), now, self.queue._discard(job.id), size)

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
        shape = shaped(job, len(hosts))
        place = self.free.check(shape, hosts)
        self.free.take(hosts if hosts in self.free else self.free.overlap(hosts))
        self.free.started(shape, place)
        self.holds.started(job, now)
        return self.running._add(job, hosts, now, self.waiting.leave(job), len(hosts))

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
        self.states.check_usable(hosts)
        if taken := (hosts & self.busy()) - self._shared:
            raise RuleBroken(f"hosts {taken} are busy and may not be shared")

    def resize(self, job_id: str, hosts: HostSet, now: float) -> ResizedJob:
        """A malleable job goes on with these hosts; those that are new to it must be free."""
        self._check_not_ended()
        running = rules.check_resize(self.running.get(job_id), len(hosts))
        before = running.hosts
        own = before | self.free.blocked(job_id)
        rules.check_existence(hosts, self.nb_machines)
        if (taken := hosts - own) not in self.free:
            self._check_sharing(taken)
            raise RuleBroken(f"hosts {taken - self.free.overlap(taken)} are not free")
        place = self.free.check_resize(running, hosts)
        self._nb_changes += 1
        self.free.take(taken)
        self.running._resize(job_id, hosts)
        if left := own - hosts:
            self.queue._epoch += 1
            self.free.give(left - self.states.unavailable)
        self.free.resized(running.job, place)
        return ResizedJob(running.job, before, hosts, now)

    def reject(self, job_id: str, now: float) -> RejectedJob:
        """A waiting job is refused for good."""
        job = self.waiting.get(job_id) or self._waiting(job_id)
        self._nb_changes += 1
        self.waiting.leave(job)
        self.holds.over(job, now, success=False)
        if self.registry.collects:
            self.registry.job_is_over(job)
        return RejectedJob(job, now)

    def kill(self, job_ids: list[str]) -> None:
        """Running jobs are to stop; they run until they are heard to have ended."""
        rules.check_kill(
            job_ids, lambda id: id in self.running or id in self.unheard, self.waiting.__contains__
        )

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
        self.states.check_energy(ev.SetHostsState(hosts, pstate))
        if not hosts:
            raise RuleBroken("no host was given")
        rules.check_existence(hosts, self.nb_machines)
        awake = hosts - self.states.asleep
        for running in () if awake in self.free else self.running:
            if busy := awake & running.hosts:
                raise RuleBroken(f"hosts {busy} run job {running.job.id} and cannot change their power state")
        self.states.check_switch(hosts, pstate, at_once)
        self._nb_changes += 1
        self.free.take(self.free.overlap(hosts))
        self.states.switching = self.states.switching | hosts

    def note(self, job_id: str, text: str) -> None:
        """A note is left on a job."""
        rules.check_note(text)
        self.tell(job_id)

    def tell(self, job_id: str) -> None:
        """A job is told something."""
        if not (
            job_id in self.running
            or job_id in self.waiting
            or job_id in self.unheard
            or self.is_to_come(job_id)
        ):
            raise RuleBroken(f"job {job_id} is unknown or has completed")

    def _waiting(self, job_id: str) -> Job:
        """The waiting job of this name, which may be started."""
        job = self.queue.get(job_id)
        if job is None:
            if self.waiting.is_held(job_id):
                raise RuleBroken(rules.HELD)
            job = self.waiting.get(job_id)
        if job is None:
            raise RuleBroken(rules.why_not_waiting(job_id, job_id in self.running))
        return job

    def _is_moldable(self, job: Job) -> bool:
        profiles = self.registry.profiles.get(job.workload, {})
        profile = profiles.get(job.profile)
        return profile is not None and profile.is_moldable(profiles)

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
    ev.QueryEnergy: lambda ledger, e, now: ledger.states.check_energy(e),
    ev.TellJob: lambda ledger, e, now: ledger.tell(e.job_id),
    ev.ChangeJobState: lambda ledger, e, now: rules.refuse_without_energy(e),
    ev.WaitingTimeAnswer: lambda ledger, e, now: None,
}
