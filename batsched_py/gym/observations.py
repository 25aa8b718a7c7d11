"""What an agent is shown when it is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from batsched_py.gym.features import (
    JOB,
    MACHINE,
    JobFeature,
    MachineFeature,
    fits,
    fits_on_nodes,
    free_of,
    of_outside,
)
from batsched_py.gym.seen import Seen
from batsched_py.outside.known import Known
from batsched_py.schedulers.cluster import Cluster

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
        return replace(self, machine=(*self.machine, *of_outside(outside)))

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
