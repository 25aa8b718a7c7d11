"""Test a policy: small worlds by hand, generated workloads, and every property that a policy should have.

>>> from batsched_py.testing import Workbench, job
>>> bench = Workbench(4, "easy")
>>> bench.start(job("a", size=3, walltime=10))
>>> bench.submit(job("head", size=4, walltime=5), job("b", walltime=10), job("c", walltime=11))
>>> bench.decide().started
['b']

:func:`check` holds a policy against all generic properties in one call; it needs hypothesis, as do the
strategies in :mod:`batsched_py.testing.strategies`. What else you have written is tried with
:func:`sessions_of`, :func:`log_of` and :func:`figure_of`.
"""

from batsched_py.testing.properties import Finding, PropertyBroken, check, findings
from batsched_py.testing.runs import (
    Decisions,
    JobSpec,
    Workbench,
    assert_valid,
    figure_of,
    job,
    log_of,
    schedule_of,
    sessions_of,
    starts,
    workload_of,
)

__all__ = [
    "Decisions",
    "Finding",
    "JobSpec",
    "PropertyBroken",
    "Workbench",
    "assert_valid",
    "check",
    "figure_of",
    "findings",
    "job",
    "log_of",
    "schedule_of",
    "sessions_of",
    "starts",
    "workload_of",
]
