"""The profiles that jobs may use, and the names that are used up."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from batsched_py.errors import RuleBroken
from batsched_py.protocol.events import Settings
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Composed, Profile, Trace


@cache
def _bits() -> dict[str, int]:
    """The bit that stands for the last three characters of a name, if they are digits."""
    return {f"{number:03}": 1 << number for number in range(1000)}


class Names:
    """A set of names, most of which are alike but for a number at their end.

    Names that agree in all but their last three digits share a page: one number with a bit for each of them.
    So the names ``w0!1000`` to ``w0!1999`` take some 300 bytes together, where a set takes 100 for each.

    >>> names = Names()
    >>> names.take("w0!1234"), names.take("w0!1234")
    (True, False)
    >>> "w0!1234" in names, "w0!1235" in names, "w0!01234" in names
    (True, False, False)
    """

    def __init__(self) -> None:
        self._bits = _bits()
        self._pages: dict[str, int] = {}
        self._others: set[str] = set()

    def take(self, name: str) -> bool:
        """Take a name; whether it was free."""
        bit = self._bits.get(name[-3:])
        if bit is None:
            free = name not in self._others
            self._others.add(name)
            return free
        page = name[:-3]
        taken = self._pages.get(page, 0)
        self._pages[page] = taken | bit
        return not taken & bit

    def __contains__(self, name: str) -> bool:
        bit = self._bits.get(name[-3:])
        if bit is None:
            return name in self._others
        return bool(self._pages.get(name[:-3], 0) & bit)


class Registry:
    """All workloads' profiles by workload and name, and the names under which no job can be made known.

    As in Batsim, a profile that may not be reused is dropped when the first job that used it is over, and
    its name is then dead for good. Jobs that were submitted before that keep what they do.
    """

    def __init__(self, profiles: Mapping[str, Mapping[str, Profile]], settings: Settings) -> None:
        self.profiles: dict[str, dict[str, Profile]] = {
            workload: dict(named) for workload, named in profiles.items()
        }
        self.collects = settings.dynamic_jobs and not settings.profile_reuse
        """Whether profiles are dropped."""
        self.for_files_only: set[tuple[str, str]] = set()
        """The registered ones, by workload and name, of kinds that Batsim runs from a workload file only."""
        self._kept: dict[str, Profile] = {}
        """What jobs do that are not over, where profiles are dropped."""
        self._dynamic = settings.dynamic_jobs
        self.accepts = settings.dynamic_jobs
        """Whether jobs may be registered now."""
        self._reopened = False
        self.met = Names()
        """The names of jobs that are taken."""
        self._registered: defaultdict[str, set[str]] = defaultdict(set)
        self._dead: defaultdict[str, Names] = defaultdict(Names)

    @property
    def is_open(self) -> bool:
        """Whether jobs may be registered, now or from the next reply on."""
        return self.accepts or self._reopened

    def meet(self, job_ids: Iterable[str]) -> None:
        """These names are taken; kept where jobs can be registered."""
        if self._dynamic:
            for job_id in job_ids:
                self.met.take(job_id)

    def add_profile(self, workload: str, name: str, profile: Profile) -> None:
        """Make a profile known."""
        self._check_open()
        known = self.profiles.setdefault(workload, {})
        if name in known or (self.collects and name in self._dead[workload]):
            raise RuleBroken(f"profile {name!r} exists already in workload {workload!r}")
        known[name] = profile
        if self.collects:
            self._registered[workload].add(name)
        if isinstance(profile, Composed | Trace):
            self.for_files_only.add((workload, name))

    def learn(self, job: Job, profile: Profile) -> None:
        """What a job does was told with its submission, by a simulator that may not have told it before."""
        self.profiles.setdefault(job.workload, {}).setdefault(job.profile, profile)

    def add_job(self, job: Job) -> Profile:
        """Make a job known; what it does."""
        self._check_open()
        if not self.met.take(job.id):
            raise RuleBroken(f"job {job.id} exists already")
        workload, name = job.id.partition("!")[0], job.profile
        profiles = self.profiles.get(workload)
        if profiles is None:
            raise RuleBroken(f"workload {workload!r} does not exist; register a profile in it first")
        if self.collects and name in self._dead[workload]:
            raise RuleBroken(
                f"profile {name!r} was dropped when the first job that used it was over "
                "(--enable-profile-reuse keeps it)"
            )
        if name not in profiles:
            raise RuleBroken(f"profile {name!r} does not exist in workload {workload!r}")
        return profiles[name]

    def finish(self) -> None:
        """No more will be registered."""
        self.accepts = False

    def reopen(self) -> None:
        """After all, more may be registered; from the next reply on."""
        self._reopened = True

    def next_reply(self) -> None:
        """Another reply is about to be made."""
        if self._reopened:
            self.accepts, self._reopened = True, False

    def profile_of(self, job: Job) -> Profile:
        """What a job does that is not over."""
        if self.collects:
            return self._kept[job.id]
        return self.profiles[job.workload][job.profile]

    def keep(self, job: Job) -> None:
        """A job is submitted: whatever is dropped until then, it will do what its profile says now."""
        profile = self.profiles.get(job.workload, {}).get(job.profile)
        if profile is not None:
            self._kept[job.id] = profile

    def job_is_over(self, job: Job) -> None:
        """Drop the job's profile with all its parts."""
        self._kept.pop(job.id, None)
        self._drop(job.workload, job.profile)

    def _drop(self, workload: str, name: str) -> None:
        profiles = self.profiles.get(workload, {})
        if name in self._dead[workload] or name not in profiles:
            return
        self._dead[workload].take(name)
        profile = profiles[name]
        if isinstance(profile, Composed):
            for part in profile.parts:
                self._drop(workload, part)
        if name in self._registered[workload]:
            self._registered[workload].remove(name)
            del profiles[name]

    def _check_open(self) -> None:
        if self.accepts:
            return
        if not self._dynamic:
            raise RuleBroken(
                "the simulator does not accept dynamic jobs (start it with --enable-dynamic-jobs)"
            )
        raise RuleBroken("registration was declared finished")
