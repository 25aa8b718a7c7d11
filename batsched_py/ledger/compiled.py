"""The compiled classes of the ledger."""

from __future__ import annotations

from typing import Any

from batsched_py import _native
from batsched_py._native import FreeHosts, Names
from batsched_py.ledger import ledger, queue, running

__all__ = ["FreeHosts", "JobQueue", "Ledger", "Names", "QueueBook", "Running", "RunningBook"]


class JobQueue(_native.JobQueue, queue.JobQueue):
    """Waiting jobs, in submission order or in the one that the policy has chosen."""

    def __init__(self) -> None:
        self.users = {}


class QueueBook(_native.QueueBook, queue.QueueBook):
    """Writes down who joins a queue and who leaves it, and finds the jobs that can be started."""

    def __init__(self, queue: queue.JobQueue) -> None:
        self.queue = queue


class Running(_native.Running, running.Running):
    """The running jobs, ordered by expected end, for everybody to look at."""

    def __init__(self) -> None:
        """There are none."""


class RunningBook(_native.RunningBook, running.RunningBook):
    """Writes down which jobs begin to run, which have ended, and when the others are expected to."""

    def __init__(self, running: running.Running) -> None:
        self._running = running


class Ledger(_native.Ledger, ledger.Ledger):
    """Who waits, who runs where, and which hosts are free, away, asleep or switching."""

    _Queue, _QueueBook = JobQueue, QueueBook
    _Running, _RunningBook = Running, RunningBook
    _FreeHosts = FreeHosts

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._for_files_only, self._collects = self.registry.for_files_only, self.registry.collects
        self._plain_estimate = self.estimate
