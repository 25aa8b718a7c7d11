"""Files of Slurm clusters in and out: what they say becomes a scenario, and what they recorded is compared.

The policy itself is in :mod:`batsched_py.schedulers.slurm`. Nothing that is read here is ever executed.
"""
