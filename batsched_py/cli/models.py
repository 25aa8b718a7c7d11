"""``batsched-py models``: what generates logs."""

from __future__ import annotations

import click


@click.command("models")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the models that `batsched-py generate` knows, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py models
      batsched-py models lublin
    """
    from batsched_py.cli.plugin_pages import describe, describe_all
    from batsched_py.workload.models import MODELS

    click.echo(describe_all(MODELS) if name is None else describe(MODELS, name, "-p"), nl=False)
