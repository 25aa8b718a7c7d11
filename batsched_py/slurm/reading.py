"""Reading files of Slurm: values and moments as it writes them, and what was found, each with its place.

A text that is no such value raises ``ValueError`` with the reason. What was found is wrong, not done by the
twin, or without an effect.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf, isnan
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import MsgspecError, Struct, field

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.requests import MOST, kibibytes
from batsched_py.protocol.shown import harmless, shown
from batsched_py.workload.sources.accounting import duration, whole

_NO_LIMIT = ("INFINITE", "UNLIMITED", "-1", "NONE")
_YES, _NO = ("YES", "1", "TRUE", "UP"), ("NO", "0", "FALSE", "DOWN")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")
_WEIGHT = re.compile(r"([+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15}))([KMGTP]?)", re.IGNORECASE)
_UNITS = " KMGTP"


class NotModelled(ValueError):
    """A value that Slurm knows and the twin does not; what else was written may count all the same."""

    def __init__(self, reason: str, rest: Any = None) -> None:
        super().__init__(reason)
        self.rest = rest
        """What remains without it, read."""


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


def finite_time(text: str) -> float | None:
    """The same; none if there is no limit."""
    time = time_limit(text)
    return None if time == inf else time


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
    if text.upper() not in _YES + _NO:
        raise ValueError(f"{shown(text)} is neither YES nor NO")
    return text.upper() in _YES


def listed(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(filter(None, text.split(",")))


def names(text: str) -> tuple[str, ...]:
    """Names between commas; ``ALL`` and ``(null)`` are none in particular."""
    return () if text.upper() in ("ALL", "(NULL)") else listed(text)


def each(words: Iterable[str], read: Callable[[str], Any]) -> list[Any]:
    """Words, read one by one; those that are not modelled are told together, and the others remain."""
    found, reasons = [], []
    for word in words:
        try:
            found.append(read(word))
        except NotModelled as error:
            reasons.append(str(error))
    if reasons:
        raise NotModelled("; ".join(reasons), found)
    return found


def megabytes(text: str) -> int:
    """An amount of memory in MB, which is the unit of a bare number.

    >>> megabytes("4G"), megabytes("512")
    (4096, 512)
    """
    size = kibibytes(f"{text}M" if text.isdigit() else text.upper().removesuffix("B"))
    return -(-size // 1024)


def memory_limit(text: str) -> int:
    """An amount of memory in MB; 0 is no limit."""
    return 0 if text.upper() in ("UNLIMITED", "INFINITE") else megabytes(text)


def weights(text: str) -> dict[str, float]:
    """What each unit of a trackable resource counts; a suffix is the unit, as in ``mem=.25G``.

    >>> weights("CPU=1.0,Mem=0.5G,GRES/gpu=16")
    {'cpu': 1.0, 'mem': 0.00048828125, 'gres/gpu': 16.0}
    """
    found: dict[str, float] = {}
    for part, name, value in _pairs(text):
        match = _WEIGHT.fullmatch(value)
        if match is None:
            raise ValueError(f"{shown(part)} is not a weight like cpu=1.5 or mem=0.25G")
        in_megabytes = name == "mem" or name.startswith("bb/")
        unit = _UNITS.index(match[2].upper() or ("M" if in_megabytes else " "))
        found[name] = float(match[1]) / 1024.0 ** (unit - (_UNITS.index("M") if in_megabytes else 0))
    return found


def tres(text: str, factor: float = 1.0) -> dict[str, float]:
    """Amounts of trackable resources; memory is in MB. Numbers are multiplied by a factor.

    >>> tres("cpu=16,mem=4G,gres/gpu:a100=2"), tres("cpu=10", 60)
    ({'cpu': 16.0, 'mem': 4096.0, 'gres/gpu:a100': 2.0}, {'cpu': 600.0})
    """
    amounts: dict[str, float] = {}
    for part, name, value in _pairs(text):
        if value.upper() not in _NO_LIMIT:
            amount = number(value) if _NUMBER.fullmatch(value) else float(megabytes(value))
            amounts[name] = amount * factor
            if amounts[name] > MOST:
                raise ValueError(f"{shown(part)} is too large")
    return amounts


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """What stands between commas, and the name and the value in it."""
    for part in listed(text):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ValueError(f"{shown(part)} is not of the form NAME=NUMBER")
        yield part, name.lower(), value


_UNITS_OF_TIME = {"": 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_FROM_NOW = re.compile(r"now(?:\+([0-9]{1,9})\s*([a-z]*))?", re.IGNORECASE)


class Clock(Struct, frozen=True):
    """When a simulation begins, for those who write dates."""

    start: float | None = None
    """In Unix time; unknown if the workload has no dates."""
    zone: str = "UTC"
    """That of dates that name none."""

    def moment(self, text: str, now: float = 0.0) -> float:
        """Seconds since the beginning, where the text was read at ``now``; raises ``ValueError``.

        >>> Clock().moment("now+30minutes"), Clock(0.0).moment("1970-01-01T01:00:00")
        (1800.0, 3600.0)
        """
        if match := _FROM_NOW.fullmatch(text.strip()):
            unit = (match[2] or "").lower()
            if unit == "s" or unit.removesuffix("s") not in _UNITS_OF_TIME:
                raise ValueError(f"{shown(text)}: there is no unit of time {shown(unit)}")
            return now + int(match[1] or 0) * _UNITS_OF_TIME[unit.removesuffix("s")]
        try:
            date = datetime.fromisoformat(text.strip())
        except ValueError:
            raise ValueError(
                f"{shown(text)} is not a moment like 2026-05-01T08:00:00 or now+30minutes"
            ) from None
        if self.start is None:
            raise ValueError(f"{shown(text)} is a date, and nothing says on which date the workload begins")
        if date.tzinfo is None:
            date = date.replace(tzinfo=ZoneInfo(self.zone))
        return date.timestamp() - self.start

    def written(self) -> str:
        """The beginning as a date in UTC; empty if it is not known."""
        if self.start is None:
            return ""
        return datetime.fromtimestamp(self.start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Finding(Struct, frozen=True, order=True):
    """Something at a place."""

    where: str
    what: str

    def __str__(self) -> str:
        return harmless(f"{self.where}: {self.what}")


class Mistakes(InputError):
    """Files with mistakes; :attr:`found` has one for each."""

    def __init__(self, found: Iterable[Finding]) -> None:
        self.found = list(found)
        others = f" (and {len(self.found) - 1} more mistakes)" if len(self.found) > 1 else ""
        super().__init__(f"{self.found[0]}{others}")


class Findings(Struct):
    """All that was found."""

    mistakes: list[Finding] = field(default_factory=list)
    """With any of these nothing is imported."""
    unmodelled: list[Finding] = field(default_factory=list)
    """What may shape the real schedule, and does not shape the simulated one."""
    without_effect: list[Finding] = field(default_factory=list)
    """What shapes no schedule: ports, names of files and the like."""

    def mistake(self, where: str, what: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Finding(where, what))

    def left_out(self, where: str, what: str) -> None:
        """Note what is not modelled."""
        self.unmodelled.append(Finding(where, what))

    def of_no_effect(self, where: str, what: str) -> None:
        """Note what shapes no schedule."""
        self.without_effect.append(Finding(where, what))

    @contextmanager
    def noting(self, where: str, what: str = "") -> Iterator[None]:
        """Note a ``ValueError`` as a mistake, and go on behind the block."""
        try:
            yield
        except (MsgspecError, ValueError) as error:
            self.mistake(where, f"{what}{error}")

    def read(self, read: Callable[[str], Any], text: str, where: str, what: str) -> Any:
        """What a text says, or what of it can be taken, if anything.

        A value that cannot be taken is noted: as not modelled if Slurm knows it, else as a mistake.
        """
        try:
            return read(text)
        except NotModelled as error:
            self.left_out(where, f"{what}: {error}")
            return error.rest
        except (MsgspecError, ValueError) as error:
            self.mistake(where, f"{what}: {error}")
        return None

    def report(self) -> str:
        """What is not modelled, and what need not be."""
        titles = "What may shape the real schedule and is not modelled", "What shapes no schedule"
        parts = [
            "".join([f"{title}: {len(found)}\n", *(f"  {finding}\n" for finding in found)])
            for title, found in zip(titles, (self.unmodelled, self.without_effect), strict=True)
        ]
        return "\n".join(parts)

    def check(self) -> None:
        """Raise all mistakes, if there are any."""
        if self.mistakes:
            raise Mistakes(self.mistakes)


def read_text(path: Path, findings: Findings) -> str:
    """The text in a file; nothing if it cannot be read."""
    try:
        return read_input(path).decode("utf-8-sig")
    except OSError as error:
        findings.mistake(str(path), f"cannot be read ({error.strerror})")
    except UnicodeDecodeError as error:
        findings.mistake(f"{path}, byte {error.start}", "is no text in UTF-8")
    return ""
