"""A cluster by hand: a ledger, and a policy's window onto it."""

from __future__ import annotations

from collections.abc import Callable

from batsched_py.core import fastest
from batsched_py.ledger.ledger import Ledger
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.jobs import Host, Job
from batsched_py.schedulers import Cluster
from batsched_py.schedulers.cluster import Said


class Workbench:
    """So many hosts, and whatever a test lets happen on them."""

    def __init__(self, hosts: int, estimate: Callable[[Job], float] | None = None, now: float = 0.0) -> None:
        begins = SimulationBegins([Host(number, f"h{number}") for number in range(hosts)])
        self.ledger = fastest(Ledger)(begins)
        if estimate is not None:
            self.ledger.estimate = estimate
        self.said = Said()
        self.cluster = fastest(Cluster)(self.ledger, self.said, begins.hosts)
        self.cluster.now = now

    def submit(self, *jobs: Job) -> None:
        """Jobs join the queue."""
        for job in jobs:
            self.ledger.submit(job)

    def start(self, *jobs: Job) -> None:
        """Jobs join the queue and are started at once."""
        for job in jobs:
            self.ledger.submit(job)
            self.cluster.start(job)

    def end(self, job: Job) -> None:
        """A job leaves its hosts."""
        ended = self.ledger.release(job.id)
        assert ended is not None
        for listener in self.said.listeners:
            listener(ended)
