"""``batsched-py schedulers``: what there is to choose from."""

from __future__ import annotations

import click

from batsched_py.cli.plugin_pages import describe, describe_all


@click.command("schedulers")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the schedulers, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py schedulers
      batsched-py schedulers easy
      batsched-py schedulers my_policy.py:MyPolicy
    """
    from batsched_py.schedulers import SCHEDULERS

    click.echo(describe_all(SCHEDULERS) if name is None else describe(SCHEDULERS, name, "-o"), nl=False)
