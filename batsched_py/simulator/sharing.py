"""Hosts that several jobs compute on at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from batsched_py.protocol.profiles import Computation
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.computing import Computing, DoneIn, work_by_host
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.platform import PlatformHost

#: What is left of a host's flop/s below this is nothing, for SimGrid.
LEAST_REST = 1e-5


class Share(Struct, eq=False):
    """A task that computes, and how fast it does at present."""

    execution: Execution
    work: dict[int, float]
    """Flops by host."""
    most: float
    """The rate at which it would advance if each executor had a core for itself."""
    rate: float = 0.0
    """Which part of the whole is done in a second."""
    left: float = 1.0
    """Which part of the whole was left at the last change of the rate."""
    since: float = 0.0


class SharedComputing(Computing):
    """Computation on hosts that jobs share: the pace of all changes whenever a task begins or ends."""

    def __init__(
        self, hosts: Sequence[PlatformHost], agenda: Agenda, done_in: DoneIn, meter: Meter | None
    ) -> None:
        super().__init__(hosts, agenda, done_in, meter)
        self._shares: dict[str, Share] = {}

    def begin(self, execution: Execution, task: Computation) -> None:
        """A task begins to compute; others on its hosts slow down."""
        seconds = task.seconds(execution.nb_executors, execution.speeds)
        if seconds > 0:
            work = {host: flops for host, flops in work_by_host(execution, task).items() if flops > 0}
            self._shares[execution.job.id] = Share(execution, work, 1 / seconds, since=self._agenda.clock)
            self._share_out(())
        else:
            self._done_in(execution, 0.0)

    def stop(self, execution: Execution) -> None:
        """A task computes no more; others on its hosts speed up."""
        share = self._shares.pop(execution.job.id, None)
        if share is not None:
            self._share_out(share.work)

    def done(self, execution: Execution, task: Computation) -> float:
        """Which part of a task is done."""
        share = self._shares.get(execution.job.id)
        if share is None:
            return 1.0
        return min(1.0 - share.left + share.rate * (self._agenda.clock - share.since), 1.0)

    def _share_out(self, left_hosts: Iterable[int]) -> None:
        """Find the pace of every task anew; some hosts may have been left by one."""
        shares, now = list(self._shares.values()), self._agenda.clock
        used = dict.fromkeys(left_hosts, 0.0)
        capacity = {host: self._capacity(host) for share in shares for host in share.work}
        rates = fair_rates([share.work for share in shares], [share.most for share in shares], capacity)
        for share, rate in zip(shares, rates, strict=True):
            for host, flops in share.work.items():
                used[host] = used.get(host, 0.0) + flops * rate
            if rate != share.rate:
                share.left = max(share.left - share.rate * (now - share.since), 0.0)
                share.rate, share.since = rate, now
                if share.execution.agenda_number:
                    self._agenda.cancel(share.execution.agenda_number)
                self._done_in(share.execution, share.left / rate)
        if self._meter is not None:
            for host, flops in used.items():
                self._meter.put_load(host, flops / self._capacity(host))


def fair_rates(
    work: Sequence[Mapping[int, float]], most: Sequence[float], capacity: Mapping[int, float]
) -> list[float]:
    """The rates at which tasks advance when they share hosts fairly: SimGrid's *fair bottleneck*.

    In each round, what is left of a host is divided evenly among the tasks that still want of it, and each
    task takes of all its hosts what the scarcest of them allows. Who has met a used-up host, or its own
    bound, is done.

    >>> fair_rates([{0: 8.0}, {0: 8.0, 1: 8.0}], [0.125, 0.125], {0: 1.0, 1: 0.25})
    [0.09375, 0.03125]
    """
    rates = [0.0] * len(work)
    rest = dict(capacity)
    active = list(range(len(work)))
    while active:
        wanted = dict.fromkeys(rest, 0)
        for task in active:
            for host in work[task]:
                wanted[host] += 1
        gains = {
            task: min(
                most[task] - rates[task],
                min([rest[host] / wanted[host] / flops for host, flops in work[task].items()]),
            )
            for task in active
        }
        for task, gain in gains.items():
            rates[task] += gain
            for host, flops in work[task].items():
                rest[host] -= flops * gain
        active = [
            task
            for task in active
            if rates[task] < most[task] and all(rest[host] >= LEAST_REST for host in work[task])
        ]
    return rates
