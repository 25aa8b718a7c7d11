"""What is free on each node."""

from __future__ import annotations

from batsched_py.ledger.free import FreeHosts
from batsched_py.ledger.nodes.machine import CORES, NodeMachine
from batsched_py.ledger.nodes.placement import Placement
from batsched_py.protocol.hosts import HostSet


class FreeNodes(FreeHosts):
    """The free hosts, and the free amounts of each resource of the nodes.

    A host that is taken or given is a core of its node. Other resources are taken and given by jobs.
    """

    def __init__(self, machine: NodeMachine, hosts: HostSet) -> None:
        super().__init__(hosts)
        self.amounts = machine.has.copy()
        """A row a node."""
        self._machine = machine

    def take_lowest(self, count: int) -> HostSet:
        """Take the ones with the lowest numbers."""
        hosts = self.hosts().lowest(count)
        self.take(hosts)
        return hosts

    def take(self, hosts: HostSet) -> None:
        """Take these, all of which must be free."""
        super().take(hosts)
        self._count_cores(hosts, -1)

    def give(self, hosts: HostSet) -> None:
        """Give these back, none of which is free."""
        super().give(hosts)
        self._count_cores(hosts, 1)

    def take_amounts(self, placement: Placement) -> None:
        """Take what a job takes beside cores."""
        self.amounts[placement.nodes, CORES + 1 :] -= placement.taken[:, CORES + 1 :]

    def give_amounts(self, placement: Placement) -> None:
        """Give that back."""
        self.amounts[placement.nodes, CORES + 1 :] += placement.taken[:, CORES + 1 :]

    def _count_cores(self, hosts: HostSet, sign: int) -> None:
        machine = self._machine
        for first, last in hosts.runs():
            for node in machine.nodes_of(first, last):
                low = machine.nodes[node].first
                high = low + machine.nodes[node].cores - 1
                self.amounts[node, CORES] += sign * (min(high, last) - max(low, first) + 1)
