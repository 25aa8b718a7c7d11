"""The decision process: request in, reply out, no sockets."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from batsched_py.decision.desk import SubmissionDesk
from batsched_py.decision.guard import Guard
from batsched_py.errors import PolicyError, ProtocolError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.selection import selection
from batsched_py.users.base import User


class DecisionProcess:
    """One simulation, seen from the side that decides.

    Keeps the states of jobs and hosts up to date, lets users submit, asks the scheduler once for each
    message, and lets nothing leave that the :class:`Guard` has not passed.
    """

    def __init__(
        self, scheduler: Scheduler, users: Sequence[User] = (), scheduling_delay: float = 0.0
    ) -> None:
        self.scheduler = scheduler
        self.users = users
        self.finished = False
        self._delay = scheduling_delay
        self._now = 0.0
        self._begun: tuple[Cluster, Guard] | None = None
        self._desk: SubmissionDesk | None = None

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""
        now = request.now
        cluster, guard = self._begun or self._begin(request)
        if now < self._now:
            raise ProtocolError(f"time runs backwards: {now:g} comes after {self._now:g}")
        self._now = now
        cluster.now = now + self._delay
        events = request.events
        if self._desk is not None:
            events = self._desk.news(events)
            if len(events) < len(request.events) and not events:
                return ev.Message(now, [])
        cluster.events = events
        for event in events:
            learn = _LEARN.get(type(event))
            if learn is not None:
                learn(self, event, cluster, guard)
        if self.finished:
            reply = ev.Message(now, [])
        elif self._desk is None:
            self._ask(self.scheduler.schedule, cluster)
            reply = ev.Message(cluster.now, cluster.take_decisions())
        else:
            reply = ev.Message(cluster.now, self._decide_with_users(self._desk, cluster, now))
        if reply.events:
            try:
                guard.check(reply, now)
            except RuleBroken as broken:
                culprit = f"scheduler {self.scheduler.name!r}" + (" or a user" if self.users else "")
                raise PolicyError(f"{culprit} broke a rule at time {now:g}: {broken}") from None
        return reply

    def _decide_with_users(self, desk: SubmissionDesk, cluster: Cluster, now: float) -> list[ev.Event]:
        """Let users submit and the scheduler decide, and again while what it rejects makes users submit.

        A slow scheduler does not keep users from submitting: what it decides comes after what they do.
        """
        decisions = cluster.take_decisions()
        while True:
            while desk.is_due(now):
                for job, registration in desk.submissions(now):
                    decisions += registration
                    self._join(job, cluster)
                    decisions += self._tell_rejected(desk, cluster.take_decisions())
            self._ask(self.scheduler.schedule, cluster)
            decisions += self._tell_rejected(desk, cluster.take_decisions())
            if not desk.is_due(now):
                decisions += desk.closing(now)
                return sorted(decisions, key=lambda decision: decision.time) if self._delay else decisions

    def _tell_rejected(self, desk: SubmissionDesk, decisions: list[ev.Event]) -> list[ev.Event]:
        """The same decisions, after users have heard which of their jobs are rejected by them."""
        for decision in decisions:
            if isinstance(decision, ev.RejectJob):
                desk.job_ended(decision.job_id, JobState.REJECTED, decision.time)
        return decisions

    def _begin(self, request: ev.Message) -> tuple[Cluster, Guard]:
        if not request.events or not isinstance(request.events[0], ev.SimulationBegins):
            raise ProtocolError("the conversation must begin with SIMULATION_BEGINS")
        begins = request.events.pop(0)
        assert isinstance(begins, ev.SimulationBegins)
        scheduler = self.scheduler
        cluster = Cluster(
            HostSet.range(len(begins.hosts)),
            selection(scheduler.selection, begins, scheduler.selection_seed),
            scheduler.estimate,
            begins.hosts,
            begins.settings,
        )
        self._begun = (cluster, Guard(begins))
        if self.users or begins.settings.dynamic_jobs:
            self._desk = SubmissionDesk(self.users, begins)
        self._ask(self.scheduler.begin, self._begun[0])
        return self._begun

    def _ask(self, question: Callable[[Cluster], None], cluster: Cluster) -> None:
        try:
            question(cluster)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise PolicyError(
                f"scheduler {self.scheduler.name!r} failed at time {cluster.now:g}: "
                f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            ) from error
        cluster.settle()

    def _submitted(self, event: ev.JobSubmitted, cluster: Cluster, guard: Guard) -> None:
        guard.submitted(event.job)
        self._join(event.job, cluster)

    def _join(self, job: Job, cluster: Cluster) -> None:
        """A job joins the queue, unless no machine state could ever run it."""
        if 0 < job.size <= cluster.nb_hosts:
            cluster.submit(job)
        else:
            cluster.reject(job)

    def _completed(self, event: ev.JobCompleted, cluster: Cluster, guard: Guard) -> None:
        guard.completed(event.job_id)
        cluster.release(event.job_id)
        if self._desk is not None:
            self._desk.job_ended(event.job_id, event.state, self._now)

    def _lost(self, event: ev.HostsUnavailable, cluster: Cluster, guard: Guard) -> None:
        guard.lost(event.hosts)
        cluster.take_away(event.hosts)

    def _regained(self, event: ev.HostsAvailable, cluster: Cluster, guard: Guard) -> None:
        guard.regained(event.hosts)
        cluster.give_back(event.hosts)

    def _switched(self, event: ev.HostsStateChanged, cluster: Cluster, guard: Guard) -> None:
        guard.switched(event.hosts, event.pstate)
        cluster.switched(event.hosts, event.pstate)

    def _begins_again(self, event: ev.SimulationBegins, cluster: Cluster, guard: Guard) -> None:
        raise ProtocolError("SIMULATION_BEGINS came in the middle of a simulation")

    def _ended(self, event: ev.SimulationEnds, cluster: Cluster, guard: Guard) -> None:
        guard.ended()
        self.finished = True


_LEARN: dict[type[ev.Event], Callable[[DecisionProcess, Any, Cluster, Guard], None]] = {
    ev.JobSubmitted: DecisionProcess._submitted,
    ev.JobCompleted: DecisionProcess._completed,
    ev.HostsUnavailable: DecisionProcess._lost,
    ev.HostsAvailable: DecisionProcess._regained,
    ev.HostsStateChanged: DecisionProcess._switched,
    ev.SimulationBegins: DecisionProcess._begins_again,
    ev.SimulationEnds: DecisionProcess._ended,
}
