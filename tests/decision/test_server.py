"""The server with real sockets: every fault is answered, reported in one line, and ends as it should."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batsched_py.errors import InputError
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.wire.sockets import AnsweringEnd
from tests.processes import SILENCE, Peer, Service, call, serving

EMPTY: list[Any] = []


def message(now: float, *events: tuple[str, dict[str, Any]]) -> bytes:
    return json.dumps(
        {"now": now, "events": [{"timestamp": now, "type": kind, "data": data} for kind, data in events]}
    ).encode()


BEGINS = message(
    0,
    (
        "SIMULATION_BEGINS",
        {
            "nb_resources": 4,
            "nb_compute_resources": 4,
            "nb_storage_resources": 0,
            "allow_compute_sharing": False,
            "allow_storage_sharing": True,
            "config": {},
            "compute_resources": [
                {"id": i, "name": f"h{i}", "state": "idle", "properties": {}, "zone_properties": {}}
                for i in range(4)
            ],
            "storage_resources": [],
            "workloads": {"w0": "w.json"},
            "profiles": {"w0": {"p": {"type": "delay", "delay": 10}}},
        },
    ),
)
SUBMITTED = message(
    5,
    (
        "JOB_SUBMITTED",
        {"job_id": "w0!1", "job": {"id": "w0!1", "subtime": 5, "res": 2, "walltime": 20, "profile": "p"}},
    ),
)
COMPLETED = message(
    15,
    (
        "JOB_COMPLETED",
        {"job_id": "w0!1", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0-1"},
    ),
)
ENDS = message(20, ("SIMULATION_ENDS", {}))


def simulate(peer: Peer) -> None:
    """A whole simulation of one job, with the answers that FCFS must give."""
    assert peer.ask(BEGINS) == {"now": 0.0, "events": EMPTY}
    (decision,) = peer.ask(SUBMITTED)["events"]
    assert (decision["type"], decision["data"]) == ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0-1"})
    assert peer.ask(COMPLETED) == {"now": 15.0, "events": EMPTY}
    assert peer.ask(ENDS) == {"now": 20.0, "events": EMPTY}


LEFT = (
    "SIMULATION_BEGINS came in the middle of a simulation: the simulator before never said that it ended; "
    "start both sides again, or serve with --keep-alive"
)


def why_stopped(reply: dict[str, Any]) -> str:
    """What a reply that stops the simulator says; every Batsim prints the type that it does not know."""
    (event,) = reply["events"]
    assert event["timestamp"] <= reply["now"]
    assert event["data"] == {}
    return str(event["type"]).removeprefix("THE_DECISION_PROCESS_FAILED: ")


def event(text: bytes) -> bytes:
    return b'{"now": 6, "events": [' + text + b"]}"


#: What a peer may send in the middle of a simulation, in frames, and what is said about it.
FAULTS: dict[str, tuple[list[bytes], str]] = {
    "garbage": ([b"\x00\xfe\x01 garbage"], "not a message of Batsim's protocol: JSON is malformed"),
    "nothing": ([b""], "not a message of Batsim's protocol: Input data was truncated"),
    "not UTF-8": (
        [event(b'{"timestamp": 6, "type": "\xff\xfe", "data": {}}')],
        "event 0: the bytes are not UTF-8",
    ),
    "several frames": ([SUBMITTED, COMPLETED], "a message of the simulator came in 2 frames"),
    "not an object": ([b"[1, 2]"], "not a message of Batsim's protocol: Expected `object`, got `array`"),
    "no events": (
        [b'{"now": 6}'],
        "not a message of Batsim's protocol: Object missing required field `events`",
    ),
    "no timestamp": (
        [event(b'{"type": "REQUESTED_CALL", "data": {}}')],
        "event 0: Object missing required field `timestamp`",
    ),
    "no job": (
        [event(b'{"timestamp": 6, "type": "JOB_COMPLETED", "data": {"job_state": "COMPLETED_KILLED"}}')],
        "event 0 (JOB_COMPLETED): Object missing required field `job_id`",
    ),
    "nested without end": (
        [event(b'{"timestamp": 6, "type": "X", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")],
        "not a message of Batsim's protocol: it is nested too deeply",
    ),
    "a number of 310 digits": (
        [
            event(
                b'{"timestamp": 6, "type": "JOB_SUBMITTED", "data": {"job_id": "w0!2", "job": {"id": "w0!2", '
                b'"subtime": 5, "res": 1, "profile": "p", "walltime": ' + b"9" * 310 + b"}}}"
            )
        ],
        "event 0 (JOB_SUBMITTED): ",
    ),
    "a state of 4300 digits": (
        [
            event(
                b'{"timestamp": 6, "type": "RESOURCE_STATE_CHANGED", "data": {"resources": "0", "state": "'
                + b"9" * 4301
                + b'"}}'
            )
        ],
        "event 0 (RESOURCE_STATE_CHANGED): ",
    ),
    "a host that does not exist": (
        [message(6, ("RESOURCE_STATE_CHANGED", {"resources": "7", "state": "1"}))],
        "HostsStateChanged names hosts 7, which do not all exist",
    ),
    "a job comes twice": ([SUBMITTED], "the simulator submits job w0!1 a second time"),
    "time runs backwards": ([message(1, ("REQUESTED_CALL", {}))], "time runs backwards: 1 comes after 5"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_peer_is_answered_and_ends_the_service(fault: str) -> None:
    frames, reason = FAULTS[fault]
    with serving("-s", "fcfs") as service, Peer(service.endpoint) as peer:
        peer.ask(BEGINS)
        peer.ask(SUBMITTED)
        assert why_stopped(peer.ask(*frames)).startswith(reason)
        code, lines = service.end()
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"batsched-py: error: {reason}")


def test_a_second_beginning_is_answered_and_ends_the_service() -> None:
    with serving("-s", "fcfs") as service, Peer(service.endpoint) as peer:
        peer.ask(BEGINS)
        assert why_stopped(peer.ask(BEGINS)) == LEFT
        assert service.end() == (1, [f"batsched-py: error: {LEFT}"])


def test_who_comes_after_a_simulator_that_died_is_told_so_and_stopped() -> None:
    with serving("-s", "fcfs") as service:
        with Peer(service.endpoint) as dead:
            dead.ask(BEGINS)
            dead.ask(SUBMITTED)
        with Peer(service.endpoint) as peer:
            assert why_stopped(peer.ask(BEGINS)) == LEFT
        assert service.end() == (1, [f"batsched-py: error: {LEFT}"])


def test_a_conversation_that_does_not_begin_ends_the_service() -> None:
    with serving("-s", "fcfs") as service, Peer(service.endpoint) as peer:
        reason = "the conversation must begin with SIMULATION_BEGINS"
        assert why_stopped(peer.ask(SUBMITTED)) == reason
        assert service.end() == (1, [f"batsched-py: error: {reason}"])


def test_one_simulation_is_served_to_its_end() -> None:
    with serving("-s", "fcfs") as service, Peer(service.endpoint) as peer:
        simulate(peer)
        assert service.end() == (0, [])


@pytest.fixture(scope="module")
def immortal() -> Iterator[Service]:
    """A service that keeps alive through all the faults of this module."""
    with serving("-s", "fcfs", "--keep-alive") as service:
        yield service


@pytest.mark.parametrize("fault", FAULTS)
def test_keeping_alive_the_next_simulation_follows_a_fault(immortal: Service, fault: str) -> None:
    frames, reason = FAULTS[fault]
    with Peer(immortal.endpoint) as peer:
        peer.ask(BEGINS)
        peer.ask(SUBMITTED)
        assert why_stopped(peer.ask(*frames)).startswith(reason)
    with Peer(immortal.endpoint) as peer:
        simulate(peer)


def submitted(**fields: object) -> bytes:
    """A second job, with some fields of its own."""
    job = {"id": "w0!2", "subtime": 5, "res": 1, "profile": "p"} | fields
    return message(6, ("JOB_SUBMITTED", {"job_id": "w0!2", "job": job}))


def began(**host: object) -> bytes:
    """A beginning whose first host has something of its own."""
    first = json.loads(BEGINS)
    first["events"][0]["data"]["compute_resources"][0] |= host
    return json.dumps(first).encode()


def progress(depth: int) -> bytes:
    """A killed job, so far inside of composed profiles."""
    inner = b'{"profile_name": "p", "current_task_index": 0, "current_task": ' * depth
    return event(
        b'{"timestamp": 6, "type": "JOB_KILLED", "data": {"job_ids": ["w0!1"], "job_progress": {"w0!1": '
        + inner
        + b'{"profile_name": "p", "progress": 1}'
        + b"}" * depth
        + b"}}}"
    )


def event5(kind: str, **data: object) -> bytes:
    """What a Batsim 5 tells."""
    return json.dumps({"now": 6, "events": [{"timestamp": 6, "event_type": kind, "event": data}]}).encode()


def simulate5(peer: Peer) -> None:
    """The same simulation of one job as a Batsim 5."""
    peer.send(OPENING5)
    assert peer.hear_bytes()[:4] == b"\2\0\0\0"
    codec, old = BATSIM5.codec(), BATSIM4.codec()
    answers = [
        peer.ask(codec.encode_request(old.decode_request(text)))
        for text in (BEGINS, SUBMITTED, COMPLETED, ENDS)
    ]
    assert [[each["event_type"] for each in answer["events"]] for answer in answers] == [
        [],
        ["ExecuteJobEvent"],
        [],
        [],
    ]


LONG = int("9" * 310)
OPENING5 = b"\2\0\0\0hi"
BEGINS5 = event5(
    "SimulationBeginsEvent",
    host_number=1,
    computation_host_number=1,
    computation_hosts=[{"id": 0, "name": "h"}],
)
JOB5 = {"resource_request": 1, "profile_id": "w0!p", "walltime": 5}

#: Whole conversations, each up to what ends it.
CONVERSATIONS: dict[str, list[bytes]] = {
    "a walltime of 310 digits": [BEGINS, SUBMITTED, submitted(walltime=LONG)],
    "a submission at a time of 310 digits": [BEGINS, SUBMITTED, submitted(subtime=LONG)],
    "a size of 20 digits": [BEGINS, SUBMITTED, submitted(res=10**20)],
    "a size of 4300 digits": [
        BEGINS,
        submitted(res="RES").replace(b'"RES"', b"9" * 4301),
    ],
    "energy of 310 digits": [BEGINS, message(6, ("ANSWER", {"consumed_energy": LONG}))],
    "a time of 310 digits": [BEGINS, b'{"now": ' + b"9" * 310 + b', "events": []}'],
    "a time that is no number": [BEGINS, b'{"now": NaN, "events": []}'],
    "progress 100,000 deep": [BEGINS, SUBMITTED, progress(100_000)],
    "progress 1,000 deep": [BEGINS, SUBMITTED, progress(1000)],
    "hosts without end": [
        BEGINS,
        message(6, ("RESOURCE_STATE_CHANGED", {"resources": "0-99999999999", "state": "1"})),
    ],
    "machines that do not exist": [
        BEGINS,
        message(6, ("NOTIFY", {"type": "event_machine_unavailable", "resources": "9"})),
    ],
    "sleeping states that are none": [began(properties={"sleep_pstates": "a:b"})],
    "sleeping states of 4300 digits": [began(properties={"sleep_pstates": "9" * 4301 + ":1:2"})],
    "a state that is none": [began(state="dancing")],
    "Batsim 5 talks nonsense": [OPENING5, BEGINS5, b"nonsense"],
    "a size of 20 digits in Batsim 5": [
        OPENING5,
        BEGINS5,
        event5(
            "JobSubmittedEvent", job_id="w0!1", job=JOB5 | {"resource_request": 10**20}, submission_time=6
        ),
    ],
    "a walltime of 310 digits in Batsim 5": [
        OPENING5,
        BEGINS5,
        event5("JobSubmittedEvent", job_id="w0!1", job=JOB5 | {"walltime": LONG}, submission_time=6),
    ],
    "sleeping states that are none in Batsim 5": [
        OPENING5,
        BEGINS5.replace(
            b'"name": "h"', b'"name": "h", "properties": [{"key": "sleep_pstates", "value": "a:b"}]'
        ),
    ],
    "a host that does not exist in Batsim 5": [
        OPENING5,
        BEGINS5,
        event5("HostsPStateChangedEvent", host_ids="7", pstate=1),
    ],
}


@pytest.mark.parametrize("fault", CONVERSATIONS)
def test_keeping_alive_a_good_simulation_follows_a_bad_conversation(immortal: Service, fault: str) -> None:
    *good, bad = CONVERSATIONS[fault]
    with Peer(immortal.endpoint) as peer:
        for request in good:
            peer.send(request)
            peer.hear_bytes()
        (said,) = peer.ask(bad)["events"]
        kind = said.get("type") or said["event_type"]
        assert kind.startswith("THE_DECISION_PROCESS_FAILED:")
        assert kind.replace("\N{NO-BREAK SPACE}", " ").isprintable()
    with Peer(immortal.endpoint) as peer:
        simulate(peer)
    with Peer(immortal.endpoint) as peer:
        simulate5(peer)


def peak(service: Service) -> int:
    """How much memory a service has needed so far, in MiB."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) >> 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux's /proc")
@pytest.mark.parametrize(
    "small",
    [
        b'{"timestamp":6,"type":"REQUESTED_CALL","data":{}}',
        pytest.param(b'{"timestamp":6,"type":"X"}', marks=pytest.mark.slow),
        pytest.param(b"{}", marks=pytest.mark.slow),
        b"1",
    ],
)
def test_100_megabytes_of_small_events_are_refused_within_bounded_memory(small: bytes) -> None:
    count = 100_000_000 // (len(small) + 1)
    with serving("-s", "fcfs", "--keep-alive") as service:
        with Peer(service.endpoint) as peer:
            peer.ask(BEGINS)
            reason = why_stopped(peer.ask(event((small + b",") * count + small)))
        assert reason.startswith("a message has some ")
        assert peak(service) < 300
        with Peer(service.endpoint) as peer:
            simulate(peer)


def test_keeping_alive_a_beginning_ends_the_simulation_that_was_left(immortal: Service) -> None:
    with Peer(immortal.endpoint) as abandoned:
        abandoned.ask(BEGINS)
        (decision,) = abandoned.ask(SUBMITTED)["events"]
        assert decision["type"] == "EXECUTE_JOB"
    with Peer(immortal.endpoint) as peer:
        simulate(peer)


def test_keeping_alive_each_fault_is_one_line() -> None:
    with serving("-s", "fcfs", "--keep-alive") as service:
        for frames, _ in FAULTS.values():
            with Peer(service.endpoint) as peer:
                peer.ask(BEGINS)
                peer.ask(SUBMITTED)
                peer.ask(*frames)
        assert service.process.stderr is not None
        lines = [service.process.stderr.readline() for _ in FAULTS]
        assert service.end(signal.SIGTERM) == (128 + signal.SIGTERM, ["batsched-py: stopped by SIGTERM"])
    for line, (_, reason) in zip(lines, FAULTS.values(), strict=True):
        assert line.startswith(f"batsched-py: error: {reason}")
        assert line.endswith("; ready for the next simulation\n")


def test_a_peer_that_vanishes_ends_the_service() -> None:
    with serving("-s", "fcfs", "--timeout", SILENCE) as service:
        with Peer(service.endpoint) as peer:
            peer.ask(BEGINS)
            peer.ask(SUBMITTED)
        code, lines = service.end()
    assert (code, lines) == (
        1,
        [f"batsched-py: error: nothing came from the simulator at {service.endpoint} for {SILENCE} s"],
    )


def test_a_peer_that_never_comes_ends_the_service() -> None:
    with serving("-s", "fcfs", "--timeout", "0.2") as service:
        assert service.end() == (
            1,
            [f"batsched-py: error: nothing came from the simulator at {service.endpoint} for 0.2 s"],
        )


def test_keeping_alive_a_peer_that_vanishes_leaves_room_for_the_next() -> None:
    with serving("-s", "fcfs", "--timeout", SILENCE, "--keep-alive") as service:
        assert service.process.stderr is not None
        with Peer(service.endpoint) as peer:
            peer.ask(BEGINS)
        assert (
            f"nothing came from the simulator at {service.endpoint} for {SILENCE} s"
            in service.process.stderr.readline()
        )
        with Peer(service.endpoint) as peer:
            simulate(peer)
        assert service.end(signal.SIGINT) == (128 + signal.SIGINT, ["batsched-py: stopped by Ctrl-C"])


POLICIES = """
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers import Scheduler


class Raises(Scheduler):
    name = "raises"

    def schedule(self, cluster):
        if cluster.queue:
            raise RuntimeError("first line\\nsecond line")


class Greedy(Scheduler):
    name = "greedy"

    def schedule(self, cluster):
        if cluster.queue:
            cluster.start(cluster.queue.head, HostSet.parse("0-3"))


class Thinker(Scheduler):
    name = "thinker"

    def schedule(self, cluster):
        if cluster.queue:
            print("thinking", flush=True)
        while cluster.queue:
            pass
"""


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    path = tmp_path / "bad_policies.py"
    path.write_text(POLICIES)
    return path


@pytest.mark.parametrize("mode", [[], ["--keep-alive"]])
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("Raises", "scheduler 'raises' failed at time 5: RuntimeError: first line second line (FILE:11)"),
        (
            "Greedy",
            "scheduler 'greedy' broke a rule at time 5: "
            "ExecuteJob w0!1: the job needs 2 hosts and was given 4 (0-3) (FILE:19)",
        ),
    ],
)
def test_a_fault_of_the_policy_is_answered_and_ends_the_service(
    policies: Path, mode: list[str], policy: str, reason: str
) -> None:
    with serving("-s", f"{policies}:{policy}", *mode) as service, Peer(service.endpoint) as peer:
        peer.ask(BEGINS)
        reason = reason.replace("FILE", str(policies))
        assert why_stopped(peer.ask(SUBMITTED)) == reason
        code, lines = service.end()
    assert (code, lines) == (1, [f"batsched-py: error: {reason}"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits_ends_the_service(number: signal.Signals) -> None:
    with serving("-s", "fcfs") as service, Peer(service.endpoint) as peer:
        peer.ask(BEGINS)
        code, lines = service.end(number)
    assert code == 128 + number
    assert lines == [f"batsched-py: stopped by {'Ctrl-C' if number == signal.SIGINT else 'SIGTERM'}"]


def test_a_signal_while_the_policy_thinks_is_answered(policies: Path) -> None:
    with serving("-s", f"{policies}:Thinker") as service, Peer(service.endpoint) as peer:
        peer.ask(BEGINS)
        peer.send(SUBMITTED)
        assert service.process.stdout is not None
        assert service.process.stdout.readline() == "thinking\n"
        service.process.send_signal(signal.SIGTERM)
        assert why_stopped(peer.hear()) == "it was stopped by SigTerm"
        assert service.end() == (128 + signal.SIGTERM, ["batsched-py: stopped by SIGTERM"])


def test_an_endpoint_in_use_is_an_error() -> None:
    with serving("-s", "fcfs") as service:
        code, out, err = call(["serve", "-s", "fcfs", "--endpoint", service.endpoint])
    assert (code, out) == (1, "")
    assert err.startswith(f"batsched-py: error: {service.endpoint} cannot be used: Address already in use")
    assert err.count("\n") == 1


def stray_bytes(endpoint: str) -> None:
    """An old hello and a frame without an envelope, and gone."""
    with socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2]))) as connection:
        connection.sendall(bytes.fromhex("0100020078"))


def simulate_among_strangers(endpoint: str) -> None:
    """A whole simulation of one job; before each request, stray bytes come."""
    with Peer(endpoint) as peer:
        for request, decisions in ((BEGINS, 0), (SUBMITTED, 1), (COMPLETED, 0), (ENDS, 0)):
            stray_bytes(endpoint)
            assert len(peer.ask(request)["events"]) == decisions


def test_stray_bytes_on_the_port_lose_no_reply(immortal: Service) -> None:
    for _ in range(5):
        simulate_among_strangers(immortal.endpoint)


@pytest.mark.slow
def test_stray_bytes_on_the_port_lose_no_reply_in_a_thousand_trials() -> None:
    for _ in range(10):
        with serving("-s", "fcfs", "--keep-alive") as service:
            for _ in range(25):
                simulate_among_strangers(service.endpoint)


@pytest.mark.parametrize("port", ["99999", "65536", "-1", "x", ""])
def test_a_port_that_is_none_is_an_error(port: str) -> None:
    message = f"tcp://127.0.0.1:{port} cannot be used: a port is a number up to 65535, not {port!r}"
    with pytest.raises(InputError, match=f"^{message}$"), AnsweringEnd(f"tcp://127.0.0.1:{port}"):
        pass


def test_the_sixth_version_of_ip_is_spoken() -> None:
    with serving("-s", "fcfs", "--endpoint", "tcp://[::1]:*") as service:
        if not service.endpoint:
            pytest.skip("this machine does not speak it")
        with Peer(service.endpoint, ipv6=True) as peer:
            simulate(peer)
        assert service.end() == (0, [])


def test_who_listens_to_the_network_is_warned() -> None:
    with serving("-s", "fcfs", "--endpoint", "tcp://0.0.0.0:*") as service:
        assert service.process.stderr is not None
        line = service.process.stderr.readline()
    assert line.startswith(f"batsched-py: warning: {service.endpoint} is open to the network: ")


def test_escape_codes_of_a_peer_do_not_reach_the_terminal() -> None:
    with serving("-s", "fcfs") as service, Peer(service.endpoint) as peer:
        peer.ask(BEGINS)
        ended = {"job_id": "w0!1", "job_state": "\x1b[2J", "return_code": 0, "alloc": "0"}
        assert "\\x1b[2J" in why_stopped(peer.ask(message(5, ("JOB_COMPLETED", ended))))
        code, (line,) = service.end()
    assert code == 1
    assert line.isprintable()
    assert "\\x1b[2J" in line
