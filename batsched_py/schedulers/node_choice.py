"""Which nodes a job gets; which of their hosts it gets is a matter of the selection."""

from collections.abc import Sequence

import numpy as np

from batsched_py.ledger.closed_hosts import ClosedHosts
from batsched_py.ledger.free_nodes import FreeNodes
from batsched_py.ledger.nodes import PLACES, Integers, NodeChoice, NodeMachine, Offer
from batsched_py.ledger.queue import Floats
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host
from batsched_py.schedulers.selection import NodeChoiceName, Selection


def free_nodes(
    hosts: Sequence[Host], choice: NodeChoiceName | NodeChoice, hosts_of: Selection | None
) -> FreeNodes:
    """What is free of the nodes that hosts make up, with this choice of nodes, or the one of this name."""
    nodes_of = CHOICES[choice] if isinstance(choice, str) else choice
    return FreeNodes(NodeMachine.of(hosts), HostSet.range(len(hosts)), nodes_of, hosts_of)


def closed_hosts(
    hosts: Sequence[Host], choice: NodeChoiceName | NodeChoice, hosts_of: Selection | None
) -> FreeNodes:
    """The same, of hosts without nodes that are closed at known times; no choice of ours tells them apart."""
    machine = NodeMachine.of(hosts)
    if callable(choice) or not machine.are_hosts:
        return free_nodes(hosts, choice, hosts_of)
    return ClosedHosts(machine, HostSet.range(len(hosts)), first_fit, hosts_of)


def first_fit(offer: Offer) -> tuple[Integers, bool]:
    """In the order of the machine."""
    return np.arange(len(offer.nodes)), False


def best_fit(offer: Offer) -> tuple[Integers, bool]:
    """The nodes of which the least is free."""
    return np.argsort(_free_share(offer), kind="stable"), False


def worst_fit(offer: Offer) -> tuple[Integers, bool]:
    """The nodes of which the most is free."""
    return np.argsort(-_free_share(offer), kind="stable"), False


def consolidate(offer: Offer) -> tuple[Integers, bool]:
    """As few nodes as possible: those that take the most tasks; of equal ones the fullest."""
    tasks = np.minimum(offer.capacities, offer.demand.request.tasks)
    return np.lexsort((_free_share(offer), -tasks)), False


def spread(offer: Offer) -> tuple[Integers, bool]:
    """As many nodes as possible, one task after another, the emptiest first."""
    return np.argsort(-_free_share(offer), kind="stable"), True


def dominant_resource(offer: Offer) -> tuple[Integers, bool]:
    """The nodes that have least of what the job needs most of, by its share of a node."""
    needed = offer.demand.per_task
    shares = needed / np.maximum(offer.has, 1)
    shares[:, PLACES] = 0
    dominant = shares.argmax(axis=1)
    rows = np.arange(len(offer.nodes))
    free = offer.free[rows, dominant] / np.maximum(offer.has[rows, dominant], 1)
    return np.argsort(free, kind="stable"), False


def fewest_switches(offer: Offer) -> tuple[Integers, bool]:
    """From the switch that just holds the job; where none does, from those that hold most of it."""
    tasks = offer.demand.request.tasks
    holds = np.bincount(offer.switches, np.minimum(offer.capacities, tasks))[offer.switches]
    enough = holds >= tasks
    return np.lexsort((offer.switches, np.where(enough, holds, -holds), ~enough)), False


def _free_share(offer: Offer) -> Floats:
    """How much of each node is free, over all its resources."""
    share = np.zeros(len(offer.nodes))
    for column in range(offer.has.shape[1]):
        if column != PLACES:
            share += offer.free[:, column] / np.maximum(offer.has[:, column], 1)
    return share


#: All choices by name, in the order in which the native engine numbers them.
CHOICES: dict[NodeChoiceName, NodeChoice] = {
    "first-fit": first_fit,
    "best-fit": best_fit,
    "worst-fit": worst_fit,
    "consolidate": consolidate,
    "spread": spread,
    "dominant-resource": dominant_resource,
    "fewest-switches": fewest_switches,
}
