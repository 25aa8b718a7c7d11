"""The side of a simulation that is told what happens and decides what to do: here, or in another process."""

import logging
from typing import Protocol

from batsched_py.errors import PeerFailed
from batsched_py.ledger.ledger import Ledger
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.events import reason_to_stop
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


_log = logging.getLogger(__name__)


class Asks(Protocol):
    """The end of a connection, such as an ``AskingEnd``."""

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the reply to it."""


class RemoteProcess:
    """Reacts to requests by asking the decision process at the other end."""

    def __init__(self, end: Asks, dialect: Dialect = BATSIM4) -> None:
        self._end = end
        self._codec = dialect.codec()
        self._open = False

    def open(self, config: str = "") -> ev.Settings | None:
        """Open the conversation, with a text for the decision process; for what it asks, where it can."""
        self._open = True
        return self._codec.open(self._ask, config)

    def react(self, request: ev.Message) -> ev.Message:
        """Send a request and wait for the reply to it; before the first, open the conversation."""
        if not self._open:
            self.open()
        reply = self._codec.decode_reply(self._ask(self._codec.encode_request(request)))
        if (reason := reason_to_stop(reply)) is not None:
            raise PeerFailed(f"the decision process failed: {reason}")
        return reply

    def _ask(self, said: bytes) -> bytes:
        _log.debug("sending %s", said)
        reply = self._end.ask(said)
        _log.debug("received %s", reply)
        return reply
