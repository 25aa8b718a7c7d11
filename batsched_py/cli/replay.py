"""``batsched-py replay``: hold a recorded conversation again, and find the first difference."""

from __future__ import annotations

from pathlib import Path

import click

from batsched_py.cli.batsim_options import Scenario, batsim_options
from batsched_py.cli.options import SECONDS, scheduler_options
from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import InputError
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.schedulers import SCHEDULERS
from batsched_py.wire.conversation import Exchange, read_conversation
from batsched_py.wire.replay import Agreement, Difference, replay_to_batsim, replay_to_decision
from batsched_py.wire.sockets import AskingEnd


@click.command("replay", short_help="Hold a recorded conversation again.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "side",
    type=click.Choice(["decision", "batsim"]),
    default="decision",
    show_default=True,
    help="Which side takes part; the other one is played from the recording.",
)
@scheduler_options(required=False)
@click.option(
    "--endpoint", metavar="ENDPOINT", help="Instead of -s: where a decision process of any kind listens."
)
@click.option(
    "--timeout",
    metavar="S",
    type=SECONDS,
    help="Give up when that decision process is silent for S seconds.  [default: wait for ever]",
)
@batsim_options
@click.pass_context
def command(
    ctx: click.Context,
    file: Path,
    side: str,
    scheduler: str | None,
    scheduler_settings: dict[str, str],
    endpoint: str | None,
    timeout: float | None,
    scenario: Scenario,
) -> None:
    """Hold the conversation in FILE again with one of its sides, and report the first difference.

    To a decision process (-s or --endpoint) the recorded requests are sent, and its decisions are compared
    with the recorded ones. To the built-in Batsim (--to batsim, with the inputs that the recorded one had:
    -p, -w and so on) the recorded decisions are given, and its events are compared. Hosts are compared as
    sets, numbers to six decimals. The exit code is 0 when all is as recorded and 1 when something is not.

    \b
    Examples:
      batsched-py replay talk.jsonl -s easy
      batsched-py replay talk.jsonl --endpoint tcp://127.0.0.1:28000 --timeout 10
      batsched-py replay talk.jsonl --to batsim -p platform.xml -w workload.json
    """
    conversation = read_conversation(file)
    if side == "batsim":
        if scheduler is not None or endpoint is not None:
            raise InputError("--to batsim: the recording decides; leave out -s and --endpoint")
        agreement = replay_to_batsim(conversation, scenario.batsim(prefix=None))
    elif scheduler is not None and endpoint is None:
        agreement = _replay_here(conversation, scheduler, scheduler_settings)
    elif endpoint is not None and scheduler is None:
        with AskingEnd(endpoint, timeout) as process:
            agreement = replay_to_decision(conversation, process.ask)
    else:
        raise InputError("name the decision process that shall answer: give -s NAME or --endpoint ENDPOINT")
    if agreement.difference is not None:
        click.echo(_report(file, agreement.equal, agreement.difference))
        ctx.exit(1)
    click.echo(f"{file}: all {agreement.equal} events as recorded")


def _replay_here(conversation: list[Exchange], scheduler: str, settings: dict[str, str]) -> Agreement:
    process = DecisionProcess(SCHEDULERS.create(scheduler, settings))
    codec = BATSIM4.codec()
    return replay_to_decision(
        conversation, lambda text: codec.encode_reply(process.react(codec.decode_request(text)))
    )


def _report(file: Path, equal: int, difference: Difference) -> str:
    return (
        f"{file}, line {difference.line}: the first difference, after {equal} equal events\n"
        f"  time      {difference.time:.6f}\n"
        f"  where     {difference.place}\n"
        f"  recorded  {difference.recorded}\n"
        f"  replayed  {difference.replayed}"
    )
