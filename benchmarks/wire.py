"""What the wire costs: spelling and reading messages, and deciding behind a socket.

python benchmarks/wire.py [FOLDER OF ANOTHER VERSION]...

Other versions of this project are measured in turn with the present one, so that each ratio is of one run.
The ``serve`` of every version answers the same peer: the ``batsim`` of the first other version, if one is
given. What the library takes alone is measured too: pyzmq in two processes, one of which sends back what the
other says.
The two sides of a conversation speak in turn and are kept on one processor: what it takes to wake another
one up depends on what else the machine does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ROOT / "tests" / "data" / "golden" / "busy400_easy_bf" / "conversation.jsonl"
LOG = ROOT / "workloads" / "sample.swf"
ROUNDS = 5

JOBS = sum(not line.startswith(";") for line in LOG.read_text().splitlines())

#: Each job is submitted and ends.
MESSAGES = 2 * JOBS

#: As long as most of them.
ECHOED = bytes(200)


def codec_costs() -> list[float]:
    """Microseconds of processor time that each of the four steps of an exchange takes."""
    try:
        from batsched_py.protocol.dialects import BATSIM4
        from batsched_py.wire.conversation import read_conversation

        codec = BATSIM4.codec()
    except ImportError:  # versions that had one dialect, which was a module
        from batsched_py.protocol.conversation import read_conversation

        from batsched_py.protocol import batsim4 as codec

    exchanges = read_conversation(RECORDING)[1:]
    requests = [exchange.request for exchange in exchanges]
    replies = [exchange.reply for exchange in exchanges if exchange.reply is not None]
    steps: list[tuple[Callable[..., object], list[object]]] = [
        (codec.encode_request, list(map(codec.decode_request, requests))),
        (codec.decode_request, list(requests)),
        (codec.encode_reply, list(map(codec.decode_reply, replies))),
        (codec.decode_reply, list(replies)),
    ]
    return [1e6 * min(_seconds(*step) for _ in range(20)) / len(step[1]) for step in steps]


def _seconds(step: Callable[..., object], messages: list[object]) -> float:
    began = process_time()
    for message in messages:
        step(message)
    return process_time() - began


def conversing(version: Path, peer: Path) -> list[float]:
    """Seconds of processor time of ``serve`` and of the peer's ``batsim``, for one job and for the log."""
    with tempfile.TemporaryDirectory() as folder:
        one_job = Path(folder, "one.swf")
        lines = LOG.read_text().splitlines(keepends=True)
        one_job.write_text("".join(lines[: len(lines) - JOBS + 1]))
        return [*_converse(version, peer, one_job, folder), *_converse(version, peer, LOG, folder)]


def _converse(version: Path, peer: Path, log: Path, folder: str) -> tuple[float, float]:
    """Seconds of processor time that both sides take for a whole simulation."""
    command = "-m", "batsched_py"
    serve = _start(version, *command, "serve", "-s", "easy", "--endpoint", "tcp://127.0.0.1:*")
    log_options = "--hosts", "64", "-w", str(log), "-e", f"{folder}/out"
    batsim = _start(peer, *command, "batsim", *log_options, "-s", _endpoint(serve))
    return _wait(serve), _wait(batsim)


def echoing() -> list[float]:
    """Seconds of processor time of the answering side of a bare echo, for one message and for many."""
    return [_echo(1), _echo(1 + MESSAGES)]


def _echo(count: int) -> float:
    answering = _start(ROOT, __file__, "--answer", str(count))
    asking = _start(ROOT, __file__, "--ask", str(count), _endpoint(answering))
    seconds = _wait(answering)
    _wait(asking)
    return seconds


def answer(count: int) -> None:
    """Send so many messages back."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.bind("tcp://127.0.0.1:*")
        print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
        for _ in range(count):
            socket.send(socket.recv())


def ask(count: int, endpoint: str) -> None:
    """Send so many messages, each after the reply to the one before."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(endpoint)
        for _ in range(count):
            socket.send(ECHOED)
            socket.recv()


def _endpoint(process: subprocess.Popen[str]) -> str:
    """Where a process says that it listens."""
    assert process.stdout is not None
    return process.stdout.readline().split()[-1]


def _start(version: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=version,
        env={**os.environ, "PYTHONPATH": str(version)},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_stay_on_one_processor,
    )


def _stay_on_one_processor() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _wait(process: subprocess.Popen[str]) -> float:
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, "a side of the conversation failed"
    return usage.ru_utime + usage.ru_stime


def _each(start: float, whole: float) -> float:
    """Microseconds a message, without what a process takes to start."""
    return 1e6 * (whole - start) / MESSAGES


def _serving(sides: list[float]) -> float:
    """Microseconds a message of ``serve``."""
    serve, _, whole_serve, _ = sides
    return _each(serve, whole_serve)


def main() -> None:
    """Print a line for each version."""
    others = [Path(folder).resolve() for folder in sys.argv[1:]]
    versions = [ROOT, *others]
    peer = (others or versions)[0]
    echo = [float("inf")] * 2
    codec = {version: [float("inf")] * 4 for version in versions}
    sides = {version: [float("inf")] * 4 for version in versions}
    for _ in range(ROUNDS):
        echo = list(map(min, echo, echoing()))
        for version in versions:
            command = [sys.executable, __file__, "--codec"]
            text = subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(version)},
            ).stdout
            codec[version] = list(map(min, codec[version], map(float, text.split())))
            sides[version] = list(map(min, sides[version], conversing(version, peer)))
    bare = _each(*echo)
    print(f"a bare echo of pyzmq: {bare:.0f} us a message")
    for version in versions:
        print(f"{version.name}:")
        request, heard, reply, understood = codec[version]
        print(
            f"  codec: {sum(codec[version]):.1f} us an exchange (encode_request {request:.1f}, "
            f"decode_request {heard:.1f}, encode_reply {reply:.1f}, decode_reply {understood:.1f})"
        )
        _, batsim, _, whole_batsim = sides[version]
        decides, simulates = _serving(sides[version]), _each(batsim, whole_batsim)
        print(
            f"  tcp: serve {decides:.0f} us a message, batsim {simulates:.0f} us a message "
            f"({decides / bare:.1f} and {simulates / bare:.1f} times a bare echo)"
        )
    for other in others:
        ratio = _serving(sides[ROOT]) / _serving(sides[other])
        print(f"serve: {ratio:.2f} of the CPU a message of {other.name}, beside the same peer")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--codec"]:
            print(*codec_costs())
        case ["--answer", count]:
            answer(int(count))
        case ["--ask", count, endpoint]:
            ask(int(count), endpoint)
        case _:
            main()
