"""What an agent sees: the waiting jobs and the machine, each feature a function with values from 0 to 1.

Times are on a logarithmic scale on which four weeks are 1, because it is the ratio of two run times that
matters, not their difference. An observation puts features together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, log1p
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from batsched_py.ledger.queue import Floats, Integers, Waiting
from batsched_py.outside.curve import CURVES, Known
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.sizes import malleable_of, shapes_of
from batsched_py.schedulers.cluster import Cluster


class Seen:
    """The jobs that wait longest, as columns of numbers in submission order; each is fetched once.

    Features, masks and tasks look at the same few columns many times until the agent is asked.
    """

    __slots__ = ("_waiting", "estimate", "size", "submission")

    def __init__(self, cluster: Cluster, slots: int) -> None:
        self._waiting: Waiting = cluster.queue.first(slots)
        self.size: Integers = self._waiting.size
        """How many hosts each job asks for."""
        self.estimate: Floats = self._waiting.estimate
        """How long each job is expected to run."""
        self.submission: Floats = self._waiting.submission
        """When each job was submitted."""

    def __len__(self) -> int:
        return len(self.size)

    @property
    def user(self) -> Integers:
        """Who submitted each job, by number in :attr:`JobQueue.users`."""
        return self._waiting.user


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


def least_size(waiting: Seen, cluster: Cluster) -> Any:
    """The share of the machine that the job has with the smallest of its sizes."""
    return [_sizes(job)[0] / cluster.nb_hosts for job in islice(cluster.queue, len(waiting))]


def largest_size(waiting: Seen, cluster: Cluster) -> Any:
    """The share of the machine that the job has with the largest of its sizes."""
    return [_sizes(job)[-1] / cluster.nb_hosts for job in islice(cluster.queue, len(waiting))]


def _sizes(job: Job) -> list[int]:
    """The sizes of a job from the smallest to the largest; of a malleable one these two."""
    if (malleable := malleable_of(job)) is not None:
        return [malleable.least, malleable.most]
    return [shape.job.size for shape in shapes_of(job)] or [job.size]


def away(waiting: Seen, cluster: Cluster) -> float:
    """The share of the machine that has failed, or is unavailable for another reason."""
    return 1 - len(cluster.available) / cluster.nb_hosts


def closed(waiting: Seen, cluster: Cluster) -> float:
    """The share of the machine that is closed now, or reserved for some users."""
    hosts = HostSet()
    for closure in cluster.outside.closures:
        if closure.start <= cluster.now < closure.end:
            hosts = hosts | closure.hosts
    return len(hosts) / cluster.nb_hosts


def closing(waiting: Seen, cluster: Cluster) -> float:
    """How long it takes until hosts close next; 1 if none will."""
    starts = (each.start for each in cluster.outside.closures if each.start > cluster.now)
    return _until(min(starts, default=inf), cluster)


def level_of(curve: str) -> MachineFeature:
    """Where a price, or another number from outside, lies between its least and its greatest value."""
    return lambda waiting, cluster: float(getattr(cluster.outside, curve).level(cluster.now))


def change_of(curve: str) -> MachineFeature:
    """How long it takes until a number from outside changes; 1 if it will not."""
    return lambda waiting, cluster: _until(getattr(cluster.outside, curve).next_change(cluster.now), cluster)


def _until(time: float, cluster: Cluster) -> float:
    return 1.0 if time == inf else log1p(time - cluster.now) / _LONG


def queued(waiting: Seen, cluster: Cluster) -> float:
    """How many jobs wait, on a logarithmic scale on which ten thousand are 1."""
    return log1p(len(cluster.queue)) / _MANY


def backlog(waiting: Seen, cluster: Cluster) -> float:
    """How long the whole machine would need for the waiting jobs."""
    return log1p(float(waiting.size.dot(waiting.estimate)) / cluster.nb_hosts) / _LONG


def time_of_day(waiting: Seen, cluster: Cluster) -> float:
    """The hour of the day, from one midnight to the next, if the simulation begins at one."""
    return cluster.now % DAY / DAY


#: What :class:`~batsched_py.gym.features.QueueObservation` shows of a job, and of the machine.
JOB: tuple[JobFeature, ...] = (wait, estimate, size, fits)
MACHINE: tuple[MachineFeature, ...] = (free, queued, backlog, time_of_day)


#: Numpy takes longer to look at a number of Python than to compare five hundred of its own.
_ZERO, _ONE = np.zeros((), np.float32), np.ones((), np.float32)


class Observation(ABC):
    """A way to show a cluster. One of your own has these two methods, and keeps nothing between calls."""

    def on_nodes(self, resources: Sequence[str]) -> Observation:
        """How to show a machine of nodes that have these resources; one of your own may stay what it is."""
        return self

    def knowing(self, outside: Known) -> Observation:
        """How to show a machine of which so much is known; one of your own may stay what it is."""
        return self

    @abstractmethod
    def space(self, slots: int, actions: int) -> Space[Any]:
        """What it shows of the first so many waiting jobs, when the agent has so many actions."""

    @abstractmethod
    def show(self, cluster: Cluster, waiting: Seen, slots: int, mask: Any) -> Any:
        """The cluster as it is now, with the jobs that are seen; they are fewer than slots where few wait.

        The mask has a 1 for each action that makes sense.
        """


@dataclass(frozen=True)
class QueueObservation(Observation):
    """The first waiting jobs, a row of features each, padded with zeros; the machine; and the mask.

    D. Zhang et al., "RLScheduler: An Automated HPC Batch Job Scheduler Using Reinforcement Learning",
    SC 2020.
    """

    job: tuple[JobFeature, ...] = JOB
    machine: tuple[MachineFeature, ...] = MACHINE

    def on_nodes(self, resources: Sequence[str]) -> QueueObservation:
        """The free share of each resource is there, too; a job fits if all that it asks for is free."""
        job = tuple(fits_on_nodes if feature is fits else feature for feature in self.job)
        return replace(self, job=job, machine=(*self.machine, *map(free_of, resources)))

    def knowing(self, outside: Known) -> QueueObservation:
        """What is closed, and the level of prices and other numbers from outside, is there, too."""
        seen: list[MachineFeature] = [closed, closing] if outside.closures else []
        for name in CURVES:
            if getattr(outside, name) is not None:
                seen += level_of(name), change_of(name)
        return replace(self, machine=(*self.machine, *seen))

    def space(self, slots: int, actions: int) -> Space[Any]:
        """Numbers from 0 to 1."""
        return spaces.Dict(
            {
                "jobs": spaces.Box(0.0, 1.0, (slots, len(self.job)), np.float32),
                "machine": spaces.Box(0.0, 1.0, (len(self.machine),), np.float32),
                "action_mask": spaces.MultiBinary(actions),
            }
        )

    def show(self, cluster: Cluster, waiting: Seen, slots: int, mask: Any) -> dict[str, Any]:
        """The rows in the order of submissions."""
        jobs = np.zeros((slots, len(self.job)), np.float32)
        columns = jobs.T[:, : len(waiting)]
        for number, feature in enumerate(self.job):
            columns[number] = feature(waiting, cluster)
        np.minimum(columns, _ONE, out=columns)
        np.maximum(columns, _ZERO, out=columns)
        machine = [min(max(feature(waiting, cluster), 0.0), 1.0) for feature in self.machine]
        return {"jobs": jobs, "machine": np.array(machine, np.float32), "action_mask": mask}


#: What tasks show unless they are given another observation.
QUEUE = QueueObservation()
