"""Policies around policies: ``sleeping(easy)`` is EASY on hosts that sleep when they are idle.

A wrapper lets the policy inside decide, and does something before or after that. What it has to say about the
machine it says to the cluster: that a limit narrows it, or that reservations count on hosts that sleep. The
Python engine runs it; of ``sleeping(easy)`` the library has a copy.
"""

from abc import abstractmethod
from typing import ClassVar

from batsched_py.errors import PolicyError
from batsched_py.plugins import LayeredRegistry
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


class Wrapper(Scheduler):
    """A policy that adds something to what another one decides, or narrows what it can do."""

    around: ClassVar[str] = "easy"
    """What it is around when nothing is said."""
    narrows_the_machine = True
    inner: ClassVar[Scheduler]
    """What it is around; each instance has its own."""

    @property
    def reads_profiles(self) -> bool:  # type: ignore[override]
        """Whether the policy inside does."""
        return self.inner.reads_profiles

    @property
    def requeues(self) -> bool:  # type: ignore[override]
        """Whether the policy inside does."""
        return self.inner.requeues

    @property
    def chooses_sizes(self) -> bool:  # type: ignore[override]
        """Whether the policy inside does."""
        return self.inner.chooses_sizes

    @property
    def leaves_jobs(self) -> bool:
        """Whether either policy does."""
        return self.stuck == "pending" or self.inner.leaves_jobs

    def why_pending(self, job: Job) -> str:
        """Why the policy inside does not start a job."""
        return self.inner.why_pending(job)

    def begin(self, cluster: Cluster) -> None:
        """Let the policy inside begin."""
        if self.inner.stands_alone:
            raise PolicyError(
                f"scheduler {self.name!r} cannot go around {self.inner.name!r}, which heeds neither limits "
                "nor hosts that sleep; take the one or the other"
            )
        self.inner.begin(cluster)

    def take_over(self, cluster: Cluster) -> None:
        """Let the policy inside go on from what others have decided."""
        self.inner.take_over(cluster)

    def estimate(self, job: Job) -> float:
        """What the policy inside expects."""
        return self.inner.estimate(job)

    @abstractmethod
    def schedule(self, cluster: Cluster) -> None:
        """Let the policy inside decide, and do before or after it what else there is to do."""
        self.inner.schedule(cluster)


class Schedulers(LayeredRegistry[Scheduler]):
    """The known policies, which may be named one around the other, as in ``outer(inner)``."""

    wrapper = Wrapper
    example = "sleeping(easy)"
