"""What will be free of a machine of nodes, for one job that waits and for all: the counterparts of
:class:`~batsched_py.ledger.profile.HostsAhead` and :class:`~batsched_py.ledger.profile.HostProfile`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from batsched_py.ledger.nodes import CORES, Demand, Integers, Placement
from batsched_py.ledger.profile import AvailabilityProfile, Seen, Slot, Steps
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.hosts import MOST_HOSTS, HostSet
from batsched_py.protocol.jobs import TICK, Job

if TYPE_CHECKING:
    from batsched_py.ledger.free_nodes import FreeNodes


class NodesAhead:
    """The nodes that a job has to wait for: what will be free on each, and the free licences.

    A reservation keeps it as it is at the shadow time, before the job starts.
    """

    __slots__ = ("_cores", "_demand", "_free", "_future", "_job", "_left", "_licences", "_unavailable")

    def __init__(self, free: FreeNodes, job: Job, unavailable: HostSet, to_wake: HostSet) -> None:
        self._free = free
        self._job = job
        self._demand = free.demand(job)
        self._unavailable = unavailable
        self._future = self._left = free.with_cores(to_wake)
        """What will be free, and of that, what is open to the job."""
        self._cores = free.count + len(to_wake)
        self._licences = free.licences.copy()

    def is_of(self, free: FreeNodes) -> bool:
        """Whether this is about the same machine in the same simulation."""
        return self._free is free

    @property
    def at_shadow_time(self) -> NodesAhead:
        """Itself."""
        return self

    def changes(self) -> Sequence[float]:
        """When nodes open again."""
        return self._free.closures.ends

    def job_ends(self, running: RunningJob) -> None:
        """What a running job has is free."""
        nodes, taken = self._free.given_back(running, self._unavailable)
        self._future[nodes] += taken
        self._cores += int(taken[:, CORES].sum())
        self._licences.give(self._free.asked[running.job.id])

    def suffices(self, time: float) -> bool:
        """Whether there is a place for the job from a time on, for its walltime."""
        job, self._left = self._job, self._future
        if self._cores < job.size or not self._licences.suffice(self._demand):
            return False
        self._left = self._free.open_at(job.user, time, time + job.walltime, self._future)
        return self._demand.nodes(self._left) is not None

    def extra(self, time: float) -> int:
        """How many cores are left over."""
        cores = self._cores if self._left is self._future else int(self._left[:, CORES].sum())
        return cores - self._job.size

    def allows(self, demand: Demand, placement: Placement) -> bool:
        """Whether there is still a place at the shadow time if another job has this one then."""
        future, licences = self._left.copy(), self._licences.copy()
        future[placement.nodes] -= placement.taken
        licences.take(demand)
        return self._demand.nodes(future) is not None and licences.suffice(self._demand)

    def beside(self, free: Integers) -> Integers:
        """What is free now and stays free when the job with the reservation starts where it would now go."""
        placement = self._free.place(self._demand, self._left)
        if placement is None:
            return np.zeros_like(free)
        future = self._left.copy()
        future[placement.nodes] -= placement.taken
        left: Integers = np.minimum(free, future)
        return left

    def take(self, running: RunningJob) -> None:
        """A job was started that will still run at the shadow time."""
        placement = self._free.placements.get(running.job.id)
        if placement is not None:
            self._left[placement.nodes] -= placement.taken
            self._licences.take(self._free.asked[running.job.id])


class Share(Struct, frozen=True, eq=False):
    """What a job takes of which nodes; also where its tasks go, if that is planned."""

    demand: Demand
    nodes: Integers
    taken: Integers
    nb_hosts: int
    placement: Placement | None = None


class NodeProfile(Steps[float, Integers]):
    """The free amounts of all nodes as a step function of time, from now on, and the free licences."""

    __slots__ = ("_allowed", "_cores", "_held", "_licences", "_machine", "_openings", "_overbooked_until")

    def __init__(self, machine: FreeNodes, seen: Seen) -> None:
        now, free = seen.now, machine.with_cores(seen.to_wake)
        self._machine = machine
        self._times = [now]
        self._free = [free]
        self._cores = [int(free[:, CORES].sum())]
        """How many cores are free of all nodes together."""
        self._overbooked_until = now
        """Until then, running jobs may have more of a node than it has, so that these sums are too low."""
        self._licences = [machine.licences.copy()]
        self._held: dict[str, Slot] = {}
        """What running jobs have."""
        self._allowed = _allowed(machine, seen)
        """How many hosts more may have a job, as far as limits tell."""
        rises = () if self._allowed is None else self._allowed._times
        self._openings = frozenset((*machine.closures.ends, *rises))
        """When nodes open again or limits change: jobs may start then, although nothing else changes."""
        for opening in sorted(self._openings):
            if opening > now:
                self._step(opening)
        unavailable = seen.hosts - seen.available
        for running in seen.running:
            end = max(running.expected_end, now + TICK)
            demand = machine.asked[running.job.id]
            share = Share(
                demand, *machine.given_back(running, unavailable), machine.usable(running, unavailable)
            )
            self._change(Slot(end, inf, share), 1)
            self._held[running.job.id] = Slot(now, end, share)

    def most_before(self, time: float) -> int:
        """The most cores that are free at any moment before a time, as far as that is known."""
        if self._overbooked_until > self._times[0]:
            return MOST_HOSTS
        return max(self._cores[: max(bisect_left(self._times, time), 1)])

    def earliest(self, job: Job) -> Slot:
        """The earliest slot for a job."""
        return self._earliest(job, inf) or Slot(inf, -inf, None)

    def moved(self, job: Job, slot: Slot, before: float) -> Slot | None:
        """The slot to which a job moves, if it can; what it has now is among what it can have."""
        never = slot.start == inf
        found = self._earliest(job, inf if never else min(before, slot.start), None if never else slot)
        if found is not None:
            self.give(slot)
            self.take(found)
        return found

    def _earliest(self, job: Job, before: float, own: Slot | None = None) -> Slot | None:
        """The earliest time before another one from which there is a place for long enough, with that place.

        What a job has of its ``own``, later than that, counts as free.
        """
        times, machine, demand, duration = self._times, self._machine, self._machine.demand(job), job.walltime
        for step, start in enumerate(times):
            if start >= before:
                return None
            if self._cores[step] < job.size and start >= self._overbooked_until:
                continue
            if not self._licences[step].suffice(demand) or not self._allows(job, start, own):
                continue
            free = machine.open_at(job.user, start, start + duration, self._free[step])
            if demand.nodes(free) is None:
                continue
            end = bisect_left(times, start + duration) if duration < inf else len(times)
            owned = end if own is None else bisect_left(times, own.start)
            if not all(self._licences[each].suffice(demand) for each in range(step + 1, min(owned, end))):
                continue
            if not self._may_stay(demand, free, range(step + 1, end), owned, own):
                continue
            for each in range(step + 1, end):
                later = self._free[each]
                if each >= owned and own is not None:
                    later = later.copy()
                    later[own.amount.nodes] += own.amount.taken
                free = np.minimum(free, later)
            placement = machine.place(demand, free)
            if placement is not None:
                share = Share(demand, placement.nodes, placement.taken, job.size, placement)
                return Slot(start, start + duration, share)
        return None

    def _allows(self, job: Job, start: float, own: Slot | None) -> bool:
        """Whether limits let a job start at a time; from its own time on, it has what it needs already."""
        if self._allowed is None:
            return True
        reserved = inf if own is None else own.start
        return self._allowed._least(start, min(start + job.walltime, reserved)) >= job.size

    def _may_stay(self, demand: Demand, free: Integers, steps: range, owned: int, own: Slot | None) -> bool:
        """Whether there may be room for all tasks in some steps, too, if so much is free before them.

        Only nodes that have room before are looked at, and only until they have too little: most are full.
        """
        useful = np.flatnonzero(demand.capacities(free))
        left = free[useful]
        given_back = np.zeros_like(left)
        if own is not None:
            _, places, rows = np.intersect1d(useful, own.amount.nodes, True, return_indices=True)
            given_back[places] = own.amount.taken[rows]
        for number, step in enumerate(steps, 1):
            later = self._free[step][useful]
            if step >= owned:
                later += given_back
            np.minimum(left, later, out=left)
            is_time = number & (number - 1) == 0 or number == len(steps)
            if is_time and int(demand.capacities(left).sum()) < demand.request.tasks:
                return False
        return True

    def take(self, slot: Slot) -> None:
        """So much of nodes is not free, nor are the licences of a job."""
        self._give(slot, -1)

    def give(self, slot: Slot) -> None:
        """They are free again."""
        self._give(slot, 1)

    def _give(self, slot: Slot, sign: int) -> None:
        if self._allowed is not None and slot.amount is not None:
            self._allowed._change(slot.start, slot.end, sign * slot.amount.nb_hosts)
        self._change(slot, sign)

    def start(self, running: RunningJob) -> None:
        """A job has started: it takes its nodes."""
        job = running.job
        placement = self._machine.placements.get(job.id)
        if placement is not None:
            share = Share(self._machine.asked[job.id], placement.nodes, placement.taken, running.nb_hosts)
            self._held[job.id] = slot = Slot(running.start, running.expected_end, share)
            self.take(slot)
            last = bisect_left(self._times, slot.end)
            if any((free[share.nodes] < 0).any() for free in self._free[self._step(slot.start) : last]):
                self._overbooked_until = max(self._overbooked_until, slot.end)

    def held_by(self, ended: RunningJob) -> Slot | None:
        """What a job had that has ended, if it is known."""
        return self._held.pop(ended.job.id, None)

    def choose(self, job: Job, slot: Slot | None) -> None:
        """If a job is started now, it goes to the place of its slot."""
        self._machine.choose(job, None if slot is None or slot.amount is None else slot.amount.placement)

    def _change(self, slot: Slot, sign: int) -> None:
        share: Share = slot.amount
        steps = self._range(slot.start, slot.end)
        if steps:
            more = sign * share.taken
            cores = int(more[:, CORES].sum())
            nodes, first, last = share.nodes, int(share.nodes[0]), int(share.nodes[-1])
            where = slice(first, last + 1) if last - first == len(nodes) - 1 else nodes  # slices are faster
            for step in steps:
                self._free[step][where] += more
                self._cores[step] += cores
            if share.demand.request.licences:
                for step in steps:
                    (self._licences[step].give if sign > 0 else self._licences[step].take)(share.demand)
            self._join(steps.stop, steps.start)

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""
        super().advance(now)
        if self._allowed is not None:
            self._allowed.advance(now)

    def _forget(self, past: int) -> None:
        super()._forget(past)
        del self._cores[:past], self._licences[:past]

    def _split(self, step: int) -> None:
        self._free.insert(step, self._free[step - 1].copy())
        self._cores.insert(step, self._cores[step - 1])
        self._licences.insert(step, self._licences[step - 1].copy())

    def _is_no_step(self, step: int) -> bool:
        if self._times[step] in self._openings or self._cores[step] != self._cores[step - 1]:
            return False
        if self._allowed is not None and self._times[step] in self._allowed._times:
            return False
        same = np.array_equal(self._free[step], self._free[step - 1])
        return same and self._licences[step].free == self._licences[step - 1].free

    def _remove(self, step: int) -> None:
        super()._remove(step)
        del self._cores[step], self._licences[step]


def _allowed(machine: FreeNodes, seen: Seen) -> AvailabilityProfile | None:
    """How many hosts may have a job, and when, as far as limits tell; nothing without limits."""
    if not seen.limits:
        return None
    unavailable = seen.hosts - seen.available
    usable = [(running, machine.usable(running, unavailable)) for running in seen.running]
    profile = AvailabilityProfile(seen.now, len(seen.available) - sum(count for _, count in usable))
    for running, count in usable:
        profile._change(max(running.expected_end, seen.now + TICK), inf, count)
    for limit in seen.limits:
        limit.narrow(profile)
    return profile
