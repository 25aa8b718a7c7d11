"""Options whose help is one line, and commands with such options only."""

from __future__ import annotations

from typing import Any

import click


class Told(click.Option):
    """An option that is told of in one line; ``click`` would load ``inspect`` to look for others."""

    def __init__(self, *arguments: Any, help: str, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.help = help


def _show_help(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class Helpful(click.Command):
    """A command whose option ``--help`` is no other; ``click`` would look for a translation, too."""

    _help: Told | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """The option that shows the help; always the same, for ``click`` compares them."""
        if self._help is None:
            self._help = Told(
                ctx.help_option_names,
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_help,
                help="Show this message and exit.",
            )
        return self._help
