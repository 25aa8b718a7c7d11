"""A trained agent as a scheduler like any other."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from typing import Any

from batsched_py.gym.tasks import Task
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


class AgentScheduler(Scheduler):
    """A policy that asks an agent. A subclass says what the agent decides, and what it does.

    It is found by ``-s agent.py:Agent``, and sees what the environment of the same task shows.
    """

    @abstractmethod
    def task(self) -> Task:
        """What the agent decides."""

    @abstractmethod
    def act(self, observation: Any) -> int:
        """What the agent does when it observes this."""

    def begin(self, cluster: Cluster) -> None:
        """Prepare the task."""
        self._task = deepcopy(self.task())
        self._task.show_more(tuple(cluster.resources), cluster.outside)
        self._task.begin(cluster)

    def schedule(self, cluster: Cluster) -> None:
        """Ask the agent as often as the task does."""
        questions = self._task.turn(cluster)
        observation = next(questions, None)
        while observation is not None:
            action = self._task.as_action(self.act(observation))
            try:
                observation = questions.send(action)
            except StopIteration:
                return
