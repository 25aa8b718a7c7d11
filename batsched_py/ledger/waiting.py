"""Where a waiting job is: in the queue, or apart from it with a reason."""

from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct

from batsched_py.ledger.queue import JobQueue
from batsched_py.protocol.jobs import Job


class Apart(Struct, eq=False):
    """A job that waits and that policies do not see; its class is the reason."""

    job: Job


class Unfit(Apart, eq=False):
    """It asks for no host, or for what the machine does not have; it will be rejected."""


class Deferred(Apart, eq=False):
    """A policy keeps it from the queue for a while."""

    estimate: float
    """How long it is expected to run."""


class Held(Apart, eq=False):
    """It waits for other jobs."""

    number: int
    """Its place in the order of submission."""
    nb_open: int
    """How many of its conditions are neither met nor known to be out of reach."""
    any: bool
    """Whether one met condition is enough."""
    met: bool | None = None
    """Whether its conditions are met, once that is known."""
    reason: str = ""
    """What decided it, in words."""


Kind = TypeVar("Kind", bound=Apart)


class WaitingJobs:
    """All jobs that wait: those in the queue, which policies see, and the others."""

    def __init__(self) -> None:
        self.queue = JobQueue()
        self.apart: dict[str, Apart] = {}
        """In the order in which they were set apart."""
        self.nb_unfit = 0
        """How many of them are unfit."""

    def __contains__(self, job_id: str) -> bool:
        return self.queue.get(job_id) is not None or job_id in self.apart

    def get(self, job_id: str) -> Job | None:
        """The waiting job of this name, if there is one."""
        job = self.queue.get(job_id)
        return self.apart[job_id].job if job is None and job_id in self.apart else job

    def set_apart(self, apart: Kind) -> Kind:
        """A job waits apart from the queue."""
        self.nb_unfit += isinstance(apart, Unfit)
        self.apart[apart.job.id] = apart
        return apart

    def all(self, kind: type[Kind]) -> Iterator[Kind]:
        """Those that wait apart from the queue for one reason."""
        return (apart for apart in self.apart.values() if isinstance(apart, kind))

    def is_held(self, job_id: str) -> bool:
        """Whether a job waits for others."""
        return isinstance(self.apart.get(job_id), Held)

    def defer(self, job: Job) -> None:
        """A job is kept from the queue."""
        self.set_apart(Deferred(job, self.queue._discard(job.id)))

    def resume(self, job_id: str) -> bool:
        """A job that was kept from the queue joins it again, at its end; whether it still waits for that."""
        deferred = self.apart.get(job_id)
        if not isinstance(deferred, Deferred):
            return False
        del self.apart[job_id]
        self.queue._append(deferred.job, deferred.estimate)
        return True

    def leave(self, job: Job) -> float:
        """A job waits no longer; how long it is expected to run."""
        apart = self.apart.pop(job.id, None) if self.apart else None
        if apart is None:
            return self.queue._discard(job.id)
        self.nb_unfit -= isinstance(apart, Unfit)
        return apart.estimate if isinstance(apart, Deferred) else job.walltime
