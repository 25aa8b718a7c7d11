"""An agent that was trained by ``train_agent.py``, as a scheduler: ``-s examples/agent.py:Agent``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.gym import JOB, MACHINE, AgentScheduler, PickJob, Task

Weights = NDArray[np.float64]

INPUTS = len(JOB) + len(MACHINE)
HIDDEN = 8

#: How many numbers the network has.
SIZE = INPUTS * HIDDEN + HIDDEN + HIDDEN


def pick(weights: Weights, observation: Any) -> int:
    """The waiting job with the highest score, by a network that sees one job at a time, and the machine."""
    first, bias, last = np.split(weights, [INPUTS * HIDDEN, (INPUTS + 1) * HIDDEN])
    first = first.reshape(INPUTS, HIDDEN)
    jobs = observation["jobs"][: np.count_nonzero(observation["action_mask"])]
    machine = observation["machine"] @ first[len(JOB) :] + bias
    scores = np.tanh(jobs @ first[: len(JOB)] + machine) @ last
    return int(scores.argmax())


@dataclass
class Agent(AgentScheduler):
    """A small network picks the next job; all wait until that one fits, or are backfilled around it."""

    name = "agent"

    weights_file: Annotated[str, Meta(description="What train_agent.py has learned.")] = "out/agent.npy"
    backfilling: Annotated[bool, Meta(description="Whether others may start if they do no harm.")] = False

    def __post_init__(self) -> None:
        """Read what was learned."""
        try:
            self._weights: Weights = np.load(self.weights_file)
        except OSError as error:
            raise InputError(f"{self.weights_file}: {error.strerror}; run train_agent.py first") from None

    def task(self) -> Task:
        """What the agent decides."""
        return PickJob(backfilling=self.backfilling)

    def act(self, observation: Any) -> int:
        """The job with the highest score."""
        return pick(self._weights, observation)
