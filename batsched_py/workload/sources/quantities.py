"""Durations, amounts of memory and lists of hosts, as batch systems write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: The most digits of a number; longer ones are taken for mistakes.
_N: Final = "[0-9]{1,15}"
_WHOLE: Final = re.compile(_N)
_DURATION: Final = re.compile(rf"(?:({_N})-)?(?:({_N}):)?({_N}):({_N}(?:\.{_N})?)")
_DAYS_AND_HOURS: Final = re.compile(rf"({_N})-({_N})(?::({_N}))?")
_MEMORY: Final = re.compile(rf"({_N}(?:\.{_N})?)\s*([kmgtp]?)i?(?:[bw])?([cn]?)", re.IGNORECASE | re.ASCII)
_KILOBYTES: Final = {"": 1 / 1024, "k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3, "p": 1024.0**4}
_UNLIMITED: Final = ("", "UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None")


def for_each(texts: NDArray[Any], read: Callable[[str], float]) -> NDArray[np.float64]:
    """What each text says; each distinct one is read once."""
    codes, distinct = distinct_texts(texts)
    return np.array([read(text) for text in distinct], dtype=np.float64)[codes] if len(texts) else np.empty(0)


def distinct_texts(texts: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """The distinct texts in the order of appearance, and which of them each text is."""
    import pandas as pd

    codes, distinct = pd.factorize(np.asarray(texts, dtype=object))
    return codes, [str(text).strip() for text in distinct]


def whole(text: str) -> int | None:
    """The whole number that a text is, if it is one.

    >>> whole("64"), whole("-1"), whole("x"), whole("9" * 99)
    (64, None, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


@lru_cache(maxsize=1 << 12)
def duration(text: str) -> float:
    """Seconds of ``[DAYS-][HOURS:]MINUTES:SECONDS`` or ``DAYS-HOURS``; -1 for none, NaN for anything else.

    >>> duration("1-02:03:04"), duration("05:06"), duration("2-12"), duration("UNLIMITED")
    (93784.0, 306.0, 216000.0, -1.0)
    """
    if text in _UNLIMITED:
        return -1.0
    if parts := _DURATION.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in parts.groups())
    elif parts := _DAYS_AND_HOURS.fullmatch(text):
        (days, hours, minutes), seconds = (float(part or 0) for part in parts.groups()), 0.0
    else:
        return np.nan
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def written_duration(seconds: float) -> str:
    """A duration as Slurm writes it.

    >>> written_duration(93784)
    '1-02:03:04'
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02}:{minute:02}:{second:02}"


@lru_cache(maxsize=1 << 12)
def memory(text: str) -> tuple[float, str]:
    """Kilobytes, and what they are for: ``c`` each processor, ``n`` each node, nothing for all; -1 for none.

    >>> memory("4Gc"), memory("512M"), memory("1024kb")
    ((4194304.0, 'c'), (524288.0, ''), (1024.0, ''))
    """
    parts = _MEMORY.fullmatch(text)
    if parts is None:
        return -1.0, ""
    return float(parts[1]) * _KILOBYTES[parts[2].lower()], parts[3].lower()


def count_hosts(text: str) -> int:
    """How many hosts a list like ``node[001-003,7],login1`` has.

    >>> count_hosts("node[001-003,7],login1"), count_hosts("rack[1-2]n[1-4]"), count_hosts("")
    (5, 8, 0)
    """
    total = 0
    for host in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        count = 1
        for ranges in re.findall(r"\[([^\]]*)\]", host):
            count *= sum(_length(each) for each in ranges.split(","))
        total += count
    return total


def _length(text: str) -> int:
    first, last = map(whole, text.partition("-")[::2])
    return 1 if first is None or last is None else max(last - first + 1, 0)
