"""A configuration as the text of ``slurm.toml``."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct

from batsched_py.campaign.toml_text import to_toml
from batsched_py.schedulers.slurm.configuration import Configuration

_HEAD = """\
# The configuration of a Slurm cluster. Names are those of Slurm; what is left out has Slurm's default.
# Times are in seconds, memory is in MB, and "inf" is no limit.

"""


def configuration_text(configuration: Configuration) -> str:
    """The text, which :func:`~batsched_py.schedulers.slurm.configuration.read_configuration` reads back."""
    return _HEAD + to_toml(_plain(configuration))


def _plain(struct: Struct) -> dict[str, Any]:
    """The fields that differ from their defaults; those that it shares with others come last."""
    plain: dict[str, Any] = {}
    for name, encoded, default, required in _fields(type(struct)):
        value = getattr(struct, name)
        if value is not None and (required or value != default):
            plain[encoded] = _value(value)
    return plain


@cache
def _fields(kind: type[Struct]) -> list[tuple[str, str, Any, bool]]:
    """The fields of a kind: the name, how it is written, its default, and whether it must be there."""
    own = kind.__annotations__
    found = []
    for field in sorted(msgspec.structs.fields(kind), key=lambda field: field.name not in own):
        default = field.default if field.default is not NODEFAULT else None
        if field.default_factory is not NODEFAULT:
            default = field.default_factory()
        found.append((field.name, field.encode_name, default, field.required))
    return found


def _value(value: Any) -> Any:
    if isinstance(value, Struct):
        return _plain(value)
    if isinstance(value, tuple):
        return [_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _value(each) for name, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
