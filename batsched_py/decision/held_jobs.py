"""What becomes of jobs that wait for other jobs: they join the queue in time, or are rejected."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

from batsched_py.errors import Deadlock
from batsched_py.ledger.holds import Holds, Release
from batsched_py.ledger.queue import JobQueue
from batsched_py.ledger.running import Running
from batsched_py.ledger.waiting import Held, WaitingJobs
from batsched_py.protocol.jobs import TICK, Job
from batsched_py.schedulers.cluster import Cluster


class Account(Protocol):
    """What a ledger has for jobs that wait for others."""

    holds: Holds
    waiting: WaitingJobs
    queue: JobQueue
    running: Running

    def join(self, job: Job) -> None:
        """A job that was held joins the queue."""


class HeldJobs:
    """Looks after the jobs of a ledger that wait for others."""

    def __init__(
        self,
        ledger: Account,
        cluster: Cluster,
        listeners: Sequence[Callable[[Release], None]],
        remembers_ends: bool,
    ) -> None:
        self._ledger = ledger
        self._cluster = cluster
        self._listeners = listeners
        self.holds = ledger.holds
        """Which they are, and why."""
        self.holds.begin(remembers_ends)
        self._calls_at = inf
        """When the next call will come that was asked for."""

    def settle(self, now: float) -> list[Job]:
        """Reject jobs whose conditions can never be met, and let those join the queue whose conditions are.

        A rejected job is over, which others may have waited for. The jobs that have joined are returned.
        """
        holds = self.holds
        while (held := holds.take_hopeless()) is not None:
            self._release(held, None)
            self._cluster.reject(held.job)
        ready = holds.take_ready()
        for held in ready:
            self._ledger.join(held.job)
            if now > held.job.submission_time:
                self._release(held, now)
        return [held.job for held in ready]

    def _release(self, held: Held, eligible: float | None) -> None:
        reason = held.reason or "a turn in its array"
        if self._cluster.heeded:
            fate = "rejected" if eligible is None else "joins the queue"
            self._cluster.remark(held.job, f"{fate}: {reason}")
        for listener in self._listeners:
            listener(Release(held.job, eligible, reason))

    def ask_for_call(self) -> None:
        """Ask to be called when enough time will have passed since an end, if a job waits for that."""
        time = max(self.holds.next_time, self._cluster.now + TICK)
        if self._calls_at <= self._cluster.now:
            self._calls_at = inf
        if time < self._calls_at:
            self._calls_at = time
            self._cluster.call_at(time)

    def check(self, given_up: bool) -> None:
        """Nobody will submit jobs any more; if nothing else can happen, the jobs that are held never start.

        With ``given_up``, users may have left without submitting all of their jobs. Jobs that wait for these
        are rejected.
        """
        ledger, holds = self._ledger, self.holds
        waiting = ledger.queue or any(not isinstance(apart, Held) for apart in ledger.waiting.apart.values())
        if waiting or len(ledger.running) or holds.next_time != inf:
            return
        if given_up and holds.abandon():
            return
        first = holds.held[0]
        raise Deadlock(
            f"deadlock at {self._cluster.now:f}: {len(holds.held)} jobs wait for others for ever, "
            f"{first.job.id} first: {holds.why(first)}"
        )
