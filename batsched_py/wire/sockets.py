"""The two ends of a connection over ZeroMQ: one asks, the other answers. Each message is one frame of bytes.

Endpoints are written as ZeroMQ writes them, such as ``tcp://127.0.0.1:28000``.
"""

import logging
import os
import re
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from stat import S_ISSOCK
from struct import Struct
from time import monotonic
from typing import Self

import zmq

from batsched_py.errors import InputError, PeerVanished, ProtocolError

#: The largest message, in bytes; the first message about a million jobs with a profile each is smaller.
LARGEST = 256 << 20

#: One that is somewhat larger is received, to be refused with an answer; who sends a larger one is
#: disconnected.
_LONGEST_FRAME = 2 * LARGEST

#: So many requests of each peer may wait; those that follow stay with the peer.
_MOST_WAITING = 16

#: A peer that is silent for so many seconds is asked for a sign of life, and has as long to give it.
_HEARTBEAT = 60

#: How long a simulator whose connection was closed may take to come back, in seconds.
GRACE = 30.0

#: How long to wait at a time, in seconds: a Ctrl-C at the very moment in which a wait begins does not end
#: that wait.
_SLICE = 0.2

#: How many files a process with a socket of ZeroMQ must be allowed to open; libzmq aborts it at its limit.
_OPEN_FILES = 64

_TCP = re.compile(r"tcp://(?P<host>.*):(?P<port>[^:\]]*)")
_IPC = "ipc://"

#: What is told of a connection that was accepted or closed: which of them, and its file descriptor.
_CHANGE = Struct("=Hi")

_log = logging.getLogger(__name__)


class _End:
    """What both ends have in common. With a ``timeout``, silence for more seconds is an error."""

    def __init__(self, endpoint: str, timeout: float | None = None) -> None:
        self.endpoint = endpoint
        """The address; while an answering end listens, with what was chosen for a ``*`` in it."""
        self.timeout = timeout

    def _open(self, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if 0 <= allowed < _OPEN_FILES:
            raise InputError(
                f"{endpoint} cannot be used: a process may have only {allowed} files open here, and ZeroMQ "
                f"needs some; allow more by `ulimit -n {_OPEN_FILES}`"
            )
        self._context = zmq.Context()
        opened: zmq.Socket[bytes] = self._context.socket(kind)
        opened.linger = 0
        opened.ipv6 = "[" in endpoint
        opened.maxmsgsize = _LONGEST_FRAME
        opened.rcvtimeo = ceil(1000 * min(_SLICE, self.timeout or _SLICE))
        return opened

    def __exit__(self, *error: object) -> None:
        self._context.destroy()

    def _is_too_late(self, began: float) -> bool:
        return self.timeout is not None and monotonic() - began >= self.timeout

    def _unusable(self, error: Exception) -> InputError:
        return InputError(f"{self.endpoint} cannot be used: {getattr(error, 'strerror', None) or error}")


class AskingEnd(_End):
    """Connects to a decision process, as a simulator does. It may start before the other end.

    While it waits for a message, ``meanwhile`` is called with the seconds that it has waited so far, several
    times a second; an error that it raises ends the wait.
    """

    def __init__(
        self,
        endpoint: str,
        timeout: float | None = None,
        meanwhile: Callable[[float], object] = lambda waited: None,
    ) -> None:
        super().__init__(endpoint, timeout)
        self._meanwhile = meanwhile

    def __enter__(self) -> Self:
        _check_port(self.endpoint)
        self._socket = self._open(zmq.REQ, self.endpoint)
        try:
            self._socket.connect(self.endpoint)
        except zmq.ZMQError as error:
            self._context.destroy()
            raise self._unusable(error) from None
        return self

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._socket.send(message)

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the reply to it."""
        self.send(request)
        return self.receive()

    def receive(self) -> bytes:
        """Wait for a message of the other end."""
        began = monotonic()
        while True:
            try:
                frame = self._socket.recv(copy=False)
            except zmq.Again:
                if self._is_too_late(began):
                    raise PeerVanished(
                        f"nothing came from the decision process at {self.endpoint} for {self.timeout:g} s"
                    ) from None
                self._meanwhile(monotonic() - began)
            else:
                return _body(self._socket, frame, "decision process")


class AnsweringEnd(_End):
    """Listens for a simulator, as a decision process does.

    From :meth:`hold` to :meth:`release` a conversation with one simulator goes on. Until then whoever asks is
    heard. From then on others are refused, unless the simulator has left: then it has ``grace`` seconds to
    come back, and who asks in its place is heard.

    The socket is a ROUTER: it names the connection from which a request came. A monitor tells which file
    descriptors were accepted and closed, and a request tells the descriptor on which it came.
    """

    def __init__(self, endpoint: str, timeout: float | None = None, grace: float = GRACE) -> None:
        super().__init__(endpoint, timeout)
        self.grace = grace
        self._asker: bytes | None = None
        """The name of the connection that waits for a reply."""
        self._envelope = zmq.Frame()
        """The empty frame before the last request."""
        self._partner: bytes | None = None
        self._descriptor = -1
        self._left_at: float | None = None
        """When the partner's connection was found closed, on the monotonic clock."""
        self._connected: set[int] = set()
        self._looked_at = 0.0
        self._refuse: Callable[[bytes], bytes] | None = None
        self._has_refused = False

    def __enter__(self) -> Self:
        try:
            endpoint = _where_to_listen(self.endpoint)
        except (OSError, ValueError) as error:
            raise self._unusable(error) from None
        self._socket = self._open(zmq.ROUTER, endpoint)
        self._socket.linger = ceil(1000 * self.grace)
        self._socket.rcvhwm = _MOST_WAITING
        self._socket.heartbeat_ivl = self._socket.heartbeat_timeout = ceil(1000 * _HEARTBEAT)
        # What is not heard yet of connections must have no limit: at one, libzmq itself would wait.
        self._monitor: zmq.Socket[bytes] = self._context.socket(zmq.PAIR)
        self._monitor.linger = self._monitor.rcvhwm = 0
        self._socket.monitor("inproc://connections", zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self._monitor.connect("inproc://connections")
        before = os.umask(0o177) if _file_of(endpoint) is not None else None
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._context.destroy()
            raise self._unusable(error) from None
        finally:
            if before is not None:
                os.umask(before)
        self.endpoint = str(self._socket.get_string(zmq.LAST_ENDPOINT))
        if _is_open_to_the_network(self.endpoint):
            _log.warning(
                "%s is open to the network: whoever reaches it can take part; "
                "tcp://127.0.0.1:PORT is for this machine only",
                self.endpoint,
            )
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if (path := _file_of(self.endpoint)) is not None:
            path.unlink(missing_ok=True)

    def receive(self, patiently: bool = False) -> bytes:
        """Wait for a request; patiently means without the limit."""
        began = monotonic()
        if began - self._looked_at >= _SLICE:
            self._look()
        while True:
            try:
                name = self._socket.recv()
            except zmq.Again:
                self._check_silence(began, patiently)
                continue
            envelope = self._socket.recv(copy=False)
            if len(envelope) or not envelope.more:
                _skip(self._socket, envelope)
                _log.debug("something that is no request was dropped")
                continue
            frame = self._socket.recv(copy=False)
            if self._hears(name, envelope):
                self._asker, self._envelope = name, envelope
                return _body(self._socket, frame, "simulator")
            self._turn_away(name, frame)

    def send(self, message: bytes) -> None:
        """Answer the last request. A reply to somebody who has left is lost."""
        assert self._asker is not None
        asker, self._asker = self._asker, None
        self._reply(asker, message)

    @property
    def owes_reply(self) -> bool:
        """Whether a request was received that has not been answered yet."""
        return self._asker is not None

    def hold(self, refuse: Callable[[bytes], bytes]) -> None:
        """Begin a conversation with who asked last; ``refuse`` answers the requests of all others."""
        self._look()
        self._converse_with(self._asker, self._envelope)
        self._refuse = refuse
        self._has_refused = False

    def release(self) -> None:
        """The conversation is over; whoever asks next is heard."""
        self._partner = self._refuse = None

    def _reply(self, name: bytes, message: bytes) -> None:
        self._socket.send(name, zmq.SNDMORE)
        self._socket.send(b"", zmq.SNDMORE)
        self._socket.send(message)

    def _converse_with(self, name: bytes | None, envelope: zmq.Frame) -> None:
        self._partner = name
        try:
            self._descriptor = int(envelope.get(zmq.SRCFD))
        except zmq.ZMQError:  # a peer of ZeroMQ 3 or before, whose descriptor is known if nobody else is here
            self._descriptor = min(self._connected) if len(self._connected) == 1 else -1
        self._left_at = None if self._descriptor in (-1, *self._connected) else monotonic()

    def _hears(self, name: bytes, envelope: zmq.Frame) -> bool:
        """Whether somebody is the simulator of the conversation, or takes the place of one that has left."""
        if self._partner is None or (name == self._partner and self._left_at is None):
            return True
        self._look()
        if self._left_at is None:
            return False
        self._converse_with(name, envelope)
        return True

    def _turn_away(self, stranger: bytes, frame: zmq.Frame) -> None:
        assert self._refuse is not None
        if not self._has_refused:
            text = "a request of somebody else at %s is refused: one simulation at a time"
            _log.warning(text, self.endpoint)
        self._has_refused = True
        try:
            said = _body(self._socket, frame, "stranger")
        except ProtocolError:
            said = b""
        self._reply(stranger, self._refuse(said))

    def _look(self) -> None:
        """See which connections were accepted and closed."""
        self._looked_at = monotonic()
        with suppress(zmq.Again):
            while True:
                change, descriptor = _CHANGE.unpack(self._monitor.recv(zmq.NOBLOCK))
                self._monitor.recv()
                if change == zmq.EVENT_ACCEPTED:
                    self._connected.add(descriptor)
                    continue
                self._connected.discard(descriptor)
                if descriptor == self._descriptor and self._left_at is None:
                    self._left_at = self._looked_at

    def _check_silence(self, began: float, patiently: bool) -> None:
        if not patiently and self._is_too_late(began):
            raise PeerVanished(f"nothing came from the simulator at {self.endpoint} for {self.timeout:g} s")
        self._look()
        if self._partner is None or self._left_at is None:
            return
        if monotonic() - max(began, self._left_at) >= self.grace:
            raise PeerVanished(
                f"the simulator at {self.endpoint} closed its connection before its simulation had ended, "
                f"and did not come back within {self.grace:g} s; see what it said, and start both sides again"
            )


def _body(end: zmq.Socket[bytes], frame: zmq.Frame, peer: str) -> bytes:
    """The message that begins with this frame, which must be its only one and of a size that is allowed.

    A frame knows whether more follow; asking the socket takes as long as all the rest.
    """
    if frame.more:
        came = f"a message of the {peer} came in {1 + _skip(end, frame)} frames"
        raise ProtocolError(f"{came}; the protocol sends each in one")
    if len(frame) > LARGEST:
        raise ProtocolError(f"a message of the {peer} has {len(frame)} bytes; {LARGEST} are the most")
    return frame.bytes


def _skip(end: zmq.Socket[bytes], frame: zmq.Frame) -> int:
    """Drop the frames that follow one in its message; how many there were."""
    skipped = 0
    while frame.more:
        frame = end.recv(copy=False)
        skipped += 1
    return skipped


def _check_port(endpoint: str) -> None:
    """Refuse a port that is none; ZeroMQ itself accepts some texts that are not numbers."""
    port = found["port"] if (found := _TCP.fullmatch(endpoint)) else "*"
    if port != "*" and not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
        raise InputError(f"{endpoint} cannot be used: a port is a number up to 65535, not {port!r}")


def _where_to_listen(endpoint: str) -> str:
    """An endpoint as libzmq can listen at it.

    It looks names of hosts up only to connect to them. It would replace any file that is in its place; here
    only a socket is replaced, and only if nobody listens at it any more.
    """
    _check_port(endpoint)
    if (found := _TCP.fullmatch(endpoint)) is not None:
        host = found["host"].strip("[]")
        if host == "*":
            return endpoint
        address = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        return f"tcp://{f'[{address}]' if ':' in address else address}:{found['port']}"
    if not endpoint.startswith(_IPC):
        raise ValueError("expected tcp://ADDRESS:PORT or ipc://PATH")
    path = _file_of(endpoint)
    if path is not None and path.exists():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if not S_ISSOCK(path.stat().st_mode) or probe.connect_ex(str(path)) == 0:
                raise ValueError("Address already in use")
    return endpoint


def _file_of(endpoint: str) -> Path | None:
    """The file at which others connect, if there is one."""
    name = endpoint.removeprefix(_IPC)
    return None if name == endpoint or name.startswith("@") else Path(name)


def _is_open_to_the_network(endpoint: str) -> bool:
    """Whether other machines can reach an endpoint.

    >>> [_is_open_to_the_network(f"tcp://{host}:28000") for host in ("127.0.0.1", "[::1]", "0.0.0.0", "[::]")]
    [False, False, True, True]
    """
    found = _TCP.fullmatch(endpoint)
    return found is not None and not ip_address(found["host"].strip("[]").partition("%")[0]).is_loopback
