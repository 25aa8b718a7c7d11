"""The decision process: what happens in, what to do out, no sockets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from math import isnan
from typing import NoReturn, cast

from batsched_py.blame import culprit
from batsched_py.core import fastest
from batsched_py.decision.desk import SubmissionDesk
from batsched_py.errors import PolicyError, ProtocolError, RuleBroken
from batsched_py.ledger.ledger import Effect, Ledger, RegisteredJob, RejectedJob
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster, Said
from batsched_py.schedulers.remarks import Remark
from batsched_py.schedulers.selection import selection
from batsched_py.users.base import User

_log = logging.getLogger(__name__)

#: A submission or an end with its time, or any other event as it is.
Heard = tuple[Job, float] | tuple[RunningJob, JobState, int, float] | ev.Event

#: The policy's method, its view, what it has said and heard, who is to hear of ends, and the users' desk.
Parts = tuple[
    Callable[[Cluster], None],
    Cluster,
    Said,
    list[Heard],
    list[Callable[[RunningJob], None]],
    SubmissionDesk | None,
]


class DecisionProcess:
    """One simulation, seen from the side that decides: lets users submit, and asks the scheduler.

    There are two ways to talk to it. In the process of a simulator, :meth:`join` makes it look at the
    simulator's own ledger; then :meth:`hear_submission` and its sisters say what has happened, and
    :meth:`decide` gives the decisions, or :meth:`turns` lets somebody else make them. A simulator elsewhere
    sends messages, which :meth:`react` answers: then the process has a ledger of its own, and nothing leaves
    that this one has not passed.
    """

    def __init__(
        self, scheduler: Scheduler, users: Sequence[User] = (), scheduling_delay: float = 0.0
    ) -> None:
        self.scheduler = scheduler
        self.users = users
        self.scheduling_delay = scheduling_delay
        self.finished = False
        self._now = 0.0
        self._begun = False
        self._heard: list[Heard] = []
        """What happened since the scheduler was last asked, in whatever form it was told."""
        self.acted: Sequence[Effect] = ()
        """What came of what users did since the policy was last asked, for whoever has its turn."""
        self._desk: SubmissionDesk | None = None
        self._said = Said()
        self._heeding: list[Callable[[Remark], None]] = []

    @property
    def needs(self) -> ev.Settings:
        """What a simulator must allow: jobs that are registered, and their profiles used again, for users."""
        return ev.Settings(dynamic_jobs=bool(self.users), profile_reuse=bool(self.users))

    @property
    def ledger(self) -> Ledger:
        """The account of the machine and its jobs, of the simulation that has begun."""
        return self._ledger

    def heed(self, listener: Callable[[Remark], None]) -> None:
        """Tell a listener what the scheduler remarks on jobs, from the beginning of the simulation."""
        self._heeding.append(listener)

    def _remarked(self, remark: Remark) -> None:
        start = "" if remark.start is None else f", to start by {remark.start:.10g}"
        _log.debug("at %.10g, job %s: %s%s", remark.time, remark.job_id, remark.text, start)
        for listener in self._heeding:
            listener(remark)

    # --- beside a simulator ----------------------------------------------------------------------

    def join(self, begins: ev.SimulationBegins, ledger: Ledger) -> None:
        """Take part in a simulation that is about to begin, of which this is the ledger."""
        scheduler = self.scheduler
        self._ledger = ledger
        self.cluster = fastest(Cluster)(
            ledger,
            self._said,
            begins.hosts,
            begins.settings,
            selection(scheduler.selection, begins, scheduler.selection_seed),
            self._events,
        )
        if self._heeding or _log.isEnabledFor(logging.DEBUG):
            self.cluster.heed(self._remarked)
        if type(scheduler).estimate is not Scheduler.estimate:
            ledger.estimate = self._estimate
        if self.users or begins.settings.dynamic_jobs:
            self._desk = fastest(SubmissionDesk)(self.users, begins, ledger)
        self._begun = True
        try:
            scheduler.begin(self.cluster)
            self._settle()
        except (Exception, SystemExit) as error:
            self.fail(error, 0.0)

    def hear_submission(self, job: Job, now: float) -> None:
        """A job was submitted."""
        self.cluster.now = now + self.scheduling_delay
        self._heard.append((job, now))
        self._ledger.submit(job)
        if self._ledger.unfit:
            self._reject_unfit()

    def hear_end(self, job_id: str, state: JobState, return_code: int, now: float) -> None:
        """A job has left its hosts."""
        self.cluster.now = now + self.scheduling_delay
        ended = self._ledger.release(job_id)
        if ended is None:
            return
        self._heard.append((ended, state, return_code, now))
        for listener in self._said.listeners:
            try:
                listener(ended)
            except (Exception, SystemExit) as error:
                raise self._failed(error) from error
        if self._desk is not None:
            self._desk.job_ended(job_id, state, now)

    def hear(self, event: ev.Event) -> None:
        """Anything else has happened."""
        if type(event) is ev.RequestedCall:
            self._heard.append(event)
            return
        if isinstance(event, ev.SimulationBegins):
            raise ProtocolError("SIMULATION_BEGINS came in the middle of a simulation")
        hosts = getattr(event, "hosts", None)
        if hosts and hosts.runs()[-1][1] >= self._ledger.nb_machines:
            raise ProtocolError(f"{type(event).__name__} names hosts {hosts}, which do not all exist")
        self._ledger.learn(event)
        self.finished = isinstance(event, ev.SimulationEnds)
        self._heard.append(event)

    def _reject_unfit(self) -> None:
        """Reject what no state of the machine could ever run, without asking the scheduler."""
        for job in list(self._ledger.unfit.values()):
            self.cluster.reject(job)

    def decide(self, now: float) -> list[Effect]:
        """What is to be done now that all this has happened."""
        if self._desk is not None:
            turns = self.turns(now)
            while True:
                try:
                    next(turns)
                except StopIteration as over:
                    return cast(list[Effect], over.value)
                self.ask()
        self.cluster.now = now + self.scheduling_delay
        try:
            self.scheduler.schedule(self.cluster)
            self._settle()
        except (Exception, SystemExit) as error:
            self.fail(error, now)
        return self._take()

    def turns(self, now: float) -> Generator[Cluster, None, list[Effect]]:
        """The same, but leave each turn of the policy to whoever goes through this.

        Whoever has the turn looks at the cluster and says to it what to do, or lets the policy do so by
        :meth:`ask`. There is one turn, or with users one after another, while what is decided makes them act
        at once. What is returned in the end is to be done.
        """
        self._now = now
        self.cluster.now = now + self.scheduling_delay
        try:
            if self._desk is not None:
                return (yield from self._turns_with_users(self._desk, now))
            yield self.cluster
            self._settle()
        except RuleBroken as broken:
            raise self._blame(broken) from None
        return self._take()

    def ask(self) -> None:
        """It is the policy's turn."""
        try:
            self.scheduler.schedule(self.cluster)
        except (Exception, SystemExit) as error:
            self.fail(error, self._now)

    def parts(self) -> Parts | None:
        """What a loop needs that does what :meth:`decide` does itself, and hears for all who take part.

        Nothing where decisions take time, or where this is not all there is to them.
        """
        if self.scheduling_delay or type(self) is not DecisionProcess:
            return None
        return (
            self.scheduler.schedule,
            self.cluster,
            self._said,
            self._heard,
            self._said.listeners,
            self._desk,
        )

    def fail(self, error: BaseException, now: float) -> NoReturn:
        """The policy was asked and has raised this."""
        self._now = now
        if isinstance(error, RuleBroken):
            raise self._blame(error) from None
        raise self._failed(error) from error

    def _turns_with_users(self, desk: SubmissionDesk, now: float) -> Generator[Cluster, None, list[Effect]]:
        """Let users act and the scheduler decide, and again while what it decides makes users act at once.

        A slow scheduler does not keep users from acting: what it decides comes after what they do.
        """
        ledger = self._ledger
        ledger.registry.next_reply()
        decisions = self._take()
        while True:
            acted: list[Effect] = []
            while desk.is_due(now):
                for action in desk.actions(now):
                    acted += desk.take(action, now)
                    if ledger.unfit:
                        self._reject_unfit()
                        acted += self._tell_users(desk)
            decisions += acted
            self.acted = acted
            yield self.cluster
            self._settle()
            if self._said.decisions:
                decisions += self._tell_users(desk)
            if not desk.is_due(now):
                decisions += desk.closing(now)
                return decisions

    def _tell_users(self, desk: SubmissionDesk) -> list[Effect]:
        """What was decided, after users have heard which of their jobs are started and rejected by it."""
        decisions, hears_starts = self._take(), desk.hears_starts
        for decision in decisions:
            if isinstance(decision, RejectedJob):
                desk.job_ended(decision.job.id, JobState.REJECTED, decision.time)
            elif hears_starts and isinstance(decision, RunningJob):
                desk.job_started(decision)
        return decisions

    def _settle(self) -> None:
        """The policy's turn is over; what has happened before is no news any more."""
        if self._said.broken is not None:
            raise self._said.broken
        self._ledger.settle()
        self._heard.clear()

    def _estimate(self, job: Job) -> float:
        """How long the scheduler expects a job to run."""
        try:
            estimate = float(self.scheduler.estimate(job))
        except (Exception, SystemExit) as error:
            raise self._failed(error) from error
        if isnan(estimate):
            raise PolicyError(
                f"scheduler {self.scheduler.name!r} expects job {job.id} to run for nan seconds"
            )
        return estimate

    def _failed(self, error: BaseException) -> PolicyError:
        return PolicyError(
            f"scheduler {self.scheduler.name!r} failed at time {self.cluster.now:g}: "
            f"{type(error).__name__}: {error} ({culprit(error)})"
        )

    def _take(self) -> list[Effect]:
        decisions, self._said.decisions = self._said.decisions, []
        return decisions

    def _blame(self, broken: RuleBroken) -> PolicyError:
        culprit = f"scheduler {self.scheduler.name!r}" + (" or a user" if self.users else "")
        return PolicyError(f"{culprit} broke a rule at time {self._now:g}: {broken}")

    def _events(self) -> list[ev.Event]:
        """What was heard, as events."""
        return [_as_event(heard) for heard in self._heard]

    # --- far from a simulator --------------------------------------------------------------------

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of a simulator."""
        now = request.now
        events = request.events if self._begun else self._begin(request.events)
        if now < self._now:
            raise ProtocolError(f"time runs backwards: {now:g} comes after {self._now:g}")
        self._now = now
        self.cluster.now = now + self.scheduling_delay
        if self._desk is not None:
            news = self._desk.news(events)
            if events and not news:
                return ev.Message(now, [])
            events = news
        for event in events:
            if type(event) is ev.JobSubmitted:
                if self._desk is not None:
                    self._ledger.registry.meet([event.job.id])
                self.hear_submission(event.job, now)
            elif type(event) is ev.JobCompleted:
                self.hear_end(event.job_id, event.state, event.return_code, now)
            else:
                self.hear(event)
        if self.finished:
            return ev.Message(now, [])
        decisions = _as_decisions(self.decide(now))
        if self.scheduling_delay:
            decisions.sort(key=lambda decision: decision.time)
        return ev.Message(self.cluster.now, decisions)

    def _begin(self, events: list[ev.Event]) -> list[ev.Event]:
        if not events or not isinstance(events[0], ev.SimulationBegins):
            raise ProtocolError("the conversation must begin with SIMULATION_BEGINS")
        self.join(events[0], fastest(Ledger)(events[0]))
        return events[1:]


def _as_event(heard: Heard) -> ev.Event:
    match heard:
        case (RunningJob() as ended, state, return_code, time):
            return ev.JobCompleted(ended.job.id, state, ended.hosts, return_code, time=time)
        case (job, time):
            return ev.JobSubmitted(job, time=time)
        case _:
            return heard


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
            said.append(effect)
    return said
