"""One experiment is one value, wherever it comes from: a command, a plan, a manifest or Python.

``value`` declares what an experiment is, with all its settings, and loads nothing that simulates; ``build``
makes its simulator and its decision process; ``run`` runs it, and writes it as the options of a command.
"""

from batsched_py.experiment.choice import Choice
from batsched_py.experiment.value import Actors, Experiment, Machine, Scenario, Workloads

__all__ = ["Actors", "Choice", "Experiment", "Machine", "Scenario", "Workloads"]
