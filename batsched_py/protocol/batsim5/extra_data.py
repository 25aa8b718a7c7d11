"""``extra_data``: the text in which jobs and profiles of Batsim 5 contain additional fields."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

#: The field for a text that is not a JSON object.
FIELD = "extra_data"


def pack(extra: dict[str, Any], taken: Collection[str] = ()) -> str:
    """The text that contains these fields.

    >>> pack({}), pack({"user": "ann"}), pack({"extra_data": "anything"})
    ('', '{"user":"ann"}', 'anything')
    """
    if not extra:
        return ""
    text = extra.get(FIELD)
    if len(extra) == 1 and isinstance(text, str) and unpack(text, taken) == extra:
        return text
    return msgspec.json.encode(extra).decode()


def unpack(text: str, taken: Collection[str] = ()) -> dict[str, Any]:
    """The fields in a text; a text that is not a JSON object, or uses a reserved name, is kept as one field.

    >>> unpack(""), unpack('{"user": "ann"}'), unpack("anything"), unpack('{"id": 1}', {"id"})
    ({}, {'user': 'ann'}, {'extra_data': 'anything'}, {'extra_data': '{"id": 1}'})
    """
    if not text:
        return {}
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {FIELD: text}
    if not isinstance(fields, dict) or not fields or not fields.keys().isdisjoint(taken):
        return {FIELD: text}
    return fields
