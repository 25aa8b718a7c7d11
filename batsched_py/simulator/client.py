"""A decision process in another process, spoken to over ZeroMQ as Batsim does."""

from __future__ import annotations

import logging
from types import TracebackType

import zmq

from batsched_py.errors import InputError, PeerVanished, ProtocolError
from batsched_py.protocol import batsim4
from batsched_py.protocol.codec import Codec
from batsched_py.protocol.events import Message

DEFAULT_ENDPOINT = "tcp://localhost:28000"

_log = logging.getLogger(__name__)


class RemoteProcess:
    """Reacts to requests by asking whoever listens at an endpoint, while used as a context.

    It may start before the other side does. Without a ``timeout`` in seconds it waits for each reply for
    ever, as Batsim does; with one, silence raises :class:`PeerVanished`.
    """

    def __init__(
        self, endpoint: str = DEFAULT_ENDPOINT, timeout: float | None = None, codec: Codec = batsim4
    ) -> None:
        self.endpoint = endpoint
        self._timeout = timeout
        self._codec = codec

    def __enter__(self) -> RemoteProcess:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.linger = 0
        try:
            self._socket.connect(self.endpoint)
        except zmq.ZMQError as error:
            self._context.destroy()
            raise InputError(f"cannot connect to {self.endpoint}: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.destroy()

    def react(self, request: Message) -> Message:
        """Send a request and wait for the reply to it."""
        text = self._codec.encode_request(request)
        _log.debug("sending %s", text)
        self._socket.send(text)
        if not self._socket.poll(None if self._timeout is None else int(self._timeout * 1000)):
            raise PeerVanished(
                f"no reply came from the decision process at {self.endpoint} for {self._timeout:g} s "
                f"(the time is {request.now:g})"
            )
        frames = self._socket.recv_multipart()
        _log.debug("received %s", frames)
        if len(frames) != 1:
            raise ProtocolError(f"a reply came in {len(frames)} frames; the protocol sends each in one")
        return self._codec.decode_reply(frames[0])
