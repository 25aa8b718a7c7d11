"""JSON as Batsim 4 prints it: every number with a fraction has exactly six decimals."""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

from batsched_py.errors import ProtocolError
from batsched_py.protocol.read_only import ReadOnlyDict

#: The text of a string, in ASCII.
quote = encode_basestring_ascii


def six_decimals(value: Any) -> str:
    """The text of a JSON value."""
    return _PRINT[type(value)](value)


def _print_float(value: float) -> str:
    if not isfinite(value):
        raise ProtocolError(f"{value} cannot be written as JSON")
    return f"{value:.6f}"


def _print_list(values: list[Any]) -> str:
    return f"[{','.join([_PRINT[type(value)](value) for value in values])}]"


def _print_dict(fields: dict[str, Any]) -> str:
    printed = [f"{quote(key)}:{_PRINT[type(value)](value)}" for key, value in fields.items()]
    return f"{{{','.join(printed)}}}"


_PRINT: dict[type, Callable[[Any], str]] = {
    str: quote,
    float: _print_float,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
    list: _print_list,
    tuple: _print_list,
    dict: _print_dict,
    ReadOnlyDict: _print_dict,
}
