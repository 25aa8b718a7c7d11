"""The profiles that jobs may use, and the names that are used up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from batsched_py.errors import InputError, RuleBroken
from batsched_py.protocol.events import Settings
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Composed, Parallel, Profile
from batsched_py.simulator.runnable import as_registered, refusal
from batsched_py.workload.model import Workload


class Catalog:
    """All workloads' profiles, by workload and name.

    As in Batsim, a profile that may not be reused is dropped when the first job that used it is over, and
    its name is then dead for good. Jobs that were announced before that keep what they do.
    """

    def __init__(self, workloads: Sequence[Workload], settings: Settings, ignore_communication: bool) -> None:
        self._collect = settings.dynamic_jobs and not settings.profile_reuse
        self._ignore_communication = ignore_communication
        self._profiles: dict[str, dict[str, Profile]] = {w.name: w.profiles for w in workloads}
        self._dynamic: defaultdict[str, set[str]] = defaultdict(set)
        self._dead: defaultdict[str, set[str]] = defaultdict(set)
        for workload in workloads:
            self._check(workload)

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
        for part in dict.fromkeys(self.get(workload, name).parts):
            if part not in self._profiles[workload]:
                raise InputError(
                    f"workload {workload!r}: profile {name!r} uses {part!r}, which does not exist"
                )
            self._check_parts(workload, part, (*above, name))

    def _misfit(self, job: Job) -> str | None:
        """What is wrong between a job and its profile, if anything is."""
        profile = self.get(job.workload, job.profile)
        if isinstance(profile, Parallel) and len(profile.work) != job.size:
            return (
                f"job {job.id} asks for {job.size} hosts, its profile {job.profile!r} is made for "
                f"{len(profile.work)}"
            )
        return None

    def get(self, workload: str, name: str) -> Profile:
        """The profile ``name`` of a workload."""
        return self._profiles[workload][name]

    def everything(self) -> dict[str, dict[str, Profile]]:
        """All profiles, by workload and name."""
        return self._profiles

    def is_dynamic(self, job: Job) -> bool:
        """Whether the job's profile was registered while the simulation ran."""
        return job.profile in self._dynamic[job.workload]

    def register(self, workload: str, name: str, profile: Profile) -> None:
        """Add a profile while the simulation runs."""
        if name in self._profiles.get(workload, {}) or name in self._dead[workload]:
            raise RuleBroken(f"profile {name!r} already existed in workload {workload!r}")
        profile = as_registered(profile)
        if (fault := self._fault(workload, name, profile)) is not None:
            raise RuleBroken(fault)
        self._profiles.setdefault(workload, {})[name] = profile
        self._dynamic[workload].add(name)

    def check_usable(self, job: Job) -> None:
        """Raise unless a job may be registered with this profile."""
        if job.workload not in self._profiles:
            raise RuleBroken(f"workload {job.workload!r} does not exist")
        if job.profile in self._dead[job.workload]:
            raise RuleBroken(f"profile {job.profile!r} was dropped when the first job that used it was over")
        if job.profile not in self._profiles[job.workload]:
            raise RuleBroken(f"profile {job.profile!r} does not exist in workload {job.workload!r}")
        if (fault := self._misfit(job)) is not None:
            raise RuleBroken(fault)

    def job_is_over(self, job: Job) -> None:
        """Drop the job's profile with all its parts, unless profiles may be reused."""
        if self._collect:
            self._drop(job.workload, job.profile)

    def _drop(self, workload: str, name: str) -> None:
        if name in self._dead[workload] or name not in self._profiles[workload]:
            return
        self._dead[workload].add(name)
        profile = self.get(workload, name)
        if isinstance(profile, Composed):
            for part in profile.parts:
                self._drop(workload, part)
        if name in self._dynamic[workload]:
            self._dynamic[workload].remove(name)
            del self._profiles[workload][name]
