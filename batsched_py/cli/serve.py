"""``batsched-py serve``: answer a Batsim that runs elsewhere."""

from __future__ import annotations

import click

from batsched_py.cli.options import SECONDS, scheduler_options
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.server import DEFAULT_ENDPOINT, Server
from batsched_py.schedulers import SCHEDULERS
from batsched_py.sockets import AnsweringEnd


@click.command("serve", short_help="Decide for a Batsim in another process.")
@scheduler_options(required=True)
@click.option(
    "--endpoint",
    metavar="ENDPOINT",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    help="Where to listen; tcp://127.0.0.1:* chooses a free port.",
)
@click.option(
    "--timeout",
    metavar="S",
    type=SECONDS,
    help="Give up when the simulator is silent for S seconds.  [default: wait for ever]",
)
@click.option(
    "--keep-alive",
    is_flag=True,
    help="Serve simulations one after another. One that fails through the simulator's fault is reported; "
    "between two of them there is no --timeout.",
)
def command(
    scheduler: str, scheduler_settings: dict[str, str], endpoint: str, timeout: float | None, keep_alive: bool
) -> None:
    """Decide for a simulator that speaks Batsim's protocol over ZeroMQ.

    Prints where it listens, then serves one simulation. A decision that would make Batsim abort never
    leaves: the rule that was broken is reported instead.

    \b
    Example, with a real Batsim or the built-in one in a second terminal:
      batsched-py serve -s easy
      batsim -p platform.xml -w workload.json -e out
    """

    def new_process() -> DecisionProcess:
        return DecisionProcess(SCHEDULERS.create(scheduler, scheduler_settings))

    new_process()
    with AnsweringEnd(endpoint, timeout) as end:
        click.echo(f"{scheduler} listens at {end.endpoint}")
        Server(end, new_process, keep_alive).serve()
