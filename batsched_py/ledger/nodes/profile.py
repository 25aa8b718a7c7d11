"""What will be free on each node, and when."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf

import numpy as np

from batsched_py.ledger.nodes.account import NOWHERE, NodeAccount
from batsched_py.ledger.nodes.demand import Demand
from batsched_py.ledger.nodes.machine import Integers
from batsched_py.ledger.nodes.placement import Placement
from batsched_py.protocol.hosts import HostSet


class NodeProfile:
    """The free amounts of all nodes as a step function of time, from now on, and the free licences."""

    def __init__(self, account: NodeAccount, now: float, to_wake: HostSet = NOWHERE) -> None:
        """Hosts ``to_wake`` count as free."""
        self._account = account
        self._times = [now]
        self._free = [account.with_cores(to_wake)]
        self._licences = [account.licences.copy()]
        self._openings = frozenset(account.closures.ends) if account.closures else frozenset()
        """When nodes open again: jobs may start then, although nothing else changes."""
        for opening in sorted(self._openings):
            if opening > now:
                self._step(opening)

    def earliest(
        self, demand: Demand, duration: float, user: str | None = None, before: float = inf
    ) -> tuple[float, Placement] | None:
        """The earliest time from which there is a place for so long, and that place.

        Nodes may be closed to a ``user``. There is no place if it would not be ``before`` some time.
        """
        times, account = self._times, self._account
        for step, start in enumerate(times):
            if start >= before:
                return None
            end = bisect_left(times, start + duration) if duration < inf else len(times)
            steps = range(step, max(end, step + 1))
            if account.has_licences(demand, self._licences[step]) and all(
                account.has_licences(demand, self._licences[later]) for later in steps
            ):
                free = account.open_at(user, start, start + duration, self._free[step])
                if demand.nodes(free) is None:
                    continue
                for later in steps:
                    free = np.minimum(free, self._free[later])
                placement = account.place(demand, free)
                if placement is not None:
                    return start, placement
        return None

    def take(self, start: float, end: float, demand: Demand, nodes: Integers, taken: Integers) -> None:
        """Let so much of nodes be taken from ``start`` until ``end``, and the licences of a job."""
        self._change(start, end, demand, nodes, -taken, -1)

    def give(self, start: float, end: float, demand: Demand, nodes: Integers, taken: Integers) -> None:
        """Let so much more be free from ``start`` until ``end``."""
        self._change(start, end, demand, nodes, taken, 1)

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""
        past = bisect_right(self._times, now) - 1
        del self._times[:past], self._free[:past], self._licences[:past]
        self._times[0] = now

    def _change(
        self, start: float, end: float, demand: Demand, nodes: Integers, change: Integers, sign: int
    ) -> None:
        start = max(start, self._times[0])
        if not start < end:
            return
        first = self._step(start)
        last = self._step(end) if end < inf else len(self._times)
        for step in range(first, last):
            self._free[step][nodes] += change
            for name, count in demand.request.licences:
                self._licences[step][name] += sign * count
        for step in (last, first):
            if 0 < step < len(self._times) and self._is_no_step(step):
                del self._times[step], self._free[step], self._licences[step]

    def _is_no_step(self, step: int) -> bool:
        """Whether nothing changes when a step begins."""
        if self._times[step] in self._openings:
            return False
        same = np.array_equal(self._free[step], self._free[step - 1])
        return same and self._licences[step] == self._licences[step - 1]

    def _step(self, time: float) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._free.insert(step, self._free[step - 1].copy())
            self._licences.insert(step, dict(self._licences[step - 1]))
        return step
