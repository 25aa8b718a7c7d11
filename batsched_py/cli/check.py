"""``batsched-py check``: try a scheduler that is a program of its own, in any language."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import say
from batsched_py.cli.options import FILE, SECONDS, option
from batsched_py.errors import RunsFailed
from batsched_py.output_files import write_file

if TYPE_CHECKING:
    from batsched_py.analysis.validator import Policy


@click.command("check")
@option("--protocol", "Which Batsim to be.", type=click.Choice(["4", "5", "both"]), default="4")
@option(
    "--policy",
    "Which promise the scheduler must keep.",
    type=click.Choice(["fcfs", "easy", "conservative"]),
)
@option(
    "--timeout S",
    "How long it may take to answer, and to end after the simulation.",
    type=SECONDS,
    default=30,
)
@option("--junit FILE", "Write a report in JUnit's XML, which CI systems show.", type=FILE)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def check_command(
    protocol: str, policy: Policy | None, timeout: float, junit: Path | None, command: tuple[str, ...]
) -> None:
    """Try a scheduler in any language: start COMMAND, be its Batsim, and check what it decides.

    It is tried on small workloads, each about one thing that schedulers get wrong: ties, a full machine,
    walltimes, jobs that are too large, jobs that somebody else kills or registers. COMMAND is started anew
    for each, and gets the address at which it listens in place of {socket}, or its port in place of {port}.
    Every schedule is checked. A program that hangs, dies or answers nonsense is told with the last messages.
    The exit code is 1 if anything is wrong.

    \b
    Examples:
      batsched-py check -- ./my_scheduler --socket {socket}
      batsched-py check --protocol both --policy fcfs -- python examples/any-language/fcfs.py {socket}
      batsched-py check --junit report.xml -- ./my_scheduler {socket}
    """
    protocols = ["4", "5"] if protocol == "both" else [protocol]
    outcomes = []
    for outcome in lazy.programs.try_program(command, protocols, policy, timeout):
        outcomes.append(outcome)
        say(str(outcome))
    if junit is not None:
        write_file(junit, lazy.programs.junit(outcomes, command))
    failed = sum(bool(outcome.faults) for outcome in outcomes)
    if failed:
        raise RunsFailed(f"{failed} of {len(outcomes)} cases failed")
    say(f"all {len(outcomes)} cases passed")
