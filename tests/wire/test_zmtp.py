"""The bytes of ZeroMQ's protocol, in pieces of any size, good and bad."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.wire.zmtp import GREETING, LARGEST, Link, NotZmtp, Request, reply

READY = b"\x04\x26\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0"
HELLO = GREETING + READY


def frame(content: bytes, more: bool = False) -> bytes:
    if len(content) < 256:
        return bytes([more, len(content)]) + content
    return bytes([more | 2]) + len(content).to_bytes(8) + content


def request(*frames: bytes) -> bytes:
    *first, last = frames
    return b"\x01\x00" + b"".join(frame(each, more=True) for each in first) + frame(last)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({cut % len(data) for cut in cuts} - {0})
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


MESSAGES = [b"", b"short", bytes(255), bytes(range(256)) * 5, b"last"]


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_requests_are_the_same_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    link = Link()
    data = HELLO + b"".join(map(request, MESSAGES)) + request(b"a", b"b", bytes(300)) + frame(b"no envelope")
    received = [each for piece in in_pieces(data, cuts) for each in link.receive(piece)]
    assert received == [
        *(Request(body, 1, len(body)) for body in MESSAGES),
        Request(b"", 3, 302),
    ]
    assert link.held == 0


@given(st.lists(st.binary(max_size=100), max_size=10), st.booleans())
def test_any_bytes_are_requests_or_refused_and_little_is_kept(pieces: list[bytes], greeted: bool) -> None:
    link = Link()
    if greeted:
        link.receive(HELLO)
    try:
        for piece in filter(None, pieces):
            assert all(len(each.body) <= 1000 for each in link.receive(piece))
    except NotZmtp:
        pass
    assert link.held <= 1000


def test_each_byte_alone() -> None:
    link = Link()
    received = [each for byte in HELLO + request(b"hi") for each in link.receive(bytes([byte]))]
    assert received == [Request(b"hi", 1, 2)]


def test_who_it_is_is_said_once() -> None:
    link = Link()
    link.receive(HELLO)
    assert bytes(link.owed) == b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REP"


def test_a_ping_is_answered() -> None:
    link = Link()
    link.receive(HELLO)
    link.owed.clear()
    link.receive(b"\x04\x09\x04PING\0\x05ab")
    assert bytes(link.owed) == b"\x04\x07\x04PONGab"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x01\x00\x02\x00x",
        GREETING[:10] + b"\x01" + bytes(53),
        GREETING.replace(b"NULL\0", b"PLAIN"),
        GREETING + READY.replace(b"REQ", b"SUB"),
        GREETING + request(b"before who it is"),
        HELLO + b"\x08\x01x",
        HELLO + b"\x06" + (1 << 40).to_bytes(8),
        HELLO + b"\x04\x06\x05ERROR",
    ],
)
def test_what_is_not_the_protocol_is_refused(data: bytes) -> None:
    with pytest.raises(NotZmtp):
        Link().receive(data)


def test_of_what_is_no_good_request_nothing_is_kept() -> None:
    link = Link()
    link.receive(HELLO)
    too_long = LARGEST + 1
    assert link.receive(b"\x01\x00\x02" + too_long.to_bytes(8)) == []
    for _ in range(4):
        assert link.receive(bytes(too_long // 4)) == []
        assert link.held == 0
    last = bytes(too_long % 4)
    assert link.receive(last + request(b"next")) == [Request(b"", 1, too_long), Request(b"next", 1, 4)]


@pytest.mark.parametrize("size", [0, 255, 256, 70_000])
def test_a_reply_has_an_envelope_and_one_frame(size: int) -> None:
    assert reply(bytes(size)) == request(bytes(size))
