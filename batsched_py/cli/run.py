"""``batsched-py run``: a whole simulation in one process; ``batsched-py status``: how far it is."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NamedTuple

import click
import msgspec

from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.terminal import say, two_columns
from batsched_py.cli.options import Grouped, measure_option, option
from batsched_py.cli.told import Told
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment


class Pace(NamedTuple):
    """How quickly a live view moves."""

    seconds: float = 0.0
    """So many simulated seconds a second; 0 for as many as possible."""
    paused: bool = False
    """Whether it waits for a key before it moves."""


class PaceType(click.ParamType):
    """``paused``, or so many simulated seconds a second."""

    name = "pace"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Pace:
        """Read it."""
        if isinstance(value, Pace):
            return value
        if value in ("", "paused"):
            return Pace(paused=value == "paused")
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = -1.0
        if not 0 < seconds < float("inf"):
            self.fail(f"{value!r} is neither 'paused' nor a number of simulated seconds a second", param, ctx)
        return Pace(seconds)


live_option = option(
    "--live [PACE]",
    "Show the simulation on the terminal while it runs: queue, running jobs, hosts, curves; keys pause "
    "it and step. PACE is 'paused' to begin with a pause, or so many simulated seconds a second.",
    is_flag=False,
    flag_value="",
    type=PaceType(),
)


def _watcher(first: str | None, pace: Pace | None, title: str) -> lazy.experiment_run.GoThrough | None:
    """What goes through a simulation: step by step from a first command on, or at a pace on the terminal.

    Steps are as the standard input says; where that ends, it goes on to the end.
    """
    if first is None and pace is None:
        return None
    from batsched_py.watch import live, scenes, stepper

    def ask() -> str:
        click.echo("step> ", nl=False, err=True)
        return sys.stdin.readline() or "continue"

    def go_through(batsim: Any, process: Any, nb_jobs: int) -> None:
        if first is not None:
            return scenes.watch(stepper.Stepper(ask, partial(say, err=True), first), batsim, process)
        with live.Screen() as screen:
            view = live.LiveView(screen, title, nb_jobs, *(pace or ()))
            scenes.watch(view, batsim, process)
            view.hold()

    return go_through


@click.command(
    "run",
    cls=Grouped,
    struct=("experiment", Experiment),
    required=["files"],
    first=["--workload", "--scheduler", "--hosts", "--users", "--export"],
)
@option("-e, --export PREFIX", "Where results go.", name="prefix", default="out")
@measure_option
@option(
    "--step [COMMAND]",
    "Stop each time the scheduler was asked, show what happened and what it decided, and ask what to "
    "do. With a COMMAND such as 'until 5h', 'job 12' or 'when queue > 10', stop there first.",
    is_flag=False,
    flag_value="",
)
@live_option
@option(
    "--status [ADDRESS]",
    "Answer `batsched-py status` while the simulation runs: at a port of this machine, or a socket with "
    "the name of a file.  [PREFIX_status.sock if no ADDRESS is given]",
    is_flag=False,
    flag_value="",
)
@click.option(
    "--control/--no-control",
    cls=Told,
    default=None,
    help="With users who replay a log, also simulate them on its own machine, under the policy whose waits "
    "are nearest to the recorded ones, and tell how much later jobs come than there.  [default: on "
    "another machine, or under a policy that is none of fcfs, easy, easy-sjbf and conservative]",
)
@option("--review", "Say what a reviewer would object to, as `batsched-py review` does.")
@option("--json", "Print the results as one JSON object.", name="as_json")
def run_command(
    experiment: Experiment,
    prefix: str,
    measure: Window | None,
    step: str | None,
    live: Pace | None,
    status: str | None,
    control: bool | None,
    review: bool,
    as_json: bool,
) -> None:
    """Simulate workloads on a machine under a scheduler, and write PREFIX_jobs.csv and PREFIX_schedule.csv.

    The summary says what is measured, and whether there is a steady state: if not, one backlog makes most of
    the means. The files are those that Batsim writes. Without --hosts or -p the machine is as large as the
    workload says that its own was. Jobs are submitted at their recorded times, unless --users who react
    submit them.
    With --energy there are also PREFIX_consumed_energy.csv, PREFIX_pstate_changes.csv and
    PREFIX_machine_states.csv.

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s easy
      batsched-py run -w KTH-SP2.swf.gz -s easy --measure 7d:300d
      batsched-py run -w KTH-SP2.swf.gz --hosts 80 --speed 1.5 -s fcfs -e results/kth80
      batsched-py run -w KTH-SP2.swf.gz --hosts 50 -s easy --users think-time --sessions arrival:60
      batsched-py run -w workload.json -p platform.xml -s my_policy.py:MyPolicy -o depth=10 --json
      batsched-py run -w workload.json -p platform.xml -s pybatsim:path/to/mySched.py
      batsched-py run -w workload.json -p power.xml --energy -s 'sleeping(easy)' -o after=600
      batsched-py run -w KTH-SP2.swf.gz -s easy --step 'when queue > 10'
      batsched-py run -w KTH-SP2.swf.gz -s easy --live 86400
      batsched-py run -w KTH-SP2.swf.gz -s easy --status 8765 &
    """
    if step is not None and live is not None:
        raise InputError("both --step and --live are given; give one of them")
    answering = None
    if status is not None:
        from batsched_py.watch.status_socket import answering as answering_at

        answering = partial(answering_at, status or f"{prefix}_status.sock")
    watched = _watcher(step, live, experiment.actors.scheduler.name)
    result = lazy.simulating.simulate_experiment(
        experiment, export=prefix, progress=True, window=measure, watched=watched, answering=answering
    )
    beside, why_not = _controlled(result, control)
    checks = result.review() if review else []
    if as_json:
        figures = msgspec.to_builtins(result.overview)
        more = ({} if beside is None else {"control": beside}) | ({"review": checks} if review else {})
        click.echo(msgspec.json.encode(figures | more))
        return
    rows = [("control", why_not)] if why_not else [] if beside is None else beside.rows()
    click.echo(two_columns([*result.overview.rows(), *rows]))
    if beside is not None:
        click.echo(beside.verdict.words)
    for check in checks:
        say(str(check))


def _controlled(result: lazy.result.Result, wanted: bool | None) -> tuple[lazy.control.Control | None, str]:
    """The control of a result, if it is wanted or should have one; else why it has none."""
    if wanted:
        return result.control(), ""
    if not _needs_control(result):
        return None, ""
    if wanted is False:
        return None, "none, by --no-control"
    try:
        return result.control(), ""
    except InputError as error:
        return None, f"none: {error}"


def _needs_control(result: lazy.result.Result) -> bool:
    """Whether users replay a log, and not on its machine or under a usual policy."""
    experiment, overview, workload = result.experiment, result.overview, result.workloads[0]
    users = experiment.actors.users
    if users is None or users.name == "rigid" or workload.nb_hosts is None or len(result.workloads) > 1:
        return False
    speed = experiment.scenario.machine.speed or 1.0
    is_other_machine = overview.hosts != workload.nb_hosts or speed != 1.0
    from batsched_py.campaign.plan import CONTROL_POLICIES

    is_other = is_other_machine or overview.scheduler not in CONTROL_POLICIES
    return is_other and not lazy.store.is_population(experiment) and result.outcome.recorded is not None


@click.command("status")
@click.argument("address", default="out_status.sock", metavar="[ADDRESS]")
def status_command(address: str) -> None:
    """Ask a simulation in another process of this machine how far it is, and print its answer as JSON.

    The simulation must have been begun with --status. ADDRESS is what it was given there: a port, or the name
    of a file; without one, out_status.sock. The answer has the simulated time, how many jobs wait, run and
    have ended, how much of the machine is in use, and the time and memory that the simulation took.

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s conservative --status &
      batsched-py status
      batsched-py run -w KTH-SP2.swf.gz -s conservative --status 8765 &
      batsched-py status 8765
    """
    from batsched_py.watch.status_socket import ask

    told = ask(address)
    try:
        click.echo(msgspec.json.format(told.strip(), indent=2))
    except (msgspec.DecodeError, RecursionError):
        raise InputError(f"what answers at {address} is no simulation of ours") from None
