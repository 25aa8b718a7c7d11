"""Showing what a peer sent: in one line, shortened, without control characters of a terminal."""

from __future__ import annotations

from typing import Any

_LONGEST = 60


def shown(value: Any) -> str:
    """A wrong value, as Python writes it.

    >>> shown("hello")
    "'hello'"
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # of integers with thousands of digits, and of nests of lists
        return "something endless"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def shown_name(name: str) -> str:
    """A name, unchanged if that is harmless.

    >>> shown_name("JOB_KILLED"), shown_name("a\\nb")
    ('JOB_KILLED', "'a\\\\nb'")
    """
    return name if name.isprintable() and len(name) <= _LONGEST else shown(name)


def harmless(text: str) -> str:
    """A text in one line, without control characters.

    >>> harmless("two\\nlines, \\x1b[2J")
    'two lines, \\\\x1b[2J'
    """
    words = " ".join(text.split())
    if words.isprintable():
        return words
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)
