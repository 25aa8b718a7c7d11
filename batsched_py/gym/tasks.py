"""What an agent decides: its questions, its answers, and what is done with them.

A task is the same in an environment in which an agent learns, and in a simulation in which a trained one is
the scheduler. It goes by turns of the policy, each a generator that stops for every question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from batsched_py.errors import PolicyError
from batsched_py.gym.observations import Observation
from batsched_py.gym.seen import Seen
from batsched_py.outside.known import Known
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.cluster import Cluster

#: Gives what the agent observes, and is sent what it does.
Questions = Generator[Any, int, None]


class Task(ABC):
    """What an agent decides. A task may keep something, from the beginning of a simulation to its end."""

    slots: int
    """How many waiting jobs the agent sees."""
    observation: Observation
    """How it sees them."""
    mask: NDArray[np.bool_]
    """Which actions make sense at the question that was asked last."""

    @property
    @abstractmethod
    def nb_actions(self) -> int:
        """What the agent can do: a number below this one."""

    def show_more(self, resources: Sequence[str], outside: Known) -> None:
        """Let the agent see what is free of the resources of nodes, and what is known of outside."""
        if resources:
            self.observation = self.observation.on_nodes(resources)
        self.observation = self.observation.knowing(outside)

    def begin(self, cluster: Cluster) -> None:  # noqa: B027
        """Prepare; called once, before any job is submitted."""

    @abstractmethod
    def turn(self, cluster: Cluster) -> Questions:
        """It is the policy's turn: ask the agent as often as need be, and do what it says."""

    @cached_property
    def action_space(self) -> Space[Any]:
        """A number for each action."""
        return spaces.Discrete(self.nb_actions)

    @cached_property
    def observation_space(self) -> Space[Any]:
        """What the agent sees."""
        return self.observation.space(self.slots, self.nb_actions)

    def as_action(self, action: Any) -> int:
        """What the agent does, as a number; it must be one of those that there are."""
        number = int(action)
        if not 0 <= number < self.nb_actions:
            raise PolicyError(f"the agent's action is {number}, but they go from 0 to {self.nb_actions - 1}")
        return number

    def show(self, cluster: Cluster, waiting: Seen, mask: Any) -> Any:
        """The cluster as the agent sees it, with what it can do."""
        self.mask = np.asarray(mask, dtype=bool)
        return self.observation.show(cluster, waiting, self.slots, mask)

    def show_end(self, cluster: Cluster) -> Any:
        """The cluster when all is over, and there is nothing to be done."""
        return self.show(cluster, Seen(cluster, self.slots), np.zeros(self.nb_actions, np.int8))


def waiting_at(cluster: Cluster, place: int) -> Job:
    """The job that stands in this place among the waiting ones."""
    return next(islice(cluster.queue, place, None))
