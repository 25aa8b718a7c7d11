"""``batsched-py users``: how users may behave."""

from __future__ import annotations

import click

from batsched_py.cli.plugin_pages import describe, describe_all


@click.command("users")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the behaviours of users, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py users
      batsched-py users think-time
      batsched-py users my_users.py:MyBehaviour
    """
    from batsched_py.users import USERS

    click.echo(describe_all(USERS) if name is None else describe(USERS, name, "-u"), nl=False)
