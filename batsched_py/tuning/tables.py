"""What a search has found, on the terminal."""

from __future__ import annotations

import os

from batsched_py.api.console import print_table
from batsched_py.api.terminal import say
from batsched_py.tuning.page import GROUP_HEADS, HEADS, compared_cells, group_cells, settings_text
from batsched_py.tuning.tune import Tuned


def tuned_tables(found: Tuned) -> None:
    """Print what was found, whether it holds, and the line to paste."""
    states = [each.state for each in found.trials]
    say(
        f"{found.name}: {len(states)} trials, of which {states.count('stopped')} were stopped early and "
        f"{states.count('failed')} failed"
    )
    for each in found.finalists:
        print_table(HEADS, [compared_cells(one) for one in each.compared], f"trial {each.trial}, held out")
        say(f"{settings_text(each.settings)}\n\n{each.command.replace(f'{os.getcwd()}{os.sep}', '')}\n")
    if found.importance:
        say("importance: " + ", ".join(f"{name} {share:.0%}" for name, share in found.importance.items()))
    if found.finalists:
        first = found.best or found.finalists[0]
        print_table(GROUP_HEADS, [group_cells(group) for group in first.groups], "who gains and who loses")
    for warning in found.warnings:
        say(f"batsched-py: {warning}", err=True)
