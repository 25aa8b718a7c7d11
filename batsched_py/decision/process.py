"""The decision process: request in, reply out, no sockets."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from batsched_py.decision.guard import Guard
from batsched_py.errors import PolicyError, ProtocolError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


class DecisionProcess:
    """One simulation, seen from the side that decides.

    Keeps the states of jobs and hosts up to date, asks the scheduler once for each message, and lets
    nothing leave that the :class:`Guard` has not passed.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.finished = False
        self._cluster: Cluster | None = None
        self._guard: Guard | None = None

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""
        self._check_order(request)
        if self._cluster is None:
            self._begin(request)
        cluster, guard = self._cluster, self._guard
        assert cluster is not None and guard is not None
        cluster.now = request.now
        guard.hear(request)
        for event in request.events:
            handle = _HANDLERS.get(type(event))
            if handle is not None:
                handle(self, cluster, event)
        if not self.finished:
            self._ask(self.scheduler.schedule, cluster)
        reply = ev.Message(request.now, cluster.take_decisions())
        try:
            guard.check(reply)
        except RuleBroken as broken:
            raise PolicyError(f"scheduler {self.scheduler.name!r} broke a rule at time {request.now:g}: {broken}") from None
        return reply

    def _check_order(self, request: ev.Message) -> None:
        begins = any(type(event) is ev.SimulationBegins for event in request.events)
        if self.finished:
            raise ProtocolError("the simulation has ended, yet the simulator goes on talking")
        if begins and self._cluster is not None:
            raise ProtocolError("SIMULATION_BEGINS came in the middle of a simulation")
        if not begins and self._cluster is None:
            raise ProtocolError("the conversation must begin with SIMULATION_BEGINS")
        if self._cluster is not None and request.now < self._cluster.now:
            raise ProtocolError(f"time runs backwards: {request.now:g} comes after {self._cluster.now:g}")

    def _begin(self, request: ev.Message) -> None:
        begins = request.events[0]
        if not isinstance(begins, ev.SimulationBegins):
            raise ProtocolError("SIMULATION_BEGINS must be the first event of the first message")
        self._cluster = Cluster(HostSet.range(len(begins.hosts)))
        self._guard = Guard(begins)
        self._ask(self.scheduler.begin, self._cluster)

    def _ask(self, question: Callable[[Cluster], None], cluster: Cluster) -> None:
        try:
            question(cluster)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            raise PolicyError(
                f"scheduler {self.scheduler.name!r} failed at time {cluster.now:g}: "
                f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            ) from error

    def _submitted(self, cluster: Cluster, event: ev.JobSubmitted) -> None:
        """A job joins the queue, unless no machine state could ever run it."""
        if 0 < event.job.size <= len(cluster.hosts):
            cluster.queue.append(event.job)
        else:
            cluster.reject(event.job)

    def _completed(self, cluster: Cluster, event: ev.JobCompleted) -> None:
        cluster.release(event.job_id)

    def _lost(self, cluster: Cluster, event: ev.HostsUnavailable) -> None:
        cluster.take_away(event.hosts)

    def _regained(self, cluster: Cluster, event: ev.HostsAvailable) -> None:
        cluster.give_back(event.hosts)

    def _ends(self, cluster: Cluster, event: ev.SimulationEnds) -> None:
        self.finished = True


_HANDLERS: dict[type[ev.Event], Callable[[DecisionProcess, Cluster, Any], None]] = {
    ev.JobSubmitted: DecisionProcess._submitted,
    ev.JobCompleted: DecisionProcess._completed,
    ev.HostsUnavailable: DecisionProcess._lost,
    ev.HostsAvailable: DecisionProcess._regained,
    ev.SimulationEnds: DecisionProcess._ends,
}
