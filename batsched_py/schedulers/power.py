"""How much power a machine draws, as a policy can predict it."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf

from msgspec import Struct

from batsched_py.errors import PolicyError
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.curve import Curve
from batsched_py.protocol.hosts import MOST_HOSTS, HostSet
from batsched_py.protocol.jobs import TICK, Host, read_watts

#: Sums of watts that differ by no more than this share are the same.
PRECISION = 1e-9


class Kind(Struct, frozen=True):
    """What a host draws: the most in each of the things that it can do."""

    idle: float
    full: float
    """While a job runs on it."""
    asleep: float
    switching: float
    """On its way to sleep or back."""

    @property
    def job(self) -> float:
        """How much more it draws when a job runs on it."""
        return self.full - self.idle


class PowerAccount:
    """The hosts by what they draw, and how many of them run jobs.

    What is predicted is the most that the platform allows: each host of a job is fully busy.
    """

    def __init__(self, machines: Sequence[Host], cap: Curve) -> None:
        kinds: dict[Kind, list[int]] = {}
        for host in machines:
            kinds.setdefault(_kind(host), []).append(host.id)
        self.cap = cap
        self._kinds = sorted(
            ((kind, HostSet.of(hosts)) for kind, hosts in kinds.items()), key=lambda pair: -pair[0].job
        )
        self._busy = [0] * len(self._kinds)
        self.idle = sum(kind.idle * len(hosts) for kind, hosts in self._kinds)
        """While no job runs and nobody sleeps."""
        self.largest = self._kinds[0][0].job
        """How much more a host draws with a job, at most."""

    def started(self, running: RunningJob) -> None:
        """A job draws power on its hosts."""
        self._count(running.hosts, 1)

    def ended(self, running: RunningJob) -> None:
        """It does so no longer."""
        self._count(running.hosts, -1)

    def _count(self, hosts: HostSet, sign: int) -> None:
        for place, (_, members) in enumerate(self._kinds):
            self._busy[place] += sign * len(hosts & members)

    def predicted(self, asleep: HostSet, switching: HostSet) -> float:
        """What all hosts draw, if these sleep and these are on their way to sleep or back."""
        watts = 0.0
        for (kind, hosts), busy in zip(self._kinds, self._busy, strict=True):
            nb_asleep, nb_switching = len(hosts & asleep), len(hosts & switching)
            nb_idle = len(hosts) - busy - nb_asleep - nb_switching
            watts += kind.full * busy + kind.idle * nb_idle
            watts += kind.asleep * nb_asleep + kind.switching * nb_switching
        return watts

    def of_job(self, size: int, hosts: HostSet | None = None) -> float:
        """How much more so many of some hosts draw with a job, at most; without hosts, of all."""
        watts = 0.0
        for kind, members in self._kinds:
            count = min(size, len(members if hosts is None else members & hosts))
            watts += kind.job * count
            size -= count
        return watts

    def more_of(self, hosts: HostSet) -> float:
        """How much more these hosts draw with a job."""
        return sum(kind.job * len(hosts & members) for kind, members in self._kinds)

    def of_switch(self, hosts: HostSet, asleep: HostSet) -> float:
        """How much more hosts draw that switch, of which these slept before."""
        watts = 0.0
        for kind, members in self._kinds:
            mine = hosts & members
            nb_asleep = len(mine & asleep)
            watts += kind.switching * len(mine) - kind.asleep * nb_asleep
            watts -= kind.idle * (len(mine) - nb_asleep)
        return watts

    def allows(self, watts: float, start: float, end: float) -> bool:
        """Whether so much may be drawn from one time to another."""
        return watts <= self.most(start, end)

    def most(self, start: float, end: float) -> float:
        """What may be drawn all the time from one time to another."""
        return self.cap.least(start, end) * (1 + PRECISION)

    def nb_hosts(self, watts: float) -> int:
        """How many hosts may have a job for so much more power; negative, as many have to lose theirs."""
        return MOST_HOSTS if watts == inf or not self.largest else floor(watts / self.largest)

    def could_allow(self, watts: float, now: float, duration: float) -> bool:
        """Whether so much may ever be drawn for so long."""
        times = (now, *self.cap.changes(now, self.cap.settled(now) + TICK))
        return any(self.allows(watts, time, time + duration) for time in times)


class PowerLimit:
    """The power that a job has to wait for: it may draw it for all of its walltime."""

    def __init__(
        self, account: PowerAccount, predicted: float, size: int, duration: float, changes: Sequence[float]
    ) -> None:
        self._account = account
        self._duration = duration
        self._changes = changes
        self._watts = predicted + account.of_job(size)
        """What would be drawn with the job."""

    def suffices(self, time: float) -> bool:
        """Whether the job may draw its power if it starts then."""
        return self._account.allows(self._watts, time, time + self._duration)

    def job_ends(self, running: RunningJob) -> None:
        """A running job draws nothing more."""
        self._watts -= self._account.more_of(running.hosts)

    def changes(self) -> Sequence[float]:
        """When the cap changes."""
        return self._changes

    def extra(self, time: float) -> int:
        """How many hosts more may have a job beside it, if it starts then."""
        left = self._account.most(time, time + self._duration) - self._watts
        return max(self._account.nb_hosts(left), 0)


def _kind(host: Host) -> Kind:
    """What a host draws; nothing, if the platform does not tell."""
    try:
        watts = read_watts(host.properties) or []
    except ValueError as error:
        raise PolicyError(f"host {host.name!r}: {error}") from None
    sleeps, ways = set(host.sleep_pstates), {way for ways in host.sleep_pstates.values() for way in ways}
    computing = [state for number, state in enumerate(watts) if number not in sleeps | ways]
    idle = max((state[0] for state in computing), default=0.0)
    return Kind(
        idle,
        max((state[2] for state in computing), default=0.0),
        max((watts[number][2] for number in sleeps if number < len(watts)), default=idle),
        max((idle, *(watts[number][2] for number in ways if number < len(watts)))),
    )
