"""The side of a simulation that is told what happens and decides what to do."""

from __future__ import annotations

from typing import Protocol

from batsched_py.ledger.ledger import Effect, Ledger
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.simulator.catalog import Catalog


class Listener(Protocol):
    """Is told what happens, as it happens, and keeps the ledger."""

    def job_submitted(self, job: Job, now: float) -> None:
        """A job was submitted."""

    def job_ended(self, job_id: str, state: JobState, return_code: int, now: float) -> None:
        """A job has left its hosts."""

    def happened(self, event: ev.Event) -> None:
        """Anything else has happened."""


class DecisionSide(Listener, Protocol):
    """A decision process in this process."""

    def join(self, begins: ev.SimulationBegins, ledger: Ledger) -> None:
        """A simulation is about to begin, of which this is the ledger."""

    def decide(self, now: float) -> list[Effect]:
        """What is to be done now that all this has happened; it is in the ledger already."""


class Decides(Protocol):
    """Answers requests: a ``DecisionProcess`` here, or a ``RemoteProcess`` elsewhere."""

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""


class Messenger:
    """Puts what happens into messages, for a decision process that is elsewhere."""

    def __init__(self, ledger: Ledger, catalog: Catalog, forward_profiles: bool) -> None:
        self._ledger = ledger
        self._catalog = catalog
        self._forward_profiles = forward_profiles
        self._untold: list[ev.Event] = []

    def job_submitted(self, job: Job, now: float) -> None:
        """A job was submitted."""
        self._ledger.submit(job)
        self.announce(job, now)

    def announce(self, job: Job, now: float) -> None:
        """Tell that a job was submitted."""
        profile = self._catalog.profile_of(job) if self._forward_profiles else None
        self._untold.append(ev.JobSubmitted(job, profile, time=now))

    def job_ended(self, job_id: str, state: JobState, return_code: int, now: float) -> None:
        """A job has left its hosts."""
        ended = self._ledger.release(job_id)
        assert ended is not None
        self._ledger.unheard.add(job_id)
        self._untold.append(ev.JobCompleted(job_id, state, ended.hosts, return_code, time=now))

    def happened(self, event: ev.Event) -> None:
        """Anything else has happened."""
        self._ledger.learn(event)
        self._untold.append(event)

    def message(self, now: float) -> ev.Message:
        """What was not told yet."""
        self._ledger.unheard.clear()
        untold, self._untold = self._untold, []
        return ev.Message(now, untold)
