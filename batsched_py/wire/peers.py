"""Those who are connected to a socket that listens: what they ask, and who has left."""

from __future__ import annotations

import logging
import select
import selectors
import socket
from contextlib import suppress
from time import monotonic

from batsched_py.wire.endpoint import close, listen
from batsched_py.wire.zmtp import GREETING, LARGEST, Link, NotZmtp, Request

#: How long to wait at a time, in seconds: a Ctrl-C at the very moment in which a wait begins does not end
#: that wait.
SLICE = 0.2

#: So many strangers may be connected; who came first leaves first.
MOST_STRANGERS = 100

#: So many bytes are read at a time.
_CHUNK = 1 << 16

#: So often something is read from a connection that is closed.
_MOST_UNREAD = 100

#: When the system is to find out whether a silent peer still exists: after so many seconds, how often, and
#: how many times without an answer.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}

_log = logging.getLogger(__name__)


class Peer:
    """Somebody who has connected."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.link = Link()
        self.left_at: float | None = None
        """When the connection was closed, on the monotonic clock."""


class Peers:
    """All who are connected. What one of them does never harms the others.

    One may be the ``partner``; the others are strangers, whose number and memory are limited.
    """

    def __init__(self, endpoint: str) -> None:
        self._listener, self.endpoint = listen(endpoint)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._peers: list[Peer] = []
        self.partner: Peer | None = None

    def close(self) -> None:
        """Close all connections, and listen no more."""
        for peer in list(self._peers):
            self._drop(peer)
        self._selector.close()
        close(self._listener)

    def requests(self) -> list[tuple[Peer, Request]]:
        """What is asked next, and by whom; nothing if there is none for a while."""
        asked: list[tuple[Peer, Request]] = []
        for key, _ in self._selector.select(SLICE):
            if key.data is None:
                self._accept()
            else:
                asked += [(key.data, request) for request in self._read(key.data)]
        return asked

    def push(self, peer: Peer, data: bytes, patience: float = 0.0) -> None:
        """Send something to somebody, who is dropped if nothing of it is taken for so many seconds."""
        silence = 0.0
        rest = memoryview(data)
        while rest and peer.left_at is None:
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

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has left already
            return
        _prepare(connection)
        peer = Peer(connection)
        self._peers.append(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)
        self.push(peer, GREETING)
        strangers = self._strangers()
        if len(strangers) > MOST_STRANGERS:
            self._drop(strangers[0])

    def _strangers(self) -> list[Peer]:
        return [peer for peer in self._peers if peer is not self.partner]

    def _read(self, peer: Peer) -> list[Request]:
        """Take what somebody has sent. Who talks nonsense, or too much, is dropped."""
        link = peer.link
        try:
            data = peer.connection.recv(_CHUNK)
            requests = link.receive(data) if data else []
        except BlockingIOError:
            return []
        except (OSError, NotZmtp) as error:
            _log.debug("a connection to %s was closed: %s", self.endpoint, error)
            self._drop(peer)
            return []
        if link.owed:
            self.push(peer, bytes(link.owed))
            link.owed.clear()
        if not data or (link.held and self._is_too_much(peer)):
            self._drop(peer)
        return requests

    def _is_too_much(self, peer: Peer) -> bool:
        """Whether somebody is a stranger, and all strangers together have sent too much that is not whole."""
        strangers = self._strangers()
        return peer in strangers and sum(each.link.held for each in strangers) > LARGEST + _CHUNK

    def _drop(self, peer: Peer) -> None:
        """Close a connection. What was not read is read first: otherwise the last reply would be lost."""
        if peer.left_at is not None:
            return
        peer.left_at = monotonic()
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
