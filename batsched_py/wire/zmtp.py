"""ZeroMQ's transport protocol, ZMTP 3, for the side that answers requests; bytes in and out, no sockets.

Why not libzmq: it shows the first frame of a message when it holds the last, and has no limit for their sum.
So any peer could fill the memory. It also hides which peer has left, and wakes a second thread for each
message. The protocol is short: a greeting of 64 bytes, a command in which each side says what it is, then
frames. Only what a request and its reply need is here.
"""

from __future__ import annotations

import logging

from msgspec import Struct

#: The largest message, in bytes; the first message about a million jobs with a profile each is smaller.
LARGEST = 256 << 20

_MORE, _LONG, _COMMAND = 1, 2, 4

_SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
_VERSION = 3
_MECHANISM = b"NULL".ljust(20, b"\0")
_GREETING_SIZE = 64

#: What the answering side sends as soon as somebody connects.
GREETING = (_SIGNATURE + bytes([_VERSION, 1]) + _MECHANISM).ljust(_GREETING_SIZE, b"\0")

_ENVELOPE = b"\x01\x00"
_READY, _PING = b"\x05READY", b"\x04PING"
_SOCKET_TYPE = b"\x0bSocket-Type"
_ASKING_TYPES = (b"REQ", b"DEALER")

#: A command that is longer makes no sense.
_LONGEST_COMMAND = 512

_log = logging.getLogger(__name__)


class NotZmtp(Exception):
    """What a peer sends is not this protocol."""


class Request(Struct, gc=False):
    """A request as it came. Only a body in one frame, and of a size that is allowed, is kept."""

    body: bytes
    frames: int
    size: int


class Link:
    """What one peer sends, as requests.

    A request is an empty frame, the envelope, and a frame with the body. Nothing else is ever kept in memory.
    """

    def __init__(self) -> None:
        self.owed = bytearray()
        """What is to be sent for the protocol's own sake."""
        self._greeted = self._ready = False
        self._held = bytearray()
        """Received bytes of what has not come whole."""
        self._awaited = 0
        """How many bytes there must be before it is worth looking at them again."""
        self._dropping = 0
        """How many bytes to come are of no interest."""
        self._dropped = (0, 0)
        """The flags and the size of the frame that they end."""
        self._begin_message()

    def _begin_message(self) -> None:
        self._body = b""
        self._frames = -1
        self._size = 0
        self._has_envelope = True

    @property
    def held(self) -> int:
        """How many bytes are in memory."""
        return len(self._held) + len(self._body)

    def receive(self, data: bytes) -> list[Request]:
        """The requests that are whole with these bytes."""
        request = self._only_request(data)
        return self._requests(data) if request is None else [request]

    def _only_request(self, data: bytes) -> Request | None:
        """The request that these bytes are, nothing less and nothing more; nearly all come in this way."""
        between_messages = self._ready and self._frames < 0 and not self._held and not self._dropping
        if not between_messages or len(data) < 4 or data[:2] != _ENVELOPE or data[2] not in (0, _LONG):
            return None
        start = 11 if data[2] else 4
        size = len(data) - start
        return Request(data[start:], 1, size) if int.from_bytes(data[3:start]) == size <= LARGEST else None

    def _requests(self, data: bytes | bytearray) -> list[Request]:
        requests: list[Request] = []
        if self._dropping:
            dropped = min(self._dropping, len(data))
            self._dropping -= dropped
            if self._dropping:
                return requests
            data = data[dropped:]
            self._take(*self._dropped, b"", requests)
        if self._held:
            self._held += data
            if len(self._held) < self._awaited:
                return requests
            data, self._held = self._held, bytearray()
        start = 0 if self._greeted or not data else self._greet(data)
        while (length := len(data)) > start:
            flags = data[start]
            if flags > _COMMAND + _LONG:
                raise NotZmtp(f"a frame with the flags {flags}")
            body = start + (9 if flags & _LONG else 2)
            end = body + int.from_bytes(data[start + 1 : body]) if body <= length else body
            if body > length or (end > length and self._wants(flags, end - body)):
                self._awaited = end - start
                self._held += data[start:] if start else data
                return requests
            if end > length:
                self._dropping, self._dropped = end - length, (flags, end - body)
                return requests
            if flags & _COMMAND:
                self._obey(bytes(data[body:end]))
            else:
                wanted = self._wants(flags, end - body)
                content = bytes(memoryview(data)[body:end]) if wanted else b""
                self._take(flags, end - body, content, requests)
            start = end
        return requests

    def _greet(self, data: bytes | bytearray) -> int:
        """Read the greeting; how many of the bytes it took."""
        version = data[len(_SIGNATURE) : len(_SIGNATURE) + 1]
        if not data.startswith(_SIGNATURE[:1]) or (version and version[0] < _VERSION):
            raise NotZmtp("no greeting of ZeroMQ 4 or later")
        if len(data) < _GREETING_SIZE:
            self._awaited = _GREETING_SIZE if len(data) > len(_SIGNATURE) else len(_SIGNATURE) + 1
            self._held += data
            return len(data)
        if data[12:32] != _MECHANISM:
            raise NotZmtp("a peer that wants to be authenticated")
        self._greeted = True
        self.owed += _command(_READY + _property(_SOCKET_TYPE, b"REP"))
        return _GREETING_SIZE

    def _wants(self, flags: int, size: int) -> bool:
        """Whether the content of a frame of this size is of interest."""
        if flags & _COMMAND:
            if size > _LONGEST_COMMAND:
                raise NotZmtp(f"a command of {size} bytes")
            return True
        return self._frames == 0 and self._has_envelope and size <= LARGEST

    def _obey(self, command: bytes) -> None:
        if command.startswith(_READY):
            kind = command.partition(_SOCKET_TYPE)[2]
            if kind[4 : 4 + int.from_bytes(kind[:4])] not in _ASKING_TYPES:
                raise NotZmtp("a peer that asks for nothing")
            self._ready = True
        elif command.startswith(_PING):
            self.owed += _command(b"\x04PONG" + command[len(_PING) + 2 :])
        else:
            raise NotZmtp(f"the command {command[1:20]!r}")

    def _take(self, flags: int, size: int, content: bytes, requests: list[Request]) -> None:
        """Add a frame to the message, which is a request with its last frame."""
        if not self._ready:
            raise NotZmtp("a message before it is known who sends it")
        if self._frames < 0:
            self._has_envelope = flags == _MORE and size == 0
        else:
            self._body = content
            self._size += size
        self._frames += 1
        if flags & _MORE:
            return
        if self._has_envelope:
            requests.append(Request(self._body, self._frames, self._size))
        else:
            _log.debug("something that is no request was dropped")
        self._begin_message()


def reply(body: bytes) -> bytes:
    """The bytes of the reply to a request."""
    return _ENVELOPE + _frame(0, body)


def _command(content: bytes) -> bytes:
    return _frame(_COMMAND, content)


def _frame(flags: int, content: bytes) -> bytes:
    size = len(content)
    if size < 256:
        return bytes((flags, size)) + content
    return bytes((flags | _LONG,)) + size.to_bytes(8) + content


def _property(name: bytes, value: bytes) -> bytes:
    return name + len(value).to_bytes(4) + value
