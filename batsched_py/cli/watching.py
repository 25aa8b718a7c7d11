"""Options to watch a simulation while it runs, step by step or live."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from batsched_py.api.terminal import say

if TYPE_CHECKING:
    from batsched_py.decision.process import DecisionProcess
    from batsched_py.decision.pybatsim import PyBatsimProcess
    from batsched_py.engines.python import Batsim


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


step_option = click.option(
    "--step",
    metavar="[COMMAND]",
    is_flag=False,
    flag_value="",
    help="Stop each time the scheduler was asked, show what happened and what it decided, and ask what to "
    "do. With a COMMAND such as 'until 5h', 'job 12' or 'when queue > 10', stop there first.",
)

live_option = click.option(
    "--live",
    metavar="[PACE]",
    is_flag=False,
    flag_value="",
    type=PaceType(),
    help="Show the simulation on the terminal while it runs: queue, running jobs, hosts, curves; keys pause "
    "it and step. PACE is 'paused' to begin with a pause, or so many simulated seconds a second.",
)


status_option = click.option(
    "--status",
    metavar="[ADDRESS]",
    is_flag=False,
    flag_value="",
    help="Answer `batsched-py status` while the simulation runs: at a port of this machine, or a socket with "
    "the name of a file.  [PREFIX_status.sock if no ADDRESS is given]",
)


def answer_at(address: str, tell: Callable[[], bytes]) -> AbstractContextManager[None]:
    """Tell whoever asks at an address how far the simulation is."""
    from batsched_py.watch.status_socket import answering

    return answering(address, tell)


def step_through(
    first: str, batsim: Batsim, process: DecisionProcess | PyBatsimProcess, nb_jobs: int
) -> None:
    """Go step by step through the simulation, as the standard input says; where that ends, to its end."""
    from batsched_py.watch.scenes import watch
    from batsched_py.watch.stepper import Stepper

    def ask() -> str:
        click.echo("step> ", nl=False, err=True)
        return sys.stdin.readline() or "continue"

    watch(Stepper(ask, partial(say, err=True), first), batsim, process)


def show_live(
    pace: Pace, title: str, batsim: Batsim, process: DecisionProcess | PyBatsimProcess, nb_jobs: int
) -> None:
    """Go through the simulation and show it."""
    from batsched_py.watch.live import LiveView
    from batsched_py.watch.scenes import watch
    from batsched_py.watch.screen import Screen

    with Screen() as screen:
        view = LiveView(screen, title, nb_jobs, *pace)
        watch(view, batsim, process)
        view.hold()
