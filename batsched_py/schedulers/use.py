"""How much users have used the machine, where old use counts less than new."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from batsched_py.ledger.queue import Floats, Integers, Waiting
from batsched_py.ledger.running import RunningJob

if TYPE_CHECKING:
    from batsched_py.schedulers.cluster import Cluster

#: When so many half-lives are over, time is counted anew, lest weights become too large.
_MOST = 500


class Use:
    """The host-seconds of each user, of which those of a half-life ago count half.

    Instead of making old use weigh less, new use is made to weigh more, by the same factor for everyone: a
    host that is used from one time to another costs the difference of their weights. So the use of a user is
    ``paid + hosts * weight(now)``, where only a start or an end changes ``paid`` and ``hosts``.
    """

    def __init__(self, cluster: Cluster, half_life: float) -> None:
        self._cluster = cluster
        self._half_life = half_life
        self._epoch = 0.0
        self._shares: dict[str | None, int] = {}
        """Where each user stands in the next two columns."""
        self._hosts: Floats = np.zeros(64)
        self._paid: Floats = np.zeros(64)
        self._share_of: Integers = np.zeros(0, np.int64)
        """The same by the queue's numbers of users."""
        for running in cluster.running:
            self._started(running)
        cluster.on_start(self._started)
        cluster.on_end(self._ended)
        cluster.on_resize(self._resized)

    def __call__(self, waiting: Waiting, now: float) -> Floats:
        """The host-seconds of each job's user up to now."""
        return self.weighted(waiting, now) / self._weight(now) * (self._half_life / log(2))

    def weighted(self, waiting: Waiting, now: float) -> Floats:
        """The same times a factor, which is the same for all users at a time."""
        users, known = waiting.user, self._cluster.queue.users
        if len(known) > len(self._share_of):
            self._share_of = np.array([self._share(user) for user in known])
        shares, weight = self._share_of[users], self._weight(now)
        use: Floats = self._paid[shares] + self._hosts[shares] * weight
        return use

    def _started(self, running: RunningJob) -> None:
        self._change(running, running.nb_hosts, self._weight(running.start))

    def _ended(self, ended: RunningJob) -> None:
        self._change(ended, -ended.nb_hosts, self._weight(self._cluster.now))

    def _resized(self, before: RunningJob, after: RunningJob) -> None:
        self._change(after, after.nb_hosts - before.nb_hosts, self._weight(self._cluster.now))

    def _change(self, running: RunningJob, hosts: int, weight: float) -> None:
        """The user of a job has so many hosts more from a time of this weight on."""
        share = self._share(running.job.user)
        self._hosts[share] += hosts
        self._paid[share] -= hosts * weight

    def _share(self, user: str | None) -> int:
        share = self._shares.setdefault(user, len(self._shares))
        if share == len(self._hosts):
            self._hosts, self._paid = (
                np.concatenate((column, np.zeros_like(column))) for column in (self._hosts, self._paid)
            )
        return share

    def _weight(self, time: float) -> float:
        """What a host has cost from the beginning until a time, up to a factor."""
        halvings = (time - self._epoch) / self._half_life
        while halvings > _MOST:
            self._paid *= 0.5**_MOST
            self._epoch += _MOST * self._half_life
            halvings -= _MOST
        return float(2.0**halvings)
