"""Two engines behind one door: :func:`new_simulation` chooses the one that a simulation runs on."""

from batsched_py.engines.simulation import Simulation, new_simulation

__all__ = ["Simulation", "new_simulation"]
