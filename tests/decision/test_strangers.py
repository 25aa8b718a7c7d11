"""Others who talk to a service while a simulation runs, and simulators that leave before its end."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest
import zmq

from tests.decision.test_server import (
    BEGINS,
    BEGINS5,
    COMPLETED,
    ENDS,
    OPENING5,
    SUBMITTED,
    event,
    simulate,
    simulate5,
    why_stopped,
)
from tests.processes import PATIENCE, Peer, serving

RANDOM = random.Random(14).randbytes(300_000)


#: What a stranger may ask.
STRANGE = [b"hello", b"", BEGINS, OPENING5, SUBMITTED, ENDS, event(b"{}"), RANDOM]


@pytest.mark.parametrize("mode", [[], ["--keep-alive"]])
def test_requests_of_strangers_are_refused_and_the_conversation_goes_on(mode: list[str]) -> None:
    with serving("-s", "fcfs", *mode) as service:
        with Peer(service.endpoint) as peer:
            for request, decisions in ((BEGINS, 0), (SUBMITTED, 1), (COMPLETED, 0)):
                assert len(peer.ask(request)["events"]) == decisions
                for said in STRANGE:
                    with Peer(service.endpoint) as stranger:
                        stranger.send(said)
                        answer = stranger.hear_bytes()
                    if said == OPENING5:
                        assert answer[:4] == b"\2\0\0\0", "Batsim 5 reads the format first"
                        answer = answer[4:]
                    (told,) = json.loads(answer)["events"]
                    kind = (told.get("type") or told["event_type"]).replace("\xa0", " ")
                    assert kind == "THE_DECISION_PROCESS_FAILED: another simulation is running here"
            assert peer.ask(ENDS)["events"] == []
        if mode:
            with Peer(service.endpoint) as peer:
                simulate(peer)
            return
        code, (line,) = service.end()
    assert code == 0
    assert line == (
        f"batsched-py: warning: a request of somebody else at {service.endpoint} is refused: "
        "one simulation at a time"
    )


def leave_in_the_middle(endpoint: str, *said: bytes) -> None:
    """A simulator that is killed."""
    with Peer(endpoint) as peer:
        for each in said:
            peer.send(each)
            peer.hear_bytes()


@pytest.mark.parametrize("known", [[BEGINS, SUBMITTED], [OPENING5], [OPENING5, BEGINS5]])
@pytest.mark.parametrize("next_one", [simulate, simulate5])
def test_keeping_alive_any_batsim_may_follow_one_that_was_killed(
    known: list[bytes], next_one: Callable[[Peer], None]
) -> None:
    with serving("-s", "fcfs", "--keep-alive") as service:
        leave_in_the_middle(service.endpoint, *known)
        with Peer(service.endpoint) as peer:
            next_one(peer)


def test_without_keeping_alive_the_other_batsim_is_told_why_it_is_not_served() -> None:
    with serving("-s", "fcfs") as service:
        leave_in_the_middle(service.endpoint, OPENING5, BEGINS5)
        with Peer(service.endpoint) as peer:
            (told,) = peer.ask(BEGINS)["events"]
        code, (line,) = service.end()
    reason = "SIMULATION_BEGINS came in the middle of a simulation: the simulator before never said that it"
    assert told["event_type"].replace("\xa0", " ").startswith(f"THE_DECISION_PROCESS_FAILED: {reason}")
    assert code == 1
    assert line.startswith(f"batsched-py: error: {reason}")


@pytest.mark.slow
def test_a_service_whose_simulator_died_says_so_and_ends() -> None:
    with serving("-s", "fcfs") as service:
        leave_in_the_middle(service.endpoint, BEGINS)
        code, (line,) = service.end()
    assert code == 1
    assert line.startswith(
        f"batsched-py: error: the simulator at {service.endpoint} closed its connection before its "
        "simulation had ended, and did not come back within 30 s; "
    )


def flood(endpoint: str, frames: int, size: int) -> bytes:
    """Send a request of so many frames, and hear what is said to it."""
    frame = bytes(size)
    with zmq.Context() as context, context.socket(zmq.REQ) as asker:
        asker.linger = 0
        asker.rcvtimeo = 1000 * PATIENCE
        asker.connect(endpoint)
        for left in reversed(range(frames)):
            asker.send(frame, zmq.SNDMORE if left else 0, copy=False)
        return asker.recv()


@pytest.mark.parametrize(("frames", "size"), [(10, 50_000_000), (37, 5_000_000)])
def test_a_message_of_many_frames_is_refused_and_the_conversation_goes_on(frames: int, size: int) -> None:
    with serving("-s", "fcfs", "--keep-alive") as service:
        with Peer(service.endpoint) as peer:
            peer.ask(BEGINS)
            assert b"another simulation" in flood(service.endpoint, frames, size)
            assert len(peer.ask(SUBMITTED)["events"]) == 1
            peer.ask(COMPLETED)
            peer.ask(ENDS)
        assert f"came in {frames} frames".encode() in flood(service.endpoint, frames, size)
        with Peer(service.endpoint) as peer:
            simulate(peer)


def test_connections_that_say_nothing_do_not_keep_a_simulator_away() -> None:
    with serving("-s", "fcfs", "--keep-alive") as service, ExitStack() as idle:
        port = int(service.endpoint.rpartition(":")[2])
        with Peer(service.endpoint) as peer:
            peer.ask(BEGINS)
            for _ in range(150):
                idle.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert len(peer.ask(SUBMITTED)["events"]) == 1
            peer.ask(COMPLETED)
            peer.ask(ENDS)
        with Peer(service.endpoint) as peer:
            simulate(peer)


def test_a_stranger_with_the_right_opening_is_served_when_the_simulation_is_over() -> None:
    with (
        serving("-s", "fcfs", "--keep-alive") as service,
        Peer(service.endpoint) as peer,
        Peer(service.endpoint) as stranger,
    ):
        peer.ask(BEGINS)
        assert why_stopped(stranger.ask(BEGINS)) == "another simulation is running here"
        for request in (SUBMITTED, COMPLETED, ENDS):
            peer.ask(request)
        simulate(stranger)
