"""Values as TOML, which the standard library only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(content: Mapping[str, object]) -> str:
    """A table of values, tables of values, and lists of tables.

    >>> print(to_toml({"title": "both", "seeds": [1, 2], "logs": {"kth": {"file": "kth.swf"}}}), end="")
    title = "both"
    seeds = [1, 2]
    <BLANKLINE>
    [logs]
    kth = { file = "kth.swf" }
    """
    plain = {key: value for key, value in content.items() if not _tables(value)}
    parts = ["".join(_line(key, value) for key, value in plain.items())]
    for key, value in content.items():
        if key in plain:
            continue
        is_one = isinstance(value, Mapping)
        head = f"[{_key(key)}]" if is_one else f"[[{_key(key)}]]"
        tables: Any = [value] if is_one else value
        parts += [f"{head}\n" + "".join(_line(*line) for line in table.items()) for table in tables]
    return "\n".join(filter(None, parts))


def _tables(value: object) -> bool:
    """Whether a value is a table, or a list of some."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, Mapping) for each in value)
    return isinstance(value, Mapping)


def _line(key: str, value: object) -> str:
    return f"{_key(key)} = {_value(value)}\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"{value!r} cannot be written in a plan")
