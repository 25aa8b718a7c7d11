"""How fast tasks compute that share nothing: SimGrid's model of parallel tasks (L07), without its network.

All executors of a task advance together, at the pace of the slowest. An executor uses one core at most, and
all executors on a host share its cores.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.profiles import Computation, Speeds
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.platform import PlatformHost

#: Says that the task of an execution will be done in so many seconds.
DoneIn = Callable[[Execution, float], None]


class Computing:
    """Computation on hosts of which each works for one job: how long a task takes is known when it begins."""

    def __init__(
        self, hosts: Sequence[PlatformHost], agenda: Agenda, done_in: DoneIn, meter: Meter | None
    ) -> None:
        self._agenda = agenda
        self._done_in = done_in
        self._meter = meter
        self._speeds = [host.speed for host in hosts]
        """Of one core of each host, in its present power state."""
        self._cores = [host.cores for host in hosts]
        self.even_speeds = Speeds(self._speeds[0]) if len(set(self._speeds)) == 1 else None
        """The speeds of any executors, when all hosts are equally fast."""

    def set_speed(self, host: int, speed: float) -> None:
        """The host has another power state from now on."""
        if speed != self._speeds[host]:
            self._speeds[host] = speed
            self.even_speeds = None
            self.__dict__.pop("_changes", None)

    def speed(self, host: int) -> float:
        """What one core of a host executes in a second."""
        return self._speeds[host]

    def capacity(self, host: int) -> float:
        """What all cores of a host execute in a second."""
        return self._speeds[host] * self._cores[host]

    @cached_property
    def _changes(self) -> list[int]:
        """The hosts that are not as fast as the one before."""
        speeds = self._speeds
        return [host for host in range(1, len(speeds)) if speeds[host] != speeds[host - 1]]

    def speeds(self, hosts: HostSet) -> Speeds:
        """The speeds of executors, one on each host, given by stretches of equally fast hosts."""
        speeds, changes = self._speeds, self._changes
        stretches: list[tuple[int, float]] = []
        for first, last in hosts.runs():
            for host in changes[bisect_right(changes, first) : bisect_right(changes, last)]:
                stretches.append((host - first, speeds[first]))
                first = host
            stretches.append((last + 1 - first, speeds[first]))
        return Speeds(min([speed for _, speed in stretches]), stretches)

    def executors(self, hosts: HostSet, mapping: Sequence[int]) -> tuple[list[int], Speeds]:
        """The host of each executor, and their speeds, when they are not one on each host in order."""
        places = list(hosts)
        executors = [places[place] for place in mapping]
        speeds = [self._speeds[host] for host in executors]
        return executors, Speeds(min(speeds), [(1, speed) for speed in speeds])

    def begin(self, execution: Execution, task: Computation) -> None:
        """A task begins to compute."""
        seconds = task.seconds(execution.nb_executors, execution.speeds)
        if execution.executors is not None or self._meter is not None:
            work = work_by_host(execution, task)
            seconds = max(seconds, max([flops / self.capacity(host) for host, flops in work.items()]))
            if self._meter is not None and seconds > 0:
                for host, flops in work.items():
                    self._meter.put_load(host, flops / seconds / self.capacity(host))
        self._done_in(execution, seconds)

    def stop(self, execution: Execution) -> None:
        """A task computes no more, if it did."""
        if self._meter is not None:
            for host in execution.hosts:
                self._meter.put_load(host, 0.0)

    def done(self, execution: Execution, task: Computation) -> float:
        """Which part of a task is done."""
        seconds = task.seconds(execution.nb_executors, execution.speeds)
        if execution.executors is not None:
            for host, flops in work_by_host(execution, task).items():
                seconds = max(seconds, flops / self.capacity(host))
        return min((self._agenda.clock - execution.task_start) / seconds, 1.0) if seconds > 0 else 1.0


def work_by_host(execution: Execution, task: Computation) -> dict[int, float]:
    """The flops that all executors of a task have to do on each host."""
    executors = execution.places()
    work = dict.fromkeys(executors, 0.0)
    for host, flops in zip(executors, task.flops(len(executors)), strict=True):
        work[host] += flops
    return work
