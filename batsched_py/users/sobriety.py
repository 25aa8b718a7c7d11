"""When energy is short, by how much, and what users do about it then."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import Any

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.input_files import read_input

#: Whom a row of a file of chances is for if it names nobody.
EVERYBODY = "*"

#: What users may do instead of submitting as recorded, in the order of their chances, as notes call it.
DEEDS = ("later", "fewer", "less", "shorter", "gave-up")

#: The columns of a file of chances that hold these.
CHANCES = ("later", "fewer", "less", "shorter", "give_up")


class Window(Struct, frozen=True):
    """A time in which energy is short."""

    start: float
    end: float
    level: float = inf
    """The value of the signal, or infinite if the window was given by hand."""
    until: float = inf
    """When energy is no longer short, where windows of different levels follow one another."""


class Chances(Struct, frozen=True):
    """What users do when energy is short: for whom and from which level on."""

    by_user: Mapping[str, Mapping[float, tuple[float, ...]]]
    """For users, or everybody else, and levels, the chance of each of :data:`DEEDS`."""

    @property
    def lowest(self) -> float:
        """From which level on anybody does anything."""
        return min(level for levels in self.by_user.values() for level in levels)

    def of(self, user: str, level: float) -> tuple[float, ...]:
        """The chances of a user when the signal is at some level.

        One of a population, who is called USER.NUMBER, does what that user of the log does.
        """
        for name in (user, user.rpartition(".")[0], EVERYBODY):
            if name in self.by_user:
                rows = self.by_user[name]
                place = bisect_right(sorted(rows), level)
                return rows[sorted(rows)[place - 1]] if place else (0.0,) * len(DEEDS)
        return (0.0,) * len(DEEDS)


def read_windows(text: str) -> list[Window]:
    """Windows as an option gives them.

    >>> [(window.start, window.end) for window in read_windows("0-3600,86400-90000")]
    [(0.0, 3600.0), (86400.0, 90000.0)]
    """
    windows = []
    for part in filter(None, text.split(",")):
        start, _, end = part.partition("-")
        try:
            window = Window(float(start), float(end))
        except ValueError:
            window = Window(inf, -inf)
        if not window.start < window.end < inf:
            raise InputError(f"window {part!r} of sober users: write START-END in seconds, like 36000-50400")
        windows.append(window)
    return windows


def read_signal(file: str, lowest: float) -> list[Window]:
    """Where a signal is at least so high; each of its values holds until the next one, the last for ever."""
    if not file:
        return []
    try:
        lines = read_input(file).decode("utf-8").splitlines()
        steps = [(float(time), float(value)) for time, value in (line.split(",") for line in lines if line)]
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: no signal of lines TIME,VALUE: {error}") from None
    return [
        Window(start, end, value)
        for (start, value), (end, _) in zip(steps, [*steps[1:], (inf, 0.0)], strict=True)
        if value >= lowest and end > start
    ]


def in_order(windows: Sequence[Window], levels: Sequence[float]) -> list[Window]:
    """Windows from the first to the last; those that follow one another between two levels are one."""
    merged: list[Window] = []
    for window in sorted(windows, key=lambda window: window.start):
        before = merged[-1] if merged else None
        if before is not None and window.start < before.end:
            raise InputError(f"the windows of sober users overlap at {window.start:g} s")
        same = before is not None and all((window.level >= each) == (before.level >= each) for each in levels)
        if before is not None and before.end == window.start and same:
            merged[-1] = Window(before.start, window.end, before.level)
        else:
            merged.append(window)
    ordered: list[Window] = []
    for window in reversed(merged):
        follows = bool(ordered) and ordered[-1].start == window.end
        until = ordered[-1].until if follows else window.end
        ordered.append(Window(window.start, window.end, window.level, until))
    return ordered[::-1]


def read_chances(file: str, otherwise: Mapping[float, tuple[float, ...]]) -> Chances:
    """The chances that a file gives by user and level; everybody has others if it does not say."""
    by_user: dict[str, dict[float, tuple[float, ...]]] = {}
    if file:
        try:
            lines = read_input(file).decode("utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: no chances of sober users: {error}") from None
        for number, row in enumerate(csv.DictReader(lines), start=2):
            try:
                user, level, chances = _read_row(row)
            except (TypeError, ValueError):
                columns = ", ".join(CHANCES)
                raise InputError(
                    f"{file}, line {number}: write columns user, level and any of {columns}, with chances "
                    "that sum up to 1 at most"
                ) from None
            if level in by_user.setdefault(user, {}):
                raise InputError(f"{file}, line {number}: user {user} has two rows for level {level:g}")
            by_user[user][level] = chances
    return Chances({EVERYBODY: otherwise} | by_user)


def _read_row(row: Mapping[Any, Any]) -> tuple[str, float, tuple[float, ...]]:
    if not {"user", "level"} <= row.keys() <= {"user", "level", *CHANCES}:
        raise ValueError("columns")
    level = float(row["level"])
    chances = tuple(float(row.get(name) or 0) for name in CHANCES)
    if not isfinite(level) or not (min(chances) >= 0 and sum(chances) <= 1):
        raise ValueError("numbers")
    return row["user"] or EVERYBODY, level, chances
