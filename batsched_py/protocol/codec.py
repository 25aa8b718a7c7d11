"""What every dialect of the wire offers."""

from __future__ import annotations

from typing import Protocol

from batsched_py.protocol.events import Message


class Codec(Protocol):
    """How a dialect spells messages. A module with these functions is one, such as ``protocol.batsim4``."""

    def decode_request(self, text: bytes) -> Message:
        """Read what a simulator says."""

    def encode_reply(self, message: Message) -> bytes:
        """Write what a decision process says."""

    def encode_request(self, message: Message) -> bytes:
        """Write what a simulator says."""

    def decode_reply(self, text: bytes) -> Message:
        """Read what a decision process says."""
