"""Learning agents: environments of gymnasium in which an agent has the place of the policy.

``import batsched_py.gym`` registers one for each :class:`Task`::

    env = gymnasium.make("batsched_py/PickJob-v0", episodes="workloads/sample.swf", hosts=64)

No thread runs: a simulation stops by itself at each turn of the policy, see
:func:`batsched_py.engines.python.turns`.
"""

from batsched_py.errors import InputError

try:
    import gymnasium
except ImportError:
    raise InputError(
        "learning agents need gymnasium; install it with: pip install 'batsched-py[rl]'"
    ) from None

from batsched_py.experiment.value import Failures, OnFailure, OutsideFiles
from batsched_py.gym.environment import Episodes, Generated, SchedulingEnv, Windows, workload_of
from batsched_py.gym.features import JOB, MACHINE, Observation, QueueObservation, estimate, fits, size, wait
from batsched_py.gym.tasks import (
    REWARDS,
    AgentScheduler,
    Backfill,
    ChoosePolicy,
    PerJob,
    PickJob,
    Reward,
    Task,
)

__all__ = [
    "JOB",
    "MACHINE",
    "REWARDS",
    "AgentScheduler",
    "Backfill",
    "ChoosePolicy",
    "Episodes",
    "Failures",
    "Generated",
    "Observation",
    "OnFailure",
    "OutsideFiles",
    "PerJob",
    "PickJob",
    "QueueObservation",
    "Reward",
    "SchedulingEnv",
    "Task",
    "Windows",
    "estimate",
    "fits",
    "size",
    "wait",
    "workload_of",
]

for task in (PickJob, ChoosePolicy, Backfill):
    gymnasium.register(
        f"batsched_py/{task.__name__}-v0",
        "batsched_py.gym.environment:SchedulingEnv",
        kwargs={"task": task()},
    )
