"""Jobs that save their work now and then, so that a failure costs them only what came after."""

from __future__ import annotations

from math import ceil, floor

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.profiles import Delay, Homogeneous, HomogeneousTotal, Profile


class Checkpoints(Struct, frozen=True):
    """After each ``interval`` of work a job takes ``overhead`` seconds to save it, but not at its end.

    >>> rule = Checkpoints(interval=100, overhead=5)
    >>> rule.lasts(250), rule.lasts(200), rule.lasts(80)
    (260, 205, 80)
    >>> rule.saved(250, ran=104), rule.saved(250, ran=105), rule.saved(250, ran=255)
    (0, 100, 200)
    """

    interval: float
    overhead: float

    def count(self, work: float) -> int:
        """How often so many seconds of work are saved."""
        return max(ceil(work / self.interval) - 1, 0)

    def lasts(self, work: float) -> float:
        """How long a job takes that does so many seconds of work."""
        return work + self.count(work) * self.overhead

    def saved(self, work: float, ran: float) -> float:
        """How much of its work a job has saved when it has run for so long."""
        return min(floor(ran / (self.interval + self.overhead)), self.count(work)) * self.interval


def work_of(profile: Profile, size: int, speed: float | None) -> float:
    """How many seconds a job of one computation, or of one sleep, takes on hosts of one speed."""
    if type(profile) is Delay:
        return float(profile.seconds)
    if isinstance(profile, Homogeneous) and not profile.sends_bytes:
        if speed is None:
            raise InputError(
                "checkpoints of jobs that compute need hosts of one speed, which the simulator tells"
            )
        hosts = size if isinstance(profile, HomogeneousTotal) else 1
        return float(profile.work) / speed / hosts
    raise InputError(
        f"a job of kind {profile.kind} cannot be restarted from a checkpoint, only those that do nothing "
        "but compute or sleep; use --on-failure resubmit"
    )


def lasting(profile: Profile, seconds: float, size: int, speed: float | None) -> Profile:
    """A profile that does the same for so long."""
    if type(profile) is Delay:
        return replace(profile, seconds=seconds)
    assert isinstance(profile, Homogeneous) and speed is not None
    hosts = size if isinstance(profile, HomogeneousTotal) else 1
    return replace(profile, work=seconds * speed * hosts)
