"""``batsched-py serve``, ``record`` and ``replay``: conversations with a Batsim that runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from batsched_py.api import lazy
from batsched_py.api.terminal import say
from batsched_py.cli.options import (
    FILE,
    PATH,
    flags_of,
    option,
    setting_options,
    struct_options,
    timeout_option,
)
from batsched_py.cli.run import Pace, live_option
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Scenario, Workloads
from batsched_py.settings import settings_of

#: Where a Batsim of this machine looks for its decision process.
DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"

_OF_BATSIM = [each for each in settings_of(Scenario) if each not in settings_of(Workloads)]

#: Options that only `run` has, and why.
ONLY_OF_RUN = dict.fromkeys(
    ["-e", "--export", *(flag for setting in _OF_BATSIM for flag in flags_of(setting))],
    "belongs to the simulator: give it to batsim",
) | {
    "--remarks": "makes a file of `run`; a service writes --notes FILE",
    "--decisions": "makes a file of `run`, which measures in its own process",
    "--measure": "is about a finished schedule: give it to `batsched-py metrics`",
    "--step": "needs both sides in one process: give it to `run`; a service has --live",
    "--status": "is of `run` and `campaign run`; a service has --live",
    "--control": "needs a second simulation: give it to `run`",
    "--no-control": "is of `run`: a service makes no control",
    "--review": "is about results: see `batsched-py review`",
    "--json": "prints results, which the simulator has: see `batsched-py metrics`",
}


class Service(click.Command):
    """Says of an option that only `run` has where it belongs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if (reason := ONLY_OF_RUN.get(error.option_name)) is None:
                raise
            raise click.UsageError(f"{error.option_name} {reason}", ctx) from None


@click.command("serve", cls=Service)
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
@live_option
def serve_command(
    actors: Actors,
    workloads: Workloads,
    endpoint: str,
    timeout: float | None,
    keep_alive: bool,
    protocol: str,
    notes: Path | None,
    live: Pace | None,
) -> None:
    """Decide for a simulator that speaks Batsim's protocol over ZeroMQ.

    Prints where it listens, then serves one simulation. A decision that would make Batsim abort never
    leaves: the rule that was broken is reported instead. While a simulation runs, requests of other
    simulators are refused. One that closes its connection before the end has 30 seconds to come back.

    With --users the jobs of -w are submitted from here, by users who react to what happens to them. With
    --on-failure they are, too, as recorded, since a job that failed is submitted again. The simulator must
    then be started without these jobs, and a Batsim 4 with --enable-dynamic-jobs; a Batsim 5 is asked for
    that.

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
    _check_submissions(actors, workloads)
    if notes is not None and (keep_alive or live is not None):
        raise InputError(
            "--notes are of one simulation that is not watched; leave out --keep-alive and --live"
        )
    actors, submitted = _submitting(actors, workloads)
    begin = partial(lazy.build.new_process, actors, submitted)
    begin()
    with lazy.sockets.AnsweringEnd(endpoint, timeout) as end:
        click.echo(f"{actors.scheduler.name} listens at {end.endpoint}")
        dialect = lazy.dialects.VERSIONS.get(protocol)
        if notes is not None:
            lazy.server.Server(end, lambda: lazy.server.NoteKeeper(begin(), notes), dialect=dialect).serve()
        elif live is None:
            lazy.server.Server(end, begin, keep_alive, dialect).serve()
        else:
            from batsched_py.watch.live import LiveView, Screen
            from batsched_py.watch.scenes import Watched

            with Screen() as screen:
                view = LiveView(screen, actors.scheduler.name, 0, *live)
                view.await_simulation()
                lazy.server.Server(end, lambda: Watched(begin(), view), keep_alive, dialect).serve()


def _submitting(actors: Actors, workloads: Workloads) -> tuple[Actors, list[lazy.model.Workload]]:
    """Who acts, and the workloads that are submitted from here."""
    if workloads.walltime == "estimate":
        raise InputError("--walltime estimate is for run: a Batsim ends jobs when their walltime is over")
    submitted = lazy.build.read_workloads(workloads)
    actors = lazy.build.with_users(actors, submitted)
    if actors.users is None and submitted:
        raise InputError("--users submit the jobs of -w FILE; give both, or none of them")
    if actors.users is not None and not submitted:
        raise InputError(
            f"-s {actors.scheduler.name} puts jobs back into the queue, so they are submitted from here: "
            "give their -w FILE, and start the simulator without it"
        )
    for workload in submitted:
        lazy.sizes.refuse_in_messages(workload.jobs)
    return actors, submitted


def _check_submissions(actors: Actors, workloads: Workloads) -> None:
    """Without jobs that are submitted from here, what would be done with them is refused by name."""
    if workloads.files:
        return
    if actors.users is not None:
        raise InputError("--users submit the jobs of -w FILE; give both, or none of them")
    if actors.restarting.on_failure is not None:
        raise InputError(
            f"--on-failure {actors.restarting.on_failure} needs jobs that are submitted from here: "
            "give their -w FILE, and start the simulator without it, a Batsim 4 with --enable-dynamic-jobs"
        )
    for setting in settings_of(Workloads):
        if getattr(workloads, setting.name) != setting.default:
            raise InputError(
                f"{setting.option.flags[-1]} is about the jobs of -w FILE; give both, or none of them"
            )


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
    with (
        lazy.sockets.AnsweringEnd(front, timeout) as simulator,
        lazy.sockets.AskingEnd(back, timeout) as process,
        lazy.conversation.ConversationFile(file) as conversation,
    ):
        click.echo(f"records at {simulator.endpoint}")
        exchanges = lazy.conversation.record(simulator, process, conversation)
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
    conversation = lazy.conversation.read_conversation(recording)
    dialect = lazy.dialects.spoken_in(conversation[0].request)
    if side == "batsim":
        if scheduler is not None or endpoint is not None:
            raise InputError("--to batsim: the recording decides; leave out -s and --endpoint")
        _, asked = lazy.conversation.asked_for(conversation, dialect)
        if asked is not None:
            scenario = replace(scenario, settings=asked)
        workloads, platform = lazy.build.read_inputs(scenario)
        batsim = lazy.build.new_batsim(scenario, platform, workloads, prefix=None)
        agreement = lazy.conversation.replay_to_batsim(conversation, batsim, dialect)
    elif scheduler is not None and endpoint is None:
        answer = _answering(scheduler, dialect)
        agreement = lazy.conversation.replay_to_decision(conversation, answer, dialect)
    elif endpoint is not None and scheduler is None:
        with lazy.sockets.AskingEnd(endpoint, timeout) as process:
            agreement = lazy.conversation.replay_to_decision(conversation, process.ask, dialect)
    else:
        raise InputError("name the decision process that shall answer: give -s NAME or --endpoint ENDPOINT")
    if (difference := agreement.difference) is not None:
        say(
            f"{recording}, line {difference.line}: the first difference, "
            f"after {agreement.equal} equal events\n"
            f"  time      {difference.time:.6f}\n"
            f"  where     {difference.place}\n"
            f"  recorded  {difference.recorded}\n"
            f"  replayed  {difference.replayed}"
        )
        ctx.exit(1)
    say(f"{recording}: all {agreement.equal} events as recorded")


def _answering(scheduler: Choice, dialect: lazy.dialect.Dialect) -> Callable[[bytes], bytes]:
    """What a new decision process with a scheduler answers to messages."""
    process = lazy.build.new_process(Actors(scheduler=scheduler))
    codec = dialect.codec()

    def answer(said: bytes) -> bytes:
        greeting = codec.answer(said, process.needs)
        return codec.encode_reply(process.react(codec.decode_request(said))) if greeting is None else greeting

    return answer
