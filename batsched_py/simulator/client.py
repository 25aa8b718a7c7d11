"""A decision process in another process, spoken to over ZeroMQ as Batsim does."""

from __future__ import annotations

import logging

from batsched_py.errors import PeerFailed
from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.events import Message, Settings, reason_to_stop
from batsched_py.wire.sockets import AskingEnd

_log = logging.getLogger(__name__)


class RemoteProcess:
    """Reacts to requests by asking the decision process at the other end."""

    def __init__(self, end: AskingEnd, dialect: Dialect = BATSIM4) -> None:
        self._end = end
        self._codec = dialect.codec()
        self._open = False

    def open(self, config: str = "") -> Settings | None:
        """Open the conversation, with a text for the decision process; for what it asks, where it can."""
        self._open = True
        return self._codec.open(self._ask, config)

    def react(self, request: Message) -> Message:
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
