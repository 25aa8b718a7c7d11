"""The two ends of a connection: one asks, the other answers. Each message is one frame of bytes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from math import ceil, inf
from time import monotonic
from typing import Self

from batsched_py.errors import InputError, PeerVanished, ProtocolError
from batsched_py.wire.endpoint import check_port, is_open_to_the_network
from batsched_py.wire.peers import SLICE, Peer, Peers
from batsched_py.wire.zmtp import LARGEST, Request, reply

#: How long a simulator whose connection was closed may take to come back, in seconds.
GRACE = 30.0

_log = logging.getLogger(__name__)


def _check(frames: int, size: int, peer: str) -> None:
    """Refuse a message that is not one frame of a size that is allowed."""
    if frames != 1:
        raise ProtocolError(
            f"a message of the {peer} came in {frames} frames; the protocol sends each in one"
        )
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
            others = self._socket.recv_multipart() if frame.more else []
            _check(1 + len(others), len(frame), "decision process")
            return frame.bytes
        raise PeerVanished(
            f"nothing came from the decision process at {self.endpoint} for {self.timeout:g} s"
        )


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
        self._requests: deque[tuple[Peer, Request]] = deque()
        self._asker: Peer | None = None
        self._refuse: Callable[[bytes], bytes] | None = None
        self._has_refused = False

    def __enter__(self) -> Self:
        self._peers = Peers(self.endpoint)
        self.endpoint = self._peers.endpoint
        if is_open_to_the_network(self.endpoint):
            _log.warning(
                "%s is open to the network: whoever reaches it can take part; "
                "tcp://127.0.0.1:PORT is for this machine only",
                self.endpoint,
            )
        return self

    def __exit__(self, *error: object) -> None:
        self._peers.close()

    def receive(self, patiently: bool = False) -> bytes:
        """Wait for a request; patiently means without the limit."""
        began = monotonic()
        while True:
            while self._requests:
                peer, request = self._requests.popleft()
                if self._hears(peer):
                    self._asker = peer
                    _check(request.frames, request.size, "simulator")
                    return request.body
                self._turn_away(peer, request)
            self._requests += self._peers.requests()
            if not self._requests:
                self._check_silence(began, patiently)

    def send(self, message: bytes) -> None:
        """Answer the last request. A reply to somebody who has left is lost."""
        assert self._asker is not None
        self._peers.push(self._asker, reply(message), self.timeout or inf)
        self._asker = None

    @property
    def owes_reply(self) -> bool:
        """Whether a request was received that has not been answered yet."""
        return self._asker is not None

    def hold(self, refuse: Callable[[bytes], bytes]) -> None:
        """Begin a conversation with who asked last; ``refuse`` answers the requests of all others."""
        self._peers.partner = self._asker
        self._refuse = refuse
        self._has_refused = False

    def release(self) -> None:
        """The conversation is over; whoever asks next is heard."""
        self._peers.partner = self._refuse = None

    def _hears(self, peer: Peer) -> bool:
        """Whether somebody is the simulator of the conversation, or takes the place of one that has left."""
        partner = self._peers.partner
        if partner is not None and peer is not partner:
            if partner.left_at is None:
                return False
            self._peers.partner = peer
        return True

    def _turn_away(self, stranger: Peer, request: Request) -> None:
        assert self._refuse is not None
        if not self._has_refused:
            _log.warning(
                "a request of somebody else at %s is refused: one simulation at a time", self.endpoint
            )
        self._has_refused = True
        self._peers.push(stranger, reply(self._refuse(request.body)))

    def _check_silence(self, began: float, patiently: bool) -> None:
        now, partner = monotonic(), self._peers.partner
        if self.timeout is not None and not patiently and now - began >= self.timeout:
            raise PeerVanished(f"nothing came from the simulator at {self.endpoint} for {self.timeout:g} s")
        if partner is None or partner.left_at is None:
            return
        if now - max(began, partner.left_at) >= self.grace:
            raise PeerVanished(
                f"the simulator at {self.endpoint} closed its connection before its simulation had ended, "
                f"and did not come back within {self.grace:g} s; see what it said, and start both sides again"
            )
