"""One policy a file.

A policy sees a queue, free hosts and the clock; it never sees a socket, a JSON field or a user.
To write one, subclass :class:`Scheduler` in a file of your own (see ``fcfs.py`` and ``easy.py``).
"""

from batsched_py.ledger.limits import Limit
from batsched_py.ledger.profile import AvailabilityProfile
from batsched_py.ledger.queue import JobQueue, Waiting
from batsched_py.ledger.running import RunningJob
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.wrapping import Schedulers, Wrapper

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
