"""``batsched-py record``: write down what a simulator and a decision process say to each other."""

from __future__ import annotations

from pathlib import Path

import click

from batsched_py.cli.options import timeout_option


@click.command("record")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--front",
    metavar="ENDPOINT",
    required=True,
    help="Where to listen for the simulator; tcp://127.0.0.1:* chooses a free port.",
)
@click.option("--back", metavar="ENDPOINT", required=True, help="Where the decision process listens.")
@timeout_option("either side")
def command(file: Path, front: str, back: str, timeout: float | None) -> None:
    """Stand between a simulator and a decision process and write their conversation to FILE.

    Prints where it listens, passes every message on as it is, and ends with the simulation. Each message is
    in FILE before it is passed on: however the conversation ends, what was said is there. One line a
    message: {"from": "batsim" or "scheduler", "message": the exact text}. See `batsched-py replay`.

    \b
    Example, in three terminals:
      batsched-py serve -s easy --endpoint tcp://127.0.0.1:28001
      batsched-py record --front tcp://127.0.0.1:28000 --back tcp://127.0.0.1:28001 talk.jsonl
      batsim -p platform.xml -w workload.json -e out
    """
    from batsched_py.wire.conversation import ConversationFile, record
    from batsched_py.wire.sockets import AnsweringEnd, AskingEnd

    with (
        AnsweringEnd(front, timeout) as simulator,
        AskingEnd(back, timeout) as process,
        ConversationFile(file) as conversation,
    ):
        click.echo(f"records at {simulator.endpoint}")
        exchanges = record(simulator, process, conversation)
    click.echo(f"{file}: {exchanges} exchanges")
