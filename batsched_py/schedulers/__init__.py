"""One policy a file.

A policy sees a queue, free hosts and the clock; it never sees a socket, a JSON field or a user.
To write one, subclass :class:`Scheduler` in a file of your own (see ``fcfs.py`` and ``easy.py``).
"""

from typing import TYPE_CHECKING

from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.wrapping import Schedulers, Wrapper

if TYPE_CHECKING:
    from batsched_py.ledger.limits import Limit
    from batsched_py.ledger.profile import AvailabilityProfile
    from batsched_py.ledger.queue import JobQueue, Waiting
    from batsched_py.ledger.running import RunningJob

#: The known policies.
SCHEDULERS = Schedulers(
    "scheduler",
    Scheduler,  # type: ignore[type-abstract]
    package="batsched_py.schedulers",
    group="batsched_py.schedulers",
    also=("batsched_py.slurm.policy",),
)

__all__ = [
    "SCHEDULERS",
    "AvailabilityProfile",
    "Cluster",
    "JobQueue",
    "Limit",
    "Order",
    "RunningJob",
    "Scheduler",
    "Waiting",
    "Wrapper",
]

#: Where the other names come from that policies of users may need; it is imported when it is asked for.
_HOMES = {
    "AvailabilityProfile": "profile",
    "JobQueue": "queue",
    "Limit": "limits",
    "RunningJob": "running",
    "Waiting": "queue",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"batsched_py.ledger.{_HOMES[name]}"), name)
