"""The profiles that the built-in Batsim can run, out of those that jobs may use."""

from collections.abc import Callable, Sequence
from itertools import chain
from math import inf, isfinite
from typing import Any

from msgspec import structs

from batsched_py.errors import InputError, RuleBroken
from batsched_py.ledger.registry import Registry
from batsched_py.protocol import profiles as pr
from batsched_py.protocol.events import IoJob, Settings
from batsched_py.protocol.jobs import Job, is_natural, to_tick
from batsched_py.protocol.profiles import Delay, Homogeneous, Parallel, Profile
from batsched_py.protocol.shown import shown
from batsched_py.protocol.sizes import MALLEABLE, first_malleable, malleable_of, refuse_in_messages
from batsched_py.workload.model import Workload

_NO_NETWORK = (
    "but the machine has no network; give its hosts one (--bandwidth), use a platform file with links, or "
    "leave the bytes out with --ignore-communication"
)


def is_plain(profile: Profile) -> bool:
    """Whether a profile is like most of them: so much work and nothing else, which can always be run."""
    return (
        type(profile) is Homogeneous
        and type(profile.work) is float
        and 0.0 <= profile.work < inf
        and type(profile.return_code) is int
        and profile.return_code == profile.bytes_sent == 0
    )


def refusal(profile: Profile, may_send: bool) -> str | None:
    """Why a profile cannot be run, if that is so: a sentence about it that lacks its subject.

    What sends bytes needs a network, unless sending takes no time.
    """
    fault = _fault(profile)
    if fault is None and profile.sends_bytes and not may_send:
        return f"(type {profile.kind}) sends bytes, {_NO_NETWORK}"
    return fault


def check_io_job(may_send: bool) -> None:
    """An IO job, which sends bytes, is to run beside a job."""
    if not may_send:
        raise RuleBroken(f"an additional IO job sends bytes, {_NO_NETWORK}")


def _fault(profile: Profile) -> str | None:
    """What cannot be simulated in any case."""
    if not is_natural(profile.return_code):
        return f"needs an integer of 0 or more as `ret`, not {shown(profile.return_code)}"
    match profile:
        case Homogeneous(work=work, bytes_sent=amount):
            return _negative("cpu", work) or _negative("com", amount)
        case Delay(seconds=seconds):
            return _not_positive("delay", seconds)
        case Parallel():
            return _misshapen(profile)
        case pr.Composed(repeat=repeat):
            if not is_natural(repeat) or not repeat:
                return f"needs an integer of 1 or more as `repeat`, not {shown(repeat)}"
        case pr.Send(seconds=seconds):
            return _not_positive("sleeptime", seconds)
        case pr.Receive(poll_seconds=seconds):
            return _not_positive("polltime", seconds)
        case pr.FileSystemAccess(bytes_read=read, bytes_written=written):
            return _negative("bytes_to_read", read) or _negative("bytes_to_write", written)
        case pr.DataStaging(bytes_moved=amount):
            return _negative("nb_bytes", amount)
        case pr.Trace():
            return (
                f"replays a trace (type {profile.kind}), which needs SimGrid; use a real Batsim for it, or "
                "describe the job as a sequence of parallel profiles"
            )
        case pr.Unintelligible(fault=fault):
            return fault
    return None


def _negative(name: str, value: Any) -> str | None:
    if _is_finite(value) and value >= 0:
        return None
    return f"needs a number that is not negative as `{name}`, not {shown(value)}"


def _not_positive(name: str, seconds: Any) -> str | None:
    if not _is_finite(seconds):
        return f"needs a finite number as `{name}`, not {shown(seconds)}"
    return None if seconds > 0 else f"needs a `{name}` above 0"


def _is_finite(value: Any) -> bool:
    """Whether this is a number that a double can hold; who makes profiles in Python may put in anything."""
    try:
        return isfinite(value)
    except (TypeError, OverflowError):
        return False


def _misshapen(profile: Parallel) -> str | None:
    hosts, pairs = len(profile.work), len(profile.bytes_sent)
    if not hosts:
        return "needs one number at least as `cpu`"
    if pairs != hosts**2:
        return f"needs {hosts**2} numbers as `com`, it has {pairs}"
    works = (_negative("cpu", value) for value in profile.work)
    sent = (_negative("com", value) for value in profile.bytes_sent)
    return next(filter(None, chain(works, sent)), None)


def as_registered(profile: Profile) -> Profile:
    """What Batsim makes of a profile that it is sent: it writes it down with six decimals first."""
    rounded = {}
    for name in profile.__struct_fields__:
        value = getattr(profile, name)
        if value and (ticks := _to_ticks(value)) != value:
            rounded[name] = ticks
    return structs.replace(profile, **rounded) if rounded else profile


def _to_ticks(value: Any) -> Any:
    if isinstance(value, float):
        return to_tick(value)
    match value:
        case tuple() | list():
            return type(value)(map(_to_ticks, value))
        case dict():
            return {key: _to_ticks(item) for key, item in value.items()}
    return value


#: How deep profiles may be made of profiles, and of how many tasks they may be made in all: each takes time
#: to simulate, even if it does no work.
DEEPEST = 100
MOST_TASKS = 10_000_000


class Catalog(Registry):
    """A registry that also refuses what cannot be simulated here."""

    def __init__(
        self, workloads: Sequence[Workload], settings: Settings, may_send: bool, keep_hosts: str = ""
    ) -> None:
        super().__init__({workload.name: workload.profiles for workload in workloads}, settings)
        self.may_send = may_send
        """Whether profiles may send bytes."""
        self.sends_bytes = False
        """Whether any profile does."""
        self.malleable = False
        """Whether any job may grow and shrink."""
        self._keep_hosts = keep_hosts
        self._in_messages = False
        for workload in workloads:
            self._check(workload)
            if settings.dynamic_jobs:
                self.meet(job.id for job in workload.jobs)

    def _check(self, workload: Workload) -> None:
        """Look at every profile, so that mistakes are found before the simulation begins."""
        unusual = {name: profile for name, profile in workload.profiles.items() if not is_plain(profile)}
        for name, profile in unusual.items():
            if (fault := self._fault(workload.name, name, profile)) is not None:
                raise InputError(fault)
        self.sends_bytes |= any(profile.sends_bytes for profile in unusual.values())
        sizes: dict[str, int] = {}
        for name, profile in unusual.items():
            if profile.parts:
                self._measure(workload.name, name, (), sizes)
        checks: list[Callable[[Job, Profile], str | None]] = []
        if any(isinstance(profile, Parallel) for profile in unusual.values()):
            checks.append(_misfit)
        if first_malleable(workload.jobs) is not None:
            self.malleable = True
            checks.append(self._stiff)
        for check in checks:
            for job in workload.jobs:
                if (fault := check(job, workload.profiles[job.profile])) is not None:
                    raise InputError(f"workload {workload.name!r}: {fault}")

    def _stiff(self, job: Job, profile: Profile) -> str | None:
        """Why a job that is called malleable cannot grow and shrink, if that is so."""
        if MALLEABLE not in job.extra:
            return None
        if self._keep_hosts:
            return f"job {job.id} is malleable, but jobs keep their hosts {self._keep_hosts}"
        if not isinstance(profile, Delay | Homogeneous):
            return (
                f"job {job.id} is malleable, but its profile {job.profile!r} (type {profile.kind}) is not; a "
                "delay, parallel_homogeneous or parallel_homogeneous_total is"
            )
        if profile.sends_bytes:
            return f"job {job.id} is malleable, but its profile {job.profile!r} sends bytes"
        try:
            malleable_of(job)
        except ValueError as error:
            return f"job {job.id}: {error}"
        return None

    def speak_in_messages(self, workloads: Sequence[Workload]) -> None:
        """The decision process is told of jobs by messages, which have no words for malleable ones."""
        self._in_messages = True
        for workload in workloads:
            refuse_in_messages(workload.jobs)

    def _fault(self, workload: str, name: str, profile: Profile) -> str | None:
        fault = refusal(profile, self.may_send)
        return None if fault is None else f"workload {workload!r}: profile {name!r} {fault}"

    def _measure(self, workload: str, name: str, above: tuple[str, ...], sizes: dict[str, int]) -> None:
        """Find out of how many tasks a profile is made, and of its parts before; they must exist and end."""
        if name in sizes:
            return
        profile = self.profiles[workload][name]
        fault = None
        if name in above:
            fault = "is part of itself"
        elif len(above) > DEEPEST:
            fault = f"is a part of parts, more than {DEEPEST} deep"
        else:
            for part in dict.fromkeys(profile.parts):
                if part not in self.profiles[workload]:
                    fault = f"uses {part!r}, which does not exist"
                    break
                self._measure(workload, part, (*above, name), sizes)
            else:
                sizes[name] = getattr(profile, "repeat", 1) * sum(sizes[part] for part in profile.parts) or 1
                if sizes[name] > MOST_TASKS:
                    fault = f"is made of {sizes[name]} tasks; {MOST_TASKS} are the most"
        if fault is not None:
            raise InputError(f"workload {workload!r}: profile {name!r} {fault}")

    def add_profile(self, workload: str, name: str, profile: Profile) -> None:
        """Make a profile known."""
        profile = as_registered(profile)
        super().add_profile(workload, name, profile)
        if (fault := self._fault(workload, name, profile)) is not None:
            raise RuleBroken(fault)
        self.sends_bytes |= profile.sends_bytes

    def add_job(self, job: Job) -> Profile:
        """Make a job known; what it does."""
        profile = super().add_job(job)
        if isinstance(profile, Parallel) and (fault := _misfit(job, profile)) is not None:
            raise RuleBroken(fault)
        if MALLEABLE in job.extra:
            if self._in_messages:
                refuse_in_messages([job])
            if (fault := self._stiff(job, profile)) is not None:
                raise RuleBroken(fault)
            self.malleable = True
        return profile

    def io_profile(self, workload: str, io_job: IoJob) -> Profile:
        """What an IO job does that is to run beside a job of a workload; a new profile becomes known."""
        known, name = self.profiles[workload], io_job.profile_name
        if io_job.profile is not None:
            if name in known:
                raise RuleBroken(f"profile {name!r} exists already in workload {workload!r}")
            if (fault := self._fault(workload, name, io_job.profile)) is not None:
                raise RuleBroken(fault)
            known[name] = io_job.profile
        if name not in known:
            raise RuleBroken(f"profile {name!r} does not exist in workload {workload!r}")
        return known[name]


def _misfit(job: Job, profile: Profile) -> str | None:
    """What is wrong between a job and its profile, if anything is."""
    if isinstance(profile, Parallel) and len(profile.work) != job.size:
        return (
            f"job {job.id} asks for {job.size} hosts, its profile {job.profile!r} is made for "
            f"{len(profile.work)}"
        )
    return None
