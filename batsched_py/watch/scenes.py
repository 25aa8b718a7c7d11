"""A simulation as scenes: what happened, what was decided, and how things stand then."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, turns
from batsched_py.ledger.effects import Effect, RegisteredJob
from batsched_py.ledger.ledger import Ledger
from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.protocol import events as ev
from batsched_py.schedulers.decisions import Remark

if TYPE_CHECKING:
    from batsched_py.decision.pybatsim import PyBatsimProcess


class Scene(Struct, frozen=True):
    """One time that the policy was asked."""

    now: float
    ledger: Ledger
    """How things stand now that it has decided; it changes when the simulation goes on."""
    happened: Sequence[ev.Event]
    """What it had not heard of before."""
    decided: Sequence[Effect]
    """By it, or by users who withdraw jobs."""
    remarks: Sequence[Remark] = ()
    """What it said about jobs."""
    outside: Known = NOTHING_KNOWN
    """What it knows of prices, carbon, temperature and the power that may be drawn."""


#: Watches a simulation; what it raises ends the simulation.
Watcher = Callable[[Scene], None]


def scenes(batsim: Batsim, process: DecisionProcess | PyBatsimProcess) -> Generator[Scene, None, None]:
    """Go through a whole simulation, and stop each time the policy has decided."""
    if isinstance(process, DecisionProcess) and not process.scheduling_delay:
        yield from _in_turns(batsim, process)
        return
    stage: list[Scene] = []
    watched = Watched(process, stage.append)
    request: ev.Message | None = batsim.begin()
    try:
        while request is not None:
            reply = watched.react(request)
            yield stage.pop()
            request = batsim.advance(reply)
    except BaseException:
        batsim.outputs.abandon()
        raise


def _in_turns(batsim: Batsim, process: DecisionProcess) -> Iterator[Scene]:
    remarks: list[Remark] = []
    process.heed(remarks.append)
    with closing(turns(batsim, process)) as going:
        for cluster in going:
            submitted = [effect.job for effect in process.acted if isinstance(effect, RegisteredJob)]
            happened = [*cluster.events, *(ev.JobSubmitted(job, time=cluster.now) for job in submitted)]
            acted = [effect for effect in process.acted if not isinstance(effect, RegisteredJob)]
            process.ask()
            decided = [*acted, *cluster.decided]
            yield Scene(cluster.now, process.ledger, happened, decided, list(remarks), cluster.outside)
            remarks.clear()


def watch(watcher: Watcher, batsim: Batsim, process: DecisionProcess | PyBatsimProcess) -> None:
    """Run a whole simulation with somebody who watches."""
    with closing(scenes(batsim, process)) as going:
        for scene in going:
            watcher(scene)


class Watched:
    """A decision process, elsewhere or here, with somebody who watches it answer."""

    def __init__(self, process: DecisionProcess | PyBatsimProcess, watcher: Watcher) -> None:
        self.needs = process.needs
        self.finished = False
        self._process = process
        self._watcher = watcher
        self._remarks: list[Remark] = []
        if isinstance(process, DecisionProcess):
            process.heed(self._remarks.append)

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request, and let it be watched."""
        process = self._process
        reply = process.react(request)
        self.finished = process.finished
        known = process.cluster.outside if isinstance(process, DecisionProcess) else NOTHING_KNOWN
        remarks = list(self._remarks)
        self._remarks.clear()
        self._watcher(Scene(request.now, process.ledger, request.events, reply.events, remarks, known))
        return reply
