"""What commands are handed, whose options are given to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from batsched_py.cli.options import Grouped
from batsched_py.experiment import Experiment


def handed(options: list[str], *decorators: Callable[[Any], Any], **kind: Any) -> dict[str, Any]:
    """What a command is handed that has such options, or is of another kind."""
    found: dict[str, Any] = {}

    def command(**values: object) -> None:
        found.update(values)

    for decorate in decorators:
        command = decorate(command)
    click.command(**kind)(command).main(options, standalone_mode=False)
    return found


def parsed(options: list[str]) -> Experiment:
    """The experiment that ``batsched-py run`` makes of its options."""
    of_run = {"cls": Grouped, "struct": ("experiment", Experiment), "required": (), "first": ()}
    experiment: Experiment = handed(options, **of_run)["experiment"]
    return experiment
