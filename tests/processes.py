"""Our commands as processes of their own, and peers that talk to them over real sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any

import zmq
from click.testing import CliRunner

from batsched_py.cli.main import batsched_py
from tests.forks import Forked

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "batsched_py"]
#: Seconds, longer than anything here takes even on a very busy machine; no test waits for ever.
PATIENCE = 600
#: Seconds that are to pass without a message, as an option; a busy machine sends its messages within them.
SILENCE = "3"
#: What a command says of itself when it takes long, and what `review` says of the small studies of tests.
PROGRESS = re.compile(
    r"^batsched-py: (?:[\d,]+ of [\d,]+ \w+, .* so far|warning: waiting for the decision process).*\n"
    r"|batsched-py: review: (?:warn|fail) .*\n",
    re.MULTILINE,
)


def environment(**changes: str) -> dict[str, str]:
    """What a process needs to find the package in this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def hear_signals() -> None:
    """A test run in the background ignores Ctrl-C and hang-ups, and so would its children."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(
    arguments: Sequence[str | Path], cwd: Path | None = None, **variables: str
) -> subprocess.Popen[str]:
    """Start ``batsched-py`` with these arguments."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
    )


def call(arguments: Sequence[str | Path], cwd: Path | None = None, **variables: str) -> tuple[int, str, str]:
    """Run ``batsched-py`` to its end; its exit code and what it wrote to stdout and stderr.

    How far it is, which it tells on a busy machine only, and what a reviewer would say are left out.
    """
    with start(arguments, cwd, **variables) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    return process.returncode, out, PROGRESS.sub("", err)


def call_here(arguments: Sequence[str | Path]) -> tuple[int, str, str]:
    """The same in this process, for commands of which the process is not what is tested."""
    result = CliRunner().invoke(batsched_py, list(map(str, arguments)))
    return result.exit_code, result.stdout, PROGRESS.sub("", result.stderr)


ONE_AFTER_ANOTHER = """
import json, sys
from batsched_py.cli.main import batsched_py
for arguments in json.load(sys.stdin):
    batsched_py(arguments, standalone_mode=False)
"""


def call_one_after_another(commands: Sequence[Sequence[str | Path]], **variables: str) -> None:
    """Run ``batsched-py`` with each of these arguments in one other process; all must succeed silently."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER],
        env=environment(**variables),
        input=json.dumps([list(map(str, arguments)) for arguments in commands]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, PROGRESS.sub("", done.stderr)) == (0, "")


class Service:
    """A running ``batsched-py serve`` or ``record``."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self.greeting = process.stdout.readline()
        self.endpoint = self.greeting.split()[-1] if self.greeting else ""

    def end(self, number: signal.Signals | None = None) -> tuple[int, list[str]]:
        """Wait until it has ended, after a signal if one is given; its exit code and the lines on stderr."""
        if number is not None:
            self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err.splitlines()


@contextmanager
def service(*arguments: str | Path) -> Iterator[Service]:
    """A command that first says where it listens."""
    with Forked([str(argument) for argument in arguments], environment()) as process:
        watch = Timer(4 * PATIENCE, process.kill)
        watch.start()
        try:
            yield Service(process)
        finally:
            watch.cancel()
            process.kill()


def serving(*arguments: str | Path) -> AbstractContextManager[Service]:
    """``batsched-py serve`` at a free port."""
    return service("serve", "--endpoint", "tcp://127.0.0.1:*", *arguments)


def recording(file: Path, back: str, *arguments: str | Path) -> AbstractContextManager[Service]:
    """``batsched-py record`` at a free port, in front of a decision process."""
    return service("record", "--front", "tcp://127.0.0.1:*", "--back", back, *arguments, file)


class Peer:
    """A simulator made by hand: sends any frames, and gets each reply within bounded time."""

    def __init__(self, endpoint: str, ipv6: bool = False) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.ipv6 = ipv6
        self._socket.linger = 0
        self._socket.rcvtimeo = PATIENCE * 1000
        self._socket.connect(endpoint)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.destroy(linger=0)

    def ask(self, *frames: bytes) -> dict[str, Any]:
        """Send a request and give the reply, which is always one JSON object in one frame."""
        self.send(*frames)
        return self.hear()

    def send(self, *frames: bytes) -> None:
        """Send a request."""
        self._socket.send_multipart(frames)

    def hear(self) -> dict[str, Any]:
        """The reply to the last request."""
        answer: dict[str, Any] = json.loads(self.hear_bytes())
        return answer

    def hear_bytes(self) -> bytes:
        """The same, whatever it is."""
        (reply,) = self._socket.recv_multipart()
        return reply
