"""``batsched-py changes``: what can be done to a log."""

from __future__ import annotations

import click


@click.command("changes")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the changes that `batsched-py change` can do, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py changes
      batsched-py changes load
    """
    from batsched_py.cli.plugin_pages import describe, describe_all
    from batsched_py.workload.changes import CHANGES

    click.echo(describe_all(CHANGES) if name is None else describe(CHANGES, name, ""), nl=False)
