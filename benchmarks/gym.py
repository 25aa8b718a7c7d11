"""How many steps of an agent without a model the environments go in a second, alone and two at a time.

python -m benchmarks.gym [STEPS]
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import AsyncVectorEnv

import batsched_py.gym

SAMPLE = Path(__file__).parents[1] / "workloads" / "sample.swf"
STEPS = 20_000
TASKS = (batsched_py.gym.PickJob, batsched_py.gym.Backfill, batsched_py.gym.ChoosePolicy)


def make(name: str) -> gymnasium.Env[Any, Any]:
    """An environment over windows of 256 jobs of the sample."""
    return gymnasium.make(f"batsched_py/{name}-v0", episodes=SAMPLE, hosts=64)


def first_offered(observation: Any) -> Any:
    """The agent: it takes the first action that makes sense."""
    return observation["action_mask"].argmax(axis=-1)


def alone(name: str, steps: int) -> float:
    """The steps in a second of processor time, beginnings of episodes included."""
    env = make(name)
    env.reset(seed=0)
    begun, over = time.process_time(), True
    for _ in range(steps):
        if over:
            observation, _ = env.reset()
        observation, _, over, _, _ = env.step(first_offered(observation))
    return steps / (time.process_time() - begun)


def apart(name: str, steps: int, count: int) -> float:
    """Agents that learn apart, at once: each process has an environment and an agent of its own.

    Their steps in a second of processor time are added up, which is what a machine with enough cores gives.
    """
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        return sum(pool.map(partial(alone, name), [steps] * count))


def vectorised(name: str, steps: int, count: int) -> float:
    """One agent that is asked by all environments at once, each in a process of its own.

    It waits for them, so this is the time on the wall, for which the machine must have nothing else to do.
    """
    envs = AsyncVectorEnv([partial(make, name)] * count)
    observation, _ = envs.reset(seed=0)
    begun = time.perf_counter()
    for _ in range(steps):
        observation, *_ = envs.step(first_offered(observation))
    seconds = time.perf_counter() - begun
    envs.close()
    return steps * count / seconds


def main(steps: int = STEPS) -> None:
    """Print what there is to know."""
    for task in TASKS:
        print(f"{task.__name__:14}{alone(task.__name__, steps):9,.0f} steps a second of processor time")
    for what, measure in (("in processes of their own", apart), ("in an AsyncVectorEnv", vectorised)):
        one, two = (measure("PickJob", steps // 2, count) for count in (1, 2))
        print(f"PickJob {what}: {one:,.0f} steps a second with 1, {two:,.0f} with 2, {two / one:.2f} times")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
