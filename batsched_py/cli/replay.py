"""``batsched-py replay``: hold a recorded conversation again, and find the first difference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from batsched_py.api.terminal import say
from batsched_py.cli.options import setting_options, struct_options, timeout_option
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Scenario

if TYPE_CHECKING:
    from batsched_py.protocol.dialect import Dialect
    from batsched_py.wire.conversation import Exchange
    from batsched_py.wire.replay import Agreement, Difference


@click.command("replay")
@click.argument("recording", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "side",
    type=click.Choice(["decision", "batsim"]),
    default="decision",
    show_default=True,
    help="Which side takes part; the other one is played from the recording.",
)
@setting_options(Actors, "scheduler")
@click.option(
    "--endpoint", metavar="ENDPOINT", help="Instead of -s: where a decision process of any kind listens."
)
@timeout_option("that decision process")
@struct_options("scenario", Scenario)
@click.pass_context
def command(
    ctx: click.Context,
    recording: Path,
    side: str,
    scheduler: Choice | None,
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
    from batsched_py.protocol.dialects import spoken_in
    from batsched_py.wire.conversation import read_conversation
    from batsched_py.wire.replay import replay_to_decision
    from batsched_py.wire.sockets import AskingEnd

    conversation = read_conversation(recording)
    dialect = spoken_in(conversation[0].request)
    if side == "batsim":
        if scheduler is not None or endpoint is not None:
            raise InputError("--to batsim: the recording decides; leave out -s and --endpoint")
        agreement = _simulate_again(conversation, scenario, dialect)
    elif scheduler is not None and endpoint is None:
        agreement = _decide_again(conversation, scheduler, dialect)
    elif endpoint is not None and scheduler is None:
        with AskingEnd(endpoint, timeout) as process:
            agreement = replay_to_decision(conversation, process.ask, dialect)
    else:
        raise InputError("name the decision process that shall answer: give -s NAME or --endpoint ENDPOINT")
    if agreement.difference is not None:
        say(_report(recording, agreement.equal, agreement.difference))
        ctx.exit(1)
    say(f"{recording}: all {agreement.equal} events as recorded")


def _simulate_again(conversation: list[Exchange], scenario: Scenario, dialect: Dialect) -> Agreement:
    from batsched_py.experiment.build import new_batsim, read_machine, read_workloads, words_of
    from batsched_py.wire.replay import asked_for, replay_to_batsim

    _, asked = asked_for(conversation, dialect)
    if asked is not None:
        scenario = replace(scenario, settings=asked)
    workloads = read_workloads(scenario.workloads, words=words_of(scenario.machine))
    platform = read_machine(scenario.machine, workloads)
    batsim = new_batsim(scenario, platform, workloads, prefix=None)
    return replay_to_batsim(conversation, batsim, dialect)


def _decide_again(conversation: list[Exchange], scheduler: Choice, dialect: Dialect) -> Agreement:
    from batsched_py.experiment.build import new_process
    from batsched_py.wire.replay import replay_to_decision

    process = new_process(Actors(scheduler=scheduler))
    codec = dialect.codec()

    def answer(said: bytes) -> bytes:
        greeting = codec.answer(said, process.needs)
        return codec.encode_reply(process.react(codec.decode_request(said))) if greeting is None else greeting

    return replay_to_decision(conversation, answer, dialect)


def _report(recording: Path, equal: int, difference: Difference) -> str:
    return (
        f"{recording}, line {difference.line}: the first difference, after {equal} equal events\n"
        f"  time      {difference.time:.6f}\n"
        f"  where     {difference.place}\n"
        f"  recorded  {difference.recorded}\n"
        f"  replayed  {difference.replayed}"
    )
