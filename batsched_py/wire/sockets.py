"""The two ends of a connection: one asks, the other answers. Each message is one frame of bytes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from ipaddress import ip_address
from itertools import repeat
from math import ceil
from typing import Self

import zmq

from batsched_py.errors import InputError, PeerVanished, ProtocolError

#: How long the last reply may take to leave once its socket is closed, in milliseconds.
LINGER = 1000

#: How long to wait at a time, in seconds: a Ctrl-C at the very moment in which a wait begins does not end
#: that wait.
SLICE = 0.2

#: The largest message, in bytes; the first message about a million jobs with a profile each is smaller.
LARGEST = 256 << 20

#: A connection with a larger message is closed before anything is read.
_CUT = 4 * LARGEST

_PORT = re.compile(r"tcp://(?P<host>.*):(?P<port>[^:\]]*)")

_log = logging.getLogger(__name__)


class _End:
    """One end, used as a context manager. With a ``timeout``, silence for more seconds is an error."""

    kind: int
    linger: int
    peer: str

    def __init__(self, endpoint: str, timeout: float | None = None) -> None:
        self.endpoint = endpoint
        """The address; when an answering end listens, a ``*`` in it is replaced by what was chosen."""
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

    def __exit__(self, *error: object) -> None:
        self._context.destroy()

    def _check_port(self) -> None:
        """ZeroMQ itself accepts some texts that are not port numbers."""
        port = found["port"] if (found := _PORT.fullmatch(self.endpoint)) else "*"
        if port != "*" and not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
            raise InputError(f"a port is a number up to 65535, not {port!r}")

    def _open(self) -> None:
        raise NotImplementedError

    def receive(self, patiently: bool = False) -> bytes:
        """Wait for a message of the other end; patiently means without the limit."""
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
        """The next message, or nothing if it was invalid; :class:`zmq.Again` if none arrived."""
        return self._content(self._receive(copy=False))

    def _content(self, frame: zmq.Frame) -> bytes:
        """The message in a frame, which must be its only one.

        Frames are received one by one: asking the socket whether more follow takes as long as all the rest.
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
    """Connects to a decision process, as a simulator does. It may start before the other end."""

    kind = zmq.REQ
    linger = 0
    peer = "decision process"

    def _open(self) -> None:
        self._socket.connect(self.endpoint)

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._socket.send(message)

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the reply to it."""
        self.send(request)
        return self.receive()


class AnsweringEnd(_End):
    """Listens for a simulator, as a decision process does.

    It answers like a REP socket, but is not one. A REP socket puts the envelope of a request into the pipe of
    the sender while it is still reading the request. If a peer sends a frame without an envelope and
    disconnects, that pipe is gone when the socket wants to undo this. It then takes the envelope of the next
    request for the rest of that message: the reply is lost, and its simulator waits for ever. So envelopes
    are read and written here, and a message without one is dropped.
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
    """Whether other machines can reach an endpoint.

    >>> [_is_open_to_the_network(f"tcp://{host}:28000") for host in ("127.0.0.1", "[::1]", "0.0.0.0", "[::]")]
    [False, False, True, True]
    """
    found = _PORT.fullmatch(endpoint)
    return found is not None and not ip_address(found["host"].strip("[]").partition("%")[0]).is_loopback
