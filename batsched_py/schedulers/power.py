"""How much power a machine draws, as a policy can predict it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import floor, inf

from msgspec import Struct

from batsched_py.errors import PolicyError, RuleBroken
from batsched_py.ledger.kinds import Live
from batsched_py.ledger.limits import Limit
from batsched_py.ledger.profile import AvailabilityProfile
from batsched_py.ledger.running import RunningJob
from batsched_py.ledger.trials import Resizing
from batsched_py.outside.curve import Curve
from batsched_py.protocol.hosts import MOST_HOSTS, HostSet
from batsched_py.protocol.jobs import TICK, Host, Job, read_watts
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.idle_hosts import nodes_of

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


class PowerAhead:
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


class CappedResizing(Live):
    """Jobs grow only as far as the power may be drawn until the last of their walltimes is over.

    Hosts that jobs give up draw no power of theirs any longer. Those that they get are taken to be the ones
    that draw most of all that are free.
    """

    __slots__ = ("_free", "_inside", "_nb_more", "_now", "_power", "_predicted", "_until")

    def __init__(
        self, inside: Resizing, power: PowerAccount, predicted: float, free: HostSet, now: float
    ) -> None:
        self._inside = inside
        self._power = power
        self._predicted = predicted
        self._free = free
        self._now = now
        self._nb_more = 0
        """How many hosts jobs have got so far."""
        self._until = now
        """When the last of these jobs is over."""

    def step(self, running: RunningJob) -> int:
        """By how many hosts a job grows and shrinks."""
        return self._inside.step(running)

    def size(self, running: RunningJob) -> int:
        """How many hosts a job has by now."""
        return self._inside.size(running)

    def shrink(self, running: RunningJob) -> bool:
        """Let a job be a step smaller; whether it can."""
        return self._inside.shrink(running)

    def grow(self, running: RunningJob) -> bool:
        """Let a job be a step larger; whether it can, and may draw the power."""
        step, until = self.step(running), max(self._until, running.start + running.job.walltime)
        if not (self._allows(step, until) and self._inside.grow(running)):
            return False
        self._nb_more += step
        self._until = until
        return True

    def fits(self, job: Job) -> bool:
        """Whether what a waiting job asks for is free then, and its power may be drawn."""
        return self._inside.fits(job) and self._allows(job.size, self._now + job.walltime)

    def could_fit(self, job: Job, running: Iterable[RunningJob]) -> bool:
        """Whether enough hosts could be free if these jobs shrink."""
        return self._inside.could_fit(job, running)

    @property
    def given_up(self) -> HostSet:
        """The hosts that jobs have given up so far."""
        return self._inside.given_up

    def changes(self) -> Iterator[tuple[Job, int | HostSet]]:
        """The jobs that have another size."""
        return self._inside.changes()

    def _allows(self, nb_hosts: int, end: float) -> bool:
        """Whether so many hosts more may draw the power of a job until a time."""
        given_up = self.given_up
        watts = self._predicted - self._power.more_of(given_up)
        watts += self._power.of_job(self._nb_more + nb_hosts, self._free | given_up)
        return self._power.allows(watts, self._now, end)


class PowerCap(Limit):
    """Lets jobs start, and hosts switch, only if the machine does not draw more than it may."""

    def __init__(self, cluster: Cluster, power: PowerAccount) -> None:
        self._cluster = cluster
        self._power = power
        self._nodes = nodes_of(cluster.machines)

    @property
    def predicted(self) -> float:
        """The power that the machine draws now, at most."""
        return self._predicted(self._cluster.hosts)

    def _predicted(self, hosts: HostSet) -> float:
        """The same, if only those hosts sleep or switch that are among these."""
        cluster = self._cluster
        return self._power.predicted(cluster.asleep & hosts, cluster.switching & hosts)

    @property
    def _predicted_awake(self) -> float:
        """The power that the machine draws when those are awake that can be woken, at most."""
        return self._predicted(self._cluster.hosts - self._cluster.to_wake)

    def allows(self, job: Job, run_time: float) -> bool:
        """Whether the power of a job may be drawn for so long, from now on."""
        watts = self.predicted + self._power.of_job(job.size, self._cluster.free)
        return self._power.allows(watts, self._cluster.now, self._cluster.now + run_time)

    def ahead(self, job: Job) -> PowerAhead:
        """The power of the job."""
        return PowerAhead(self._power, self._predicted_awake, job.size, job.walltime, self._changes)

    @property
    def _changes(self) -> Sequence[float]:
        """When the cap changes, until all has been seen of it that can matter to a waiting job."""
        cap, now = self._power.cap, self._cluster.now
        ends = (running.expected_end for running in self._cluster.running if running.expected_end < inf)
        return list(cap.changes(now, cap.settled(max(max(ends, default=now), now)) + TICK))

    def narrow(self, profile: AvailabilityProfile) -> None:
        """Leave as many hosts as may draw the power of a job."""
        now = self._cluster.now
        free, watts = profile.free_at(now), self._predicted_awake
        for start, end in pairwise((now, *self._changes, inf)):
            allowed = self._power.nb_hosts(self._power.most(start, start) - watts)
            profile.take(start, end, max(free - allowed, 0))

    def resizing(self, inside: Resizing) -> Resizing:
        """Other sizes of running jobs, as far as the power may be drawn."""
        cluster = self._cluster
        return CappedResizing(inside, self._power, self.predicted, cluster.free, cluster.now)

    def switchable(self, hosts: HostSet, pstate: int) -> HostSet:
        """As many of the nodes as the cap allows."""
        cluster = self._cluster
        sleep = HostSet.of(host for host in hosts if pstate in cluster.machines[host].sleep_pstates)
        at_once = hosts - sleep - cluster.asleep
        left = hosts - at_once
        switched, watts = at_once, self.predicted
        for node in self._nodes if left else ():
            mine = node & left
            more = self._power.of_switch(mine, cluster.asleep)
            if mine and self._may_switch(watts + more):
                switched, watts = switched | mine, watts + more
        if not (switched or sleep or cluster.running or cluster.switching):
            raise PolicyError("scheduler 'capped': the cap does not suffice to wake a single node")
        return switched

    def _may_switch(self, watts: float) -> bool:
        """Whether so much may be drawn while jobs run, and what is left of it without them for ever."""
        power, now, running = self._power, self._cluster.now, list(self._cluster.running)
        without_jobs = watts - sum(power.more_of(each.hosts) for each in running)
        last = max((each.expected_end for each in running), default=now)
        return power.allows(watts, now, max(last, now)) and power.allows(without_jobs, now, inf)

    def started(self, running: RunningJob) -> None:
        """A policy may have started a job without asking whether it fits."""
        self._power.started(running)
        self._check(running)

    def ended(self, running: RunningJob) -> None:
        """A job draws no power any longer."""
        self._power.ended(running)

    def resized(self, before: RunningJob, after: RunningJob) -> None:
        """A job has other hosts; it may have grown without asking whether it can."""
        self._power.ended(before)
        self._power.started(after)
        if after.hosts - before.hosts:
            self._check(after)

    def _check(self, running: RunningJob) -> None:
        """The power that is drawn now may be drawn for all of the walltime of a job."""
        now, end = self._cluster.now, running.start + running.job.walltime
        if not self._power.allows(self.predicted, now, end):
            raise RuleBroken(f"the cap of {self._power.cap.least(now, end):g} W is exceeded")
