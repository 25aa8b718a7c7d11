"""What every engine makes of a scenario and a decision process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

from msgspec import Struct

from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.outputs import CountsHosts, Outputs, Results


class Situation(Struct, frozen=True):
    """How things stand in a simulation."""

    now: float
    waiting: int
    running: int
    """How many jobs wait and run."""
    resources: dict[str, tuple[int, int]]
    """How much of each resource of the nodes is free, and how much there is; none on a plain machine."""


class Simulation(ABC):
    """One simulation. It can be gone through once, by :meth:`run` or by :meth:`turns`."""

    engine: ClassVar[str]
    """The name of the engine."""

    outputs: Outputs
    machines: CountsHosts

    @property
    def results(self) -> Results:
        """What has come out so far."""
        return self.outputs.results

    @property
    @abstractmethod
    def refused(self) -> Counter[str]:
        """How many jobs a machine of nodes could never run, by the kind of reason."""

    @abstractmethod
    def situation(self) -> Situation:
        """How things stand; another thread may ask while the simulation goes on."""

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return 0.0

    @abstractmethod
    def run(self, on_turn: Callable[[], None] | None = None) -> Results:
        """Run the whole simulation; ``on_turn`` is called after each turn of the policy."""

    @abstractmethod
    def turns(self) -> Iterator[Cluster]:
        """Go through the whole simulation, but leave each turn of the policy to the caller.

        Simulator and users go on by themselves until the policy is to be asked. Then this stops, and the
        caller has the policy's place: it looks at the cluster, says to it what to start, and goes on. Or it
        lets the policy decide after all, by ``process.ask()``, and looks before and after. The simulation is
        the same as :meth:`run` makes, and may be left before its end::

            for cluster in simulation.turns():
                for job in cluster.fitting():
                    cluster.start(job)
        """
