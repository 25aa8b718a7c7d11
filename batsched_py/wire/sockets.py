"""The two ends of the wire: one asks, the other answers, each message one frame of bytes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from ipaddress import ip_address
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

#: No message is larger, in bytes; a million jobs with a profile each begin a simulation with less.
LARGEST = 256 << 20

#: Beyond this, a connection is cut before anything is read.
_CUT = 4 * LARGEST

_PORT = re.compile(r"tcp://(?P<host>.*):(?P<port>[^:\]]*)")

_log = logging.getLogger(__name__)


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
        self._socket.maxmsgsize = _CUT
        self._socket.ipv6 = "[" in self.endpoint
        self._slices = 1 if self.timeout is None else ceil(self.timeout / SLICE)
        seconds = SLICE if self.timeout is None else self.timeout / self._slices
        self._socket.rcvtimeo = ceil(1000 * seconds)
        self._receive = self._socket.recv
        self._send = super(zmq.Socket, self._socket).send
        try:
            self._check_port()
            self._open()
        except (zmq.ZMQError, InputError) as error:
            self._context.destroy()
            reason = error.strerror if isinstance(error, zmq.ZMQError) else error
            raise InputError(f"{self.endpoint} cannot be used: {reason}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.destroy()

    def _check_port(self) -> None:
        """ZeroMQ itself takes some of the numbers that are none for others."""
        port = found["port"] if (found := _PORT.fullmatch(self.endpoint)) else "*"
        if port != "*" and not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
            raise InputError(f"a port is a number up to 65535, not {port!r}")

    def _open(self) -> None:
        raise NotImplementedError

    def send(self, message: bytes) -> None:
        """Say something."""
        raise NotImplementedError

    def receive(self, patiently: bool = False) -> bytes:
        """Wait for what the other end says; patiently means without the limit."""
        slices: Iterable[None] = repeat(None)
        if self.timeout is not None and not patiently:
            slices = repeat(None, self._slices)
        for _ in slices:
            try:
                while (said := self._listen()) is None:
                    pass
                return said
            except zmq.Again:
                continue
        raise PeerVanished(f"nothing came from the {self.peer} at {self.endpoint} for {self.timeout:g} s")

    def _listen(self) -> bytes | None:
        """The next message, or nothing if it was none; :class:`zmq.Again` when none came."""
        return self._content(self._receive(copy=False))

    def _content(self, frame: zmq.Frame) -> bytes:
        """The message in a frame, which must be its only one.

        Frames are received one by one: to ask the socket whether more follow takes as long as the rest.
        """
        if frame.more:
            count = 1 + len(self._socket.recv_multipart())
            raise ProtocolError(
                f"a message of the {self.peer} came in {count} frames; the protocol sends each in one"
            )
        if len(frame) > LARGEST:
            raise ProtocolError(
                f"a message of the {self.peer} has {len(frame)} bytes; {LARGEST} are the most"
            )
        return frame.bytes


class AskingEnd(_End):
    """Connects to a decision process, as a simulator does. It may be there before the other end is."""

    kind = zmq.REQ
    linger = 0
    peer = "decision process"

    def _open(self) -> None:
        self._socket.connect(self.endpoint)

    def send(self, message: bytes) -> None:
        """Say something."""
        self._socket.send(message)

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the reply to it."""
        self.send(request)
        return self.receive()


class AnsweringEnd(_End):
    """Listens for a simulator, as a decision process does.

    It is not a REP socket, though it answers like one. That puts the envelope of a request into the pipe of
    the one who asked while it is still reading it. Where somebody sends a frame without an envelope and
    hangs up, that pipe is gone when the socket wants to take this back, and the socket then takes the
    envelope of the next request for the rest of that message: the reply goes nowhere, and its simulator
    waits for ever. So envelopes are read and written here, where what has none is dropped.
    """

    kind = zmq.ROUTER
    linger = LINGER
    peer = "simulator"

    def _open(self) -> None:
        self._asker: bytes | None = None
        self._socket.bind(self.endpoint)
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        if _is_open_to_the_network(self.endpoint):
            _log.warning(
                "%s is open to the network: whoever reaches it can take part; "
                "tcp://127.0.0.1:PORT is for this machine only",
                self.endpoint,
            )

    def send(self, message: bytes) -> None:
        """Answer the last request."""
        assert self._asker is not None
        send = self._send
        send(self._asker, zmq.SNDMORE)
        send(b"", zmq.SNDMORE)
        send(message)
        self._asker = None

    def _listen(self) -> bytes | None:
        receive = self._receive
        asker, delimiter = receive(), receive(copy=False)
        if len(delimiter) or not delimiter.more:
            if delimiter.more:
                self._socket.recv_multipart()
            _log.debug("a stranger at %s sent something that is no request", self.endpoint)
            return None
        self._asker = asker
        return self._content(receive(copy=False))

    @property
    def owes_reply(self) -> bool:
        """Whether a request was received that has not been answered yet."""
        return self._asker is not None


def _is_open_to_the_network(endpoint: str) -> bool:
    """Whether somebody on another machine can reach an endpoint.

    >>> [_is_open_to_the_network(f"tcp://{host}:28000") for host in ("127.0.0.1", "[::1]", "0.0.0.0", "[::]")]
    [False, False, True, True]
    """
    found = _PORT.fullmatch(endpoint)
    return found is not None and not ip_address(found["host"].strip("[]").partition("%")[0]).is_loopback
