"""Options that are given as ``KEY=VALUE``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def pairs_option(short: str, long: str, name: str, help: str) -> Callable[[Command], Command]:
    """An option that may be given several times."""
    return click.option(
        short,
        long,
        name,
        metavar="KEY=VALUE",
        multiple=True,
        callback=parse_pairs,
        help=f"{help} May be given several times.",
    )


def parse_pairs(ctx: click.Context, option: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Read the pairs, for click."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE")
        if key in pairs:
            raise click.BadParameter(f"{key!r} is given twice")
        pairs[key] = value
    return pairs
