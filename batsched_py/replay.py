"""Holding a recorded conversation again with one of its sides, up to the first difference.

Messages are compared by what they mean: hosts as sets, numbers to the six decimals of the wire. Where the
files of the workloads lie does not matter, nor how the simulator spreads the events of one instant over
messages: Batsim itself now and then splits simultaneous submissions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec import Struct

from batsched_py.errors import Deadlock, ProtocolError, RuleBroken
from batsched_py.protocol import batsim4
from batsched_py.protocol.codec import Codec
from batsched_py.protocol.conversation import Exchange
from batsched_py.protocol.events import Message, SimulationBegins
from batsched_py.simulator.engine import Batsim

#: An event as JSON spells it.
Event = dict[str, Any]

#: The keys and indices that lead to a part of it.
Path = tuple[str | int, ...]

#: Batsim prints six decimals; of a number too large for them it keeps what a double can hold.
TOLERANCE = 1.1e-6
RELATIVE_TOLERANCE = 1e-14

#: Of an event with a longer text, only the part that differs is shown.
LONG = 400


class Difference(Struct, frozen=True):
    """Where a replay left the recording."""

    line: int
    """Of the recorded message, from 1 on."""
    time: float
    place: str
    """Which event of the recording or of the message it is, from 0 on, and what in it."""
    recorded: str
    replayed: str


class Outcome(Struct, frozen=True):
    """How many events were as recorded, and what then was not, if anything."""

    equal: int
    difference: Difference | None = None


class Turn(Struct, frozen=True):
    """An exchange of a recording, understood."""

    line: int
    now: float
    happenings: list[Event]
    reply: Message | None


def understand(conversation: Sequence[Exchange], codec: Codec = batsim4) -> list[Turn]:
    """What was said in a recording; what is not a message of the dialect is an error with its line."""
    turns = []
    for exchange in conversation:
        line = exchange.line
        try:
            now, happenings = _request_as_json(exchange.request, codec)
            line += 1
            reply = None if exchange.reply is None else codec.decode_reply(exchange.reply)
        except ProtocolError as error:
            raise ProtocolError(f"line {line} of the recording: {error}") from None
        turns.append(Turn(exchange.line, now, happenings, reply))
    return turns


def replay_to_decision(
    conversation: Sequence[Exchange], answer: Callable[[bytes], bytes], codec: Codec = batsim4
) -> Outcome:
    """Send the recorded requests to whoever ``answer``s them, and compare the replies.

    A request without a reply in the recording is sent as well, for it may be what broke the decision process.
    """
    equal = 0
    for exchange, turn in zip(conversation, understand(conversation, codec), strict=True):
        replayed = codec.decode_reply(answer(exchange.request))
        if turn.reply is None:
            continue
        now, decisions = _reply_as_json(turn.reply, codec)
        our_now, our_decisions = _reply_as_json(replayed, codec)
        for index, (theirs, ours) in enumerate(zip_longest(decisions, our_decisions)):
            if (path := differs(theirs, ours)) is not None:
                place = f"decision {index} of the reply"
                return Outcome(equal, _difference(turn.line + 1, turn.now, place, path, theirs, ours))
            equal += 1
        if differs(now, our_now) is not None:
            difference = Difference(turn.line + 1, turn.now, "`now` of the reply", str(now), str(our_now))
            return Outcome(equal, difference)
    return Outcome(equal)


class RecordedProcess:
    """A decision process that decides as recorded.

    It gives each recorded reply as soon as it has heard all that was replied to, in however many messages.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = deque(turns)
        self._unanswered = 0

    def react(self, request: Message) -> Message:
        """Answer one request of the simulator."""
        self._unanswered += len(request.events)
        reply = Message(request.now, [])
        while self._turns and len(self._turns[0].happenings) <= self._unanswered:
            turn = self._turns.popleft()
            self._unanswered -= len(turn.happenings)
            if turn.reply is not None:
                reply.events += turn.reply.events
                reply.now = max(reply.now, turn.reply.now)
        return reply


def replay_to_batsim(conversation: Sequence[Exchange], batsim: Batsim, codec: Codec = batsim4) -> Outcome:
    """Let Batsim carry out the recorded decisions, and compare what it says, event by event.

    Where the recording was cut short, so is the replay: its last reply is applied, for it may be what made
    the simulator abort.
    """
    turns = understand(conversation, codec)
    process = RecordedProcess(turns)
    recorded = [(turn, event) for turn in turns for event in turn.happenings]
    equal = 0
    request: Message | None = batsim.begin()
    while request is not None:
        _, happenings = _request_as_json(codec.encode_request(request), codec)
        for ours in happenings:
            if equal == len(recorded):
                return Outcome(equal)
            turn, theirs = recorded[equal]
            if (path := differs(theirs, ours)) is not None:
                place = f"event {equal} of the simulation"
                return Outcome(equal, _difference(turn.line, turn.now, place, path, theirs, ours))
            equal += 1
        if equal == len(recorded) and turns[-1].reply is None:
            return Outcome(equal)
        try:
            request = batsim.advance(process.react(request))
        except (RuleBroken, Deadlock) as refusal:
            if equal == len(recorded):
                raise
            turn, theirs = recorded[equal]
            place = f"event {equal} of the simulation"
            return Outcome(equal, Difference(turn.line, turn.now, place, _text(theirs), f"error: {refusal}"))
    return Outcome(equal)


def differs(recorded: Any, replayed: Any) -> Path | None:
    """Where two values of JSON first differ; nothing when they mean the same."""
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for key in recorded | replayed:
            if key not in recorded or key not in replayed:
                return (key,)
            if (path := differs(recorded[key], replayed[key])) is not None:
                return (key, *path)
        return None
    if isinstance(recorded, list) and isinstance(replayed, list):
        for index, pair in enumerate(zip(recorded, replayed, strict=False)):
            if (path := differs(*pair)) is not None:
                return (index, *path)
        return None if len(recorded) == len(replayed) else (min(len(recorded), len(replayed)),)
    if isinstance(recorded, float | int) and isinstance(replayed, float | int):
        allowed = max(TOLERANCE, RELATIVE_TOLERANCE * abs(recorded))
        return None if abs(recorded - replayed) <= allowed else ()
    return None if recorded == replayed else ()


def _difference(
    line: int, time: float, place: str, path: Path, recorded: Event | None, replayed: Event | None
) -> Difference:
    """Show two events that differ, or of long ones the part that does."""
    texts = _text(recorded), _text(replayed)
    if max(map(len, texts)) > LONG:
        texts = _text(_part(recorded, path)), _text(_part(replayed, path))
    if path:
        place += f", {'.'.join(map(str, path))}"
    return Difference(line, time, place, *texts)


def _part(value: Any, path: Path) -> Any:
    for key in path:
        try:
            value = value[key]
        except LookupError:
            return None
    return value


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= LONG else f"{text[:LONG]}..."


def _request_as_json(text: bytes, codec: Codec) -> tuple[float, list[Event]]:
    """When a request was sent, and its events as our codec spells them."""
    message = codec.decode_request(text)
    for event in message.events:
        if isinstance(event, SimulationBegins):
            event.workloads = dict.fromkeys(event.workloads, "")
    return message.now, msgspec.json.decode(codec.encode_request(message))["events"]


def _reply_as_json(message: Message, codec: Codec) -> tuple[float, list[Event]]:
    return message.now, msgspec.json.decode(codec.encode_reply(message))["events"]
