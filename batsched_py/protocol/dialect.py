"""What a dialect of Batsim's protocol is: one value, which whoever speaks or reads it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from batsched_py.protocol.events import Message, Settings
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile


class Codec(Protocol):
    """How one conversation is spelled. It may remember what was said in it."""

    def open(self, ask: Callable[[bytes], bytes], config: str = "") -> Settings | None:
        """Say what a simulator says before its first request, and hear what is answered to that.

        Where the decision process gets its text in the opening, that is ``config``. Where it can ask for what
        it needs, the answer is that.
        """

    def answer(self, said: bytes, needs: Settings = Settings()) -> bytes | None:
        """What a decision process with these needs answers to the opening words.

        Nothing where it is a request already.
        """

    def decode_request(self, text: bytes) -> Message:
        """Read what a simulator says."""

    def encode_reply(self, message: Message) -> bytes:
        """Write what a decision process says."""

    def encode_request(self, message: Message) -> bytes:
        """Write what a simulator says."""

    def decode_reply(self, text: bytes) -> Message:
        """Read what a decision process says."""


class Dialect(Struct, frozen=True):
    """A way of saying things: messages, and jobs and profiles in them and in workload files."""

    name: str
    codec: Callable[[], Codec]
    """What spells a conversation, a new one for each."""
    resolution: float
    """Times are told and called for in multiples of so many seconds."""
    read_job: Callable[[dict[str, Any], str], Job]
    """A job of the workload that is named; whose identifier need not repeat that."""
    spell_job: Callable[[Job], dict[str, Any]]
    read_profile: Callable[[dict[str, Any]], Profile]
    """A profile, be it intelligible or not."""
    spell_profile: Callable[[Profile], dict[str, Any]]
    profile_types: frozenset[str]
    """What the types of profiles are called in workload files, which tell the dialects of these apart."""
