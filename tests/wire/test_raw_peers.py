"""Peers that speak ZeroMQ's protocol by hand over a real connection: good, old, odd and hostile ones."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.errors import PeerVanished, ProtocolError
from batsched_py.wire import sockets
from batsched_py.wire.sockets import LARGEST, AnsweringEnd
from tests.decision.test_server import BEGINS
from tests.processes import PATIENCE, serving

ANYWHERE = "tcp://127.0.0.1:*"

MORE, LONG, COMMAND = 1, 2, 4

SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"
GREETING = (SIGNATURE + b"\x03\0NULL").ljust(64, b"\0")
READY = b"\x04\x26\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0"
HELLO = GREETING + READY

EMPTY_ENVELOPE = b"\x01\x00"
LONG_ENVELOPE = bytes([MORE | LONG]) + bytes(8)


def frame(content: bytes, flags: int = 0) -> bytes:
    if len(content) < 256:
        return bytes([flags, len(content)]) + content
    return bytes([flags | LONG]) + len(content).to_bytes(8) + content


def request(*frames: bytes) -> bytes:
    *first, last = frames
    return EMPTY_ENVELOPE + b"".join(frame(each, MORE) for each in first) + frame(last)


class RawPeer:
    """A connection of TCP on which any bytes are sent, and whole frames are read."""

    def __init__(self, endpoint: str, hello: bytes = HELLO) -> None:
        self.connection = socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])))
        self.connection.settimeout(PATIENCE)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(hello)

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def take(self, size: int) -> bytes:
        """The next bytes, so many of them."""
        taken = b""
        while len(taken) < size:
            piece = self.connection.recv(size - len(taken))
            assert piece, "the other side has closed the connection"
            taken += piece
        return taken

    def take_frame(self) -> tuple[int, bytes]:
        """The flags and the content of the next frame."""
        (flags,) = self.take(1)
        return flags, self.take(int.from_bytes(self.take(8 if flags & LONG else 1)))

    def meet(self) -> bytes:
        """Read who the other side is; only then may requests be sent."""
        assert self.take(64).startswith(SIGNATURE)
        flags, ready = self.take_frame()
        assert flags == COMMAND
        return ready

    def read_to_the_end(self) -> None:
        """Read until the other side closes the connection; a long wait for that is an error."""
        with suppress(ConnectionError):
            while self.connection.recv(1000):
                pass


@contextmanager
def raw_peer(endpoint: str, hello: bytes = HELLO) -> Iterator[RawPeer]:
    peer = RawPeer(endpoint, hello)
    with peer.connection:
        yield peer


@pytest.fixture(scope="module")
def end() -> Iterator[AnsweringEnd]:
    """One that answers all tests of this module."""
    with AnsweringEnd(ANYWHERE, PATIENCE) as listening:
        yield listening


def check_that_others_are_answered(end: AnsweringEnd) -> None:
    with raw_peer(end.endpoint) as good:
        good.meet()
        good.send(request(b"good"))
        assert end.receive() == b"good"
        end.send(b"answer")
        assert [good.take_frame(), good.take_frame()] == [(MORE, b""), (0, b"answer")]


@pytest.mark.parametrize("envelope", [EMPTY_ENVELOPE, LONG_ENVELOPE])
@pytest.mark.parametrize("long_body", [False, True])
def test_serve_answers_an_envelope_with_the_long_flag(envelope: bytes, long_body: bool) -> None:
    body = BEGINS + b" " * (300 if long_body else 0)
    with serving("-s", "fcfs") as service, raw_peer(service.endpoint) as peer:
        peer.meet()
        peer.send(envelope + bytes([LONG]) + len(body).to_bytes(8) + body)
        assert peer.take_frame() == (MORE, b"")
        flags, answer = peer.take_frame()
    assert flags in (0, LONG)
    assert json.loads(answer) == {"now": 0.0, "events": list[object]()}


#: How peers before ZeroMQ 4 introduce themselves, how they say "hi", and how "yes" is said to them. In ZMTP
#: 1.0 there is no greeting, and a frame is its length with the flags, the flags, and the content.
OLD_PEERS = {
    "ZMTP 1.0": (b"\x01\x00", b"\x01\x01" + b"\x03\x00hi", b"\x01\x01" + b"\x04\x00yes"),
    "ZMTP 2.0": (SIGNATURE + b"\x01\x03" + frame(b""), request(b"hi"), request(b"yes")),
}


@pytest.mark.parametrize("version", OLD_PEERS)
def test_an_older_peer_is_answered_and_missed_when_it_leaves(version: str) -> None:
    hello, said, answered = OLD_PEERS[version]
    with AnsweringEnd(ANYWHERE, grace=0.3) as end:
        with raw_peer(end.endpoint, hello) as peer:
            peer.send(said)
            assert end.receive() == b"hi"
            end.hold(lambda said: said)
            end.send(b"yes")
            assert peer.take(10) == SIGNATURE
            heard = b""
            while not heard.endswith(answered):
                heard += peer.take(1)
        with pytest.raises(PeerVanished, match="closed its connection"):
            end.receive()


def test_older_peers_beside_others_are_answered() -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as end, raw_peer(end.endpoint) as idle:
        idle.meet()
        hello, said, answered = OLD_PEERS["ZMTP 1.0"]
        with raw_peer(end.endpoint, hello) as peer:
            for _ in range(2):
                peer.send(said)
                assert end.receive() == b"hi"
                end.hold(lambda said: said)
                end.send(b"yes")
            assert peer.take(10) == SIGNATURE
            assert peer.take(2 * len(answered)) == 2 * answered


MESSAGES = [b"", b"short", bytes(255), bytes(range(256)) * 5, b"last"]


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({cut % len(data) for cut in cuts} - {0})
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


@settings(max_examples=20)
@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_requests_are_the_same_in_whatever_pieces_they_come(end: AnsweringEnd, cuts: list[int]) -> None:
    data = b"".join(map(request, MESSAGES)) + request(b"a", b"b", bytes(300)) + frame(b"no envelope")
    with raw_peer(end.endpoint, b"") as peer:
        for piece in in_pieces(HELLO, cuts):
            peer.send(piece)
        peer.meet()
        for piece in in_pieces(data, cuts):
            peer.send(piece)
        assert [end.receive() for _ in MESSAGES] == MESSAGES
        with pytest.raises(ProtocolError, match="of the simulator came in 3 frames"):
            end.receive()
        peer.send(request(b"next"))
        assert end.receive() == b"next"


@settings(max_examples=20)
@given(st.lists(st.binary(max_size=100), max_size=10), st.booleans())
def test_after_any_bytes_others_are_answered(end: AnsweringEnd, pieces: list[bytes], greeted: bool) -> None:
    with raw_peer(end.endpoint, HELLO if greeted else b"") as peer, suppress(ConnectionError):
        if greeted:
            peer.meet()
        for piece in pieces:
            peer.send(piece)
    with raw_peer(end.endpoint) as good:
        good.meet()
        good.send(request(b"a request that no such bytes are"))
        while end.receive() != b"a request that no such bytes are":
            pass
        end.send(b"answer")
        assert [good.take_frame(), good.take_frame()] == [(MORE, b""), (0, b"answer")]


def test_each_byte_alone(end: AnsweringEnd) -> None:
    with raw_peer(end.endpoint, b"") as peer:
        for byte in HELLO:
            peer.send(bytes([byte]))
        peer.meet()
        for byte in request(b"hi"):
            peer.send(bytes([byte]))
        assert end.receive() == b"hi"


def test_who_it_is_is_said_once(end: AnsweringEnd) -> None:
    with raw_peer(end.endpoint) as peer:
        assert peer.meet().startswith(b"\x05READY\x0bSocket-Type\0\0\0\x06ROUTER")
        peer.send(request(b"hi"))
        end.receive()
        end.send(b"yes")
        assert [peer.take_frame(), peer.take_frame()] == [(MORE, b""), (0, b"yes")]


def test_a_ping_is_answered(end: AnsweringEnd) -> None:
    with raw_peer(end.endpoint) as peer:
        peer.meet()
        peer.send(frame(b"\x04PING\0\x05ab", COMMAND))
        assert peer.take_frame() == (COMMAND, b"\x04PONGab")


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n" + bytes(200),
        GREETING.replace(b"NULL\0", b"PLAIN"),
        GREETING + READY.replace(b"REQ", b"SUB"),
        GREETING + request(b"before who it is"),
    ],
)
def test_who_does_not_speak_the_protocol_is_dropped(end: AnsweringEnd, data: bytes) -> None:
    with raw_peer(end.endpoint, data) as peer:
        peer.read_to_the_end()
        check_that_others_are_answered(end)


@pytest.mark.parametrize(
    "data",
    [
        bytes([LONG]) + (2 * LARGEST + 1).to_bytes(8),
        EMPTY_ENVELOPE + bytes([LONG]) + (1 << 40).to_bytes(8),
        bytes([COMMAND | LONG]) + (1 << 40).to_bytes(8),
    ],
)
def test_who_announces_a_frame_that_is_too_long_is_dropped(end: AnsweringEnd, data: bytes) -> None:
    with raw_peer(end.endpoint) as peer:
        peer.meet()
        peer.send(data)
        peer.read_to_the_end()
        check_that_others_are_answered(end)


def test_what_an_old_peer_says_without_an_envelope_is_not_heard(end: AnsweringEnd) -> None:
    with raw_peer(end.endpoint, b"\x01\x00\x02\x00x"):
        check_that_others_are_answered(end)


@pytest.mark.parametrize("data", [b"\x08\x01x", b"\x04\x06\x05ERROR", frame(b"x")])
def test_what_is_no_request_is_not_heard(end: AnsweringEnd, data: bytes) -> None:
    with raw_peer(end.endpoint) as peer:
        peer.meet()
        peer.send(data)
        check_that_others_are_answered(end)


@pytest.mark.parametrize("size", [0, 255, 256, 70_000])
def test_a_reply_has_an_envelope_and_one_frame(end: AnsweringEnd, size: int) -> None:
    with raw_peer(end.endpoint) as peer:
        peer.meet()
        peer.send(request(b"how long"))
        end.receive()
        end.send(bytes(size))
        expected = request(bytes(size))
        assert peer.take(len(expected)) == expected


def converse(end: AnsweringEnd, peer: RawPeer) -> None:
    peer.meet()
    peer.send(request(b"request"))
    end.receive()
    end.hold(lambda said: said)
    end.send(b"reply")
    assert [peer.take_frame(), peer.take_frame()] == [(MORE, b""), (0, b"reply")]


def test_a_simulator_without_a_sign_of_life_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_HEARTBEAT", 0.2)
    with AnsweringEnd(ANYWHERE, grace=0.3) as end, raw_peer(end.endpoint) as peer:
        converse(end, peer)
        with pytest.raises(PeerVanished, match=r"closed its connection .* did not come back within 0\.3 s"):
            end.receive()
        assert peer.take_frame()[1].startswith(b"\x04PING")


def test_a_silent_simulator_with_signs_of_life_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_HEARTBEAT", 1)
    with AnsweringEnd(ANYWHERE, PATIENCE, grace=0.1) as end, raw_peer(end.endpoint) as peer:
        converse(end, peer)
        for _ in range(2):
            assert peer.take_frame()[1].startswith(b"\x04PING")
            peer.send(frame(b"\x04PONG", COMMAND))
        peer.send(request(b"at last"))
        assert end.receive() == b"at last"


def test_who_connects_when_the_simulator_has_left_is_not_taken_for_it() -> None:
    """The system gives the next connection the same descriptor."""
    with AnsweringEnd(ANYWHERE, grace=0.5) as end:
        with raw_peer(end.endpoint) as peer:
            converse(end, peer)
        with raw_peer(end.endpoint) as other:
            other.meet()
            with pytest.raises(PeerVanished, match="closed its connection"):
                end.receive()
