"""Nodes, selection and plans, which take nearly all the time: in Python, or by the native library.

The classes in Python are the specification. Those of the library do the same; they are used where it was
built.
"""

from __future__ import annotations

from typing import NamedTuple

from batsched_py.native import library
from batsched_py.schedulers.slurm.future import Future
from batsched_py.schedulers.slurm.nodes import Machine, Usage
from batsched_py.schedulers.slurm.plan import Plan
from batsched_py.schedulers.slurm.selection import Selector

MOST_CPUS = 1 << 12
"""The native library does not know larger nodes."""


class Kernel(NamedTuple):
    """The classes that belong together."""

    usage: type[Usage]
    selector: type[Selector]
    future: type[Future]
    plan: type[Plan]


PYTHON = Kernel(Usage, Selector, Future, Plan)

NATIVE = (
    None
    if library is None
    else Kernel(library.slurm.Usage, library.slurm.Selector, library.slurm.Future, library.slurm.Plan)
)
"""None where the library was not built."""


def kernel_of(machine: Machine) -> Kernel:
    """The native one if there is one for such a machine."""
    return PYTHON if NATIVE is None or max(machine.cpus) > MOST_CPUS else NATIVE
