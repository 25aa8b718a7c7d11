"""What fails or is closed as a whole: a node with all its cores, or a host of a plain machine."""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host


class Units:
    """The nodes of a machine by name, each with its hosts; on a plain machine, the hosts.

    >>> units = Units([Host(0, "a", properties={"node": "n1"}), Host(1, "b", properties={"node": "n1"})])
    >>> units.by_name
    {'n1': HostSet.parse('0-1')}
    >>> units.named("1")
    HostSet.parse('0-1')
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        numbers: dict[str, list[int]] = {}
        self._partitions: dict[str, list[int]] = {}
        for host in hosts:
            numbers.setdefault(host.properties.get("node", host.name), []).append(host.id)
            for partition in host.properties.get("partitions", "").split():
                self._partitions.setdefault(partition, []).append(host.id)
        self.all = HostSet.range(len(hosts))
        self.by_name = {name: HostSet.of(ids) for name, ids in numbers.items()}

    def named(self, text: str) -> HostSet:
        """The hosts of whole units: ``all``, names of nodes or partitions, or numbers like ``0-3 7``.

        A number of a host stands for the whole node.
        """
        if text.strip() == "all":
            return self.all
        mask = 0
        for word in text.split():
            mask |= self._one(word).mask
        if not mask:
            raise ValueError("no hosts are named")
        return HostSet(mask)

    def _one(self, word: str) -> HostSet:
        if word in self.by_name:
            return self.by_name[word]
        if word in self._partitions:
            return HostSet.of(self._partitions[word])
        try:
            hosts = HostSet.parse(word)
        except ValueError:
            raise ValueError(f"{word!r} is no node, no partition and no number of a host") from None
        if hosts.mask & ~self.all.mask:
            raise ValueError(f"hosts {hosts - self.all} do not exist")
        mask = 0
        for unit in self.by_name.values():
            if unit.mask & hosts.mask:
                mask |= unit.mask
        return HostSet(mask)
