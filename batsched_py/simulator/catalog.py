"""The profiles that the built-in Batsim can run, out of those that jobs may use."""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.errors import InputError, RuleBroken
from batsched_py.ledger.registry import Registry
from batsched_py.protocol.events import Settings
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Parallel, Profile
from batsched_py.simulator.runnable import as_registered, refusal
from batsched_py.workload.model import Workload


class Catalog(Registry):
    """A registry that also refuses what cannot be simulated here."""

    def __init__(self, workloads: Sequence[Workload], settings: Settings, ignore_communication: bool) -> None:
        super().__init__({workload.name: workload.profiles for workload in workloads}, settings)
        self._ignore_communication = ignore_communication
        for workload in workloads:
            self._check(workload)
            if settings.dynamic_jobs:
                self.meet(job.id for job in workload.jobs)

    def _check(self, workload: Workload) -> None:
        """Look at every profile, so that mistakes are found before the simulation begins."""
        for name, profile in workload.profiles.items():
            if (fault := self._fault(workload.name, name, profile)) is not None:
                raise InputError(fault)
        for name, profile in workload.profiles.items():
            if profile.parts:
                self._check_parts(workload.name, name, ())
        if any(isinstance(profile, Parallel) for profile in workload.profiles.values()):
            for job in workload.jobs:
                if (fault := self._misfit(job)) is not None:
                    raise InputError(f"workload {workload.name!r}: {fault}")

    def _fault(self, workload: str, name: str, profile: Profile) -> str | None:
        fault = refusal(profile, self._ignore_communication)
        return None if fault is None else f"workload {workload!r}: profile {name!r} {fault}"

    def _check_parts(self, workload: str, name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise InputError(f"workload {workload!r}: profile {name!r} is part of itself")
        for part in dict.fromkeys(self.profiles[workload][name].parts):
            if part not in self.profiles[workload]:
                raise InputError(
                    f"workload {workload!r}: profile {name!r} uses {part!r}, which does not exist"
                )
            self._check_parts(workload, part, (*above, name))

    def _misfit(self, job: Job) -> str | None:
        """What is wrong between a job and its profile, if anything is."""
        profile = self.profiles[job.workload][job.profile]
        if isinstance(profile, Parallel) and len(profile.work) != job.size:
            return (
                f"job {job.id} asks for {job.size} hosts, its profile {job.profile!r} is made for "
                f"{len(profile.work)}"
            )
        return None

    def add_profile(self, workload: str, name: str, profile: Profile) -> None:
        """Make a profile known."""
        profile = as_registered(profile)
        super().add_profile(workload, name, profile)
        if (fault := self._fault(workload, name, profile)) is not None:
            raise RuleBroken(fault)

    def add_job(self, job: Job) -> None:
        """Make a job known."""
        super().add_job(job)
        if (fault := self._misfit(job)) is not None:
            raise RuleBroken(fault)

    def check_bytes(self, sender: str) -> None:
        """Something sends bytes that is no profile."""
        if not self._ignore_communication:
            raise RuleBroken(
                f"{sender} sends bytes, and the built-in Batsim has no network model; "
                "use --ignore-communication to leave it out, or a real Batsim"
            )
