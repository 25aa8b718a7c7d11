"""One experiment is one value, whoever asks for it: a command, a plan, a manifest or Python.

``value`` says what an experiment is and loads nothing that simulates; ``command_line`` spells it as options;
``sides`` makes of it the two sides of a conversation.
"""

from batsched_py.experiment.value import Actors, Choice, Experiment, Machine, Scenario, Workloads

__all__ = ["Actors", "Choice", "Experiment", "Machine", "Scenario", "Workloads"]
