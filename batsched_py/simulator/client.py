"""A decision process in another process, spoken to over ZeroMQ as Batsim does."""

from __future__ import annotations

import logging

from batsched_py.protocol import batsim4
from batsched_py.protocol.codec import Codec
from batsched_py.protocol.events import Message
from batsched_py.sockets import AskingEnd

_log = logging.getLogger(__name__)


class RemoteProcess:
    """Reacts to requests by asking whoever listens at the other end."""

    def __init__(self, end: AskingEnd, codec: Codec = batsim4) -> None:
        self._end = end
        self._codec = codec

    def react(self, request: Message) -> Message:
        """Send a request and wait for the reply to it."""
        text = self._codec.encode_request(request)
        _log.debug("sending %s", text)
        reply = self._end.ask(text)
        _log.debug("received %s", reply)
        return self._codec.decode_reply(reply)
