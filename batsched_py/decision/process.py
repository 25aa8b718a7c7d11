"""The decision process: what happens in, what to do out, no sockets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from functools import partial
from heapq import heappop, heappush
from math import inf, isnan
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from batsched_py.blame import is_fault, line_of, told
from batsched_py.errors import PolicyError, ProtocolError, RuleBroken
from batsched_py.ledger.effects import Effect, RegisteredJob, RejectedJob
from batsched_py.ledger.running import RunningJob
from batsched_py.ledger.waiting import Held, Unfit
from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.protocol.shown import harmless, shown, shown_name
from batsched_py.protocol.sizes import refuse_in_messages
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.selection import allocation
from batsched_py.users import User, UsersOf

if TYPE_CHECKING:
    from batsched_py.decision.submissions import FailureRule, Submissions
    from batsched_py.ledger.holds import Release
    from batsched_py.ledger.ledger import Ledger
    from batsched_py.ledger.nodes import Refusal
    from batsched_py.outside.closures import Closures
    from batsched_py.schedulers.decisions import Remark

#: Tells what is known beforehand of what comes from outside, to a machine of these hosts.
Outlook = Callable[[Sequence[Host]], Known]

#: What comes of going through turns.
Given = TypeVar("Given")

#: Asks a policy to decide.
Ask = Callable[[Cluster], None]

#: A submission or an end with its time, or any other event as it is.
Heard = tuple[Job, float] | tuple[RunningJob, JobState, int, float] | ev.Event


class DecisionProcess:
    """One simulation, seen from the side that decides: lets users submit, and asks the scheduler.

    There are two ways to talk to it. In the process of a simulator, :meth:`join` makes it look at the
    simulator's own ledger; then :meth:`job_submitted`, :meth:`job_ended` and :meth:`happened` say what has
    happened, and :meth:`decide` gives the decisions, or :meth:`turns` leaves them to the caller. A simulator
    elsewhere sends messages, which :meth:`react` answers: then the process has a ledger of its own, which
    checks every decision before it leaves.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        users: Sequence[User] | UsersOf = (),
        scheduling_delay: float = 0.0,
        on_failure: FailureRule | None = None,
        outlook: Outlook | None = None,
        remembers_ends: bool = True,
    ) -> None:
        self.scheduler = scheduler
        self.on_failure = on_failure
        """What becomes of jobs whose hosts are taken away; without a rule they go on, as in Batsim."""
        self.outlook = outlook
        """Tells what is known beforehand of what comes from outside, when the hosts are known."""
        self.remembers_ends = remembers_ends
        """Whether jobs may be submitted that wait for others which have ended; else no end is remembered."""
        self.schedule: Ask = scheduler.schedule
        """Asks the policy."""
        self.meter: Callable[[Ask], Ask] | None = None
        """Puts something that measures around asking the policy, when the simulation begins."""
        self.users = users
        self.scheduling_delay = scheduling_delay
        self.finished = False
        self.ledger: Ledger
        """The account of the machine and its jobs, of the simulation that has begun."""
        self._now = 0.0
        self._begun = False
        self._closures: Closures | None = None
        self._opening = 0.0
        """The last end of a closure at which a call was asked for."""
        self._heard: list[Heard] = []
        self._calls: list[float] = []
        """When the calls are to come that were asked for in messages, the earliest first."""
        """What happened since the scheduler was last asked, in whatever form it was told."""
        self.refused: Counter[str] = Counter()
        """How many jobs could never run on a machine of nodes, by the kind of reason."""
        self.pending: Counter[str] = Counter()
        """How many jobs the policy has left in the queue in the end, by why they could not start."""
        self.acted: Sequence[Effect] = ()
        """What came of what users did since the policy was last asked."""
        self._submissions: Submissions | None = None
        self._heeding: list[Callable[[Remark], None]] = []
        self._told_of_releases: list[Callable[[Release], None]] = []
        self._more_static_jobs = False
        """Whether the simulator will submit more jobs by itself."""

    @property
    def needs(self) -> ev.Settings:
        """What a simulator must allow: jobs that are registered, and their profiles used again, for users.

        Some policies must be told the profiles of jobs.
        """
        return ev.Settings(
            dynamic_jobs=bool(self.users),
            profile_reuse=bool(self.users),
            forward_profiles=self.scheduler.reads_profiles,
        )

    def heed(self, listener: Callable[[Remark], None]) -> None:
        """Tell a listener what the scheduler remarks on jobs, from the beginning of the simulation."""
        self._heeding.append(listener)

    @property
    def is_heeded(self) -> bool:
        """Whether anybody heeds what the scheduler remarks."""
        return bool(self._heeding) or _are_logged()

    def on_release(self, listener: Callable[[Release], None]) -> None:
        """Tell a listener what becomes of each job that was held because it waits for others."""
        self._told_of_releases.append(listener)

    def _remarked(self, remark: Remark) -> None:
        start = "" if remark.start is None else f", to start by {remark.start:.10g}"
        logging.getLogger(__name__).debug(
            "at %.10g, job %s: %s%s", remark.time, remark.job_id, remark.text, start
        )
        for listener in self._heeding:
            listener(remark)

    # --- beside a simulator ----------------------------------------------------------------------

    def join(self, begins: ev.SimulationBegins, ledger: Ledger) -> None:
        """Take part in a simulation that is about to begin, of which this is the ledger."""
        from batsched_py.decision.held_jobs import HeldJobs

        scheduler = self.scheduler
        self.ledger = ledger
        self._acknowledges = begins.settings.acknowledge_dynamic_jobs
        hosts_of, nodes_of = allocation(scheduler, begins)
        known = NOTHING_KNOWN if self.outlook is None else self.outlook(begins.hosts)
        if begins.has_nodes or known.closures:
            from batsched_py.schedulers.node_choice import closed_hosts, free_nodes

            of_hosts = free_nodes if begins.has_nodes else closed_hosts
            ledger.free = nodes = of_hosts(begins.hosts, nodes_of, hosts_of)
            if known.closures:
                from batsched_py.outside.closures import Closures

                self._closures = Closures(known.closures)
                nodes.have_closures(self._closures, lambda: self.cluster.now)
        else:
            ledger.free.selection = hosts_of
        cluster = Cluster(ledger, begins.hosts, begins.settings, self._events, known)
        cluster._set(_narrows=scheduler.narrows_the_machine)
        self._held = HeldJobs(ledger, cluster, self._told_of_releases, self.remembers_ends)
        self._holds = self._held.holds
        self._more_static_jobs = bool(begins.workloads)
        if type(scheduler).estimate is not Scheduler.estimate:
            ledger.estimate = self.estimate
        if self.users or begins.settings.dynamic_jobs:
            from batsched_py.decision.submissions import Restarts, Submissions

            restarts = Restarts(self.on_failure, scheduler.requeues, begins)
            self._submissions = Submissions(self.users, begins, ledger, restarts)
            if self.users and scheduler.requeues:
                cluster._have_requeue(self._submissions.requeue)
        self.begin(cluster)
        self._settle()

    def begin(self, cluster: Cluster) -> None:
        """Let the policy see a cluster for the first time."""
        self.cluster = cluster
        if self.is_heeded:
            cluster.heed(self._remarked)
        self._begun = True
        try:
            self.scheduler.begin(cluster)
        except BaseException as error:
            self.fail(error, 0.0)
        ask = self.scheduler.schedule
        self.schedule = ask if self.meter is None else self.meter(ask)
        self._check_unnoticed(0.0)

    def job_submitted(self, job: Job, now: float) -> None:
        """A job was submitted."""
        self.cluster._go_to(now + self.scheduling_delay)
        if not isinstance(self.ledger.submit(job), Held):
            self._heard.append((job, now))
        if self.ledger.waiting.nb_unfit:
            self._reject_unfit()

    def job_ended(self, job_id: str, state: JobState, return_code: int, now: float) -> None:
        """A job has left its hosts."""
        self.cluster._go_to(now + self.scheduling_delay)
        ended = self.ledger.release(job_id)
        if ended is None:
            return
        self._heard.append((ended, state, return_code, now))
        for listener in tuple(self.cluster._listeners):
            try:
                listener(ended)
            except BaseException as error:
                raise self.failed(error, listener) from error
        self._check_unnoticed(now)
        if self._submissions is None or self._submissions.job_ended(job_id, state, now):
            self._holds.over(ended.job, now, state is JobState.SUCCESS)

    def happened(self, event: ev.Event) -> None:
        """Anything else has happened."""
        if type(event) is ev.RequestedCall:
            if 0 < self._opening <= event.time:
                self.ledger.note_change()
            self._heard.append(event)
            return
        if isinstance(event, ev.SimulationBegins):
            raise ProtocolError("SIMULATION_BEGINS came in the middle of a simulation")
        hosts = getattr(event, "hosts", None)
        if hosts and hosts.runs()[-1][1] >= self.ledger.nb_machines:
            raise ProtocolError(f"{type(event).__name__} names hosts {hosts}, which do not all exist")
        self.ledger.learn(event)
        if type(event) is ev.HostsUnavailable and self._submissions is not None:
            self._submissions.hosts_fail(event.hosts)
        self.finished = isinstance(event, ev.SimulationEnds)
        if isinstance(event, ev.NoMoreStaticJobs):
            self._more_static_jobs = False
        self._heard.append(event)

    def _reject_unfit(self) -> None:
        """Reject what no state of the machine could ever run, without asking the scheduler."""
        for unfit in list(self.ledger.waiting.all(Unfit)):
            self.note_refusal(unfit.job, self.ledger.free.why_never(unfit.job))
            self.cluster.reject(unfit.job)

    def note_refusal(self, job: Job, refusal: Refusal | None) -> None:
        """Remark why a machine of nodes can never run a job, and count it."""
        if refusal is not None:
            self.refused[refusal.kind] += 1
            self.cluster.remark(job, refusal.text)

    def _settle_held(self, now: float) -> bool:
        """Let held jobs go that wait for nothing any more; whether any has joined the queue."""
        joined = self._held.settle(now)
        self._heard += [(job, now) for job in joined]
        return bool(joined)

    def _look_after_held(self) -> None:
        """See to it that held jobs are thought of in time; something must be to come that lets them go."""
        self._held.ask_for_call()
        acting = self._submissions is not None and self._submissions.broker.next_time != inf
        registering = not self.users and self.ledger.registry.is_open
        if not (self._more_static_jobs or acting or registering):
            self._held.check(given_up=bool(self.users))

    def decide(self, now: float) -> list[Effect]:
        """What is to be done now that all this has happened."""
        return self.take_turns(self.turns(now))

    def take_turns(self, turns: Generator[Cluster, bool | None, Given]) -> Given:
        """Ask the policy at each turn at which there could be something to decide; what comes of them all."""
        asked: bool | None = None
        while True:
            try:
                turns.send(asked)
            except StopIteration as over:
                return cast(Given, over.value)
            if asked := self._needs_asking():
                self.ask()

    def _needs_asking(self) -> bool:
        """Whether there could be something to decide now."""
        if self.ledger.queue and self.ledger.free.count:
            return True
        return self.cluster.heeded or not self.scheduler.only_starts_jobs or self.scheduler.leaves_jobs

    def turns(self, now: float) -> Generator[Cluster, bool | None, list[Effect]]:
        """The same, but leave each turn of the policy to the caller.

        At its turn, the caller looks at the cluster and says to it what to do, or lets the policy do so by
        :meth:`ask`. There is one turn, or one after another while what is decided makes users act at once, or
        lets held jobs go. What is returned in the end is to be done. Who sends ``False`` has seen that there
        is nothing to decide: then all that has happened is news at the next turn, too.
        """
        self._now, holds = now, self._holds
        self.cluster._go_to(now + self.scheduling_delay)
        holds.wake(now)
        try:
            if self._submissions is not None:
                return (yield from self._turns_with_users(self._submissions, now))
            if holds.unsettled:
                self._settle_held(now)
            while (yield self.cluster) is not False:
                self._settle()
                if not (holds.unsettled and self._settle_held(now)):
                    break
        except RuleBroken as broken:
            raise self.blame(broken) from None
        if holds:
            self._look_after_held()
        return self._take()

    @property
    def first_broken(self) -> RuleBroken | None:
        """The first rule that the policy has broken, if any."""
        return self.cluster._broken if self._begun else None

    def _check_unnoticed(self, now: float) -> None:
        """A rule that was broken ends the simulation even if the policy takes no notice."""
        if self.cluster._broken is not None:
            self.fail(self.cluster._broken, now)

    def at(self, now: float) -> None:
        """Time has come to this."""
        self._now = now

    def ask(self) -> None:
        """It is the policy's turn."""
        try:
            self.schedule(self.cluster)
        except BaseException as error:
            self.fail(error, self._now)

    def leaves_jobs(self) -> bool:
        """Whether the policy leaves the jobs that wait; if so, it does that at its next turn."""
        if self.scheduler.leaves_jobs:
            self.schedule = partial(self._leave, self.schedule)
        return self.scheduler.leaves_jobs

    def _leave(self, usual: Ask, cluster: Cluster) -> None:
        """Leave the jobs that wait. Where that makes users submit others, the policy decides as usual."""
        self.schedule = usual
        self.pending.update(self.scheduler.why_pending(job) for job in cluster.queue)
        self.scheduler.leave(cluster)

    def fail(self, error: BaseException, now: float) -> NoReturn:
        """The policy was asked and has raised this."""
        self._now = now
        if isinstance(error, RuleBroken):
            raise self.blame(error) from None
        raise self.failed(error) from error

    def _turns_with_users(
        self, submissions: Submissions, now: float
    ) -> Generator[Cluster, bool | None, list[Effect]]:
        """Let users act and the scheduler decide, and again while what it decides makes users act at once.

        A slow scheduler does not keep users from acting: what it decides comes after what they do.
        """
        ledger = self.ledger
        ledger.registry.next_reply()
        decisions = self._tell_users(submissions)
        while True:
            acted: list[Effect] = []
            while submissions.is_due(now) or self._holds.unsettled:
                for action in submissions.actions(now):
                    acted += submissions.take(action, now)
                    if ledger.waiting.nb_unfit:
                        self._reject_unfit()
                        acted += self._tell_users(submissions)
                if self._holds.unsettled:
                    self._settle_held(now)
                if self.cluster._decisions:
                    acted += self._tell_users(submissions)
            decisions += acted
            self.acted = acted
            yield self.cluster
            self._settle()
            joined = self._holds.unsettled and self._settle_held(now)
            if self.cluster._decisions:
                decisions += self._tell_users(submissions)
            if joined or submissions.is_due(now):
                continue
            if self._holds:
                self._look_after_held()
            if not self._holds.unsettled:
                return [*decisions, *self._take(), *submissions.closing(now)]

    def _tell_users(self, submissions: Submissions) -> list[Effect]:
        """What was decided, after users have heard which of their jobs are started and rejected by it."""
        decisions, hears_starts = self._take(), submissions.broker.hears_starts
        for decision in decisions:
            if isinstance(decision, RejectedJob):
                submissions.job_ended(decision.job.id, JobState.REJECTED, decision.time)
            elif hears_starts and isinstance(decision, RunningJob):
                submissions.job_started(decision)
        return decisions

    def _settle(self) -> None:
        """The policy's turn is over; what has happened before is no news any more.

        While jobs wait, a call is asked for when the next closure ends.
        """
        if self.cluster._broken is not None:
            raise self.cluster._broken
        self.ledger.settle()
        self._heard.clear()
        if self._closures is not None and self.ledger.queue:
            opening = self._closures.next_end(self.cluster.now)
            if self._opening < opening < inf:
                self._opening = opening
                self.cluster.call_at(opening)

    def estimate(self, job: Job) -> float:
        """How long the scheduler expects a job to run."""
        try:
            estimate = float(self.scheduler.estimate(job))
        except BaseException as error:
            raise self.failed(error) from error
        if isnan(estimate):
            raise PolicyError(f"{self._name} expects job {job.id} to run for nan seconds")
        return estimate

    def failed(self, error: BaseException, function: object = None) -> PolicyError:
        """What to raise when the policy has raised something; what stops a simulation goes on as it is."""
        if not is_fault(error) or isinstance(error, PolicyError):
            raise error
        return PolicyError(f"{self._name} failed at time {self.cluster.now:g}: {told(error, function)}")

    def _take(self) -> list[Effect]:
        decisions = self.cluster._decisions
        if not decisions:
            return []
        self.cluster._set(_decisions=[])
        return decisions

    def blame(self, broken: RuleBroken) -> PolicyError:
        """What to raise when the policy, or a user, has broken a rule."""
        who = self._name + (" or a user" if self.users else "")
        what = harmless(str(broken)) + line_of(broken)
        return PolicyError(f"{who} broke a rule at time {self._now:g}: {what}")

    @property
    def _name(self) -> str:
        name = getattr(self.scheduler, "name", type(self.scheduler).__name__)
        return f"scheduler {shown(name)}"

    def _events(self) -> list[ev.Event]:
        """What was heard, as events."""
        return [_as_event(heard) for heard in self._heard]

    # --- far from a simulator --------------------------------------------------------------------

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of a simulator.

        A call that comes too early is asked for again; if nothing else has happened, nobody hears of it.
        """
        now = request.now
        events = request.events if self._begun else self._begin(request.events)
        if now < self._now:
            raise ProtocolError(f"time runs backwards: {now:g} comes after {self._now:g}")
        self._now = now
        self.cluster._go_to(now + self.scheduling_delay)
        if self._submissions is not None:
            news = self._submissions.news(events)
            if events and not news:
                return ev.Message(now, [])
            events = news
        events, again = self._without_early_calls(events, now)
        if again and not events:
            return ev.Message(now, again)
        for event in events:
            if type(event) is ev.JobSubmitted:
                refuse_in_messages([event.job])
                if self._is_new(event.job.id):
                    if event.profile is not None:
                        self.ledger.registry.learn(event.job, event.profile)
                    self.job_submitted(event.job, now)
            elif type(event) is ev.JobCompleted:
                self.job_ended(event.job_id, event.state, event.return_code, now)
            else:
                self.happened(event)
        if self.finished:
            return ev.Message(now, [])
        decisions = [*again, *_as_decisions(self.decide(now))]
        for decision in decisions[len(again) :]:
            if type(decision) is ev.CallMeLater:
                heappush(self._calls, decision.at)
        if self.scheduling_delay:
            decisions.sort(key=lambda decision: decision.time)
        return ev.Message(self.cluster.now, decisions)

    def _without_early_calls(
        self, events: list[ev.Event], now: float
    ) -> tuple[list[ev.Event], list[ev.Event]]:
        """The events without calls that come before their time, and the requests to make these again.

        A Batsim 4 does not say which call it is. They come in the order of their times.
        """
        kept: list[ev.Event] = []
        again: list[ev.Event] = []
        for event in events:
            if type(event) is ev.RequestedCall:
                at = event.at or (self._calls[0] if self._calls else now)
                if at > now:
                    again.append(ev.CallMeLater(at, time=now))
                    continue
                if self._calls:
                    heappop(self._calls)
            kept.append(event)
        return kept, again

    def _is_new(self, job_id: str) -> bool:
        """Whether a job was not known before; one that a policy registered may be announced afterwards."""
        if self.ledger.registry.met.take(job_id):
            return True
        if not self._acknowledges:
            raise ProtocolError(f"the simulator submits job {shown_name(job_id)} a second time")
        return False

    def _begin(self, events: list[ev.Event]) -> list[ev.Event]:
        if not events or not isinstance(events[0], ev.SimulationBegins):
            raise ProtocolError("the conversation must begin with SIMULATION_BEGINS")
        from batsched_py.ledger.ledger import Ledger

        self.join(events[0], Ledger(events[0]))
        return events[1:]


def _are_logged() -> bool:
    """Whether remarks are logged; commands do not load ``logging`` to ask."""
    return "getLogger" in vars(logging) and logging.getLogger(__name__).isEnabledFor(logging.DEBUG)


def _as_event(heard: Heard) -> ev.Event:
    match heard:
        case (RunningJob() as ended, state, return_code, time):
            return ev.JobCompleted(ended.job.id, state, ended.hosts, return_code, time=time)
        case (job, time):
            return ev.JobSubmitted(job, time=time)
        case _:
            return deepcopy(heard)


def _as_decisions(effects: list[Effect]) -> list[ev.Event]:
    said: list[ev.Event] = []
    for effect in effects:
        if isinstance(effect, RunningJob):
            said.append(effect.decision or ev.ExecuteJob(effect.job.id, effect.hosts, time=effect.start))
        elif isinstance(effect, RejectedJob):
            said.append(ev.RejectJob(effect.job.id, time=effect.time))
        elif isinstance(effect, RegisteredJob):
            job, time = effect.job, effect.time
            if effect.profile is not None:
                said.append(ev.RegisterProfile(job.workload, job.profile, effect.profile, time=time))
            said.append(ev.RegisterJob(job, time=time))
            if effect.note:
                said.append(ev.SetJobMetadata(job.id, effect.note, time=time))
        else:
            assert isinstance(effect, ev.Event)
            said.append(effect)
    return said
