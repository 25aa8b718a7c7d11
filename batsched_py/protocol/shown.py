"""Showing what a peer sent: in one line, shortened, without control characters of a terminal."""

from collections.abc import Callable
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


def printable(text: str, written: Callable[[str], str] = lambda letter: ascii(letter)[1:-1]) -> str:
    """A text in its lines, with other control characters written out.

    >>> printable("two\\nlines, \\x1b[2J")
    'two\\nlines, \\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter == "\n" or letter.isprintable() else written(letter) for letter in text)


def harmless(text: str) -> str:
    """A text in one line, without control characters.

    >>> harmless("two\\nlines, \\x1b[2J")
    'two lines, \\\\x1b[2J'
    """
    return printable(" ".join(text.split()))
