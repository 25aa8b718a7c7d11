"""How a log is divided by time: parts for the search, and parts that are held out."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from batsched_py.analysis.windows import Window
from batsched_py.api.many import LogInPeriods
from batsched_py.errors import InputError
from batsched_py.workload.changes.selecting import span
from batsched_py.workload.model import Workload


class Division(Struct, frozen=True, kw_only=True):
    """How a log is to be divided."""

    parts: str = "1w"
    """How long each part is."""
    search: int | list[int] | None = None
    """The parts that are searched, or how many of the first; half of them unless it is said."""
    held_out: list[int] | None = None
    """The parts that are held out; all others unless it is said."""
    lead_in: str = "2d"
    """So long before a part its simulation begins."""
    lead_out: str = "2d"
    """For so long after a part jobs are still submitted."""
    continuous: bool = False
    """Whether all parts of a kind are windows of one simulation, which begins with the log."""


class Part(Struct, frozen=True):
    """A period of the log, in seconds since the first submission."""

    number: int
    """Its place in the log, from 1 on."""
    begin: float
    end: float


class Stretch(Struct, frozen=True):
    """What is simulated at once, and the parts of it that are measured."""

    workloads: list[Workload]
    windows: dict[str, Window]
    """The window of each part, by its number."""


class Divided(Struct, frozen=True):
    """The parts of a log, and what is to be simulated to measure them."""

    search: list[Part]
    held_out: list[Part]
    searched: list[Stretch]
    kept: list[Stretch]
    """The stretches of the parts that are held out."""


def divided(log: LogInPeriods, division: Division) -> Divided:
    """The whole parts of a log that have jobs; the first one only leads in."""
    length = span(division.parts)
    whole = [Part(place + 1, place * length, (place + 1) * length) for place in range(int(log.span / length))]
    known = {part.number: part for part in whole[1:] if log.submissions(part.begin, part.end)}
    if len(known) < 2:
        raise InputError(
            f"parts: a log of {log.span / 86400:.3g} d has fewer than three whole parts of {division.parts}"
        )
    search = _chosen(division.search, known)
    others = [number for number in known if number not in search]
    held_out = others if division.held_out is None else division.held_out
    if both := sorted({*search} & {*held_out}):
        raise InputError(f"held_out: part {both[0]} is searched, too")
    if not search or not held_out:
        raise InputError(f"search: of {len(known)} parts, some must be searched and others held out")
    mine, its = ([_part(number, known) for number in numbers] for numbers in (search, held_out))
    return Divided(mine, its, _stretches(log, mine, division), _stretches(log, its, division))


def _chosen(search: int | list[int] | None, known: dict[int, Part]) -> list[int]:
    if isinstance(search, list):
        return search
    return list(known)[: len(known) // 2 if search is None else search]


def _part(number: int, known: dict[int, Part]) -> Part:
    if number not in known:
        raise InputError(
            f"there is no part {number} with jobs: parts are {min(known)} to {max(known)}, the first leads in"
        )
    return known[number]


def _stretches(log: LogInPeriods, parts: Sequence[Part], division: Division) -> list[Stretch]:
    lead_in, lead_out = (_lead(text) for text in (division.lead_in, division.lead_out))
    if division.continuous:
        return [_stretch(log, 0.0, max(part.end for part in parts) + lead_out, parts)]
    return [_stretch(log, max(0.0, each.begin - lead_in), each.end + lead_out, [each]) for each in parts]


def _lead(text: str) -> float:
    return 0.0 if text in ("0", "0d") else span(text)


def _stretch(log: LogInPeriods, begin: float, end: float, parts: Sequence[Part]) -> Stretch:
    """Windows are told from the first submission of the simulation."""
    zero = log.submissions(begin, end)[0]
    windows = {str(part.number): Window(max(0.0, part.begin - zero), part.end - zero) for part in parts}
    return Stretch(log.period(begin, end), windows)
