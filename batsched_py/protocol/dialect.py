"""A dialect of Batsim's protocol, as one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from batsched_py.protocol.events import Message, Settings
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile


class Codec(Protocol):
    """Encodes and decodes the messages of one conversation. It may have a memory of that conversation."""

    def open(self, ask: Callable[[bytes], bytes], config: str = "") -> Settings | None:
        """Do the simulator's part of the handshake before the first request.

        If the handshake has a text for the decision process, it is ``config``. Returns what the decision
        process asked for, if it can.
        """

    def answer(self, said: bytes, needs: Settings = Settings()) -> bytes | None:
        """The answer of a decision process with these needs to the handshake.

        Nothing if the message is already a request.
        """

    def decode_request(self, text: bytes) -> Message:
        """Decode a message of a simulator."""

    def encode_reply(self, message: Message) -> bytes:
        """Encode a message of a decision process."""

    def encode_request(self, message: Message) -> bytes:
        """Encode a message of a simulator."""

    def decode_reply(self, text: bytes) -> Message:
        """Decode a message of a decision process."""


class Dialect(Struct, frozen=True):
    """How messages, jobs and profiles are written, in conversations and in workload files."""

    name: str
    codec: Callable[[], Codec]
    """Makes a codec; each conversation needs a new one."""
    resolution: float
    """Times are multiples of so many seconds."""
    read_job: Callable[[dict[str, Any], str], Job]
    """Reads a job of the named workload; its identifier need not contain the workload."""
    spell_job: Callable[[Job], dict[str, Any]]
    read_profile: Callable[[dict[str, Any]], Profile]
    """Reads a profile, known or unknown."""
    spell_profile: Callable[[Profile], dict[str, Any]]
    profile_types: frozenset[str]
    """The names of profile types in workload files. They show which dialect a file has."""
