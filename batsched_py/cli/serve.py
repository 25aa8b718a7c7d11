"""``batsched-py serve``: answer a Batsim that runs elsewhere."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from batsched_py.cli.options import struct_options, timeout_option
from batsched_py.cli.watching import Pace, live_option
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Workloads

#: Where a Batsim of this machine looks for its decision process.
DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"


@click.command("serve")
@struct_options("actors", Actors)
@struct_options("workloads", Workloads)
@click.option(
    "--endpoint",
    metavar="ENDPOINT",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    help="Where to listen; tcp://127.0.0.1:* chooses a free port.",
)
@timeout_option("the simulator")
@click.option(
    "--keep-alive",
    is_flag=True,
    help="Serve simulations one after another. One that fails through the simulator's fault is reported; "
    "between two of them there is no --timeout.",
)
@click.option(
    "--protocol",
    type=click.Choice(["4", "5", "auto"]),
    default="auto",
    show_default=True,
    help="Which Batsim's protocol is spoken; auto tells by the first message of each simulation.",
)
@click.option(
    "--notes",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the notes on jobs to this CSV file when the simulation has ended: a Batsim 5 does not write "
    "them into its jobs.csv.",
)
@click.option(
    "--once-per-instant",
    is_flag=True,
    help="Ask the scheduler once for all messages of an instant, 10 microseconds after the first of them. "
    "For a real Batsim, and logs with fractions of seconds; see docs/built-in-batsim.md.",
)
@live_option
def command(
    actors: Actors,
    workloads: Workloads,
    endpoint: str,
    timeout: float | None,
    keep_alive: bool,
    protocol: str,
    notes: Path | None,
    once_per_instant: bool,
    live: Pace | None,
) -> None:
    """Decide for a simulator that speaks Batsim's protocol over ZeroMQ.

    Prints where it listens, then serves one simulation. A decision that would make Batsim abort never
    leaves: the rule that was broken is reported instead. While a simulation runs, requests of other
    simulators are refused. One that closes its connection before the end has 30 seconds to come back.

    With --users the jobs of -w are submitted from here, by users who react to what happens to them. The
    simulator must then be started without these jobs, and a Batsim 4 with --enable-dynamic-jobs; a Batsim 5
    is asked for that.

    \b
    Examples, with a real Batsim or the built-in one in a second terminal:
      batsched-py serve -s easy
      batsim -p platform.xml -w workload.json -e out
    \b
      batsched-py serve -s easy --live
    \b
      batsched-py serve -s easy --users think-time -w KTH-SP2.swf.gz
      batsim -p platform.xml --enable-dynamic-jobs -e out
    """
    from batsched_py.decision.server import Server
    from batsched_py.experiment.build import new_process, read_workloads
    from batsched_py.protocol.dialects import VERSIONS
    from batsched_py.protocol.sizes import refuse_in_messages
    from batsched_py.wire.sockets import AnsweringEnd

    if (actors.users is None) != (not workloads.files):
        raise InputError("--users submit the jobs of -w FILE; give both, or none of them")
    if notes is not None and (keep_alive or live is not None):
        raise InputError(
            "--notes are of one simulation that is not watched; leave out --keep-alive and --live"
        )
    submitted = read_workloads(workloads)
    for workload in submitted:
        refuse_in_messages(workload.jobs)
    begin = partial(new_process, actors, submitted, once_per_instant=once_per_instant)
    begin()
    with AnsweringEnd(endpoint, timeout) as end:
        click.echo(f"{actors.scheduler.name} listens at {end.endpoint}")
        dialect = VERSIONS.get(protocol)
        if notes is not None:
            from batsched_py.decision.server import NoteKeeper

            Server(end, lambda: NoteKeeper(begin(), notes), dialect=dialect).serve()
            return
        if live is None:
            Server(end, begin, keep_alive, dialect).serve()
            return
        from batsched_py.watch.live import LiveView
        from batsched_py.watch.scenes import Watched
        from batsched_py.watch.screen import Screen

        with Screen() as screen:
            view = LiveView(screen, actors.scheduler.name, 0, *live)
            view.await_simulation()
            Server(end, lambda: Watched(begin(), view), keep_alive, dialect).serve()
