"""What an agent sees of a job, and of the machine: each feature is a function with values from 0 to 1.

Times are on a logarithmic scale on which four weeks are 1, because it is the ratio of two run times that
matters, not their difference.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import log1p
from typing import Any

import numpy as np

from batsched_py.gym.seen import Seen
from batsched_py.schedulers.cluster import Cluster

#: Gives each of some waiting jobs a number; what is beyond 0 and 1 is cut off.
JobFeature = Callable[[Seen, Cluster], Any]

#: Gives the machine a number, knowing the waiting jobs that the agent sees.
MachineFeature = Callable[[Seen, Cluster], float]

HOUR = 3600.0
DAY = 24 * HOUR

_LONG = log1p(28 * DAY)
_PER_LONG = np.array(1 / _LONG)
_MANY = log1p(10_000)


def wait(waiting: Seen, cluster: Cluster) -> Any:
    """How long the job has waited."""
    return np.log1p(cluster.now - waiting.submission) * _PER_LONG


def estimate(waiting: Seen, cluster: Cluster) -> Any:
    """How long the job is expected to run."""
    return np.log1p(waiting.estimate) * _PER_LONG


def size(waiting: Seen, cluster: Cluster) -> Any:
    """The share of the machine that the job asks for."""
    return waiting.size / cluster.nb_hosts


def fits(waiting: Seen, cluster: Cluster) -> Any:
    """Whether enough hosts are free for the job now."""
    return waiting.size <= cluster.nb_free


def free(waiting: Seen, cluster: Cluster) -> float:
    """The share of the machine that is free."""
    return cluster.nb_free / cluster.nb_hosts


def fits_on_nodes(waiting: Seen, cluster: Cluster) -> Any:
    """Whether all that the job asks for is free now, on a machine of nodes."""
    return [cluster.fits(job) for job in islice(cluster.queue, len(waiting))]


def free_of(resource: str) -> MachineFeature:
    """The share of a resource of the nodes that is free."""

    def share(waiting: Seen, cluster: Cluster) -> float:
        free, there_is = cluster.resources[resource]
        return free / max(1, there_is)

    return share


def queued(waiting: Seen, cluster: Cluster) -> float:
    """How many jobs wait, on a logarithmic scale on which ten thousand are 1."""
    return log1p(len(cluster.queue)) / _MANY


def backlog(waiting: Seen, cluster: Cluster) -> float:
    """How long the whole machine would need for the waiting jobs."""
    return log1p(float(waiting.size.dot(waiting.estimate)) / cluster.nb_hosts) / _LONG


def time_of_day(waiting: Seen, cluster: Cluster) -> float:
    """The hour of the day, from one midnight to the next, if the simulation begins at one."""
    return cluster.now % DAY / DAY


#: What :class:`~batsched_py.gym.observations.QueueObservation` shows of a job, and of the machine.
JOB: tuple[JobFeature, ...] = (wait, estimate, size, fits)
MACHINE: tuple[MachineFeature, ...] = (free, queued, backlog, time_of_day)
