"""What happens from outside: machines that go and come back, and whatever else an event file tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.events import Event, ExternalEvent, HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.agenda import Agenda


def read_events(path: str | Path, forward_unknown: bool = False) -> list[Event]:
    """The events in a file of Batsim's: a JSON object a line, in any order.

    Types other than ``machine_available`` and ``machine_unavailable`` are refused, or forwarded as they are.
    """
    events = _each_line(path, lambda line, number: _read_event(line, forward_unknown))
    return sorted(events, key=lambda event: (event.time, _ORDER.index(type(event))))


def read_generic_events(path: str | Path, name: str) -> list[Event]:
    """The events in a file of Batsim 5's: each is of the type ``generic``, with a text as its ``data``.

    They are called by the ``name`` of their list and their number in it.
    """
    events = _each_line(path, lambda line, number: _read_generic(line, f"{name}!{number}"))
    return sorted(events, key=lambda event: event.time)


def as_generic_events(events: Sequence[Event]) -> str:
    """The same events in a file for Batsim 5, whose texts are the objects that a Batsim 4 knows."""
    lines = [{"timestamp": event.time, "type": "generic", "data": _text(event)} for event in events]
    return "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines)


def _text(event: Event) -> str:
    match event:
        case HostsAvailable(hosts=hosts) | HostsUnavailable(hosts=hosts):
            return msgspec.json.encode({"type": _TYPES[type(event)], "resources": str(hosts)}).decode()
        case ExternalEvent(data={"type": "generic", "data": str(text)}):
            return text
        case ExternalEvent(data=data):
            return msgspec.json.encode(data).decode()
        case _:
            raise TypeError(f"{type(event).__name__} is no external event")


def _each_line(path: str | Path, read: Callable[[str, int], Event]) -> list[Event]:
    """What is read from each line that is not empty, by its text and by how many are before it."""
    try:
        lines = read_input(path).decode("utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot read this event file ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: this event file is not UTF-8 text") from None
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                events.append(read(line, len(events)))
            except (ValueError, OverflowError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}") from None
    return events


_TYPES: dict[type[Event], str] = {
    HostsAvailable: "machine_available",
    HostsUnavailable: "machine_unavailable",
}

#: Of events at one time; Batsim sorts by type.
_ORDER: list[type[Event]] = [HostsAvailable, HostsUnavailable, ExternalEvent]


def _fields(line: str) -> tuple[dict[str, Any], float]:
    """The fields of an event, and its time."""
    fields = msgspec.json.decode(line)
    if not isinstance(fields, dict):
        raise ValueError("an event is a JSON object")
    time = fields.get("timestamp")
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not time >= 0:
        raise ValueError(f"`timestamp` must be a number that is not negative, not {time!r}")
    return fields, float(time)


def _read_generic(line: str, name: str) -> Event:
    fields, time = _fields(line)
    kind, text = fields.get("type"), fields.get("data")
    if kind != "generic":
        raise ValueError(
            f"type {kind!r} is not generic, the only one that a Batsim 5 knows; "
            "put such an event as a JSON text into the `data` of a generic one"
        )
    if not isinstance(text, str):
        raise ValueError(f"`data` must be a text, not {text!r}")
    return ExternalEvent({"type": kind, "data": text}, name, time=time)


def _read_event(line: str, forward_unknown: bool) -> Event:
    fields, time = _fields(line)
    match fields.get("type"):
        case "machine_available":
            return HostsAvailable(_hosts(fields), time=time)
        case "machine_unavailable":
            return HostsUnavailable(_hosts(fields), time=time)
        case str(other):
            if not forward_unknown:
                raise ValueError(
                    f"type {other!r} is neither machine_available nor machine_unavailable; "
                    "use --forward-unknown-events to pass it on to the decision process"
                )
            return ExternalEvent(fields, time=time)
        case other:
            raise ValueError(f"`type` must be a text, not {other!r}")


def _hosts(fields: dict[str, Any]) -> HostSet:
    resources = fields.get("resources")
    if not isinstance(resources, str):
        raise ValueError(f"`resources` must be a text like '0-3 7', not {resources!r}")
    return HostSet.parse(resources)


class Outside:
    """Lets the events of all lists occur, each at its time."""

    def __init__(
        self,
        lists: Sequence[Sequence[Event]],
        nb_hosts: int,
        agenda: Agenda,
        occur: Callable[[Event], None],
        done: Callable[[None], None],
    ) -> None:
        events = sorted([event for one in lists for event in one], key=lambda event: event.time)
        for event in events:
            if isinstance(event, HostsAvailable | HostsUnavailable) and event.hosts.mask >> nb_hosts:
                beyond = event.hosts - HostSet.range(nb_hosts)
                raise InputError(f"the external event at {event.time:g} names unknown hosts {beyond}")
            agenda.at(event.time, occur, event)
        agenda.notice(events[-1].time if events else 0.0, done)
