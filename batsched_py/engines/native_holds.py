"""Jobs that wait for others in a simulation by the library: it asks the classes of the Python engine.

The library tells of each job that waits for others, and of those that others wait for, what happens to it. It
asks for more only where something has happened that may let a job go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from batsched_py.decision.held_jobs import HeldJobs
from batsched_py.ledger.holds import Holds, Release
from batsched_py.ledger.waiting import WaitingJobs
from batsched_py.protocol.dependencies import depends
from batsched_py.protocol.jobs import Job

if TYPE_CHECKING:
    from batsched_py.engines.native_cluster import Cluster


class NativeHolds:
    """Which jobs are held, and what becomes of them."""

    def __init__(
        self,
        engine: Any,
        cluster: Cluster,
        listeners: Sequence[Callable[[Release], None]],
        remembers_ends: bool,
        have_users: bool,
    ) -> None:
        self._engine = engine
        self._cluster = cluster
        self._have_users = have_users
        self.queue, self.running = engine.queue(), engine.running()
        self.waiting = WaitingJobs()
        """Those that are held; the library has all others."""
        self.holds = Holds(self.waiting, self._active)
        self._held = HeldJobs(self, cluster, listeners, remembers_ends)

    def _active(self) -> Iterator[Job]:
        """The jobs that are submitted and not over."""
        yield from [running.job for running in self.running]
        yield from self.queue
        yield from [held.job for held in self.holds.held]

    def join(self, job: Job) -> None:
        """A job that was held joins the queue."""
        self._engine.join(job.id)

    def why_stuck(self) -> str | None:
        """Why nothing more can happen, if jobs are held."""
        held = self.holds.held
        if not held:
            return None
        return f"{len(held)} jobs are held, {held[0].job.id} first: {self.holds.why(held[0])}"

    # --- what the library calls ------------------------------------------------------------------

    @property
    def state(self) -> tuple[bool, bool, float]:
        """Whether any job is held, whether some may go, and when enough time will have passed for another."""
        return bool(self.waiting.apart), self.holds.unsettled, self.holds.next_time

    def submitted(self, job: Job, could_be_granted: bool) -> bool:
        """A job is submitted; whether it is held."""
        self.holds.submitted(job)
        return could_be_granted and depends(job) and self.holds.hold(job) is not None

    def started(self, job: Job) -> None:
        """A job has started."""
        self.holds.started(job, self._cluster.now)

    def over(self, job: Job, success: bool) -> None:
        """A job has ended, or was rejected."""
        self.waiting.apart.pop(job.id, None)
        self.holds.over(job, self._cluster.now, success)

    def comes_back(self, job: Job, name: str, next_name: str) -> None:
        """An execution of a job has ended, and it begins again under another name."""
        self.holds.comes_back(job, name, next_name)

    def wake(self) -> None:
        """The time has come for which a job waits."""
        self.holds.wake(self._cluster.now)

    def settle(self) -> bool:
        """Reject jobs that can never start, and let others join the queue; whether any has."""
        return bool(self._held.settle(self._cluster.now))

    def look_after(self, more_may_come: bool) -> None:
        """See to it that held jobs are thought of in time; something must be to come that lets them go."""
        self._held.ask_for_call()
        if not more_may_come:
            self._held.check(given_up=self._have_users)
