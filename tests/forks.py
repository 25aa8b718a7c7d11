"""Our commands in processes that are forked from one that has them loaded, so that they start at once.

Run as ``python -m tests.forks DESCRIPTOR``, it forks for each request that comes through a socket until the
other side closes it.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from select import select
from threading import Thread
from types import TracebackType
from typing import Any

#: What a service needs.
LOADED = ("batsched_py.cli.main", "batsched_py.cli.serve", "batsched_py.decision.server")
#: Bytes that are read at once.
PIECE = 1 << 16


class Forked:
    """A running command; it is talked to as to a process of ``subprocess``."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        pipes = [os.pipe() for _ in range(3)]
        request = json.dumps({"arguments": arguments, "cwd": os.getcwd(), "environment": dict(environment)})
        message = f"{request}\n".encode()
        sent = socket.send_fds(_server(), [message], [theirs for _, theirs in pipes])
        _server().sendall(message[sent:])
        for _, theirs in pipes:
            os.close(theirs)
        out, err, news = (ours for ours, _ in pipes)
        self.stdout, self.stderr, self._news = os.fdopen(out), os.fdopen(err), os.fdopen(news)
        self.pid = int(self._news.readline())
        self.returncode: int | None = None

    def __enter__(self) -> Forked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wait()
        for file in (self.stdout, self.stderr, self._news):
            file.close()

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended: its exit code, or the number of the signal that ended it, below zero."""
        if self.returncode is None:
            if not select([self._news], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("batsched-py", timeout or 0)
            self.returncode = int(self._news.readline())
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it still writes to stdout and stderr until it ends."""
        texts: dict[Any, str] = {}
        readers = [
            Thread(target=lambda file=file: texts.update({file: file.read()}), daemon=True)
            for file in (self.stdout, self.stderr)
        ]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        return texts[self.stdout], texts[self.stderr]

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended, of which the news may still be on its way."""
        if self.returncode is None and not select([self._news], [], [], 0)[0]:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


#: How to end the process that forks, if there is one.
_at_end = ExitStack()


def end() -> None:
    """End the process that forks; the time that it took then counts as time of this one."""
    _at_end.close()
    _server.cache_clear()


@cache
def _server() -> socket.socket:
    """The socket of the process that forks; it ends when nobody has that any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forks", str(theirs.fileno())],
        cwd=root,
        env=os.environ | {"PYTHONPATH": root},
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    _at_end.callback(process.wait)
    _at_end.callback(ours.close)
    return ours


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each request and tell how each process ends; returns in the processes that it makes."""
    told, wakes = socket.socketpair()
    told.setblocking(False)
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(told, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if told in ready:
                told.recv(4096)
                _tell_ends(running)
            if requests in ready:
                request, files, _, _ = socket.recv_fds(requests, PIECE, 3)
                if not request:
                    sys.exit()
                while not request.endswith(b"\n"):
                    request += requests.recv(PIECE)
                out, err, news = files
                pid = os.fork()
                if pid == 0:
                    break
                os.close(out)
                os.close(err)
                os.write(news, f"{pid}\n".encode())
                running[pid] = news
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for side in (told, wakes, requests):
        side.close()
    for descriptor in (news, *running.values()):
        os.close(descriptor)
    for descriptor, standard in ((out, 1), (err, 2)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    made: dict[str, Any] = json.loads(request)
    return made


def _tell_ends(running: dict[int, int]) -> None:
    """Say with which code each process ended that has."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        news = running.pop(pid)
        os.write(news, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os.close(news)


def _become(arguments: list[str], cwd: str, environment: dict[str, str]) -> None:
    """Do what ``python -m batsched_py`` does with these arguments."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout = os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace", buffering=1)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = cwd
    sys.argv[1:] = arguments
    runpy.run_module("batsched_py", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for module in LOADED:
        __import__(module)
    gc.freeze()
    _become(**_serve(socket.socket(fileno=int(sys.argv[1]))))
