"""Jobs and profiles that the decision process makes known while the simulation runs."""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.errors import RuleBroken
from batsched_py.protocol.events import RegisterProfile, Settings
from batsched_py.protocol.jobs import Job
from batsched_py.simulator.catalog import Catalog
from batsched_py.workload.model import Workload


class Registration:
    """Whether the decision process may make jobs known, and under which names it may not any more."""

    def __init__(self, workloads: Sequence[Workload], settings: Settings, catalog: Catalog) -> None:
        self.is_open = settings.dynamic_jobs
        self._allowed = settings.dynamic_jobs
        self._catalog = catalog
        static = workloads if settings.dynamic_jobs else ()
        self._met = {job.id for workload in static for job in workload.jobs}

    def add_profile(self, decision: RegisterProfile) -> None:
        """Make a profile known."""
        self._check_open()
        self._catalog.register(decision.workload, decision.name, decision.profile)

    def add_job(self, job: Job) -> None:
        """Make a job known."""
        self._check_open()
        if job.id in self._met:
            raise RuleBroken(f"job {job.id} exists already")
        self._catalog.check_usable(job)
        self._met.add(job.id)

    def _check_open(self) -> None:
        if not self._allowed:
            raise RuleBroken("dynamic jobs are not enabled (--enable-dynamic-jobs)")
        if not self.is_open:
            raise RuleBroken("registration was declared finished")
