"""The profiles that jobs may use, and the names that are used up."""

from __future__ import annotations

from collections.abc import Iterable

from batsched_py.errors import InputError, RuleBroken
from batsched_py.protocol.events import Settings
from batsched_py.protocol.jobs import Job, Profile
from batsched_py.simulator.profiles import Composed, Task, read_profile
from batsched_py.workload.model import Workload


class Catalog:
    """All workloads' profiles, by workload and name.

    As in Batsim, a profile that may not be reused is dropped when the first job that used it is over, and
    its name is then dead for good. Jobs that were announced before that keep what they do.
    """

    def __init__(self, workloads: Iterable[Workload], settings: Settings, ignore_communication: bool) -> None:
        self._collect = settings.dynamic_jobs and not settings.profile_reuse
        self._ignore_communication = ignore_communication
        self._raw: dict[str, dict[str, Profile]] = {w.name: w.profiles for w in workloads}
        self._understood: dict[str, dict[str, Task | Composed]] = {name: {} for name in self._raw}
        self._dynamic: set[tuple[str, str]] = set()
        self._dead: set[tuple[str, str]] = set()

    def check(self) -> None:
        """Understand every profile, so that mistakes are found before the simulation begins."""
        for workload, profiles in self._raw.items():
            for name in profiles:
                self._check_tree(workload, name, ())

    def _check_tree(self, workload: str, name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise InputError(f"workload {workload!r}: profile {name!r} is part of itself")
        profile = self.get(workload, name)
        if isinstance(profile, Composed):
            for child in dict.fromkeys(profile.sequence):
                if child not in self._raw[workload]:
                    raise InputError(
                        f"workload {workload!r}: profile {name!r} uses {child!r}, which does not exist"
                    )
                self._check_tree(workload, child, (*above, name))

    def get(self, workload: str, name: str) -> Task | Composed:
        """The profile ``name`` of a workload."""
        understood = self._understood[workload]
        profile = understood.get(name)
        if profile is None:
            try:
                profile = read_profile(name, self._raw[workload][name], self._ignore_communication)
            except InputError as error:
                raise InputError(f"workload {workload!r}: {error}") from None
            understood[name] = profile
        return profile

    def raw(self, job: Job) -> Profile:
        """The profile of a job as it was written down."""
        return self._raw[job.workload][job.profile]

    def everything(self) -> dict[str, dict[str, Profile]]:
        """All profiles as they were written down."""
        return self._raw

    def register(self, workload: str, name: str, profile: Profile) -> None:
        """Add a profile while the simulation runs."""
        if name in self._raw.get(workload, {}) or (workload, name) in self._dead:
            raise RuleBroken(f"profile {name!r} already existed in workload {workload!r}")
        self._raw.setdefault(workload, {})[name] = profile
        self._understood.setdefault(workload, {})
        self._dynamic.add((workload, name))
        try:
            self.get(workload, name)
        except InputError as error:
            raise RuleBroken(str(error)) from None

    def check_usable(self, job: Job) -> None:
        """Raise unless a job may be registered with this profile."""
        if job.workload not in self._raw:
            raise RuleBroken(f"workload {job.workload!r} does not exist")
        if (job.workload, job.profile) in self._dead:
            raise RuleBroken(f"profile {job.profile!r} was dropped when the first job that used it was over")
        if job.profile not in self._raw[job.workload]:
            raise RuleBroken(f"profile {job.profile!r} does not exist in workload {job.workload!r}")

    def job_is_over(self, job: Job) -> None:
        """Drop the job's profile, unless profiles may be reused."""
        if self._collect:
            workload, name = key = (job.workload, job.profile)
            self._dead.add(key)
            if key in self._dynamic:
                self._dynamic.remove(key)
                del self._raw[workload][name]
                del self._understood[workload][name]
