"""What is free of a machine, and what jobs have of it.

A machine consists of pools of interchangeable hosts. On a plain machine there is one, and what is free is a
number: that is :class:`FreeHosts`. On a machine of nodes each node is one, with resources beside its cores:
that is :class:`~batsched_py.ledger.free_nodes.FreeNodes`. Both have the same methods. Nobody else knows which
kind of machine it is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from batsched_py.errors import RuleBroken
from batsched_py.ledger.profile import Ahead, HostProfile, HostsAhead, JobProfile, Reservation, Seen, reserve
from batsched_py.ledger.queue import Condition, JobQueue, Score
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.ledger.trials import HostResizing, HostsToWake, Resizing
from batsched_py.protocol.hosts import NOWHERE, HostSet, Run
from batsched_py.protocol.jobs import Job

if TYPE_CHECKING:
    from batsched_py.ledger.nodes import Refusal

#: Given the free hosts and how many are needed, which of them to take.
HostChoice = Callable[[HostSet, int], HostSet]


class FreeHosts:
    """Which hosts of one pool are free, as intervals in order, and how many they are.

    Taking hosts and giving them back costs as much as the intervals that are taken or given, however many
    hosts those hold and however many others there are.
    """

    def __init__(self, hosts: HostSet, selection: HostChoice | None = None) -> None:
        self.nb_hosts = self.count = len(hosts)
        self.selection = selection
        """Which of the free hosts a job gets, if not the ones with the lowest numbers."""
        self._firsts = [first for first, _ in hosts.runs()]
        self._lasts = [last for _, last in hosts.runs()]

    def hosts(self) -> HostSet:
        """Which they are now."""
        return HostSet(None, tuple(zip(self._firsts, self._lasts, strict=True)))

    def __contains__(self, hosts: HostSet) -> bool:
        firsts, lasts = self._firsts, self._lasts
        for first, last in hosts.runs():
            place = bisect_right(firsts, first) - 1
            if place < 0 or lasts[place] < last:
                return False
        return True

    def overlap(self, hosts: HostSet) -> HostSet:
        """Those of the hosts that are free."""
        firsts, lasts = self._firsts, self._lasts
        runs: list[Run] = []
        for first, last in hosts.runs():
            place = max(bisect_right(firsts, first) - 1, 0)
            while place < len(firsts) and firsts[place] <= last:
                if lasts[place] >= first:
                    runs.append((max(first, firsts[place]), min(last, lasts[place])))
                place += 1
        return HostSet(None, tuple(runs))

    def take_lowest(self, count: int) -> HostSet:
        """Take the ones with the lowest numbers; there must be so many."""
        firsts, lasts = self._firsts, self._lasts
        self.count -= count
        first = firsts[0]
        end = first + count
        if end <= lasts[0]:
            firsts[0] = end
            return HostSet(None, ((first, end - 1),))
        runs: list[Run] = []
        place = 0
        while count:
            first, last = firsts[place], lasts[place]
            end = first + count
            if end <= last:
                firsts[place] = end
                runs.append((first, end - 1))
                break
            runs.append((first, last))
            count = end - last - 1
            place += 1
        del firsts[:place], lasts[:place]
        return HostSet(None, tuple(runs))

    def take(self, hosts: HostSet) -> None:
        """Take these, all of which must be free."""
        firsts, lasts = self._firsts, self._lasts
        for first, last in hosts.runs():
            place = bisect_right(firsts, first) - 1
            low, high = firsts[place], lasts[place]
            self.count -= last + 1 - first
            if low == first:
                if high == last:
                    del firsts[place], lasts[place]
                else:
                    firsts[place] = last + 1
            else:
                lasts[place] = first - 1
                if high != last:
                    firsts.insert(place + 1, last + 1)
                    lasts.insert(place + 1, high)

    def give(self, hosts: HostSet) -> None:
        """Give these back, none of which is free."""
        firsts, lasts = self._firsts, self._lasts
        for first, last in hosts.runs():
            place = bisect_left(firsts, first)
            self.count += last + 1 - first
            joins_next = place < len(firsts) and firsts[place] == last + 1
            if place and lasts[place - 1] == first - 1:
                if joins_next:
                    lasts[place - 1] = lasts[place]
                    del firsts[place], lasts[place]
                else:
                    lasts[place - 1] = last
            elif joins_next:
                firsts[place] = first
            else:
                firsts.insert(place, first)
                lasts.insert(place, last)

    # --- what jobs ask for -----------------------------------------------------------------------

    def ask_instead(self, job: Job) -> None:
        """A job asks for something else than it was submitted with; hosts know no requests."""
        return None

    def could_grant(self, job: Job) -> bool:
        """Whether a job would fit if nothing else ran."""
        return 0 < job.size <= self.nb_hosts

    def why_never(self, job: Job) -> Refusal | None:
        """Why a job would not even fit if nothing else ran, where there is more to say than its size."""
        return None

    def fits(self, job: Job) -> bool:
        """Whether what a job asks for is free now."""
        return 0 < job.size <= self.count

    def resources(self) -> dict[str, tuple[int, int]]:
        """How much of each resource of the nodes is free, and how much there is; none on a plain machine."""
        return {}

    def hosts_for(self, job: Job) -> HostSet:
        """The hosts that a job gets; if it does not fit, too few of them."""
        if self.selection is None or not self.fits(job):
            return self.hosts().lowest(job.size)
        return self.selection(self.hosts(), job.size)

    def hosts_beside(self, job: Job, estimate: float, beside: Reservation | None) -> HostSet | None:
        """The hosts that a job which fits gets, if it does not delay a reservation."""
        allowed = beside is None or beside.allows(job.size, estimate)
        return self.hosts_for(job) if allowed else None

    def search(
        self,
        queue: JobQueue,
        behind: int,
        condition: Condition | None,
        score: Score | None,
        beside: Reservation | None,
    ) -> Iterator[Job]:
        """The waiting jobs behind an arrival that fit, meet a condition and do not delay a reservation."""
        return queue._search(self, behind, condition, score, beside)

    # --- what happens to jobs --------------------------------------------------------------------

    def check(self, job: Job, hosts: HostSet) -> Any:
        """A job is to run on free hosts, as many as it asks for: the place that this means, if it suits."""

    def check_resize(self, running: RunningJob, hosts: HostSet) -> Any:
        """A running job is to go on with hosts that are free or its own: the place that this means."""

    def started(self, job: Job, place: Any) -> None:
        """A job has taken its hosts; now it takes what else there is of its place."""

    def resized(self, job: Job, place: Any) -> None:
        """A running job has gone over to other hosts; it has another place."""

    def ended(self, job: Job) -> HostSet:
        """A job has left its hosts and all else; these hosts may be used again, too."""
        return NOWHERE

    def blocked(self, job_id: str | None = None) -> HostSet:
        """The hosts without jobs that nobody may use, because of one job, or of all."""
        return NOWHERE

    # --- what will be free -----------------------------------------------------------------------

    def reservation(
        self,
        job: Job,
        now: float,
        running: Running,
        unavailable: HostSet,
        to_wake: HostSet = NOWHERE,
        limits: Sequence[Ahead] = (),
        all_ends: bool = False,
    ) -> Reservation:
        """When a job can start at the latest, if the running ones end as expected.

        Hosts ``to_wake`` count as free, and there must be enough of what ``limits`` are about. With
        ``all_ends``, all jobs that end by then count towards the extra hosts.
        """
        if job.size <= 0:
            return Reservation(job, now, inf, 0)
        nb_free = self.count + len(to_wake)
        if unavailable is not NOWHERE or limits or all_ends:
            ahead = HostsAhead(nb_free, job.size, unavailable)
            return reserve(job, now, running, ahead, limits, all_ends)
        extra = nb_free - job.size
        if extra >= 0:
            return Reservation(job, now, now, extra)
        for end, _, ending in running._by_end:
            extra += ending.nb_hosts
            if extra >= 0:
                return Reservation(job, now, end if end > now else now, extra)
        return Reservation(job, now, inf, 0)

    def starts(self, choices: Sequence[tuple[Job, float]], seen: Seen) -> list[float]:
        """When each of some jobs could start at the earliest, to run for so long, if no other job starts."""
        profile = seen.profile()
        return [profile.earliest(job.size, duration) for job, duration in choices]

    def usable(self, running: RunningJob, unavailable: HostSet) -> int:
        """How many hosts will be free when a job ends."""
        return running.nb_hosts if not unavailable else len(running.hosts - unavailable)

    def job_profile(self, seen: Seen) -> JobProfile:
        """What will be free if the running jobs end as expected, for a plan."""
        return HostProfile(seen.profile(), seen.available)

    def resizing(self, now: float, running: Running, unavailable: HostSet) -> Resizing:
        """Other sizes of running jobs, to be tried before any of them is decided."""
        return HostResizing(self.count, unavailable)

    def hosts_to_go_on(self, running: RunningJob, size: int, resizing: Resizing) -> HostSet:
        """The hosts with which a job goes on that is to have so many."""
        if (more := size - running.nb_hosts) <= 0:
            return running.hosts.lowest(size)
        if more > self.count:
            raise RuleBroken(f"{more} hosts more are asked for, {self.count} are free")
        return running.hosts | (self.selection or HostSet.lowest)(self.hosts(), more)

    def to_wake(self, waking: HostSet, asleep: HostSet, now: float) -> HostsToWake:
        """What waiting jobs could have, now or when sleeping hosts are awake, some of which wake already."""
        return HostsToWake(self.count + len(waking), asleep)
