"""The two ends of a connection: one asks, the other answers. Each message is one frame of bytes."""

from __future__ import annotations

import logging
import select
import selectors
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import ceil, inf
from time import monotonic
from typing import Self

from batsched_py.errors import InputError, PeerVanished, ProtocolError
from batsched_py.wire.endpoint import check_port, is_open_to_the_network, listen
from batsched_py.wire.zmtp import GREETING, LARGEST, Link, NotZmtp, Request, reply

#: How long to wait at a time, in seconds: a Ctrl-C at the very moment in which a wait begins does not end
#: that wait.
SLICE = 0.2

#: How long a simulator whose connection was closed may take to come back, in seconds.
GRACE = 30.0

#: So many peers may be connected; who came first leaves first, the simulator last.
MOST_PEERS = 100

#: So many bytes are read at a time.
_CHUNK = 1 << 16

#: So often something is read from a connection that is closed.
_MOST_UNREAD = 100

#: When the system is to find out whether a silent peer still exists: after so many seconds, how often, and
#: how many times without an answer.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}

_log = logging.getLogger(__name__)


def _check_frames(count: int, peer: str) -> None:
    if count != 1:
        raise ProtocolError(f"a message of the {peer} came in {count} frames; the protocol sends each in one")


def _check_size(size: int, peer: str) -> None:
    if size > LARGEST:
        raise ProtocolError(f"a message of the {peer} has {size} bytes; {LARGEST} are the most")


class AskingEnd:
    """Connects to a decision process, as a simulator does. It may start before the other end.

    With a ``timeout``, silence for more seconds is an error.
    """

    def __init__(self, endpoint: str, timeout: float | None = None) -> None:
        self.endpoint = endpoint
        self.timeout = timeout

    def __enter__(self) -> Self:
        import zmq

        check_port(self.endpoint)
        self._silent: type[Exception] = zmq.Again
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.linger = 0
        self._socket.maxmsgsize = 4 * LARGEST
        self._socket.ipv6 = "[" in self.endpoint
        self._slices = inf if self.timeout is None else ceil(self.timeout / SLICE)
        seconds = SLICE if self.timeout is None else self.timeout / self._slices
        self._socket.rcvtimeo = ceil(1000 * seconds)
        try:
            self._socket.connect(self.endpoint)
        except zmq.ZMQError as error:
            self._context.destroy()
            raise InputError(f"{self.endpoint} cannot be used: {error.strerror}") from None
        return self

    def __exit__(self, *error: object) -> None:
        self._context.destroy()

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._socket.send(message)

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the reply to it."""
        self.send(request)
        return self.receive()

    def receive(self) -> bytes:
        """Wait for a message of the other end.

        Frames are received one by one: asking the socket whether more follow takes as long as all the rest.
        """
        slices = 0
        while slices < self._slices:
            try:
                frame = self._socket.recv(copy=False)
            except self._silent:
                slices += 1
                continue
            _check_frames(1 + (len(self._socket.recv_multipart()) if frame.more else 0), "decision process")
            _check_size(len(frame), "decision process")
            return frame.bytes
        raise PeerVanished(
            f"nothing came from the decision process at {self.endpoint} for {self.timeout:g} s"
        )


class _Peer:
    """Somebody who has connected."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.link = Link()
        self.connected = True


class AnsweringEnd:
    """Listens for a simulator, as a decision process does.

    From :meth:`hold` to :meth:`release` a conversation with one simulator goes on. Until then whoever asks is
    heard. From then on others are refused, unless the simulator has left: then it has ``grace`` seconds to
    come back, and who asks in its place is heard. With a ``timeout``, silence for more seconds is an error.
    """

    def __init__(self, endpoint: str, timeout: float | None = None, grace: float = GRACE) -> None:
        self.endpoint = endpoint
        """The address; while this end listens, with what was chosen for a ``*`` in it."""
        self.timeout = timeout
        self.grace = grace
        self._peers: list[_Peer] = []
        self._requests: deque[tuple[_Peer, Request]] = deque()
        self._asker: _Peer | None = None
        self._partner: _Peer | None = None
        self._left_at = inf
        self._refuse: Callable[[bytes], bytes] | None = None
        self._refused = False

    def __enter__(self) -> Self:
        self._listener, self.endpoint = listen(self.endpoint)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        if is_open_to_the_network(self.endpoint):
            _log.warning(
                "%s is open to the network: whoever reaches it can take part; "
                "tcp://127.0.0.1:PORT is for this machine only",
                self.endpoint,
            )
        return self

    def __exit__(self, *error: object) -> None:
        for peer in list(self._peers):
            self._drop(peer)
        self._selector.close()
        self._listener.close()

    # --- the conversation ------------------------------------------------------------------------

    def receive(self, patiently: bool = False) -> bytes:
        """Wait for a request; patiently means without the limit."""
        began = monotonic()
        while True:
            while self._requests:
                peer, request = self._requests.popleft()
                if self._hears(peer):
                    self._asker = peer
                    _check_frames(request.frames, "simulator")
                    _check_size(request.size, "simulator")
                    return request.body
                self._turn_away(peer, request)
            for key, _ in self._selector.select(SLICE):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            if not self._requests:
                self._check_silence(began, patiently)

    def send(self, message: bytes) -> None:
        """Answer the last request. A reply to somebody who has left is lost."""
        assert self._asker is not None
        self._push(self._asker, reply(message), self.timeout or inf)
        self._asker = None

    @property
    def owes_reply(self) -> bool:
        """Whether a request was received that has not been answered yet."""
        return self._asker is not None

    def hold(self, refuse: Callable[[bytes], bytes]) -> None:
        """Begin a conversation with who asked last; ``refuse`` answers the requests of all others."""
        self._partner = self._asker
        self._refuse = refuse
        self._refused = False

    def release(self) -> None:
        """The conversation is over; whoever asks next is heard."""
        self._partner = self._refuse = None

    def _hears(self, peer: _Peer) -> bool:
        """Whether somebody is the simulator of the conversation, or takes the place of one that has left."""
        if self._partner is not None and peer is not self._partner:
            if self._partner.connected:
                return False
            self._partner = peer
        return True

    def _turn_away(self, stranger: _Peer, request: Request) -> None:
        assert self._refuse is not None
        if not self._refused:
            _log.warning(
                "a request of somebody else at %s is refused: one simulation at a time", self.endpoint
            )
        self._refused = True
        self._push(stranger, reply(self._refuse(request.body)), 0.0)

    def _check_silence(self, began: float, patiently: bool) -> None:
        now, partner = monotonic(), self._partner
        if self.timeout is not None and not patiently and now - began >= self.timeout:
            raise PeerVanished(f"nothing came from the simulator at {self.endpoint} for {self.timeout:g} s")
        if partner is not None and not partner.connected and now - max(began, self._left_at) >= self.grace:
            raise PeerVanished(
                f"the simulator at {self.endpoint} closed its connection before its simulation had ended, "
                f"and did not come back within {self.grace:g} s; see what it said, and start both sides again"
            )

    # --- connections -----------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has left already
            return
        _prepare(connection)
        peer = _Peer(connection)
        self._peers.append(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)
        self._push(peer, GREETING, 0.0)
        strangers = [other for other in self._peers if other is not self._partner]
        if len(strangers) > MOST_PEERS:
            self._drop(strangers[0])

    def _read(self, peer: _Peer) -> None:
        """Take what somebody has sent. Who talks nonsense, or too much, is dropped."""
        link = peer.link
        try:
            data = peer.connection.recv(_CHUNK)
            requests = link.receive(data) if data else []
        except BlockingIOError:
            return
        except (OSError, NotZmtp) as error:
            _log.debug("a connection to %s was closed: %s", self.endpoint, error)
            self._drop(peer)
            return
        for request in requests:
            self._requests.append((peer, request))
        if link.owed:
            self._push(peer, bytes(link.owed), 0.0)
            link.owed.clear()
        if not data or (link.held and self._held_by_strangers() > LARGEST + _CHUNK):
            self._drop(peer)

    def _held_by_strangers(self) -> int:
        return sum(peer.link.held for peer in self._peers if peer is not self._partner)

    def _push(self, peer: _Peer, data: bytes, patience: float) -> None:
        """Send something to somebody, who is dropped if nothing of it is taken for so many seconds."""
        silence = 0.0
        rest = memoryview(data)
        while peer.connected and rest:
            try:
                rest = rest[peer.connection.send(rest) :]
                silence = 0.0
            except BlockingIOError:
                if silence >= patience:
                    self._drop(peer)
                    return
                select.select([], [peer.connection], [], SLICE)
                silence += SLICE
            except OSError:
                self._drop(peer)

    def _drop(self, peer: _Peer) -> None:
        """Close a connection. What was not read is read first: otherwise the last reply would be lost."""
        if not peer.connected:
            return
        peer.connected = False
        if peer is self._partner:
            self._left_at = monotonic()
        self._peers.remove(peer)
        self._selector.unregister(peer.connection)
        with suppress(OSError):
            peer.connection.shutdown(socket.SHUT_WR)
            for _ in range(_MOST_UNREAD):
                if not peer.connection.recv(_CHUNK):
                    break
        peer.connection.close()


def _prepare(connection: socket.socket) -> None:
    """Let a connection send without delay, and find out by itself whether the other side still exists."""
    connection.setblocking(False)
    if connection.family == getattr(socket, "AF_UNIX", None):
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
