"""A socket of this machine at which a simulation tells other processes how far it is.

Who connects gets one line of JSON, and need not say anything. An address is a port, which only this machine
sees, or the name of a file, which only its owner may open.
"""

import os
import re
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from batsched_py.errors import InputError

_LOCAL = "127.0.0.1"
_PORT = re.compile(r"(?:(?P<host>[^/:]*):)?(?P<port>[0-9]{1,5})")

#: Seconds within which a simulation takes note of somebody who asks, and within which it answers.
_SOON = 0.2
PATIENCE = 60.0

#: No answer is longer.
_LONGEST = 1 << 20


@contextmanager
def answering(address: str, tell: Callable[[], bytes]) -> Iterator[None]:
    """Answer whoever connects, in a thread, until this is left."""
    listener, path = _listener(address)
    thread = Thread(target=_answer_all, args=(listener, tell), daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        if path is not None:
            path.unlink(missing_ok=True)


def ask(address: str) -> bytes:
    """The line that a simulation tells."""
    family, place = _place(address)
    told = b""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(place)
            while len(told) < _LONGEST and (piece := connection.recv(1 << 16)):
                told += piece
    except OSError as error:
        raise InputError(
            f"no simulation answers at {address} ({error.strerror or error}); begin one with "
            f"`batsched-py run ... --status {address}`"
        ) from None
    return told


def _answer_all(listener: socket.socket, tell: Callable[[], bytes]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        except OSError:
            return
        with connection, suppress(OSError):
            connection.settimeout(PATIENCE)
            connection.sendall(tell() + b"\n")


def _listener(address: str) -> tuple[socket.socket, Path | None]:
    """A socket that listens, and the file that it has, if any."""
    family, place = _place(address)
    path = None if isinstance(place, tuple) else Path(place)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if path is None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
        else:
            _remove_left_over(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            before = os.umask(0o177)
            try:
                listener.bind(place)
            finally:
                os.umask(before)
        listener.listen()
        listener.settimeout(_SOON)
    except (OSError, InputError) as error:
        listener.close()
        if isinstance(error, InputError):
            raise
        raise InputError(f"--status {address}: cannot answer there: {error.strerror or error}") from None
    return listener, path


def _remove_left_over(path: Path) -> None:
    """Remove the socket of a process that was killed; what anything else answers to stays."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise InputError(f"--status {path}: is a file; give the name of a new one")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise InputError(f"--status {path}: another simulation answers there; give another name")


def _place(address: str) -> tuple[socket.AddressFamily, tuple[str, int] | str]:
    """Where an address is: a port of this machine, else the name of a file.

    >>> _place("localhost:8765")[1], _place("out/run.sock")[1]
    (('127.0.0.1', 8765), 'out/run.sock')
    """
    port = _PORT.fullmatch(address)
    if port is None:
        return socket.AF_UNIX, address
    if port["host"] not in (None, "", "localhost", _LOCAL):
        raise InputError(f"{address}: a simulation answers on its own machine only; give localhost:PORT")
    if not 0 < int(port["port"]) < 1 << 16:
        raise InputError(f"{address}: there is no such port; there are 1 to 65535")
    return socket.AF_INET, (_LOCAL, int(port["port"]))
