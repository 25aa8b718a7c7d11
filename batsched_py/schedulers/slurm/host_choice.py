"""Which hosts of its nodes a job runs on."""

from __future__ import annotations

from batsched_py.protocol.hosts import HostSet, Run
from batsched_py.schedulers.slurm.asked import Asked
from batsched_py.schedulers.slurm.nodes import Machine, Share, places


class Hosts:
    """The free hosts of each node; a host is a processor."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._free = [(1 << node.cpus) - 1 for node in machine.nodes]
        """Bits for the processors of each node."""

    def take(self, asked: Asked, share: Share) -> dict[int, int]:
        """Processors for a job, of each of its nodes, the first free ones."""
        if share.exclusive:
            counts = self._of_whole(asked, share.nodes)
        else:
            counts = {node: cpus for node, cpus, _ in share.parts}
        taken = {node: _lowest(self._free[node], count) for node, count in counts.items()}
        for node, bits in taken.items():
            self._free[node] &= ~bits
        return taken

    def give(self, taken: dict[int, int]) -> None:
        """A job has left its processors."""
        for node, bits in taken.items():
            self._free[node] |= bits

    def hosts(self, asked: Asked, share: Share, taken: dict[int, int], size: int) -> HostSet:
        """The hosts that a job of some size runs on, of the processors that it has taken.

        It may have more of them than it uses: then whole tasks are spread over all nodes.
        """
        counts = {node: bits.bit_count() for node, bits in taken.items()}
        used = self._used(asked, share, counts)
        if sum(used.values()) > size:
            unit = max(asked.unit // asked.cpus_of_each, 1)
            whole = {node: count - count % unit for node, count in used.items()}
            used, unit = (whole, unit) if sum(whole.values()) >= size else (used, 1)
            while (more := sum(used.values()) - size) > 0:
                used[max(used, key=used.__getitem__)] -= min(unit, more)
        if used != counts:
            taken = {node: _lowest(bits, used[node]) for node, bits in taken.items()}
        runs: list[Run] = []
        for node in sorted(taken, key=lambda node: self._machine.nodes[node].first):
            first, bits = self._machine.nodes[node].first, taken[node]
            while bits:
                low = (bits & -bits).bit_length() - 1
                length = ((bits >> low) + 1 & ~(bits >> low)).bit_length() - 1
                bits &= ~(((1 << length) - 1) << low)
                begin = first + low
                if runs and runs[-1][1] == begin - 1:
                    begin = runs.pop()[0]
                runs.append((begin, first + low + length - 1))
        return HostSet.of_runs(runs)

    def _used(self, asked: Asked, share: Share, held: dict[int, int]) -> dict[int, int]:
        """How many processors of its nodes a job can use at most: those of its cores with memory for it."""
        used = dict(held)
        if self._machine.gives_single_cpus and asked.cpus_of_each == 1:
            return used
        for node, cpus, memory in share.parts:
            used[node] = asked.usable_cpus(cpus, self._machine.threads[node])
            if asked.memory_per_cpu:
                used[node] = min(used[node], (memory - asked.memory_per_node) // asked.memory_per_cpu)
        return {node: -(-count // asked.cpus_of_each) for node, count in used.items()}

    def _of_whole(self, asked: Asked, nodes: int) -> dict[int, int]:
        """How many processors of each whole node a job uses.

        Each node gets a task, and then as many as it can take. Tasks that are left then are cut in parts.
        """
        of_task, left = asked.cpus_per_task, asked.tasks
        tasks = dict.fromkeys(places(nodes), 0)
        for most in (1, left):
            for node in tasks:
                more = min(asked.capacities[node] - tasks[node], most, left)
                tasks[node] += more
                left -= more
        counts = {node: count * of_task for node, count in tasks.items()}
        missing = left * of_task
        for node in counts:
            more = min(self._machine.cpus[node] - counts[node], missing)
            counts[node] += more
            missing -= more
        return {node: count for node, count in counts.items() if count}


def _lowest(bits: int, count: int) -> int:
    """The lowest of some bits, so many of them.

    >>> bin(_lowest(0b1101101, 3))
    '0b1101'
    """
    if bits.bit_count() <= count:
        return bits
    width = count
    while missing := count - (bits & (1 << width) - 1).bit_count():
        width += missing
    return bits & (1 << width) - 1
