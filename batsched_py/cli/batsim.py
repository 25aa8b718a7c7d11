"""``batsched-py batsim``: the built-in Batsim as a process of its own, with Batsim's options."""

from __future__ import annotations

import logging

import click
import msgspec

from batsched_py import __version__
from batsched_py.cli.options import SECONDS, scenario_options
from batsched_py.experiment import Scenario

#: Where a decision process is looked for, as Batsim does it.
DEFAULT_ENDPOINT = "tcp://localhost:28000"

#: What each of Batsim's levels lets through here; the messages themselves are the client's debug lines.
_LEVELS = {
    "quiet": {"batsched_py": logging.ERROR},
    "network-only": {"batsched_py.simulator.client": logging.DEBUG},
    "information": {},
    "debug": {"batsched_py": logging.DEBUG},
}


@click.command("batsim")
@scenario_options(workload_required=False, machine_states=True)
@click.option(
    "-e", "--export", "prefix", metavar="PREFIX", default="out", show_default=True, help="Where results go."
)
@click.option(
    "-s",
    "--socket-endpoint",
    "endpoint",
    metavar="ENDPOINT",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    help="Where the decision process listens.",
)
@click.option(
    "--timeout",
    metavar="S",
    type=SECONDS,
    help="Give up when the decision process is silent for S seconds.  [default: wait for ever]",
)
@click.option("--disable-schedule-tracing", is_flag=True, help="No effect: that file is never written.")
@click.option(
    "--dump-execution-context", is_flag=True, help="Print the endpoint and the prefix as JSON, and exit."
)
@click.option(
    "-v",
    "--verbosity",
    type=click.Choice(list(_LEVELS)),
    default="information",
    show_default=True,
    help="What is logged; network-only logs the messages.",
)
@click.option("-q", "--quiet", is_flag=True, help="The same as -v quiet.")
@click.version_option(__version__, prog_name="batsched-py batsim")
def command(
    scenario: Scenario,
    prefix: str,
    endpoint: str,
    timeout: float | None,
    disable_schedule_tracing: bool,
    dump_execution_context: bool,
    verbosity: str,
    quiet: bool,
) -> None:
    """Simulate workloads on a machine, and ask a decision process over ZeroMQ what to do.

    Takes the options of Batsim 4, so a script that calls `batsim` can call `batsched-py batsim` instead.
    Where Batsim aborts, this says which rule was broken by which decision, and exits with code 1.

    \b
    Example, with a decision process in a second terminal:
      batsched-py serve -s easy
      batsched-py batsim -p platform.xml -w workload.json -e out
    """
    from batsched_py.experiment.sides import new_batsim, read_machine, read_workloads
    from batsched_py.simulation import simulate
    from batsched_py.simulator.client import RemoteProcess
    from batsched_py.wire.sockets import AskingEnd

    if dump_execution_context:
        click.echo(msgspec.json.encode(_execution_context(endpoint, prefix)))
        return
    for name, level in _LEVELS["quiet" if quiet else verbosity].items():
        logging.getLogger(name).setLevel(level)
    workloads = read_workloads(scenario.workloads)
    batsim = new_batsim(scenario, read_machine(scenario.machine, workloads), workloads, prefix)
    with AskingEnd(endpoint, timeout) as end:
        simulate(batsim, RemoteProcess(end))


def _execution_context(endpoint: str, prefix: str) -> dict[str, str | int | bool]:
    return {
        "socket_endpoint": endpoint,
        "redis_enabled": False,
        "redis_hostname": "127.0.0.1",
        "redis_port": 6379,
        "redis_prefix": "default",
        "export_prefix": prefix,
        "external_scheduler": True,
    }
