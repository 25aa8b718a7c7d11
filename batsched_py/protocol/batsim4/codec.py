"""Messages in the JSON of Batsim 4."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4.events import DECISIONS, HAPPENINGS, Printed
from batsched_py.protocol.batsim4.jobs import (
    PROFILE_TYPES,
    job_from_json,
    job_to_json,
    profile_from_json,
    profile_to_json,
    six_decimals,
)
from batsched_py.protocol.dialect import UNSPEAKABLE, Dialect, encode
from batsched_py.protocol.events import Event, Message, Settings, Unknown
from batsched_py.protocol.jobs import TICK


class Batsim4Codec:
    """Encodes and decodes messages, each independently. A conversation begins with its first request."""

    def open(self, ask: Callable[[bytes], bytes], config: str = "") -> None:
        """There is no handshake."""

    def answer(self, said: bytes, needs: Settings = Settings()) -> bytes | None:
        """Nothing: every message is a request."""
        return None

    def decode_request(self, text: bytes | str) -> Message:
        """Decode a message of Batsim."""
        return HAPPENINGS.decode(text)

    def decode_reply(self, text: bytes | str) -> Message:
        """Decode a message of a decision process."""
        return DECISIONS.decode(text)

    def encode_request(self, message: Message) -> bytes:
        """A message of Batsim, with every non-integer printed to six decimals."""
        try:
            events = ",".join([_print(event) for event in message.events])
            return f'{{"now":{six_decimals(message.now)},"events":[{events}]}}'.encode()
        except UNSPEAKABLE as error:
            raise ProtocolError(f"this cannot be written as JSON: {error}") from None

    def encode_reply(self, message: Message) -> bytes:
        """A message of a decision process, with all digits of numbers."""
        return encode(message.now, [DECISIONS.spell(event) for event in message.events], six_decimals)


def _print(event: Event) -> str:
    """The text of an event of Batsim; frequent events have a faster way."""
    if not event.extra and not isinstance(event, Unknown):
        shape = HAPPENINGS.shape_of(event)
        if issubclass(shape, Printed):
            time = six_decimals(event.time)
            return f'{{"timestamp":{time},"type":"{shape.kind}","data":{shape.print(event)}}}'
    return six_decimals(msgspec.to_builtins(HAPPENINGS.spell(event)))


BATSIM4 = Dialect(
    name="batsim4",
    codec=Batsim4Codec,
    resolution=TICK,
    read_job=job_from_json,
    spell_job=job_to_json,
    read_profile=profile_from_json,
    spell_profile=profile_to_json,
    profile_types=PROFILE_TYPES,
)
