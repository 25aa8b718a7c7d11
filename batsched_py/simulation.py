"""The whole conversation: a simulator and a decision process that hand typed messages to each other."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import InputError
from batsched_py.ledger.ledger import Effect
from batsched_py.protocol.events import Message
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Results


class Decides(Protocol):
    """Whoever answers requests: a ``DecisionProcess`` here, or a ``RemoteProcess`` elsewhere."""

    def react(self, request: Message) -> Message:
        """Answer one request of the simulator."""


def simulate(batsim: Batsim, process: Decides, on_message: Callable[[], None] | None = None) -> Results:
    """Run a whole simulation; whoever wants to show progress is called after each exchange.

    Where both sides are here, and the one that decides takes no time for it, they share one ledger.
    """
    try:
        if isinstance(process, DecisionProcess) and not process.scheduling_delay:
            batsim.play(process, on_message)
            return batsim.outputs.results
        request = batsim.begin()
        while True:
            following = batsim.advance(process.react(request))
            if following is None:
                return batsim.outputs.results
            request = following
            if on_message is not None:
                on_message()
    except BaseException:
        batsim.outputs.abandon()
        raise


def turns(batsim: Batsim, process: DecisionProcess) -> Generator[Cluster, None, None]:
    """Go through a whole simulation, but leave each turn of the policy to whoever goes through this.

    Simulator and users go on by themselves until the policy is to be asked. Then this stops, and whoever
    goes through it has the policy's place: they look at the cluster, say to it what to start, and go on. Or
    they let the policy decide after all, by ``process.ask()``, and look before and after. No thread, and
    nothing to wait for: a stepper, a live view and a learning agent all hang on this one loop. The simulation
    is the same as :func:`simulate` runs, and may be left before its end::

        for cluster in turns(batsim, process):
            for job in cluster.fitting():
                cluster.start(job)
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
