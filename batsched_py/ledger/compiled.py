"""The compiled classes of the ledger."""

from __future__ import annotations

from typing import Any

from batsched_py import _native
from batsched_py._native import FreeHosts
from batsched_py.ledger import ledger, queue, running

__all__ = ["FreeHosts", "JobQueue", "Ledger", "Running"]


class JobQueue(_native.JobQueue, queue.JobQueue):
    """Waiting jobs, in submission order or in the one that the policy has chosen."""

    def __init__(self) -> None:
        self.users = {}


class Running(_native.Running, running.Running):
    """The running jobs, ordered by expected end."""

    def __init__(self) -> None:
        """There are none."""


class Ledger(_native.Ledger, ledger.Ledger):
    """Who waits, who runs where, and which hosts are free, away, asleep or switching."""

    _Queue, _Running, _FreeHosts = JobQueue, Running, FreeHosts

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._for_files_only, self._collects = self.registry.for_files_only, self.registry.collects
        self._plain_estimate = self.estimate
