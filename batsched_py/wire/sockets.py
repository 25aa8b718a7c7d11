"""The two ends of the wire: one asks, the other answers, each message one frame of bytes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from math import ceil
from types import TracebackType
from typing import Self

import zmq

from batsched_py.errors import InputError, PeerVanished, ProtocolError

#: How long the last reply may take to leave once its socket is closed, in milliseconds.
LINGER = 1000

#: How long to wait without looking up, in seconds: a Ctrl-C in the very moment in which a wait begins does
#: not end that wait.
SLICE = 0.2


class _End:
    """One end, while used as a context. Silence of more than ``timeout`` seconds is an error, if given."""

    kind: int
    linger: int
    peer: str

    def __init__(self, endpoint: str, timeout: float | None = None) -> None:
        self.endpoint = endpoint
        """Where the two meet; once an answering end listens, a ``*`` in it has become what was chosen."""
        self.timeout = timeout

    def __enter__(self) -> Self:
        self._context = zmq.Context()
        self._socket = self._context.socket(self.kind)
        self._socket.linger = self.linger
        self._slices = 1 if self.timeout is None else ceil(self.timeout / SLICE)
        seconds = SLICE if self.timeout is None else self.timeout / self._slices
        self._socket.rcvtimeo = ceil(1000 * seconds)
        try:
            self._open()
        except zmq.ZMQError as error:
            self._context.destroy()
            raise InputError(f"{self.endpoint} cannot be used: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.destroy()

    def _open(self) -> None:
        raise NotImplementedError

    def send(self, message: bytes) -> None:
        """Say something."""
        self._socket.send(message)

    def receive(self, patiently: bool = False) -> bytes:
        """Wait for what the other end says; patiently means without the limit."""
        slices: Iterable[None] = repeat(None)
        if self.timeout is not None and not patiently:
            slices = repeat(None, self._slices)
        for _ in slices:
            try:
                message: bytes = self._socket.recv()
            except zmq.Again:
                continue
            if self._socket.getsockopt(zmq.RCVMORE):
                frames = 1 + len(self._socket.recv_multipart())
                raise ProtocolError(
                    f"a message of the {self.peer} came in {frames} frames; the protocol sends each in one"
                )
            return message
        raise PeerVanished(f"nothing came from the {self.peer} at {self.endpoint} for {self.timeout:g} s")


class AskingEnd(_End):
    """Connects to a decision process, as a simulator does. It may be there before the other end is."""

    kind = zmq.REQ
    linger = 0
    peer = "decision process"

    def _open(self) -> None:
        self._socket.connect(self.endpoint)

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the reply to it."""
        self.send(request)
        return self.receive()


class AnsweringEnd(_End):
    """Listens for a simulator, as a decision process does."""

    kind = zmq.REP
    linger = LINGER
    peer = "simulator"

    def _open(self) -> None:
        self._socket.bind(self.endpoint)
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    @property
    def owes_reply(self) -> bool:
        """Whether a request was received that has not been answered yet."""
        return bool(int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT)
