"""A workbench for research on HPC job scheduling, compatible with Batsim.

Both sides of the conversation are plain objects: a simulator says what happened, a decision process
answers what to do. The rooms of the package are ``protocol``, ``decision``, ``schedulers``, ``users``,
``simulator``, ``workload``, ``experiment``, ``analysis``, ``campaign`` and ``cli``; dependencies between them
point one way.
"""

__version__ = "0.1.0"
