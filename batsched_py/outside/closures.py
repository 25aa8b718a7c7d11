"""Closures: maintenance windows and advance reservations, which are known beforehand.

From its start to its end, a closure keeps jobs off its hosts; a job that would reach into it, if it ran for
all of its walltime, is not started there. If it is a reservation for some users, their jobs are let in.
"""

from collections.abc import Iterable, Sequence
from math import inf

from msgspec import Struct

from batsched_py.outside.tables import Units, period, read_table
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host


class Closure(Struct, frozen=True):
    """Hosts that are closed for a time."""

    start: float
    end: float
    hosts: HostSet
    """Those of whole nodes, where there are nodes."""
    users: frozenset[str] = frozenset()
    """Whose jobs are let in."""

    def bars(self, user: str | None, start: float, end: float) -> bool:
        """Whether jobs of a user may not run on these hosts from one time to another."""
        return self.start < end and start < self.end and user not in self.users


class Closures:
    """All closures of a machine, in the order of their starts."""

    def __init__(self, closures: Iterable[Closure]) -> None:
        self.all: Sequence[Closure] = sorted(closures, key=lambda closure: (closure.start, closure.end))
        self.ends: Sequence[float] = sorted({closure.end for closure in self.all})
        self._last_end = max(self.ends, default=-inf)

    def barring(self, user: str | None, start: float, end: float) -> list[Closure]:
        """The closures that a user's job runs into from one time to another."""
        if start >= self._last_end:
            return []
        return [each for each in self.all if each.start < end and each.bars(user, start, end)]

    def next_end(self, now: float) -> float:
        """When the next closure ends; infinite if there is none."""
        return next((end for end in self.ends if end > now), inf)


def read_closures(path: str, hosts: Sequence[Host]) -> Closures:
    """The closures in a CSV file with the columns ``start``, ``end`` and ``hosts``, and ``users`` if needed.

    Hosts are ``all``, names of nodes or partitions, or numbers; several names are separated by spaces.
    """
    units = Units(hosts)

    def read(row: dict[str, str]) -> Closure:
        users = frozenset(row.get("users", "").split())
        return Closure(*period(row, "start", "end"), units.named(row["hosts"]), users)

    return Closures(read_table(path, ("start", "end", "hosts"), read))
