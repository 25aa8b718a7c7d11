"""What an agent decides: its questions, its answers, and what is done with them; and what it is rewarded for.

A task is the same in an environment in which an agent learns, and in a simulation in which a trained one is
the scheduler. It goes by turns of the policy, each a generator that stops for every question.

Rewards are given as things happen, and add up over an episode to what the results of a simulation say: to the
negative mean over its jobs, or to the negative sum of the energy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from numpy.typing import NDArray

from batsched_py.engines import Simulation
from batsched_py.errors import InputError, PolicyError
from batsched_py.gym.features import HOUR, QUEUE, Observation, Seen
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.curve import Known
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import Easy
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

    Jobs around the window that an episode is about cost nothing. Jobs of users that the workload does not
    have, such as those that are submitted again, do.

    A cost is a function of the job that has run, the time at which it ends, and the time at which the
    workload says that it is submitted; feedback users may submit it at another time.
    """

    def __init__(self, cost: Callable[[RunningJob, float, float], float]) -> None:
        self._cost = cost

    def begin(self, simulation: Simulation, cluster: Cluster, workload: Workload) -> None:
        """Listen to ends."""
        self._cluster = cluster
        self._recorded = {job.id: job.submission_time for job in workload.jobs}
        first, last = workload.measured or (0, len(workload.jobs))
        self._around = {job.id for job in (*workload.jobs[:first], *workload.jobs[last:])}
        self._nb_measured = last - first
        self._sum = 0.0
        cluster.on_end(self._hear)

    def _hear(self, ended: RunningJob) -> None:
        if ended.job.id in self._around:
            return
        recorded = self._recorded.get(ended.job.id, ended.job.submission_time)
        self._sum -= self._cost(ended, self._cluster.now, recorded)

    def take(self) -> float:
        """The sum over those that have ended since."""
        reward, self._sum = self._sum / self._nb_measured, 0.0
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
        if number != action:
            raise PolicyError(f"the agent's action is {action}, which is no whole number")
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


@dataclass
class PickJob(Task):
    """The agent picks which of the first waiting jobs is next, until one does not fit; all wait for that one.

    An agent that picks the first is FCFS, or EASY with backfilling; one that picks the shortest is SJF. An
    action that stands for no job picks the first. D. Zhang et al., "RLScheduler", SC 2020.
    """

    slots: int = 128
    """How many waiting jobs the agent sees."""
    backfilling: bool = False
    """Whether others may start that do not delay the picked job, as in EASY."""
    committed: bool = False
    """Whether a job that was picked stays so until it starts, as in the paper; else the agent may think again
    whenever something happens."""
    observation: Observation = QUEUE

    @property
    def nb_actions(self) -> int:
        """One for each job that it sees."""
        return self.slots

    def begin(self, cluster: Cluster) -> None:
        """Nobody is picked yet."""
        self._picked: Job | None = None

    def turn(self, cluster: Cluster) -> Questions:
        """Start what is picked while it fits."""
        queue = cluster.queue
        if self._picked is not None and self._picked not in queue:
            self._picked = None  # its user took it back
        while queue:
            job = self._picked or (yield from self._ask(cluster))
            if not cluster.fits(job):
                self._picked = job if self.committed else None
                if self.backfilling and len(queue) > 1 and cluster.nb_free:
                    cluster.start_fitting(beside=cluster.reservation(job))
                return
            self._picked = None
            cluster.start(job)

    def _ask(self, cluster: Cluster) -> Generator[Any, int, Job]:
        waiting = Seen(cluster, self.slots)
        mask = np.zeros(self.slots, np.int8)
        mask[: len(waiting)] = 1
        action = yield self.show(cluster, waiting, mask)
        return waiting_at(cluster, action if action < len(waiting) else 0)


def _easy_in_orders() -> list[Scheduler]:
    return [Easy(), Easy(order="shortest"), Easy(order="smallest-area"), Easy(order="expansion-factor")]


@dataclass
class ChoosePolicy(Task):
    """The agent chooses which policy decides for a while.

    It is asked when something happens for the first time after a period is over, so an agent that always
    chooses the same is that policy. A policy must be able to go on from what others have done, as
    ``take_over`` lets it: ``conservative`` reserves anew for all who wait. One that has estimates of its own,
    such as ``easy-sjbf``, is refused: what others go by would be its estimates too.
    """

    policies: Sequence[Scheduler] = field(default_factory=_easy_in_orders)
    period: float = 6 * HOUR
    slots: int = 128
    """How many waiting jobs the agent sees."""
    observation: Observation = QUEUE

    def __post_init__(self) -> None:
        """Refuse policies that cannot be changed for others."""
        for policy in self.policies:
            if type(policy).estimate is not Scheduler.estimate:
                raise InputError(
                    f"scheduler {policy.name!r} has estimates of its own, so it cannot take turns with "
                    "others; choose among those that have none"
                )

    @property
    def nb_actions(self) -> int:
        """One for each policy."""
        return len(self.policies)

    def begin(self, cluster: Cluster) -> None:
        """Let all of them prepare, and keep the order that each wants the queue to be in."""
        self._orders: list[Order | None] = []
        for policy in self.policies:
            cluster.order_queue(None)
            policy.begin(cluster)
            self._orders.append(cluster.order)
        self._chosen = -1
        self._until = cluster.now

    def turn(self, cluster: Cluster) -> Questions:
        """Ask the agent if a period is over, then ask the policy that it has chosen."""
        if cluster.now >= self._until:
            waiting = Seen(cluster, self.slots)
            action = yield self.show(cluster, waiting, np.ones(self.nb_actions, np.int8))
            self._until = cluster.now + self.period
            if action != self._chosen:
                self._chosen = action
                cluster.order_queue(self._orders[action])
                self.policies[action].take_over(cluster)
        self.policies[self._chosen].schedule(cluster)


@dataclass
class Backfill(Task):
    """Jobs start first come, first served; the agent says who is backfilled while the first one waits.

    It is offered the jobs that would not delay the first, one after another. The last action is to stop, as
    is any that is not offered. An agent that always takes the first is EASY.
    """

    slots: int = 128
    """How many waiting jobs the agent sees."""
    observation: Observation = QUEUE

    @property
    def nb_actions(self) -> int:
        """One for each job that it sees, and to stop."""
        return self.slots + 1

    def turn(self, cluster: Cluster) -> Questions:
        """Start from the head while it fits, reserve for the head, then backfill."""
        queue = cluster.queue
        while queue and cluster.fits(queue.head):
            cluster.start(queue.head)
        if len(queue) < 2 or not cluster.nb_free:
            return
        reservation = cluster.reservation(queue.head)
        while offered := {job.id for job in cluster.fitting(_any, beside=reservation)}:
            mask = np.zeros(self.nb_actions, np.int8)
            for place, job in enumerate(islice(queue, self.slots)):
                mask[place] = job.id in offered
            if not mask.any():
                return  # the jobs that could be backfilled are too far behind to be seen
            mask[-1] = 1
            action = yield self.show(cluster, Seen(cluster, self.slots), mask)
            if action == self.slots or not mask[action]:
                return
            chosen = waiting_at(cluster, action)
            for job in cluster.fitting(_any, beside=reservation):
                if job is chosen:
                    reservation.admit(cluster.start(job))
                    break


def _any(size: int, estimate: float) -> bool:
    """Whether to look at a job; without a condition, those that were not chosen before are not looked at."""
    return True


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
