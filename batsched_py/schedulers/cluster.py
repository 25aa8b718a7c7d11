"""What a policy sees and may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cached_property
from math import inf, isnan
from typing import TYPE_CHECKING, Any, NoReturn

from batsched_py.errors import RuleBroken
from batsched_py.ledger.effects import Effect, describe
from batsched_py.ledger.kinds import Live, check_function, check_job, count, expected, number, positive
from batsched_py.ledger.profile import AvailabilityProfile, Plan, Reservation
from batsched_py.ledger.queue import Condition, Floats, JobQueue, Score, Waiting
from batsched_py.ledger.rules import check_resize
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.protocol.events import (
    CallMeLater,
    Event,
    KillJobs,
    RejectJob,
    SetHostsState,
    SetJobMetadata,
    Settings,
)
from batsched_py.protocol.hosts import NOWHERE, HostSet, checked
from batsched_py.protocol.jobs import TICK, Host, Job, first_tick_from
from batsched_py.schedulers.decisions import Remark, own_copy
from batsched_py.schedulers.predictions import Predictions

if TYPE_CHECKING:
    from batsched_py.ledger.ledger import Ledger
    from batsched_py.ledger.limits import Limit
    from batsched_py.ledger.trials import HostsToWake, Resizing
    from batsched_py.schedulers.use import Use

#: Scores of waiting jobs at a time; the lowest goes first, equal ones go in submission order.
Order = Callable[[Waiting, float], Floats]

#: Notes that a running job goes back into the queue at a time: its next name, and what to note about it.
Requeue = Callable[[RunningJob, float], tuple[str, str]]


class Cluster(Live):
    """The machine with its queue, as a policy sees it at the moment it is asked.

    A policy reads ``now``, ``queue``, ``running`` and ``free``, and says what to do with :meth:`start`,
    :meth:`reject`, :meth:`kill`, :meth:`requeue`, :meth:`resize`, :meth:`call_at` and :meth:`switch`. Each is
    checked as it is said. What it reads it cannot change.

    This class looks at a ledger, and documents what a policy may use. The native engine has a class of its
    own that does the same.
    """

    now: float
    """When what is decided takes effect: now, or later where a slow scheduler is simulated."""
    settings: Settings
    """What the simulator allows; ``settings.scheduler_config`` is its text for the policy."""
    hosts: HostSet
    nb_hosts: int
    queue: JobQueue
    order: Order | None
    """The order of the queue, if it is not submission order."""
    running: Running
    heeded: bool
    """Whether anybody heeds remarks; where nobody does, a policy need not think of any."""
    outside: Known
    """What is known beforehand of prices, carbon, temperature and closures."""
    _decisions: list[Effect]
    _listeners: list[Callable[[RunningJob], None]]
    _start_listeners: list[Callable[[RunningJob], None]]
    _resize_listeners: list[Callable[[RunningJob, RunningJob], None]]
    _broken: RuleBroken | None
    """The first rule that was broken, which ends the simulation even if the policy takes no notice."""
    _heed: Callable[[Remark], None] | None
    _requeue: Requeue | None = None
    counts_on_sleepers: bool = False
    """Whether reservations count on hosts that sleep."""
    counts_all_ends: bool = False
    """Whether all jobs that end by the shadow time count towards the extra hosts."""
    _narrows: bool = False
    """Whether the policy may narrow the machine."""
    limits: tuple[Limit, ...] = ()
    """What narrows the machine beside what is free of it."""
    _ledger: Ledger
    _machines: Sequence[Host]
    _events: Callable[[], list[Event]]

    def __init__(
        self,
        ledger: Ledger,
        machines: Sequence[Host] = (),
        settings: Settings = Settings(),
        events: Callable[[], list[Event]] = list,
        outside: Known = NOTHING_KNOWN,
    ) -> None:
        self._set(
            now=0.0,
            settings=settings,
            hosts=ledger.hosts,
            nb_hosts=len(ledger.hosts),
            queue=ledger.queue,
            order=None,
            running=ledger.running,
            heeded=False,
            outside=outside,
            _decisions=[],
            _listeners=[],
            _start_listeners=[],
            _resize_listeners=[],
            _broken=None,
            _heed=None,
            _ledger=ledger,
            _machines=machines,
            _events=events,
        )

    def _set(self, **attributes: Any) -> None:
        """Change what policies see, and cannot change themselves."""
        self.__dict__.update(attributes)

    def _go_to(self, now: float) -> None:
        """Time has come to this."""
        self.__dict__["now"] = now

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __repr__(self) -> str:
        held = f"{len(self.queue):,} waiting, {len(self.running):,} running, {self.nb_free:,} hosts free"
        return f"<Cluster at {self.now:g} s: {held}>"

    # --- what a policy sees ----------------------------------------------------------------------

    @cached_property
    def machines(self) -> Sequence[Host]:
        """The hosts by number, as the simulator describes them."""
        return deepcopy(tuple(self._machines))

    @property
    def events(self) -> Sequence[Event]:
        """What was told since the policy was last asked."""
        return tuple(self._events())

    @property
    def resources(self) -> dict[str, tuple[int, int]]:
        """How much of each resource of the nodes is free, and how much there is; none on a plain machine.

        Cores, memory (in KiB), GPUs and what else nodes have, and licences, by their names.
        """
        return self._ledger.free.resources()

    @property
    def decided(self) -> Sequence[Effect]:
        """What was decided since the policy was last asked."""
        return tuple(deepcopy(effect) if isinstance(effect, Event) else effect for effect in self._decisions)

    @property
    def quiet(self) -> bool:
        """Whether nothing but submissions has happened since the policy was last asked."""
        return self._ledger.quiet

    @property
    def nb_free(self) -> int:
        """How many hosts can be given to a job now."""
        return self._ledger.free.count

    @property
    def free(self) -> HostSet:
        """The hosts that can be given to a job now."""
        return self._ledger.free.hosts()

    @property
    def available(self) -> HostSet:
        """The hosts that have not been taken away, busy or not."""
        return self.hosts - self._ledger.states.unavailable

    @property
    def asleep(self) -> HostSet:
        """The hosts that sleep."""
        return self._ledger.states.asleep - self._ledger.states.switching

    @property
    def switching(self) -> HostSet:
        """The hosts that are on their way to another power state."""
        return self._ledger.states.switching

    def fits(self, job: Job) -> bool:
        """Whether what a job asks for is free now."""
        check_job(job)
        return self._ledger.free.fits(job) and (not self.limits or self._may_start(job))

    def could_fit(self, job: Job) -> bool:
        """Whether the machine could ever give a job what it asks for."""
        check_job(job)
        return self._ledger.free.could_grant(job)

    def _may_start(self, job: Job) -> bool:
        """Whether all limits let a job start now."""
        return all(limit.allows(job, job.walltime) for limit in self.limits)

    def lacks_only(self, limit: Limit, job: Job) -> bool:
        """Whether a job has hosts to start on now, and a limit keeps it from that."""
        self._check_narrows()
        return self._ledger.free.fits(job) and not limit.allows(job, job.walltime)

    def fitting(
        self,
        condition: Condition | None = None,
        order: Order | None = None,
        only_new: bool = False,
        beside: Reservation | None = None,
    ) -> Iterator[Job]:
        """The waiting jobs that fit, one after another.

        They may be started as they come: each one is looked at again when its turn has come. A ``condition``
        is asked of the size and the estimated run time of each job. Where no ``order`` is given, it is the
        queue's. With ``only_new``, only jobs are looked at that have been submitted since the policy was last
        asked. With ``beside``, only jobs come that do not delay a reservation.
        """
        if condition is not None:
            check_function(condition)
        score = None if order is None else self._scoring(order)
        if beside is not None and not isinstance(beside, Reservation):
            raise expected("a Reservation", beside)
        if self.limits:
            return self._fitting_within_limits(condition, score, only_new, beside)
        return self._ledger.fitting(condition, score, only_new, beside, self.counts_all_ends)

    def _fitting_within_limits(
        self, condition: Condition | None, score: Score | None, only_new: bool, beside: Reservation | None
    ) -> Iterator[Job]:
        """Those that all limits let start, and that leave room for a reservation within these limits."""

        def allowed(size: int, estimate: float) -> object:
            beside_it = beside is None or beside._allows(size, estimate)
            return beside_it and (condition is None or condition(size, estimate))

        for job in self._ledger.fitting(allowed, score, only_new, beside):
            run_time = max(job.walltime, self.queue.estimate(job))
            if all(limit.allows(job, run_time) for limit in self.limits):
                yield job

    def hosts_beside(self, job: Job, run_time: float, beside: Reservation | None = None) -> HostSet | None:
        """The hosts that a job gets, if it fits now and would not delay a reservation."""
        return self._ledger.free.hosts_beside(job, run_time, beside) if self.fits(job) else None

    def reservation(self, job: Job) -> Reservation:
        """When the job can start at the latest, and how many hosts it will leave free then.

        Running jobs are gone through in the order of their expected ends, collecting their hosts until there
        are enough: the time at which this happens is the *shadow time*, what is left over then are the
        *extra* hosts. Where that never happens, the shadow time is infinite and there is nothing extra.
        """
        check_job(job)
        if not (self.limits or self.counts_on_sleepers or self.counts_all_ends):
            return self._ledger.reservation(job, self.now)
        limits = [limit.ahead(job) for limit in self.limits]
        return self._ledger.reservation(job, self.now, self.to_wake, limits, self.counts_all_ends)

    def starts(self, choices: Sequence[tuple[Job, float]]) -> list[float]:
        """When each of some jobs could start at the earliest, to run for so long, if no other job starts."""
        return self._ledger.free.starts(choices, self)

    def profile(self) -> AvailabilityProfile:
        """How many hosts will be free, and when, if the running jobs end as expected.

        One that should have ended already may end at any moment.
        """
        free, unavailable = self._ledger.free, self._ledger.states.unavailable
        profile = AvailabilityProfile(self.now, free.count)
        for running in self.running:
            end = max(running.expected_end, self.now + TICK)
            profile._change(end, inf, free.usable(running, unavailable))
        for closure in self.outside.closures:
            profile._change(closure.start, closure.end, -len(closure.hosts & self.available))
        if to_wake := self.to_wake:
            profile._change(self.now, inf, len(to_wake))
        for limit in self.limits:
            limit.narrow(profile)
        return profile

    def plan(self) -> Plan:
        """A reservation for each waiting job, beginning with what the running jobs leave free."""
        return Plan(self, self._ledger.free.job_profile(self))

    @property
    def to_wake(self) -> HostSet:
        """Hosts that are not free, but will be as soon as a job needs them, if the policy counts on them."""
        if not self.counts_on_sleepers:
            return NOWHERE
        return (self.asleep | self.switching) & self.available & self.hosts

    def waking(self, woken: HostSet) -> HostsToWake:
        """The hosts that sleep, shared out among waiting jobs, to be tried before any of them is woken.

        Of those that are switching, some wake already.
        """
        self._check_narrows()
        return self._ledger.free.to_wake(checked(woken), self.asleep & self.available, self.now)

    # --- what a policy says ----------------------------------------------------------------------

    def order_queue(self, order: Order | None) -> None:
        """Keep the queue in this order from now on; without one, in submission order."""
        score = None if order is None else self._scoring(order)
        self._set(order=order)
        self._ledger.note_change()
        self._ledger.queue._order_by(score)

    def _check_narrows(self) -> None:
        """The policy has said that it narrows the machine, so that the Python engine runs it."""
        if not self._narrows:
            raise self._broke(
                "limits, hosts that sleep, jobs kept from the queue and other requests",
                RuleBroken("only a policy that says `narrows_the_machine = True` may use them"),
            )

    def joined_after(self, count: int) -> list[tuple[int, Job]]:
        """The waiting jobs that have joined the queue after so many had, each with how many had with it."""
        self._check_narrows()
        return self._ledger.queue._behind(count)

    def look_again(self) -> None:
        """Something has changed that waiting jobs may profit from, although no event tells of it."""
        self._check_narrows()
        self._ledger.note_change()

    def ask_instead(self, job: Job) -> None:
        """A waiting job asks the machine for what this one does, not for what it was submitted with."""
        self._check_narrows()
        check_job(job)
        self._ledger.free.ask_instead(job)

    def put_beside(self, limit: Limit) -> None:
        """Let a limit narrow the machine from now on, for this policy and all those that it is around."""
        self._check_narrows()
        from batsched_py.ledger.limits import Limit

        if not isinstance(limit, Limit):
            raise expected("a Limit", limit)
        self._set(limits=(*self.limits, limit))
        self.on_end(limit.ended)

    def count_on_sleepers(self) -> None:
        """Let reservations count on hosts that sleep or are switching: they will be woken in time."""
        self._check_narrows()
        self._set(counts_on_sleepers=True)

    def count_all_ends(self) -> None:
        """Let all jobs that end by the shadow time count towards the extra hosts of a reservation."""
        self._set(counts_all_ends=True)

    def defer(self, job: Job) -> None:
        """Keep a waiting job from the queue, until :meth:`resume` or :meth:`reject`."""
        self._check_narrows()
        check_job(job)
        self._ledger.waiting.defer(job)

    def resume(self, job: Job) -> bool:
        """Let a job join the queue again, at its end; whether it was still kept from it."""
        self._check_narrows()
        check_job(job)
        return self._ledger.waiting.resume(job.id)

    def on_end(self, listener: Callable[[RunningJob], None]) -> None:
        """Call the listener with each job that ends, before the policy is asked."""
        check_function(listener)
        self._listeners.append(listener)

    def on_start(self, listener: Callable[[RunningJob], None]) -> None:
        """Call the listener with each job that the policy starts, at once."""
        check_function(listener)
        self._start_listeners.append(listener)

    def on_resize(self, listener: Callable[[RunningJob, RunningJob], None]) -> None:
        """Call the listener with each job that the policy resizes, as it was before and as it is, at once."""
        check_function(listener)
        self._resize_listeners.append(listener)

    def _tell_start(self, running: RunningJob) -> None:
        """Tell limits and listeners of a start; the verbs that start a job do so themselves."""
        try:
            for limit in self.limits:
                limit.started(running)
        except RuleBroken as broken:
            raise self._broke(f"ExecuteJob {running.job.id}", broken) from None
        for listener in self._start_listeners:
            listener(running)

    def expect(self, job: Job, run_time: float) -> None:
        """Expect a job, waiting or running, to run for so long in all."""
        run_time = self._check_expected(job, run_time)
        if job in self.queue:
            self._ledger.queue._expect(job, run_time)
        elif job.id in self.running:
            self._ledger.running._expect(job.id, run_time)
        else:
            raise self._unexpected(job)
        self._ledger.note_change()

    def _check_expected(self, job: Job, run_time: float) -> float:
        check_job(job)
        run_time = float(run_time)
        if isnan(run_time):
            raise self._broke(f"expect {job.id}", RuleBroken("nan is no run time"))
        return run_time

    def _unexpected(self, job: Job) -> RuleBroken:
        return self._broke(f"expect {job.id}", RuleBroken("the job neither waits nor runs"))

    def predictions(self, shortest: float, corrections: Sequence[float]) -> Predictions:
        """Predict run times from those of the users' last jobs, not below the shortest one.

        A prediction that expires is prolonged by the first of the corrections, the next time by the second.
        """
        return Predictions(self, shortest, corrections)

    def count_use(self, half_life: float) -> Use:
        """Count from now on how much each user uses the machine, where use of a half-life ago counts half."""
        from batsched_py.schedulers.use import Use

        return Use(self, positive(half_life))

    def remark(self, job: Job, text: str, start: float | None = None) -> None:
        """Say something about a job, such as why it waits; with ``start``, by when it is to start.

        Remarks change nothing. They are shown by ``-v``, `batsched-py explain` and Gantt charts.
        """
        check_job(job)
        if not isinstance(text, str):
            raise expected("a text", text)
        remark = Remark(self.now, job.id, text, None if start is None else number(start))
        if self._heed is not None:
            self._heed(remark)

    def heed(self, listener: Callable[[Remark], None]) -> None:
        """Tell a listener of all remarks from now on."""
        check_function(listener)
        self._set(_heed=listener, heeded=True)

    def start(self, job: Job, hosts: HostSet | None = None) -> RunningJob:
        """Run a waiting job now, on the given hosts or on free ones that the selection chooses."""
        check_job(job)
        if hosts is not None:
            hosts = checked(hosts)
        try:
            running = self._ledger.start(job, hosts, self.now)
        except RuleBroken as broken:
            raise self._broke(f"ExecuteJob {job.id}", broken) from None
        self._decisions.append(running)
        self._tell_start(running)
        return running

    def start_from_head(self) -> Job | None:
        """Start jobs from the head of the queue while they fit; the first that does not, if any is left."""
        queue, free = self.queue, self._ledger.free
        while queue:
            head = queue.head
            if not free.fits(head) or (self.limits and not self._may_start(head)):
                return head
            self.start(head)
        return None

    def start_fitting(
        self, order: Order | None = None, only_new: bool = False, beside: Reservation | None = None
    ) -> None:
        """Start all waiting jobs that fit, one after another; what is asked for is that of :meth:`fitting`.

        With ``beside``, only jobs start that do not delay a reservation, and it admits each of them.
        """
        for job in self.fitting(order=order, only_new=only_new, beside=beside):
            running = self.start(job)
            if beside is not None:
                beside.admit(running)

    def resize(self, job: Job, hosts: HostSet | int) -> RunningJob:
        """Let a running malleable job go on with these hosts, or with so many; it as it is from now on.

        Given a number, a job that shrinks keeps those of its hosts with the lowest numbers, and one that
        grows gets free hosts that the selection chooses. On a machine of nodes it grows and shrinks by whole
        tasks. Only the built-in simulator can do this.
        """
        check_job(job)
        wanted = checked(hosts) if isinstance(hosts, HostSet) else None
        size = count(hosts) if wanted is None else len(wanted)
        try:
            running = check_resize(self.running.get(job.id), size)
            if wanted is None:
                wanted = self._ledger.free.hosts_to_go_on(running, size, self._unlimited_resizing())
            if wanted == running.hosts:
                return running
            resized = self._ledger.resize(job.id, wanted, self.now)
            after = self.running._jobs[job.id]
            for limit in self.limits:
                limit.resized(running, after)
        except RuleBroken as broken:
            raise self._broke(f"resize {job.id}", broken) from None
        self._decisions.append(resized)
        for listener in self._resize_listeners:
            listener(running, after)
        return after

    def resizing(self) -> Resizing:
        """Other sizes of running jobs, to be tried before any of them is decided."""
        resizing = self._unlimited_resizing()
        for limit in self.limits:
            resizing = limit.resizing(resizing)
        return resizing

    def _unlimited_resizing(self) -> Resizing:
        return self._ledger.free.resizing(self.now, self.running, self._ledger.states.unavailable)

    def reject(self, job: Job) -> None:
        """Refuse a waiting job for good."""
        check_job(job)
        self.decide(RejectJob(job.id))

    def kill(self, job: Job) -> None:
        """Stop a running job; it leaves its hosts when the simulator says so."""
        check_job(job)
        self.decide(KillJobs([job.id]))

    @property
    def can_requeue(self) -> bool:
        """Whether jobs can be put back into the queue: if users hand them in, and the policy ``requeues``."""
        return self._requeue is not None

    def _have_requeue(self, requeue: Requeue) -> None:
        """Let jobs be put back into the queue from now on."""
        self._set(_requeue=requeue)

    def requeue(self, job: Job) -> str:
        """Kill a running job and put it back into the queue; return the name under which it begins again.

        The simulator gets a job of its own, as after a failure, when the first one has left its hosts. The
        user hears of the last end only.
        """
        check_job(job)
        decision = KillJobs([job.id])
        running = self.running.get(job.id)
        if running is None or self._requeue is None:
            why = "it does not run" if running is None else "no user hands it in again"
            raise self._broke(describe(decision), RuleBroken(f"{why}, so it cannot be put back"))
        try:
            name, note = self._requeue(running, self.now)
        except RuleBroken as broken:
            raise self._broke(describe(decision), broken) from None
        self.decide(SetJobMetadata(job.id, note))
        self.decide(decision)
        return name

    def call_at(self, time: float) -> None:
        """Ask to be called at a time in the future: at the first tick that is not before it."""
        self._decide(CallMeLater(first_tick_from(float(time)), time=self.now))

    def switch(self, hosts: HostSet, pstate: int) -> None:
        """Put idle or sleeping hosts into a power state; until they are there, they are not free.

        Where a limit lets only some of them switch, such as a cap on power, the others stay as they are.
        """
        for limit in self.limits:
            hosts = limit.switchable(hosts, pstate)
        if hosts or not self.limits:
            self.decide(SetHostsState(hosts, pstate))

    def decide(self, decision: Event) -> None:
        """Say anything else that the protocol allows, such as a query, a note on a job or a message to it."""
        self._decide(own_copy(decision, self.now))

    def _decide(self, decision: Event) -> None:
        """Say what nobody else can change."""
        try:
            effect = self._ledger.decide(decision, self.now)
        except RuleBroken as broken:
            raise self._broke(describe(decision), broken) from None
        self._decisions.append(effect)
        if isinstance(effect, RunningJob):
            self._tell_start(effect)

    def _broke(self, decision: str, rule: RuleBroken) -> RuleBroken:
        broken = RuleBroken(f"{decision}: {rule}")
        self._set(_broken=self._broken or broken)
        return broken

    def _scoring(self, order: Order) -> Score:
        check_function(order)
        return lambda waiting: order(waiting, self.now)
