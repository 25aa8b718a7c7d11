"""A network of so many equal hosts, from a few numbers."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.simulator.network.clusters import Cluster, FatTree, Wiring
from batsched_py.simulator.network.links import Link
from batsched_py.simulator.network.routing import Network
from batsched_py.simulator.network.units import parse_bandwidth, parse_latency
from batsched_py.simulator.network.zones import Router


class SimpleNetwork(Struct, frozen=True):
    """What is said of a network: bandwidths and latencies with units, the shape of a fat tree."""

    bandwidth: str
    latency: str = "0"
    backbone: str | None = None
    fat_tree: str | None = None

    def build(self, hosts: int) -> Network:
        """The network of so many hosts, called host0, host1 and so on. The master stands at the router."""
        wiring = Wiring(
            self._read("bandwidth", parse_bandwidth, self.bandwidth),
            self._read("latency", parse_latency, self.latency),
            backbone=self._backbone(),
        )
        names, numbers = [f"host{number}" for number in range(hosts)], range(hosts)
        if self.fat_tree is None:
            cluster = Cluster("network", None, names, numbers, wiring)
        else:
            cluster = FatTree("network", None, names, numbers, wiring)
            try:
                cluster.shape(self.fat_tree)
            except ValueError as error:
                raise InputError(f"--fat-tree {self.fat_tree}: {error}") from None
        return Network(cluster.hosts, Router("master", cluster))

    def _backbone(self) -> Link | None:
        if self.backbone is None:
            return None
        if self.fat_tree is not None:
            raise InputError("--backbone is for hosts behind one switch; a --fat-tree has none")
        latency = self._read("latency", parse_latency, self.latency)
        return Link("backbone", self._read("backbone", parse_bandwidth, self.backbone), latency)

    @staticmethod
    def _read(name: str, parse: Callable[[str], float], text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise InputError(f"--{name}: {error}") from None
