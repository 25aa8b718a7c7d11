"""Messages in the JSON of Batsim 4."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4.events import DECISIONS, HAPPENINGS, Printed
from batsched_py.protocol.batsim4.six_decimals import six_decimals
from batsched_py.protocol.events import Event, Message, Settings, Unknown

#: What is raised for values of foreign types, numbers of thousands of digits and endless nests.
_UNSPEAKABLE = (TypeError, ValueError, KeyError, OverflowError, RecursionError)


class Batsim4Codec:
    """Spells and reads messages, each by itself. A conversation begins with its first request."""

    def open(self, ask: Callable[[bytes], bytes], config: str = "") -> None:
        """Say nothing."""

    def answer(self, said: bytes, needs: Settings = Settings()) -> bytes | None:
        """Nothing: whatever is said is a request."""
        return None

    def decode_request(self, text: bytes | str) -> Message:
        """Read what Batsim says."""
        return HAPPENINGS.decode(text)

    def decode_reply(self, text: bytes | str) -> Message:
        """Read what a decision process says."""
        return DECISIONS.decode(text)

    def encode_request(self, message: Message) -> bytes:
        """What Batsim sends, with every non-integer printed to six decimals."""
        try:
            events = ",".join([_print(event) for event in message.events])
            return f'{{"now":{six_decimals(message.now)},"events":[{events}]}}'.encode()
        except _UNSPEAKABLE as error:
            raise ProtocolError(f"this cannot be written as JSON: {error}") from None

    def encode_reply(self, message: Message) -> bytes:
        """What a decision process sends, with numbers in full."""
        spelled = {"now": message.now, "events": [DECISIONS.spell(event) for event in message.events]}
        try:
            text = msgspec.json.encode(spelled)
            if text.find(b"null") >= 0:  # what JSON lacks may be behind it
                six_decimals(msgspec.to_builtins(spelled))
            return text
        except _UNSPEAKABLE as error:
            raise ProtocolError(f"this cannot be written as JSON: {error}") from None


def _print(event: Event) -> str:
    """An event that Batsim tells of, frequent ones without detours."""
    if not event.extra and not isinstance(event, Unknown):
        shape = HAPPENINGS.shape_of(event)
        if issubclass(shape, Printed):
            time = six_decimals(event.time)
            return f'{{"timestamp":{time},"type":"{shape.kind}","data":{shape.print(event)}}}'
    return six_decimals(msgspec.to_builtins(HAPPENINGS.spell(event)))
