"""The whole conversation: a simulator and a decision process that hand typed messages to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.events import Message
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
