"""``batsched-py serve``: answer a Batsim that runs elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from batsched_py.cli.options import (
    SECONDS,
    choose_behaviour,
    delay_option,
    read_workloads,
    scheduler_options,
    user_options,
    workload_options,
)
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.pybatsim import PyBatsimProcess
from batsched_py.decision.server import DEFAULT_ENDPOINT, Server
from batsched_py.errors import InputError
from batsched_py.experiment import new_process
from batsched_py.wire.sockets import AnsweringEnd
from batsched_py.workload.swf import WalltimeRule


@click.command("serve", short_help="Decide for a Batsim in another process.")
@scheduler_options(required=True)
@user_options
@workload_options(required=False)
@delay_option
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
    scheduler: str,
    scheduler_settings: dict[str, str],
    users: str | None,
    sessions: str | None,
    user_settings: dict[str, str],
    workload_files: Sequence[Path],
    walltime_factor: float,
    walltime_rule: WalltimeRule,
    scheduling_delay: float,
    endpoint: str,
    timeout: float | None,
    keep_alive: bool,
) -> None:
    """Decide for a simulator that speaks Batsim's protocol over ZeroMQ.

    Prints where it listens, then serves one simulation. A decision that would make Batsim abort never
    leaves: the rule that was broken is reported instead.

    With --users the jobs of -w are submitted from here, by users who react to what happens to them. The
    simulator must then be started without these jobs and with --enable-dynamic-jobs.

    \b
    Examples, with a real Batsim or the built-in one in a second terminal:
      batsched-py serve -s easy
      batsim -p platform.xml -w workload.json -e out
    \b
      batsched-py serve -s easy --users think-time -w KTH-SP2.swf.gz
      batsim -p platform.xml --enable-dynamic-jobs -e out
    """
    behaviour = choose_behaviour(users, sessions, user_settings)
    if (behaviour is None) != (not workload_files):
        raise InputError("--users submit the jobs of -w FILE; give both, or none of them")
    workloads = read_workloads(workload_files, walltime_factor, walltime_rule)

    def begin() -> DecisionProcess | PyBatsimProcess:
        return new_process(scheduler, scheduler_settings, behaviour, workloads, scheduling_delay)

    begin()
    with AnsweringEnd(endpoint, timeout) as end:
        click.echo(f"{scheduler} listens at {end.endpoint}")
        Server(end, begin, keep_alive).serve()
