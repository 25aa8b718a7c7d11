"""Values as Slurm writes them. What is none raises ``ValueError`` with the reason."""

from __future__ import annotations

import re
from math import inf, isnan

from batsched_py.protocol.requests import MOST, kibibytes
from batsched_py.protocol.shown import shown
from batsched_py.workload.sources.quantities import duration, whole

_NO_LIMIT = ("INFINITE", "UNLIMITED", "-1", "NONE")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


class NotModelled(ValueError):
    """A value that Slurm knows and the twin does not."""


def time_limit(text: str) -> float:
    """Seconds of a time, in which a bare number counts minutes.

    >>> time_limit("15"), time_limit("1:30"), time_limit("2-0"), time_limit("INFINITE")
    (900.0, 90.0, 172800.0, inf)
    """
    if text.upper() in _NO_LIMIT:
        return inf
    minutes = whole(text)
    seconds = duration(text) if minutes is None else minutes * 60.0
    if isnan(seconds) or seconds < 0:
        raise ValueError(f"{shown(text)} is not a time like 90, 1:30:00 or 2-12")
    return seconds


def seconds(text: str) -> float:
    """Seconds, given as a number of them or as a time."""
    number = whole(text)
    return time_limit(text) if number is None else float(number)


def count(text: str) -> int:
    """A whole number of at least 0."""
    number = whole(text)
    if number is None:
        raise ValueError(f"{shown(text)} is not a whole number of at least 0")
    return number


def signed(text: str) -> int:
    """A whole number."""
    return -count(text[1:]) if text.startswith("-") else count(text.removeprefix("+"))


def number(text: str) -> float:
    """A number of at least 0."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a number of at least 0")
    return float(text)


def limit(text: str) -> int | None:
    """A number that may be unlimited."""
    return None if text.upper() in _NO_LIMIT else count(text)


def yes_no(text: str) -> bool:
    """Yes or no."""
    match text.upper():
        case "YES" | "1" | "TRUE" | "UP":
            return True
        case "NO" | "0" | "FALSE" | "DOWN":
            return False
    raise ValueError(f"{shown(text)} is neither YES nor NO")


def names(text: str) -> tuple[str, ...]:
    """Names between commas; ``ALL`` and ``(null)`` are none in particular."""
    return () if text.upper() in ("ALL", "(NULL)", "") else tuple(filter(None, text.split(",")))


def megabytes(text: str) -> int:
    """An amount of memory in MB, which is the unit of a bare number.

    >>> megabytes("4G"), megabytes("512")
    (4096, 512)
    """
    size = kibibytes(f"{text}M" if text.isdigit() else text.upper().removesuffix("B"))
    return -(-size // 1024)


def tres(text: str, factor: float = 1.0) -> dict[str, float]:
    """Amounts of trackable resources; memory is in MB. Numbers are multiplied by a factor.

    >>> tres("cpu=16,mem=4G,gres/gpu:a100=2"), tres("cpu=10", 60)
    ({'cpu': 16.0, 'mem': 4096.0, 'gres/gpu:a100': 2.0}, {'cpu': 600.0})
    """
    amounts: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ValueError(f"{shown(part)} is not of the form NAME=NUMBER")
        if value.upper() in _NO_LIMIT:
            continue
        name = name.lower()
        amount = number(value) if _NUMBER.fullmatch(value) else float(megabytes(value))
        if amount * factor > MOST:
            raise ValueError(f"{shown(part)} is too large")
        amounts[name] = amount * factor
    return amounts
