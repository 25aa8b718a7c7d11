"""Slurm: the files of its clusters become scenarios, and what they recorded is compared with a twin of it.

The twin is the policy in :mod:`batsched_py.slurm.policy`. Nothing that is read here is ever executed.

A job takes two forms. What was submitted is a :class:`~batsched_py.slurm.sbatch.Submission`, whether options
of ``sbatch``, ``sacct``, ``scontrol`` or ``squeue`` tell of it, and a
:class:`~batsched_py.slurm.jobs.JobMaker` makes the job of it. What is scheduled is an
:class:`~batsched_py.slurm.policy.job.Asked`, which the policy makes of the job in the workload. In between it
is a job of a workload file like any other, with a field for what only Slurm knows.
"""
