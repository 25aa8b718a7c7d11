"""A dialect of Batsim's protocol, as one value, and the events of a JSON dialect, in a table.

The table has one entry for each event, a :class:`Shape`: its fields are those of the message, and it knows
which event that is. Reading is strict about what the protocol defines and tolerant about the rest: an unknown
type or field is kept, and logged once. A message is read in one pass. If that fails, because of an unknown
field or a mistake, it is read event by event, to keep the unknown field or to say where the mistake is.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, reduce
from operator import or_
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Raw, Struct, structs

from batsched_py.errors import ProtocolError
from batsched_py.protocol.events import STOP_MARK, Event, Message, Settings, Unknown, stop
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.shown import shown, shown_name

#: What is added to the name of a profile that is another one for jobs on one host.
ON_ONE_HOST = "_on_one_host"


class Codec(ABC):
    """Encodes and decodes the messages of one conversation. It may have a memory of that conversation."""

    happenings: ClassVar[EventTable]
    """The events that a simulator sends."""
    decisions: ClassVar[EventTable]
    """The events that a decision process sends."""

    def open(self, ask: Callable[[bytes], bytes], config: str = "") -> Settings | None:
        """Do the simulator's part of the handshake before the first request, if the dialect has one.

        If the handshake has a text for the decision process, it is ``config``. Returns what the decision
        process asked for, if it can.
        """
        return None

    def answer(self, said: bytes, needs: Settings = Settings()) -> bytes | None:
        """The answer of a decision process with these needs to the handshake.

        Nothing if the message is already a request.
        """
        return None

    def refuse(self, said: bytes, now: float, reason: str) -> bytes:
        """The reply to a simulator that has said this, which makes it stop and print why."""
        return self.encode_reply(stop(now, reason))

    def decode_request(self, text: bytes | str) -> Message:
        """Decode a message of a simulator."""
        return self.happenings.decode(text)

    def decode_reply(self, text: bytes | str) -> Message:
        """Decode a message of a decision process."""
        return self.decisions.decode(text)

    @abstractmethod
    def encode_request(self, message: Message) -> bytes:
        """Encode a message of a simulator."""

    @abstractmethod
    def encode_reply(self, message: Message) -> bytes:
        """Encode a message of a decision process."""


class Dialect(Struct, frozen=True):
    """How messages, jobs and profiles are written, in conversations and in workload files."""

    name: str
    codec: Callable[[], Codec]
    """Makes a codec; each conversation needs a new one."""
    read_job: Callable[[dict[str, Any], str], Job]
    """Reads a job of the named workload; its identifier need not contain the workload."""
    spell_job: Callable[[Job], dict[str, Any]]
    read_profile: Callable[[dict[str, Any]], Profile]
    """Reads a profile, known or unknown."""
    spell_profile: Callable[[Profile], dict[str, Any]]
    profile_types: frozenset[str]
    """The names of profile types in workload files. They show which dialect a file has."""
    on_one_host: Callable[[Profile], Profile | None] = lambda profile: None
    """What a job on one host runs in the place of a profile that its Batsim cannot run there."""


_log = logging.getLogger(__name__)

#: So many unknown names are logged and remembered, in case a peer invents new ones for ever.
MOST_LOGGED = 100

#: In a message longer than this, events and values are counted before it is read, and limited: each takes up
#: to a hundred bytes of memory, even a short one.
LONG_MESSAGE = 8 << 20
MOST_EVENTS = 500_000
MOST_VALUES = 5_000_000

#: The errors for values of unknown types, numbers of thousands of digits and very deep nesting.
UNSPEAKABLE = (TypeError, ValueError, KeyError, OverflowError, RecursionError)

#: The errors of texts that are no JSON of the expected kind.
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)

_logged: set[str] = set()


def _log_once(text: str) -> None:
    if text not in _logged and len(_logged) < MOST_LOGGED:
        _logged.add(text)
        _log.warning(text)
        if len(_logged) == MOST_LOGGED:
            _log.warning("so much is not known here that no more of it will be logged")


class Shape(Struct, forbid_unknown_fields=True):
    """The fields of an event in a message, with the names of the event's attributes.

    A field with another name in messages is renamed (``rename``); often nothing else differs, but that
    ``hosts`` are a text. Shapes that share a type in messages are distinguished by one of their fields
    (``tag_field``, ``tag``).
    """

    kind: ClassVar[str]
    """Its type in messages."""
    event: ClassVar[Callable[..., Event]]
    """The event that has this shape."""

    def read(self) -> Event:
        """The event, without its time."""
        fields = structs.asdict(self)
        if "hosts" in fields:
            name = self.__struct_encode_fields__[self.__struct_fields__.index("hosts")]
            fields["hosts"] = hosts_in(fields["hosts"], name)
        return self.event(**fields)

    @classmethod
    def write(cls, event: Any) -> Any:
        """The shape of an event."""
        names = cls.__struct_fields__
        return cls(*[str(event.hosts) if name == "hosts" else getattr(event, name) for name in names])


class OpenShape(Shape):
    """Any object of a type that fits none of the other shapes of that type."""

    data: dict[str, Any]

    @classmethod
    def write(cls, event: Any) -> Any:
        """The object itself."""
        return event.data


def hosts_in(text: str, field: str) -> HostSet:
    """The hosts in a field of an event."""
    try:
        return HostSet.parse(text)
    except ValueError as error:
        raise ProtocolError(f"field `{field}`: {error}") from None


AnyShape = TypeVar("AnyShape", bound=type[Shape])
T = TypeVar("T")


class _Envelope(Struct):
    now: float
    events: list[Raw]


class _Something(Struct, gc=False):
    """An event of which nothing is read."""


class _Counted(Struct):
    now: float
    events: list[_Something]


class EventTable:
    """All events that one side can send. Each dialect has its own names for ``type`` and ``data``."""

    def __init__(self, type_field: str = "type", data_field: str = "data") -> None:
        self._names = {"type": type_field, "data": data_field}
        fields: list[Any] = [("timestamp", float), ("type", str)]
        raw = msgspec.defstruct("raw_event", [*fields, ("data", Raw)], rename=self._names)
        self._raw_event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(raw)
        self._spelled: Any = msgspec.defstruct("event", [*fields, ("data", Any)], rename=self._names)
        self._shapes: dict[str, list[type[Shape]]] = {}
        self._open: dict[str, type[OpenShape]] = {}
        self._entries: dict[type[Event], type[Shape]] = {}

    def add(self, kind: str, event: type[Event]) -> Callable[[AnyShape], AnyShape]:
        """Register the shape of an event that has this type in messages."""

        def enter(shape: AnyShape) -> AnyShape:
            shape.kind, shape.event = kind, event
            if issubclass(shape, OpenShape):
                self._open[kind] = shape
            else:
                self._shapes.setdefault(kind, []).append(shape)
            self._entries[event] = shape
            return shape

        return enter

    def add_plain(self, kind: str, event: type[Event], base: type[Shape] = Shape, **settings: Any) -> None:
        """Register an event that is in messages as it is: with its own fields, or with those of ``base``.

        ``settings`` are those of a Shape, such as ``rename`` for fields with other names.
        """
        fields = [
            (field.name, str if field.type is HostSet else field.type, msgspec.field(default=field.default))
            for field in structs.fields(event)
            if base is Shape and field.name not in Event.__struct_fields__
        ]
        shape: Any = msgspec.defstruct(event.__name__, fields, bases=(base,), **settings)
        self.add(kind, event)(shape)

    def spell(self, event: Event) -> Any:
        """An event as a JSON object: its ``timestamp``, ``type`` and ``data``, with the dialect's names."""
        if isinstance(event, Unknown):
            return self._spelled(event.time, event.type, event.data)
        shape = self._entries.get(type(event))
        if shape is None:
            raise ProtocolError(f"{type(event).__name__} cannot be said in this dialect")
        data = shape.write(event)
        if event.extra:
            data = msgspec.to_builtins(data) | event.extra
        return self._spelled(event.time, shape.kind, data)

    def decode(self, text: bytes | str) -> Message:
        """Read a message; raise :class:`ProtocolError` with the event and the field that are wrong."""
        if len(text) > LONG_MESSAGE:
            _check_length(text)
        try:
            message = self._decoder.decode(text)
            events = []
            for spelled in message.events:
                event = spelled.data.read()
                event.time = spelled.timestamp
                events.append(event)
            return Message(message.now, events)
        except (ProtocolError, *UNREADABLE):
            envelope = _open(text, _Envelope)
            read = [self._read(raw, index) for index, raw in enumerate(envelope.events)]
            return Message(envelope.now, read)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        """Reads a message without anything unknown."""
        names: Any = {"tag_field": self._names["type"], "rename": {"data": self._names["data"]}}
        kinds: list[Any] = []
        for kind, shapes in self._shapes.items():
            fields: list[Any] = [("timestamp", float), ("data", reduce(or_, shapes))]
            kinds.append(msgspec.defstruct(kind, fields, tag=kind, **names))
        events: Any = list[reduce(or_, kinds)]  # type: ignore[misc]
        return msgspec.json.Decoder(msgspec.defstruct("message", [("now", float), ("events", events)]))

    def _read(self, raw: Raw, index: int) -> Event:
        kind = ""
        try:
            spelled = self._raw_event.decode(raw)
            kind = f" ({shown_name(spelled.type)})"
            event = self._understand(spelled.type, spelled.data)
            event.time = spelled.timestamp
            return event
        except (ProtocolError, *UNREADABLE) as error:
            raise ProtocolError(f"event {index}{kind}: {_reason(error)}") from None

    def _understand(self, kind: str, data: Raw) -> Event:
        if kind not in self._shapes:
            if not kind.startswith(STOP_MARK):
                _log_once(f"event type {shown_name(kind)} is not known; it is kept but not interpreted")
            return Unknown(type=kind, data=msgspec.json.decode(data))
        shape = self._choose(kind, data)
        if issubclass(shape, OpenShape):
            return shape(msgspec.json.decode(data)).read()
        try:
            return msgspec.json.decode(data, type=shape).read()
        except msgspec.ValidationError as error:
            if "unknown field" not in str(error):
                raise
        fields = msgspec.json.decode(data)
        known = {*shape.__struct_encode_fields__, shape.__struct_config__.tag_field}
        extra = {name: fields.pop(name) for name in list(fields) if name not in known}
        for name in extra:
            _log_once(f"field `{shown_name(name)}` of {kind} is not known; it is kept but not interpreted")
        event = msgspec.convert(fields, shape).read()
        event.extra = {**(event.extra or {}), **extra}
        return event

    def _choose(self, kind: str, data: Raw) -> type[Shape]:
        """The shape that these data should have."""
        shapes = {shape.__struct_config__.tag: shape for shape in self._shapes[kind]}
        first = self._shapes[kind][0]
        field = first.__struct_config__.tag_field
        fields = None if field is None else msgspec.json.decode(data)
        if not isinstance(fields, dict):
            return first
        tag = fields.get(field)
        if isinstance(tag, str):
            if tag in shapes:
                return shapes[tag]
            if kind in self._open:
                return self._open[kind]
        raise ProtocolError(f"field `{field}`: expected {' or '.join(map(str, shapes))}, got {shown(tag)}")


def encode(now: float, events: list[Any], check: Callable[[Any], object]) -> bytes:
    """The text of a message with these events; ``check`` raises an error for an inf or a nan in it."""
    spelled = {"now": now, "events": events}
    try:
        text = msgspec.json.encode(spelled)
        if text.find(b"null") >= 0:  # which may stand for an inf or a nan
            check(msgspec.to_builtins(spelled))
        return text
    except UNSPEAKABLE as error:
        raise ProtocolError(f"this cannot be written as JSON: {error}") from None


def _open(text: bytes | str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except UNREADABLE as error:
        raise ProtocolError(f"not a message of Batsim's protocol: {_reason(error)}") from None


def _check_length(text: bytes | str) -> None:
    """Refuse a message that takes too much memory to read."""
    content = text.encode() if isinstance(text, str) else text
    values = sum(map(content.count, (b",", b"[", b"{")))
    if values > MOST_VALUES:
        raise ProtocolError(f"a message has some {values} values; {MOST_VALUES} are the most")
    if (count := len(_open(content, _Counted).events)) > MOST_EVENTS:
        raise ProtocolError(f"a message has {count} events; {MOST_EVENTS} are the most")


def _reason(error: Exception) -> str:
    """What is wrong with a text that cannot be read."""
    match error:
        case UnicodeDecodeError():
            return "the bytes are not UTF-8"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return str(error)
