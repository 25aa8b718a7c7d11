"""``batsched-py serve``, ``record`` and ``replay``: conversations with a Batsim that runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from batsched_py.api.terminal import say
from batsched_py.cli.options import FILE, PATH, option, setting_options, struct_options, timeout_option
from batsched_py.cli.run import Pace, live_option
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Scenario, Workloads

if TYPE_CHECKING:
    from batsched_py.protocol.dialect import Dialect
    from batsched_py.watch.scenes import Watched
    from batsched_py.wire.conversation import Agreement, Difference, Exchange


#: Where a Batsim of this machine looks for its decision process.
DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"


@click.command("serve")
@struct_options("actors", Actors)
@struct_options("workloads", Workloads)
@option(
    "--endpoint ENDPOINT", "Where to listen; tcp://127.0.0.1:* chooses a free port.", default=DEFAULT_ENDPOINT
)
@timeout_option("the simulator")
@option(
    "--keep-alive",
    "Serve simulations one after another. One that fails through the simulator's fault is reported; "
    "between two of them there is no --timeout.",
)
@option(
    "--protocol",
    "Which Batsim's protocol is spoken; auto tells by the first message of each simulation.",
    type=click.Choice(["4", "5", "auto"]),
    default="auto",
)
@option(
    "--notes FILE",
    "Write the notes on jobs to this CSV file when the simulation has ended: a Batsim 5 does not write "
    "them into its jobs.csv.",
    type=FILE,
)
@option(
    "--once-per-instant",
    "Ask the scheduler once for all messages of an instant, 10 microseconds after the first of them. "
    "For a real Batsim, and logs with fractions of seconds; see docs/built-in-batsim.md.",
)
@live_option
def serve_command(
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
    from batsched_py.decision.server import NoteKeeper, Server
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
            Server(end, lambda: NoteKeeper(begin(), notes), dialect=dialect).serve()
        elif live is None:
            Server(end, begin, keep_alive, dialect).serve()
        else:
            with _live_view(actors.scheduler.name, live) as watched:
                Server(end, lambda: watched(begin()), keep_alive, dialect).serve()


@contextmanager
def _live_view(title: str, pace: Pace) -> Iterator[Callable[[Any], Watched]]:
    """What shows the simulation of a decision process on the terminal."""
    from batsched_py.watch.live import LiveView, Screen
    from batsched_py.watch.scenes import Watched

    with Screen() as screen:
        view = LiveView(screen, title, 0, *pace)
        view.await_simulation()
        yield lambda process: Watched(process, view)


@click.command("record")
@click.argument("file", metavar="FILE", type=FILE)
@option(
    "--front ENDPOINT",
    "Where to listen for the simulator; tcp://127.0.0.1:* chooses a free port.",
    required=True,
)
@option("--back ENDPOINT", "Where the decision process listens.", required=True)
@timeout_option("either side")
def record_command(file: Path, front: str, back: str, timeout: float | None) -> None:
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


@click.command("replay")
@click.argument("recording", metavar="FILE", type=PATH)
@option(
    "--to",
    "Which side takes part; the other one is played from the recording.",
    name="side",
    type=click.Choice(["decision", "batsim"]),
    default="decision",
)
@setting_options(Actors, "scheduler")
@option("--endpoint ENDPOINT", "Instead of -s: where a decision process of any kind listens.")
@timeout_option("that decision process")
@struct_options("scenario", Scenario)
@click.pass_context
def replay_command(
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
    from batsched_py.wire.conversation import read_conversation, replay_to_decision
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
    from batsched_py.wire.conversation import asked_for, replay_to_batsim

    _, asked = asked_for(conversation, dialect)
    if asked is not None:
        scenario = replace(scenario, settings=asked)
    workloads = read_workloads(scenario.workloads, words=words_of(scenario.machine))
    platform = read_machine(scenario.machine, workloads)
    batsim = new_batsim(scenario, platform, workloads, prefix=None)
    return replay_to_batsim(conversation, batsim, dialect)


def _decide_again(conversation: list[Exchange], scheduler: Choice, dialect: Dialect) -> Agreement:
    from batsched_py.experiment.build import new_process
    from batsched_py.wire.conversation import replay_to_decision

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
