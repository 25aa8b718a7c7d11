"""What an agent is rewarded for.

Rewards are given as things happen, and add up over an episode to what the results of a simulation say: to the
negative mean over its jobs, or to the negative sum of the energy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from batsched_py.engines import Simulation
from batsched_py.errors import InputError
from batsched_py.ledger.running import RunningJob
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.outputs import SLOWDOWN_BOUND
from batsched_py.workload.model import Workload

#: Joules in a kilowatt-hour.
KWH = 3.6e6


class Reward(ABC):
    """What an agent is rewarded for. One of your own has these two methods."""

    @abstractmethod
    def begin(self, simulation: Simulation, cluster: Cluster, workload: Workload) -> None:
        """An episode begins: this workload is simulated."""

    @abstractmethod
    def take(self) -> float:
        """What has come together since this was last asked."""


class PerJob(Reward):
    """The negative cost of each job that ends, divided by the number of jobs of the episode.

    A cost is a function of the job that has run, the time at which it ends, and the time at which the
    workload says that it is submitted; feedback users may submit it at another time.
    """

    def __init__(self, cost: Callable[[RunningJob, float, float], float]) -> None:
        self._cost = cost

    def begin(self, simulation: Simulation, cluster: Cluster, workload: Workload) -> None:
        """Listen to ends."""
        self._cluster = cluster
        self._recorded = {job.id: job.submission_time for job in workload.jobs}
        self._sum = 0.0
        cluster.on_end(self._hear)

    def _hear(self, ended: RunningJob) -> None:
        recorded = self._recorded.get(ended.job.id, ended.job.submission_time)
        self._sum -= self._cost(ended, self._cluster.now, recorded)

    def take(self) -> float:
        """The sum over those that have ended since."""
        reward, self._sum = self._sum / len(self._recorded), 0.0
        return reward


class Energy(Reward):
    """The negative energy that the hosts draw, in kilowatt-hours; the environment needs ``energy=True``."""

    def begin(self, simulation: Simulation, cluster: Cluster, workload: Workload) -> None:
        """Read the meter."""
        self._simulation = simulation
        self._before = simulation.drawn_joules

    def take(self) -> float:
        """Read the meter again."""
        before, self._before = self._before, self._simulation.drawn_joules
        return (before - self._before) / KWH


def waiting_time(ended: RunningJob, now: float, recorded: float) -> float:
    """Seconds from the submission to the start."""
    return ended.start - ended.job.submission_time


def turnaround_time(ended: RunningJob, now: float, recorded: float) -> float:
    """Seconds from the submission to the end."""
    return now - ended.job.submission_time


def bounded_slowdown(ended: RunningJob, now: float, recorded: float) -> float:
    """Turnaround time over run time, which counts as ten seconds at least; never less than 1."""
    run_time = max(now - ended.start, SLOWDOWN_BOUND)
    return max(1.0, (now - ended.job.submission_time) / run_time)


def lateness(ended: RunningJob, now: float, recorded: float) -> float:
    """Seconds by which the user has submitted the job later than was recorded."""
    return ended.job.submission_time - recorded


#: The known rewards.
REWARDS: dict[str, Callable[[], Reward]] = {
    "bounded-slowdown": lambda: PerJob(bounded_slowdown),
    "waiting-time": lambda: PerJob(waiting_time),
    "turnaround-time": lambda: PerJob(turnaround_time),
    "lateness": lambda: PerJob(lateness),
    "energy": Energy,
}


def reward_of(given: str | Reward) -> Reward:
    """The reward of this name, or the one that is given."""
    if isinstance(given, Reward):
        return given
    if given not in REWARDS:
        raise InputError(f"there is no reward {given!r}; known are {', '.join(REWARDS)}, or give a Reward")
    return REWARDS[given]()
