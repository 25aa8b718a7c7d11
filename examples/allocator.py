"""An allocator of your own: large jobs get the first hosts and nodes, small ones the last; few gaps remain.

batsched-py run -w LOG.swf -s easy -o allocator=examples/allocator.py:BothEnds
batsched-py run -w LOG.swf -p platforms/nodes64.toml -s easy -o allocator=examples/allocator.py:BothEnds
"""

from collections.abc import Sequence

from batsched_py.ledger.nodes import Offer
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers.selection import Allocator


class BothEnds(Allocator):
    """Jobs of at least an eighth of the machine from its beginning, all others from its end."""

    def begin(self, machine: SimulationBegins) -> None:
        """What is large depends on the machine."""
        self.large = len(machine.hosts) / 8

    def hosts(self, free: HostSet, count: int) -> HostSet:
        """The hosts with the lowest or the highest numbers."""
        return free.lowest(count) if count >= self.large else HostSet.of(list(free)[-count:])

    def nodes(self, offer: Offer) -> Sequence[int]:
        """The same of nodes: their places in the offer are in the order of the machine."""
        places = range(len(offer.nodes))
        return places if offer.demand.request.tasks >= self.large else places[::-1]
