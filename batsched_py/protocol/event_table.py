"""Events as a JSON dialect spells them, in a table in which each stands once.

An entry is a :class:`Shape`: its fields are what the wire says, and it knows which event that is. Reading is
strict about what the protocol fixes and lenient about what it leaves open: an unknown type or field is kept,
and logged once. A message is read in one pass. Only where that fails, be it for an unknown field or a
mistake, it is read event by event, to keep the one and to say where the other is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property, reduce
from operator import or_
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Raw, Struct, structs

from batsched_py.errors import ProtocolError
from batsched_py.protocol.events import Event, Message, Unknown
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.protocol.stop import STOP_MARK

_log = logging.getLogger(__name__)

#: A peer that invents names for ever shall not fill the log with them, nor the memory.
MOST_LOGGED = 100

#: A message longer than this is counted before it is read, and has no more events and values than that: each
#: takes up to a hundred bytes of memory, however short it is.
LONG_MESSAGE = 8 << 20
MOST_EVENTS = 500_000
MOST_VALUES = 5_000_000

_logged: set[str] = set()


def _log_once(text: str) -> None:
    if text not in _logged and len(_logged) < MOST_LOGGED:
        _logged.add(text)
        _log.warning(text)
        if len(_logged) == MOST_LOGGED:
            _log.warning("so much is not known here that no more of it will be logged")


class Shape(Struct, forbid_unknown_fields=True):
    """The fields of an event on the wire, under the names of the event's attributes.

    A field that is called otherwise on the wire is renamed (``rename``); where nothing else differs, that is
    all. Shapes that share a type on the wire are told apart by one of their fields (``tag_field``, ``tag``).
    """

    kind: ClassVar[str]
    """Its type on the wire."""
    event: ClassVar[Callable[..., Event]]
    """What is spelled like this."""

    def read(self) -> Event:
        """The event, without its time."""
        return self.event(**structs.asdict(self))

    @classmethod
    def write(cls, event: Any) -> Any:
        """The shape of an event."""
        return cls(*[getattr(event, name) for name in cls.__struct_fields__])


class OpenShape(Shape):
    """Any object of a type that none of the other shapes of that type fits."""

    data: dict[str, Any]

    @classmethod
    def write(cls, event: Any) -> Any:
        """The object itself."""
        return event.data


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


_envelope = msgspec.json.Decoder(_Envelope)
_counted = msgspec.json.Decoder(_Counted)


class EventTable:
    """All that one side can say. The wire has its own names for an event's ``type`` and its ``data``."""

    def __init__(self, type_field: str = "type", data_field: str = "data") -> None:
        self._tag_field, self._names = type_field, {"type": type_field, "data": data_field}
        fields: list[Any] = [("timestamp", float), ("type", str)]
        raw = msgspec.defstruct("raw_event", [*fields, ("data", Raw)], rename=self._names)
        self._raw_event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(raw)
        self._spelled: Any = msgspec.defstruct("event", [*fields, ("data", Any)], rename=self._names)
        self._shapes: dict[str, list[type[Shape]]] = {}
        self._open: dict[str, type[OpenShape]] = {}
        self._entries: dict[type[Event], type[Shape]] = {}

    def add(self, kind: str, event: type[Event]) -> Callable[[AnyShape], AnyShape]:
        """Enter a shape: that of an event which is of this kind on the wire."""

        def enter(shape: AnyShape) -> AnyShape:
            shape.kind, shape.event = kind, event
            if issubclass(shape, OpenShape):
                self._open[kind] = shape
            else:
                self._shapes.setdefault(kind, []).append(shape)
            self._entries[event] = shape
            return shape

        return enter

    def shape_of(self, event: Event) -> type[Shape]:
        """The shape of an event that is to be written."""
        entry = self._entries.get(type(event))
        if entry is None:
            raise ProtocolError(f"{type(event).__name__} cannot be said in this dialect")
        return entry

    def spell(self, event: Event) -> Any:
        """An event in terms of JSON: its ``timestamp``, ``type`` and ``data``, named as on the wire."""
        if isinstance(event, Unknown):
            return self._spelled(event.time, event.type, event.data)
        shape = self.shape_of(event)
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
        except (ProtocolError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._decode_with_care(text)

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        """Reads a message in which all is known."""
        kinds: list[Any] = [
            msgspec.defstruct(
                kind,
                [("timestamp", float), ("data", reduce(or_, shapes))],
                tag=kind,
                tag_field=self._tag_field,
                rename={"data": self._names["data"]},
            )
            for kind, shapes in self._shapes.items()
        ]
        events: Any = list[reduce(or_, kinds)]  # type: ignore[misc]
        return msgspec.json.Decoder(msgspec.defstruct("message", [("now", float), ("events", events)]))

    def _decode_with_care(self, text: bytes | str) -> Message:
        envelope = _open(text, _envelope)
        return Message(envelope.now, [self._read(raw, index) for index, raw in enumerate(envelope.events)])

    def _read(self, raw: Raw, index: int) -> Event:
        kind = ""
        try:
            spelled = self._raw_event.decode(raw)
            kind = f" ({shown_name(spelled.type)})"
            event = self._understand(spelled.type, spelled.data)
            event.time = spelled.timestamp
            return event
        except (ProtocolError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
        extra = {name: value for name, value in fields.items() if name not in known}
        for name in extra:
            _log_once(f"field `{shown_name(name)}` of {kind} is not known; it is kept but not interpreted")
        event = msgspec.convert({name: fields[name] for name in fields if name in known}, shape).read()
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


def _open(text: bytes | str, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"not a message of Batsim's protocol: {_reason(error)}") from None


def _check_length(text: bytes | str) -> None:
    """Refuse what takes too much memory to be read."""
    content = text.encode() if isinstance(text, str) else text
    values = sum(map(content.count, (b",", b"[", b"{")))
    if values > MOST_VALUES:
        raise ProtocolError(f"a message has some {values} values; {MOST_VALUES} are the most")
    if (count := len(_open(content, _counted).events)) > MOST_EVENTS:
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
