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
    try:
        lines = read_input(path).decode("utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot read this event file ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: this event file is not UTF-8 text") from None
    events = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                events.append(_read_event(line, forward_unknown))
            except (ValueError, OverflowError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}") from None
    return sorted(events, key=lambda event: (event.time, _ORDER.index(type(event))))


#: Of events at one time; Batsim sorts by type.
_ORDER: list[type[Event]] = [HostsAvailable, HostsUnavailable, ExternalEvent]


def _read_event(line: str, forward_unknown: bool) -> Event:
    fields = msgspec.json.decode(line)
    if not isinstance(fields, dict):
        raise ValueError("an event is a JSON object")
    time = fields.get("timestamp")
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not time >= 0:
        raise ValueError(f"`timestamp` must be a number that is not negative, not {time!r}")
    match fields.get("type"):
        case "machine_available":
            return HostsAvailable(_hosts(fields), time=float(time))
        case "machine_unavailable":
            return HostsUnavailable(_hosts(fields), time=float(time))
        case str(other):
            if not forward_unknown:
                raise ValueError(
                    f"type {other!r} is neither machine_available nor machine_unavailable; "
                    "use --forward-unknown-events to pass it on to the decision process"
                )
            return ExternalEvent(fields, time=float(time))
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
