"""Failures of nodes, drawn at random or read from a trace, as the events that a Batsim lets happen.

A node works for a time that follows the law, then it is repaired, and so on. Both times are rounded up to
whole seconds. Each node has random numbers of its own, so a node more does not change the others.

* exponential: P(works longer than t) = exp(-t / M), with the mean M;
* Weibull with the shape k: P(works longer than t) = exp(-(t / c)^k), c = M / Gamma(1 + 1 / k). With k < 1
  failures come in bursts, soon after a repair, as they do on real machines: B. Schroeder and G. Gibson, "A
  Large-Scale Study of Failures in High-Performance Computing Systems", IEEE TDSC 7(4), 2010;
* repairs are exponential.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from heapq import merge
from itertools import groupby
from math import ceil, floor, gamma
from operator import itemgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.outside import Law
from batsched_py.outside.closures import Closure
from batsched_py.outside.tables import Units, period, read_table
from batsched_py.protocol.events import Event, HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.profiles import Delay, Homogeneous, HomogeneousTotal, Profile

#: So many take a simulation hours.
MOST_FAILURES: Final = 100_000_000


class Outage(Struct, frozen=True):
    """Hosts that do not work from one time to another."""

    hosts: HostSet
    start: float
    end: float


class RandomFailures(Struct, frozen=True):
    """What the failures of a machine are drawn from."""

    law: Law
    mtbf: float
    """The mean time from a repair of a node to its next failure, in seconds."""
    repair: float
    """The mean time that a repair takes."""
    shape: float = 0.7
    seed: int = 0

    def outages(self, units: Units, until: float) -> list[Iterator[Outage]]:
        """The outages of each node that begin before a time; they are drawn as they are asked for."""
        expected = len(units.by_name) * until / (self.mtbf + self.repair)
        if expected > MOST_FAILURES:
            raise InputError(
                f"so many failures would never end: about {expected:.3g} until {until:g} s, "
                f"{MOST_FAILURES:,} at most; give a longer --mtbf, or an earlier --failures-until"
            )
        return [self._of(name, hosts, until) for name, hosts in units.by_name.items()]

    def _of(self, name: str, hosts: HostSet, until: float) -> Iterator[Outage]:
        from random import Random

        random = Random(f"failures {self.seed} {name}")
        works = partial(random.expovariate, 1 / self.mtbf)
        if self.law == "weibull":
            works = partial(random.weibullvariate, self.mtbf / gamma(1 + 1 / self.shape), self.shape)
        end = 0.0
        while (start := end + _whole(works())) < until:
            end = start + _whole(random.expovariate(1 / self.repair))
            yield Outage(hosts, start, end)


def _whole(seconds: float) -> float:
    return float(max(1, ceil(seconds)))


def read_trace(path: str, units: Units) -> list[Outage]:
    """The outages in a CSV file with the columns ``hosts``, ``down`` and ``up``."""

    def read(row: dict[str, str]) -> Outage:
        return Outage(units.named(row["hosts"]), *period(row, "down", "up"))

    outages = sorted(read_table(path, ("hosts", "down", "up"), read), key=lambda outage: outage.start)
    until: dict[int, float] = {}
    for outage in outages:
        for host in outage.hosts:
            if outage.start < until.get(host, 0.0):
                raise InputError(f"{path}: host {host} fails at {outage.start:g} while it is down already")
            until[host] = outage.end
    return outages


def as_events(nodes: Iterable[Iterable[Outage]]) -> Iterator[Event]:
    """The events of hosts that go and come back; at one instant, hosts come back before others go.

    They are made as they are asked for, from the outages of each node in the order of time. A host that comes
    back and goes at the same instant stays away.
    """
    for time, changes in groupby(merge(*map(_changes, nodes)), key=itemgetter(0)):
        comes = goes = 0
        for _, away, mask in changes:
            comes, goes = (comes, goes | mask) if away else (comes | mask, goes)
        if mask := comes & ~goes:
            yield HostsAvailable(HostSet(mask), time=time)
        if mask := goes & ~comes:
            yield HostsUnavailable(HostSet(mask), time=time)


def _changes(outages: Iterable[Outage]) -> Iterator[tuple[float, bool, int]]:
    for outage in outages:
        yield outage.start, True, outage.hosts.mask
        yield outage.end, False, outage.hosts.mask


ABSENCES_HEADER: Final = "hosts,state,since,until\n"


def absence_lines(outages: Iterable[Outage], closures: Iterable[Closure]) -> Iterator[str]:
    """The lines of the file; hosts are ``away`` or ``closed``."""
    for outage in outages:
        yield f"{outage.hosts},away,{outage.start:.6f},{outage.end:.6f}\n"
    for closure in closures:
        yield f"{closure.hosts},closed,{closure.start:.6f},{closure.end:.6f}\n"


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
