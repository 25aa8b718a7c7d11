"""Conversations of two sides in files: recorded while they happen, and repeated with one of the sides.

Each line of a file is a JSON object, ``{"from": "batsim"|"scheduler", "message": TEXT}``, with the exact text
of a message. Bytes that are not UTF-8 are kept as lone surrogates, so that reading gives exactly what was
sent.

A conversation is repeated up to the first difference. Messages are compared by their meaning: hosts as sets,
numbers to the six decimals of messages. The paths of workload files do not matter, nor how the simulator
distributes the events of one instant over messages: Batsim itself sometimes splits simultaneous submissions.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from itertools import zip_longest
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from msgspec import Struct, structs

from batsched_py.errors import Deadlock, InputError, PeerVanished, ProtocolError, RuleBroken
from batsched_py.input_files import open_input
from batsched_py.protocol.dialect import Codec, Dialect
from batsched_py.protocol.dialects import BATSIM4, refusal, spoken_in, tells
from batsched_py.protocol.events import Message, Settings, SimulationBegins, SimulationEnds, stop
from batsched_py.protocol.jobs import TICK

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
        ended = codec.answer(request) is None and tells(request, SimulationEnds, codec)
    return exchanges


#: An event as a JSON object.
Spelled = dict[str, Any]

#: The keys and indices that lead to a part of it.
Trail = tuple[str | int, ...]

#: Numbers agree if they differ by at most one tick, and a little for rounding; of larger ones, Batsim keeps
#: what a double can hold.
TICKS = 1.1
RELATIVE_TOLERANCE = 1e-14

#: Of an event with a longer text, only the part that differs is shown.
LONG = 400


class Difference(Struct, frozen=True):
    """Where a replay differs from the recording."""

    line: int
    """Of the recorded message, from 1 on."""
    time: float
    place: str
    """Which event of the recording or of the message it is, from 0 on, and what in it."""
    recorded: str
    replayed: str


class Agreement(Struct, frozen=True):
    """How many events were as recorded, and the first difference, if there is one."""

    equal: int
    difference: Difference | None = None


class Simulates(Protocol):
    """The side of the simulator, such as a :class:`~batsched_py.engines.python.Batsim`."""

    def begin(self) -> Message:
        """The first request."""

    def advance(self, reply: Message) -> Message | None:
        """The request that follows a reply, if there is one."""


class Turn(Struct, frozen=True):
    """A decoded exchange of a recording."""

    line: int
    now: float
    happenings: list[Spelled]
    reply: Message | None


def asked_for(conversation: Sequence[Exchange], dialect: Dialect) -> tuple[Codec, Settings | None]:
    """The simulator's codec of a recording after its handshake, and what the handshake asked for."""
    codec, replies = dialect.codec(), iter(conversation)
    return codec, codec.open(lambda _: next(replies).reply or b"")


def understand(
    conversation: Sequence[Exchange], dialect: Dialect = BATSIM4, codec: Codec | None = None
) -> list[Turn]:
    """The exchanges of a recording, without the handshake.

    A message that the dialect cannot decode is an error with its line. Requests are encoded by the ``codec``,
    or by a new one.
    """
    codec = codec or dialect.codec()
    decides, simulates = dialect.codec(), dialect.codec()
    turns = []
    for exchange in conversation:
        if decides.answer(exchange.request) is not None:
            continue
        line = exchange.line
        try:
            request = decides.decode_request(exchange.request)
            happenings = _happenings(request, codec)
            line += 1
            reply = None if exchange.reply is None else simulates.decode_reply(exchange.reply)
        except ProtocolError as error:
            raise ProtocolError(f"line {line} of the recording: {error}") from None
        turns.append(Turn(exchange.line, request.now, happenings, reply))
    return turns


def replay_to_decision(
    conversation: Sequence[Exchange], answer: Callable[[bytes], bytes], dialect: Dialect = BATSIM4
) -> Agreement:
    """Send the recorded requests to ``answer``, and compare the replies.

    A request without a recorded reply is sent too, because it may have caused the failure.
    """
    turns = {turn.line: turn for turn in understand(conversation, dialect)}
    codec = dialect.codec()
    equal = 0
    for exchange in conversation:
        said = answer(exchange.request)
        if (turn := turns.get(exchange.line)) is None:
            continue
        replayed = codec.decode_reply(said)
        if turn.reply is None:
            continue
        replies = (_events(dialect.codec().encode_reply(reply)) for reply in (turn.reply, replayed))
        for index, (theirs, ours) in enumerate(zip_longest(*replies)):
            if (path := differs(theirs, ours)) is not None:
                place = f"decision {index} of the reply"
                return Agreement(equal, _difference(turn.line + 1, turn.now, place, path, theirs, ours))
            equal += 1
        nows = turn.reply.now, replayed.now
        if differs(*nows) is not None:
            difference = Difference(turn.line + 1, turn.now, "`now` of the reply", *map(str, nows))
            return Agreement(equal, difference)
    return Agreement(equal)


class RecordedProcess:
    """A decision process that decides as recorded.

    It gives each recorded reply when it has received all events before that reply, in any number of messages.
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


def replay_to_batsim(
    conversation: Sequence[Exchange], batsim: Simulates, dialect: Dialect = BATSIM4
) -> Agreement:
    """Let Batsim carry out the recorded decisions, and compare its events one by one.

    If the recording was cut short, so is the replay: its last reply is applied, because it may have made the
    simulator abort.
    """
    codec, _ = asked_for(conversation, dialect)
    turns = understand(conversation, dialect, codec)
    process = RecordedProcess(turns)
    recorded = [(turn, event) for turn in turns for event in turn.happenings]
    equal = 0
    request: Message | None = batsim.begin()
    while request is not None:
        for ours in _happenings(request, codec):
            if equal == len(recorded):
                return Agreement(equal)
            turn, theirs = recorded[equal]
            if (path := differs(theirs, ours)) is not None:
                place = f"event {equal} of the simulation"
                return Agreement(equal, _difference(turn.line, turn.now, place, path, theirs, ours))
            equal += 1
        if equal == len(recorded) and turns[-1].reply is None:
            return Agreement(equal)
        try:
            request = batsim.advance(process.react(request))
        except (RuleBroken, Deadlock) as error:
            if equal == len(recorded):
                raise
            turn, theirs = recorded[equal]
            place, refused = f"event {equal} of the simulation", f"error: {error}"
            return Agreement(equal, Difference(turn.line, turn.now, place, _text(theirs), refused))
    return Agreement(equal)


def differs(recorded: Any, replayed: Any) -> Trail | None:
    """The first place where two JSON values differ, or nothing if they mean the same."""
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
        try:
            same = isclose(recorded, replayed, rel_tol=RELATIVE_TOLERANCE, abs_tol=TICKS * TICK)
        except OverflowError:  # an integer that no double can hold
            same = recorded == replayed
        return None if same else ()
    return None if recorded == replayed else ()


def _difference(
    line: int, time: float, place: str, path: Trail, recorded: Spelled | None, replayed: Spelled | None
) -> Difference:
    """Show two events that differ; of long ones, only the part that differs."""
    texts = _text(recorded), _text(replayed)
    if max(map(len, texts)) > LONG:
        texts = _text(_part(recorded, path)), _text(_part(replayed, path))
    if path:
        place += f", {'.'.join(map(str, path))}"
    return Difference(line, time, place, *texts)


def _part(value: Any, path: Trail) -> Any:
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


def _happenings(message: Message, codec: Codec) -> list[Spelled]:
    """The encoded events of a request, without the paths of workload files.

    Additional information that a simulator gives about itself does not matter.
    """
    events = [
        structs.replace(event, workloads=dict.fromkeys(event.workloads, ""), extra=None)
        if isinstance(event, SimulationBegins)
        else event
        for event in message.events
    ]
    return _events(codec.encode_request(Message(message.now, events)))


def _events(text: bytes) -> list[Spelled]:
    """The events of an encoded message."""
    events: list[Spelled] = msgspec.json.decode(text.removesuffix(b"\0"))["events"]
    return events
