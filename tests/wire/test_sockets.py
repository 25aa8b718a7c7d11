"""Frames that are no request, and messages that are none, between two real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM
from socket import socket as unix_socket

import pytest
import zmq

from batsched_py.errors import InputError, PeerVanished, ProtocolError
from batsched_py.wire.sockets import LARGEST, AnsweringEnd, AskingEnd
from tests.processes import PATIENCE

ANYWHERE = "tcp://127.0.0.1:*"


@contextmanager
def stranger(kind: int, endpoint: str | None = None) -> Iterator[zmq.Socket[bytes]]:
    """A socket that sends whatever frames it is given."""
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.linger = 0
        socket.rcvtimeo = 1000 * PATIENCE
        if endpoint is None:
            socket.bind(ANYWHERE)
        else:
            socket.connect(endpoint)
        yield socket


@pytest.mark.parametrize(
    "frames", [[b"x"], [b""], [b"x", b"y"], [b"x", b""], [b"x", b"", b"y"], [b"x", b"", b"", b"y"]]
)
def test_what_has_no_envelope_is_dropped_to_its_last_frame(frames: list[bytes]) -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as end, stranger(zmq.DEALER, end.endpoint) as socket:
        socket.send_multipart(frames)
        socket.send_multipart([b"", b"request"])
        assert end.receive() == b"request"
        end.send(b"reply")
        assert socket.recv_multipart() == [b"", b"reply"]


@pytest.mark.parametrize("bodies", [[b"", b""], [b"a", b"b", b"c"]])
def test_a_request_in_several_frames_is_read_to_the_last_and_can_be_answered(bodies: list[bytes]) -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as end, stranger(zmq.DEALER, end.endpoint) as socket:
        socket.send_multipart([b"", *bodies])
        with pytest.raises(ProtocolError, match=f"of the simulator came in {len(bodies)} frames"):
            end.receive()
        assert end.owes_reply
        end.send(b"no")
        socket.send_multipart([b"", b"request"])
        assert end.receive() == b"request"
        end.send(b"reply")
        assert [socket.recv_multipart() for _ in range(2)] == [[b"", b"no"], [b"", b"reply"]]


def test_an_empty_request_is_one() -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as end, stranger(zmq.REQ, end.endpoint) as socket:
        socket.send(b"")
        assert end.receive() == b""
        assert end.owes_reply


def test_a_reply_in_several_frames_is_read_to_the_last() -> None:
    with stranger(zmq.REP) as socket, AskingEnd(socket.last_endpoint.decode(), PATIENCE) as end:
        end.send(b"request")
        socket.recv()
        socket.send_multipart([b"a", b"b", b"c"])
        with pytest.raises(ProtocolError, match="of the decision process came in 3 frames"):
            end.receive()
        end.send(b"request")
        socket.recv()
        socket.send(b"reply")
        assert end.receive() == b"reply"


def test_a_message_that_is_too_long_is_refused_and_can_be_answered() -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as end, stranger(zmq.REQ, end.endpoint) as socket:
        socket.send(bytes(LARGEST + 1), copy=False)
        with pytest.raises(ProtocolError, match=f"has {LARGEST + 1} bytes; {LARGEST} are the most"):
            end.receive()
        end.send(b"no")
        assert socket.recv() == b"no"


def test_requests_that_nobody_hears_stay_with_who_sends_them() -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as end, stranger(zmq.DEALER) as socket:
        socket.sndhwm = 1
        socket.sndtimeo = 1000
        socket.connect(end.endpoint)
        sent = 0
        with pytest.raises(zmq.Again):
            while sent < 100:
                socket.send_multipart([b"", bytes(5_000_000)])
                sent += 1
        for _ in range(sent):
            assert len(end.receive()) == 5_000_000
    assert 16 <= sent < 40


def test_a_simulator_that_left_is_missed_after_a_while() -> None:
    with AnsweringEnd(ANYWHERE, grace=0.3) as end:
        with stranger(zmq.REQ, end.endpoint) as socket:
            socket.send(b"request")
            end.receive()
            end.hold(lambda said: said)
            end.send(b"reply")
            socket.recv()
        with pytest.raises(PeerVanished, match=r"closed its connection .* did not come back within 0\.3 s"):
            end.receive()


def test_who_comes_in_the_place_of_a_simulator_that_left_is_heard() -> None:
    with AnsweringEnd(ANYWHERE) as end:
        for _ in range(2):
            with stranger(zmq.REQ, end.endpoint) as socket:
                socket.send(b"request")
                assert end.receive() == b"request"
                end.hold(lambda said: said)
                end.send(b"reply")
                assert socket.recv() == b"reply"


@contextmanager
def socket_file(path: Path) -> Iterator[None]:
    """What a process leaves that was killed."""
    with unix_socket(AF_UNIX, SOCK_STREAM) as dead:
        dead.bind(str(path))
    yield


def test_files_are_listened_at_and_those_of_the_dead_replaced(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path / 'here'}"
    for _ in range(2):
        with AnsweringEnd(endpoint) as end, stranger(zmq.REQ, end.endpoint) as socket:
            assert end.endpoint == endpoint
            with pytest.raises(InputError, match="Address already in use"), AnsweringEnd(endpoint):
                pass
            socket.send(b"request")
            assert end.receive() == b"request"
            end.send(b"reply")
            assert socket.recv() == b"reply"
        assert not (tmp_path / "here").exists()
    with socket_file(tmp_path / "here"), AnsweringEnd(endpoint):
        pass


def test_a_file_that_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("dear to somebody")
    with (
        pytest.raises(InputError, match="Address already in use"),
        AnsweringEnd(f"ipc://{tmp_path / 'results'}"),
    ):
        pass
    assert (tmp_path / "results").read_text() == "dear to somebody"


def test_a_host_has_a_name() -> None:
    with AnsweringEnd("tcp://localhost:*", PATIENCE) as end, AskingEnd(end.endpoint, PATIENCE) as asking:
        asking.send(b"request")
        assert end.receive() == b"request"


@pytest.mark.parametrize(
    "endpoint",
    [
        "nonsense",
        "udp://127.0.0.1:1",
        "tcp://:28000",
        "tcp://127.0.0.999:28000",
        f"tcp://{'x' * 70}:28000",
        "tcp://\0:28000",
        f"ipc:///{'x' * 200}",
        "ipc:///no/such/folder/socket",
    ],
)
def test_where_nobody_can_listen_is_one_line(endpoint: str) -> None:
    with pytest.raises(InputError, match=r"cannot be used: .") as error, AnsweringEnd(endpoint):
        pass
    assert "\n" not in str(error.value)


def test_a_long_reply_reaches_who_reads_slowly() -> None:
    long = bytes(50 << 20)
    with AnsweringEnd(ANYWHERE) as end, stranger(zmq.REQ, end.endpoint) as socket:
        socket.send(b"request")
        end.receive()
        end.send(long)
        assert socket.recv() == long
