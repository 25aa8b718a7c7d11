"""Options of a command that are the fields of a dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
from msgspec import Meta


def field_options(cls: type[Any]) -> list[click.Option]:
    """An option for each field; its value is text, which is converted when the object is made.

    What a field means is in ``Annotated[..., Meta(description=...)]``, what its value is called in
    ``Meta(title=...)``. A field that holds several values may be given several times.
    """
    hints = get_type_hints(cls, include_extras=True)
    return [_option(field, hints[field.name]) for field in dataclasses.fields(cls)]


def _option(field: dataclasses.Field[Any], hint: Any) -> click.Option:
    bare, meta = get_args(hint)[0], next(each for each in get_args(hint) if isinstance(each, Meta))
    several = get_origin(bare) is tuple
    notes = [meta.description]
    if several:
        notes.append("May be given several times.")
    usual: Any = field.default
    if usual not in (None, ()):
        notes.append(f" [default: {', '.join(usual) if several else usual}]")
    return click.Option(
        [f"--{field.name.replace('_', '-')}"],
        type=click.Choice(get_args(bare)) if get_origin(bare) is Literal else str,
        metavar=meta.title,
        multiple=several,
        help=" ".join(filter(None, notes)),
    )
