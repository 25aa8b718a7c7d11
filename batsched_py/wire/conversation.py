"""A conversation in a file: which side sent what, in order, as its exact text.

Each line is a JSON object, ``{"from": "batsim"|"scheduler", "message": TEXT}``. Bytes that are not UTF-8 are
kept as lone surrogates, so that reading gives exactly what was sent.
"""

from __future__ import annotations

import json
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from batsched_py.errors import InputError, PeerVanished, ProtocolError
from batsched_py.input_files import open_input
from batsched_py.protocol.dialect import Codec, Dialect
from batsched_py.protocol.dialects import refusal, spoken_in
from batsched_py.protocol.events import SimulationEnds, stop

if TYPE_CHECKING:
    from batsched_py.wire.sockets import AnsweringEnd, AskingEnd

Side = Literal["batsim", "scheduler"]


class Exchange(Struct, frozen=True):
    """A request with its reply; the reply is missing if the conversation was cut short."""

    line: int
    """The line of the request in the file, from 1 on; the reply is on the next line."""
    request: bytes
    reply: bytes | None = None


class ConversationFile:
    """Writes a conversation while it happens: each message is in the file before the next one is received."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> ConversationFile:
        try:
            self._file = self.path.open("w", encoding="ascii")
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}") from None
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, side: Side, message: bytes) -> None:
        """Add a message of one side."""
        line = {"from": side, "message": message.decode("utf-8", "surrogateescape")}
        try:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}") from None


def read_conversation(path: Path) -> list[Exchange]:
    """The exchanges of a conversation, in order."""
    try:
        with TextIOWrapper(open_input(path), encoding="utf-8") as file:
            messages = [_read_line(path, number, line) for number, line in enumerate(file, 1)]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not messages:
        raise InputError(f"{path}: nothing was said in this conversation")
    replies = [*messages[1::2], None]
    return [Exchange(2 * n + 1, request, replies[n]) for n, request in enumerate(messages[::2])]


def _read_line(path: Path, number: int, line: str) -> bytes:
    try:
        fields = json.loads(line)
        side, message = fields["from"], str.encode(fields["message"], "utf-8", "surrogateescape")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f'{path}, line {number}: expected {{"from": "batsim" or "scheduler", "message": TEXT}}'
        ) from None
    if side != ("batsim" if number % 2 else "scheduler"):
        raise InputError(f"{path}, line {number}: batsim and scheduler do not take turns, batsim first")
    return message


def record(
    front: AnsweringEnd, back: AskingEnd, file: ConversationFile, dialect: Dialect | None = None
) -> int:
    """Pass each request of the simulator in front to the decision process behind, and each reply back.

    Messages are passed on unchanged and unchecked. Each is in the file before it is passed on, so that the
    file ends with the message that stopped the conversation. If the decision process is silent, the simulator
    is stopped with that reason; otherwise it would wait for ever. Returns the number of exchanges when the
    reply to the end of the simulation has been passed on. Without a dialect, the first request decides.
    """
    codec: Codec | None = None
    exchanges = 0
    ended = False
    while not ended:
        request = front.receive()
        file.write("batsim", request)
        if codec is None:
            codec = (dialect or spoken_in(request)).codec()
            front.hold(refusal)
        try:
            reply = back.ask(request)
        except (ProtocolError, PeerVanished) as error:
            front.send(codec.encode_reply(stop(0.0, str(error))))
            raise
        file.write("scheduler", reply)
        front.send(reply)
        exchanges += 1
        ended = _ends(request, codec)
    return exchanges


def _ends(request: bytes, codec: Codec) -> bool:
    if codec.answer(request) is not None:
        return False
    try:
        return any(isinstance(event, SimulationEnds) for event in codec.decode_request(request).events)
    except ProtocolError:
        return False
