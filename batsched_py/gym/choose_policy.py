"""Choosing a policy for the next period.

Such schedulers are known as self-tuning: A. Streit, "A Self-Tuning Job Scheduler Family with Dynamic Policy
Switching", JSSPP 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from batsched_py.errors import InputError
from batsched_py.gym.features import HOUR
from batsched_py.gym.observations import QUEUE, Observation
from batsched_py.gym.seen import Seen
from batsched_py.gym.tasks import Questions, Task
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import Easy


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
