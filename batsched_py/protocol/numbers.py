"""What counts as a number in a message of a peer."""

from __future__ import annotations

from sys import float_info
from typing import Any

_LARGEST = float_info.max

#: Up to here every integer is a double as well.
_LARGEST_INTEGER = 2**53


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number, and one that a double can hold."""
    return type(value) in (float, int) and -_LARGEST <= value <= _LARGEST


def is_natural(value: Any) -> bool:
    """Whether a value of JSON is an integer that is not negative, and that a double holds exactly."""
    return type(value) is int and 0 <= value <= _LARGEST_INTEGER
