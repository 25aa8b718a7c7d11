"""What could not be used or started: hosts away, closed or asleep, and jobs that waited for others."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite, log10
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from batsched_py.analysis.schedule import read_table, tables_beside
from batsched_py.errors import InputError
from batsched_py.outside.failures import ABSENCES_HEADER
from batsched_py.protocol.events import Event, HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet

#: Why a host is not usable.
State = Literal["away", "closed", "falling asleep", "asleep", "waking up"]

#: The marks in ``pstate_changes.csv`` of hosts that wake up, and of hosts that fall asleep.
_ON_THE_WAY: Final[dict[int, State]] = {-1: "waking up", -2: "falling asleep"}


@dataclass(frozen=True)
class Absence:
    """Hosts that are in such a state for a while."""

    hosts: HostSet
    state: State
    since: float
    until: float
    """Infinite if they never come back."""


@dataclass(frozen=True)
class Absences:
    """Everything known about hosts that could not be used."""

    told: Sequence[Absence] = ()
    untold: Sequence[State] = ("away", "asleep")
    """The states for which it is unknown whether a host was ever in them."""


def outages(events: Iterable[Event]) -> Iterator[Absence]:
    """The hosts that events make unavailable and available; an event takes effect at its time."""
    board = _Board()
    for event in sorted(events, key=lambda event: event.time):
        match event:
            case HostsUnavailable(hosts=hosts):
                yield from board.turn(hosts, "away", event.time)
            case HostsAvailable(hosts=hosts):
                yield from board.turn(hosts, None, event.time)
    yield from board.left()


def read_absences(lines: Iterable[str], name: str) -> list[Absence]:
    """The failures and closures in the lines of an ``absences.csv``; a line that cannot be read is named."""
    rows = csv.DictReader(lines)
    states: dict[str, State] = {"away": "away", "closed": "closed"}
    try:
        return [
            Absence(
                HostSet.parse(row["hosts"]), states[row["state"]], float(row["since"]), float(row["until"])
            )
            for row in rows
        ]
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error):
        raise InputError(
            f"{name}:{rows.line_num}: these are no hosts that were away or closed ({ABSENCES_HEADER.strip()})"
        ) from None


def failures_and_closures_beside(jobs_file: Path) -> list[Absence]:
    """What is in the ``PREFIX_absences.csv`` beside the jobs; nothing if no such file was written."""
    return read_table(tables_beside(jobs_file), "absences", read_absences) or []


def sleeps(lines: Iterable[str], name: str, schedule: pd.DataFrame) -> Iterator[Absence]:
    """The absences in the lines of a ``pstate_changes.csv``; a line that cannot be read is named.

    A host is asleep when it has finished falling asleep, or if it begins in a power state in which hosts are
    seen to sleep. Batsim writes six digits of each time; a rounded time stands for the nearest instant of the
    schedule with the same digits, if there is one.
    """
    changes = list(_changes(lines, name, _instants(schedule)))
    beds, moved = _beds(changes), HostSet()
    board = _Board()
    for time, hosts, pstate in changes:
        if (way := _ON_THE_WAY.get(pstate)) is not None:
            yield from board.turn(hosts, way, time)
            moved = moved | hosts
        else:
            arrived = hosts & board.those("falling asleep")
            asleep = arrived | (hosts - moved if pstate in beds else HostSet())
            yield from board.turn(asleep, "asleep", time)
            yield from board.turn(hosts - asleep, None, time)
    yield from board.left()


#: A time, hosts, and the power state that they reach or switch to.
_Change = tuple[float, HostSet, int]


def _changes(lines: Iterable[str], name: str, instants: Sequence[float]) -> Iterator[_Change]:
    rows = csv.DictReader(lines)
    try:
        for row in rows:
            time, hosts, pstate = float(row["time"]), HostSet.parse(row["machine_id"]), int(row["new_pstate"])
            if not isfinite(time):
                raise ValueError
            yield _meant(time, instants), hosts, pstate
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error):
        raise InputError(
            f"{name}:{rows.line_num}: this is no change of a power state (time,machine_id,new_pstate)"
        ) from None


def _beds(changes: Iterable[_Change]) -> set[int]:
    """The power states in which hosts sleep: they fall asleep into them, or take time to wake from them."""
    beds: set[int] = set()
    present: dict[int, int] = {}
    begun: dict[int, tuple[State, float]] = {}
    for time, hosts, pstate in changes:
        way = _ON_THE_WAY.get(pstate)
        for host in hosts:
            if way is not None:
                begun[host] = way, time
                continue
            before, since = begun.pop(host, (None, time))
            if before == "falling asleep":
                beds.add(pstate)
            elif before == "waking up" and since < time and host in present:
                beds.add(present[host])
            present[host] = pstate
    return beds


def _instants(schedule: pd.DataFrame) -> list[float]:
    """The times at which jobs were submitted, started or ended."""
    times = schedule[["submission_time", "starting_time", "finish_time"]].to_numpy()
    return np.unique(times[np.isfinite(times)]).tolist()


def _meant(time: float, instants: Sequence[float]) -> float:
    """The nearest of these instants with the same six digits, or else the time itself.

    >>> _meant(1002.41, [988.404, 1002.408, 1022.408]), _meant(1002.4, [988.404, 1002.408])
    (1002.408, 1002.4)
    """
    place = bisect_left(instants, time)
    near = min(instants[max(place - 1, 0) : place + 1], key=lambda each: abs(each - time), default=time)
    last_digit = 10.0 ** (floor(log10(time)) - 5) if time > 0 else 0.0
    return near if abs(near - time) <= last_digit / 2 else time


class _Board:
    """Which hosts are in which state since when."""

    def __init__(self) -> None:
        self._entries: list[tuple[HostSet, State, float]] = []

    def those(self, state: State) -> HostSet:
        """The hosts in a state."""
        found = HostSet()
        for hosts, theirs, _ in self._entries:
            if theirs == state:
                found = found | hosts
        return found

    def turn(self, hosts: HostSet, state: State | None, time: float) -> Iterator[Absence]:
        """Hosts change to a state, or are usable again; yields the absences that end by this."""
        kept = []
        for present, theirs, since in self._entries:
            if (gone := present & hosts) and since < time:
                yield Absence(gone, theirs, since, time)
            if left := present - hosts:
                kept.append((left, theirs, since))
        if hosts and state is not None:
            kept.append((hosts, state, time))
        self._entries = kept

    def left(self) -> Iterator[Absence]:
        """The absences that do not end."""
        for hosts, state, since in self._entries:
            yield Absence(hosts, state, since, inf)


_HELD_COLUMNS = "job_id,submission_time,eligible_time,reason"


@dataclass(frozen=True)
class HeldJob:
    """A job that was held until others were over."""

    eligible: float | None
    """When it joined the queue; nothing if it was rejected."""
    reason: str


def read_held(lines: Iterable[str], name: str) -> dict[str, HeldJob]:
    """The jobs that were held, by their identifiers; a line that cannot be read is named."""
    rows = csv.DictReader(lines)
    try:
        return {
            row["job_id"]: HeldJob(
                float(row["eligible_time"]) if row["eligible_time"] else None, row["reason"]
            )
            for row in rows
        }
    except (KeyError, ValueError, TypeError, csv.Error):
        raise InputError(f"{name}:{rows.line_num}: this is no line of held jobs ({_HELD_COLUMNS})") from None


def held_beside(jobs_file: str | Path) -> dict[str, HeldJob]:
    """The jobs that were held, beside a ``PREFIX_jobs.csv``; none if no such file was written."""
    return read_table(tables_beside(jobs_file), "held", read_held) or {}


def arrivals_of(held: Mapping[str, HeldJob]) -> dict[str, float]:
    """When the jobs joined the queue that were held, and were not rejected."""
    return {name: job.eligible for name, job in held.items() if job.eligible is not None}
