"""Addresses of ZeroMQ, such as ``tcp://127.0.0.1:28000``, and sockets that listen at them."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from ipaddress import ip_address
from pathlib import Path
from stat import S_ISSOCK
from typing import Any

from batsched_py.errors import InputError

_TCP = re.compile(r"tcp://(?P<host>.*):(?P<port>[^:\]]*)")
_IPC = "ipc://"

#: So many peers may wait to be accepted.
_BACKLOG = 100


def check_port(endpoint: str) -> None:
    """Refuse a port that is none; ZeroMQ itself accepts some texts that are not numbers."""
    port = found["port"] if (found := _TCP.fullmatch(endpoint)) else "*"
    if port != "*" and not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
        raise InputError(f"{endpoint} cannot be used: a port is a number up to 65535, not {port!r}")


def listen(endpoint: str) -> tuple[socket.socket, str]:
    """A socket that listens at an endpoint, and that endpoint with what was chosen for a ``*`` in it."""
    check_port(endpoint)
    try:
        if (found := _TCP.fullmatch(endpoint)) is not None:
            return _listen_to_tcp(found["host"].strip("[]"), found["port"])
        if endpoint.startswith(_IPC) and hasattr(socket, "AF_UNIX"):
            return _listen_to_file(endpoint.removeprefix(_IPC))
    except (OSError, ValueError) as error:
        raise InputError(f"{endpoint} cannot be used: {getattr(error, 'strerror', None) or error}") from None
    raise InputError(f"{endpoint} cannot be used: expected tcp://ADDRESS:PORT or ipc://PATH")


def _listen_to_tcp(host: str, port: str) -> tuple[socket.socket, str]:
    family, _, _, _, address = socket.getaddrinfo(
        "0.0.0.0" if host == "*" else host, 0 if port == "*" else int(port), type=socket.SOCK_STREAM
    )[0]
    listener = _listen(family, address)
    chosen, number, *_ = listener.getsockname()
    return listener, f"tcp://[{chosen}]:{number}" if ":" in chosen else f"tcp://{chosen}:{number}"


def _listen_to_file(name: str) -> tuple[socket.socket, str]:
    """Listen at a file; one that was left by a process that has ended is replaced."""
    if name == "*":
        name = str(Path(tempfile.mkdtemp(), "socket"))
    if name.startswith("@"):
        return _listen(socket.AF_UNIX, "\0" + name[1:]), _IPC + name
    if _was_left(Path(name)):
        Path(name).unlink()
    return _listen(socket.AF_UNIX, name), _IPC + name


def _listen(family: int, address: Any) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def close(listener: socket.socket) -> None:
    """Listen no more, and remove the file at which others would connect."""
    name = listener.getsockname()
    listener.close()
    if isinstance(name, str) and name:
        Path(name).unlink(missing_ok=True)


def _was_left(path: Path) -> bool:
    """Whether nobody listens at a socket file any more."""
    if not path.exists() or not S_ISSOCK(path.stat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) != 0


def is_open_to_the_network(endpoint: str) -> bool:
    """Whether other machines can reach an endpoint.

    >>> [is_open_to_the_network(f"tcp://{host}:28000") for host in ("127.0.0.1", "[::1]", "0.0.0.0", "[::]")]
    [False, False, True, True]
    """
    found = _TCP.fullmatch(endpoint)
    return found is not None and not ip_address(found["host"].strip("[]").partition("%")[0]).is_loopback
