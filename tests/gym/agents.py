"""Agents that need not learn, because what they do is known under a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from batsched_py.gym import JOB, AgentScheduler, SchedulingEnv, Task, estimate

#: What an agent does when it observes something.
Act = Callable[[Any], int]

ESTIMATE = JOB.index(estimate)


def head(observation: Any) -> int:
    """The first that is offered."""
    return int(observation["action_mask"].argmax())


def shortest(observation: Any) -> int:
    """The shortest that is offered."""
    jobs, mask = observation["jobs"], observation["action_mask"]
    return int(np.where(mask[: len(jobs)] == 1, jobs[:, ESTIMATE], np.inf).argmin())


def always(action: int) -> Act:
    """The same whatever it observes."""
    return lambda observation: action


def play(env: SchedulingEnv, act: Act, **options: Any) -> tuple[float, dict[str, Any]]:
    """Go through an episode; the sum of the rewards, and what is told at its end."""
    observation, _ = env.reset(seed=1, options=options)
    rewards, over, info = 0.0, False, dict[str, Any]()
    while not over:
        observation, reward, over, _, info = env.step(act(observation))
        rewards += reward
    return rewards, info


class Trained(AgentScheduler):
    """A scheduler that asks an agent."""

    name = "trained"

    def __init__(self, task: Task, act: Act) -> None:
        super().__init__()
        self._what = task
        self._act = act

    def task(self) -> Task:
        return self._what

    def act(self, observation: Any) -> int:
        return self._act(observation)
