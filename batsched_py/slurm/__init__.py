"""Slurm: the files of its clusters become scenarios, and what they recorded is compared with a twin of it.

The twin is the policy in :mod:`batsched_py.slurm.policy`. Nothing that is read here is ever executed.
"""
