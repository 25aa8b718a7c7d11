"""The Python engine: does everything, and is the specification of the native one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.simulation import Simulation, Situation
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulation import simulate, turns
from batsched_py.simulator.decision_side import Decides
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Results


class PythonSimulation(Simulation):
    """A simulation by the built-in Batsim and a decision process."""

    engine = "python"

    def __init__(self, batsim: Batsim, process: Decides) -> None:
        self._batsim = batsim
        self._process = process
        self.outputs = batsim.outputs
        self.machines = batsim.machines

    @property
    def refused(self) -> Counter[str]:
        """How many jobs a machine of nodes could never run, by the kind of reason."""
        return self._process.refused if isinstance(self._process, DecisionProcess) else Counter()

    def situation(self) -> Situation:
        """How things stand."""
        ledger, now = self._batsim.ledger, self._batsim.now
        nodes = ledger.nodes
        resources = {} if nodes is None else nodes.machine.totals(nodes.free.amounts, nodes.licences)
        return Situation(now, len(ledger.queue), len(ledger.running), resources)

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return self._batsim.drawn_joules

    def run(self, on_turn: Callable[[], None] | None = None) -> Results:
        """Run the whole simulation."""
        return simulate(self._batsim, self._process, on_turn)

    def turns(self) -> Iterator[Cluster]:
        """Go through the whole simulation, but leave each turn of the policy to the caller."""
        assert isinstance(self._process, DecisionProcess)
        return turns(self._batsim, self._process)
