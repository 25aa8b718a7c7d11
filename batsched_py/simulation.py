"""A whole simulation by the Python engine: the built-in Batsim and a decision process take turns."""

from __future__ import annotations

from collections.abc import Callable, Generator

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import InputError
from batsched_py.ledger.ledger import Effect
from batsched_py.protocol.events import Message
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.decision_side import Decides
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Results


def simulate(batsim: Batsim, process: Decides, on_turn: Callable[[], None] | None = None) -> Results:
    """Run a whole simulation; ``on_turn`` is called after each exchange, to show progress.

    If both sides are here, and the one that decides takes no time for it, they share one ledger. Otherwise
    they exchange messages.
    """
    try:
        if isinstance(process, DecisionProcess) and not process.scheduling_delay:
            _share_a_ledger(batsim, process, on_turn)
        else:
            request: Message | None = batsim.begin()
            while request is not None:
                request = batsim.advance(process.react(request))
                if on_turn is not None:
                    on_turn()
    except BaseException:
        batsim.outputs.abandon()
        raise
    return batsim.outputs.results


def _share_a_ledger(batsim: Batsim, process: DecisionProcess, on_turn: Callable[[], None] | None) -> None:
    instants, decide = batsim.instants(process), process.decide
    now = next(instants)
    while True:
        try:
            now = instants.send(decide(now))
        except StopIteration:
            return
        if on_turn is not None:
            on_turn()


def turns(batsim: Batsim, process: DecisionProcess) -> Generator[Cluster, None, None]:
    """Go through a whole simulation, but leave each turn of the policy to the caller.

    At its turn, the caller looks at the cluster and says to it what to start, or lets the policy decide after
    all, by ``process.ask()``. The simulation is the same as :func:`simulate` runs, and may be left before its
    end.
    """
    if process.scheduling_delay:
        raise InputError("a slow scheduler, with a scheduling delay, has no turns that can be left to others")
    instants = batsim.instants(process)
    try:
        now = next(instants)
        while True:
            effects: list[Effect] = yield from process.turns(now)
            try:
                now = instants.send(effects)
            except StopIteration:
                return
    except BaseException:
        batsim.outputs.abandon()
        raise
