"""Printing text that may come from files: names of jobs and users, headers, messages.

Such text could hold sequences that move the cursor, change colours or even type keys. Here it is shown
without; on a whole screen and in tables, :class:`~batsched_py.api.console.TextConsole` does the same.
"""

from __future__ import annotations

import json

import click

from batsched_py.protocol.shown import printable


def say(text: str | bytes, err: bool = False, nl: bool = True) -> None:
    """Print a text; bytes are JSON, which stays JSON."""
    if isinstance(text, bytes):
        text = printable(text.decode(), lambda letter: json.dumps(letter)[1:-1])
    click.echo(printable(text), err=err, nl=nl)
