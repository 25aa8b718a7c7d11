"""Try a scheduler that is a program of its own, in any language: start it, simulate, tell what is wrong.

The built-in Batsim is in this process; the program listens at a socket of its own for each case. A program
that hangs, dies or answers nonsense is told with the last messages of both sides and what it printed last.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from xml.etree import ElementTree

from batsched_py.analysis.validator import Policy as Promise
from batsched_py.errors import BatschedError, InputError, PeerVanished
from batsched_py.protocol.dialects import VERSIONS
from batsched_py.protocol.events import Settings
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.testing.cases import CASES, Case, faults_in
from batsched_py.wire.sockets import AskingEnd

#: What stands for the address in a command, and for its port alone.
SOCKET, PORT = "{socket}", "{port}"

#: So many messages of both sides are told with a fault, and so many letters of each.
_LAST_MESSAGES, _LONGEST = 4, 600

#: So many lines of what a program printed.
_LAST_LINES = 5

#: A reply of a program that has ended may still be on its way for so many seconds.
_ON_ITS_WAY = 1.0


@dataclass(frozen=True)
class Outcome:
    """How a program did in a case."""

    case: str
    protocol: str
    faults: Sequence[str]
    messages: Sequence[str]
    """The last ones, if there is a fault."""
    printed: Sequence[str]
    """The last lines that the program printed, if there is a fault."""
    seconds: float

    def __str__(self) -> str:
        if not self.faults:
            return f"ok    {self.case} (protocol {self.protocol})"
        lines = [f"FAIL  {self.case} (protocol {self.protocol}): {self.faults[0]}"]
        lines += [f"        {fault}" for fault in self.faults[1:]]
        lines += [f"      {message}" for message in self.messages]
        lines += [f"      it printed: {line}" for line in self.printed]
        return "\n".join(lines)


class Program:
    """A running scheduler, and the end of the socket from which it is asked."""

    def __init__(self, command: Sequence[str], folder: Path, timeout: float) -> None:
        self.endpoint = f"tcp://127.0.0.1:{_free_port()}"
        self.last: deque[str] = deque(maxlen=_LAST_MESSAGES)
        self._timeout = timeout
        self._printed = folder / "printed"
        port = self.endpoint.rpartition(":")[2]
        words = [word.replace(SOCKET, self.endpoint).replace(PORT, port) for word in command]
        try:
            with self._printed.open("wb") as printed:
                self._process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise InputError(f"{words[0]}: cannot be started: {error.strerror}") from None
        self._seen_ended: float | None = None
        self._end = AskingEnd(self.endpoint, timeout, self._look)

    def __enter__(self) -> Program:
        self._end.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.__exit__(*error)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for the reply to it."""
        self.last.append(f"batsim said:    {_shown(request)}")
        reply = self._end.ask(request)
        self.last.append(f"scheduler said: {_shown(reply)}")
        return reply

    def end(self) -> str | None:
        """Wait until the program has ended; what is wrong with how it ended."""
        try:
            code = self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            return f"it still runs {self._timeout:g} s after the simulation has ended"
        return f"it ended with exit code {code}" if code else None

    def printed(self) -> list[str]:
        """The last lines that it printed."""
        return self._printed.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]

    def _look(self, waited: float) -> None:
        """Do not wait for a program that has ended."""
        if (code := self._process.poll()) is None:
            return
        now = monotonic()
        if self._seen_ended is None:
            self._seen_ended = now
        elif now - self._seen_ended >= _ON_ITS_WAY:
            raise PeerVanished(f"it ended with exit code {code}, and did not answer")


def try_program(
    command: Sequence[str], protocols: Sequence[str], promise: Promise | None = None, timeout: float = 30.0
) -> Iterator[Outcome]:
    """How a program does in each case, by each protocol; it is started anew for each."""
    if not any(SOCKET in word or PORT in word for word in command):
        raise InputError(
            f"{shlex.join(command)}: where is it told the address? Write {SOCKET} where the address goes, "
            f"or {PORT} where the port goes"
        )
    for protocol in protocols:
        for case in CASES:
            yield _outcome(command, case, protocol, promise, timeout)


def _outcome(
    command: Sequence[str], case: Case, protocol: str, promise: Promise | None, timeout: float
) -> Outcome:
    began = monotonic()
    with TemporaryDirectory() as folder, Program(command, Path(folder), timeout) as program:
        try:
            process = RemoteProcess(program, VERSIONS[protocol])
            settings = process.open() or Settings()
            faults = faults_in(process, case, settings, promise)
            if (fault := program.end()) is not None:
                faults.append(fault)
        except BatschedError as error:
            faults = [str(error)]
        told = (list(program.last), program.printed()) if faults else ([], [])
    return Outcome(case.name, protocol, faults, *told, monotonic() - began)


def junit(outcomes: Sequence[Outcome], command: Sequence[str]) -> str:
    """The outcomes as a report of tests in JUnit's XML."""
    failures = sum(bool(outcome.faults) for outcome in outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name=shlex.join(command),
        tests=str(len(outcomes)),
        failures=str(failures),
        errors="0",
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        test = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"protocol {outcome.protocol}",
            name=outcome.case,
            time=f"{outcome.seconds:.3f}",
        )
        if outcome.faults:
            failure = ElementTree.SubElement(test, "failure", message=_allowed(outcome.faults[0]))
            failure.text = _allowed(str(outcome))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _allowed(text: str) -> str:
    """A text without the letters that XML forbids."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _shown(message: bytes) -> str:
    text = message.decode("utf-8", "backslashreplace")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(message)} bytes)"


def _free_port() -> int:
    """A port at which nobody listens at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
