"""The waiting jobs that an agent sees."""

from __future__ import annotations

from batsched_py.ledger.queue import Floats, Integers, Waiting
from batsched_py.schedulers.cluster import Cluster


class Seen:
    """The jobs that wait longest, as columns of numbers in submission order; each is fetched once.

    Features, masks and tasks look at the same few columns many times until the agent is asked.
    """

    __slots__ = ("_waiting", "estimate", "size", "submission")

    def __init__(self, cluster: Cluster, slots: int) -> None:
        self._waiting: Waiting = cluster.queue.first(slots)
        self.size: Integers = self._waiting.size
        """How many hosts each job asks for."""
        self.estimate: Floats = self._waiting.estimate
        """How long each job is expected to run."""
        self.submission: Floats = self._waiting.submission
        """When each job was submitted."""

    def __len__(self) -> int:
        return len(self.size)

    @property
    def user(self) -> Integers:
        """Who submitted each job, by number in :attr:`JobQueue.users`."""
        return self._waiting.user
