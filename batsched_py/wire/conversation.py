"""A conversation in a file: which side sent what, in order, as its exact text.

Each line is a JSON object, ``{"from": "batsim"|"scheduler", "message": TEXT}``. Bytes that are not UTF-8 are
kept as lone surrogates, so that reading gives exactly what was sent.
"""

from __future__ import annotations

import json
from io import TextIOWrapper
from pathlib import Path
from typing import Literal

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.input_files import open_input

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
