"""Policies around policies: ``sleeping(easy)`` is EASY on hosts that sleep when they are idle.

A wrapper lets the policy inside decide, and shows it the machine through a *view*: a cluster that gives some
other answers, such as that a job does not fit although enough hosts are free. The Python engine runs it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from batsched_py.ledger.kinds import check_job
from batsched_py.ledger.profile import AvailabilityProfile, Limit, Reservation, what_comes
from batsched_py.ledger.running import RunningJob
from batsched_py.plugins import LayeredRegistry
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster

NOWHERE = HostSet()


class View(Cluster):
    """A cluster as the policy inside a wrapper sees it.

    It shares everything with the cluster that it looks at, and a subclass changes some of the answers.
    """

    def limit(self, job: Job) -> Limit | None:
        """What a job has to wait for beside hosts."""
        return None

    def reservation(self, job: Job) -> Reservation:
        """When the job can start at the latest, on free hosts and on those that can be woken for it."""
        check_job(job)
        ledger, limit, now = self._ledger, self.limit(job), self.now
        if ledger.nodes is not None:
            return ledger.nodes.reservation(job, now, self.running, ledger.unavailable, self._to_wake, limit)
        extra, time = self.nb_free + len(self._to_wake) - job.size, now
        coming = what_comes(now, self.running, () if limit is None else limit.changes())
        while extra < 0 or not (limit is None or limit.suffices(time)):
            change = next(coming, None)
            if change is None:
                return Reservation(job, now, inf, 0)
            if not isinstance(change, RunningJob):
                time = change
                continue
            extra += ledger.usable(change)
            if limit is not None:
                limit.job_ends(change)
            time = max(change.expected_end, now)
        return Reservation(job, now, time, extra if limit is None else min(extra, limit.extra(time)))

    def profile(self) -> AvailabilityProfile:
        """How many hosts will be free, and when, with those that can be woken."""
        profile = super().profile()
        profile.give(self.now, inf, len(self._to_wake))
        return profile


def look_through(view: type[View], cluster: Cluster) -> View:
    """A view of a cluster, which may be one itself."""
    if isinstance(cluster, view):
        return cluster
    cls: Any = type(view.__name__, (view, type(cluster)), {})
    looking: View = cls.__new__(cls)
    object.__setattr__(looking, "__dict__", cluster.__dict__)
    return looking


@dataclass(kw_only=True)
class Wrapper(Scheduler):
    """A policy that changes what another one sees, or adds something to what it decides."""

    around: ClassVar[str] = "easy"
    """What it is around when nothing is said."""
    view: ClassVar[type[View]] = View
    """How the policy inside sees the machine."""
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

    def begin(self, cluster: Cluster) -> None:
        """Let the policy inside begin."""
        self.seen = look_through(self.view, cluster)
        """What the policy inside sees."""
        self.inner.begin(self.seen)

    def take_over(self, cluster: Cluster) -> None:
        """Let the policy inside go on from what others have decided."""
        self.inner.take_over(self.seen)

    def estimate(self, job: Job) -> float:
        """What the policy inside expects."""
        return self.inner.estimate(job)

    @abstractmethod
    def schedule(self, cluster: Cluster) -> None:
        """Let the policy inside decide, and do before or after it what else there is to do."""
        self.inner.schedule(self.seen)


class Schedulers(LayeredRegistry[Scheduler]):
    """The known policies, which may be named one around the other, as in ``outer(inner)``."""

    wrapper = Wrapper
    example = "sleeping(easy)"
