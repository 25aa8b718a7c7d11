"""Which of the free hosts a job gets: some ways that have names, and allocators of your own.

To write one, subclass :class:`Allocator`; ``examples/allocator.py`` is one. It also says which nodes a job
gets, for which :mod:`~batsched_py.schedulers.node_choice` has names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from batsched_py.blame import naming
from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.hosts import HostSet

if TYPE_CHECKING:
    from random import Random

    from batsched_py.ledger.nodes import NodeChoice, Offer
    from batsched_py.schedulers.base import Scheduler

#: Given the free hosts and how many are needed, which of them to take.
Selection = Callable[[HostSet, int], HostSet]

SelectionName = Literal[
    "lowest", "contiguous", "best-fit", "spread", "random", "fastest", "fewest-switches", "least-loaded"
]


#: How the nodes are chosen whose hosts are selected; see :mod:`~batsched_py.schedulers.node_choice`.
NodeChoiceName = Literal[
    "first-fit", "best-fit", "worst-fit", "consolidate", "spread", "dominant-resource", "fewest-switches"
]


class Allocator:
    """Says which hosts a job gets, and which nodes on a machine of nodes; a subclass has one of both methods.

    Without the other, jobs get the hosts with the lowest numbers, and nodes in the order of the machine.
    """

    name: ClassVar[str]
    """What it is called; without it, as its class in small letters."""
    one_by_one: ClassVar[bool] = False
    """Whether nodes get one task after another in turn; else each gets as many as it can take."""

    def begin(self, machine: SimulationBegins) -> None:
        """Prepare; called once, with the machine as the simulator presents it."""

    def hosts(self, free: HostSet, count: int) -> HostSet:
        """So many of the free hosts; on a machine of nodes, of those of one node."""
        return free.lowest(count)

    def nodes(self, offer: Offer) -> Sequence[int]:
        """The places in an offer of the nodes that could take tasks of a job, the best first."""
        return range(len(offer.nodes))


#: Those of other distributions, and in files.
ALLOCATORS = Registry[Allocator]("allocator", Allocator, package=None, group="batsched_py.allocators")


def allocation(
    scheduler: Scheduler, machine: SimulationBegins
) -> tuple[Selection | None, NodeChoiceName | NodeChoice]:
    """Which hosts and which nodes the jobs of a scheduler get, as its options say."""
    if scheduler.allocator:
        if (scheduler.selection, scheduler.nodes) != ("lowest", "first-fit"):
            raise InputError(
                "an allocator takes the place of the options selection and nodes; leave them out"
            )
        return allocating(scheduler.allocator, machine)
    return selection(scheduler.selection, machine, scheduler.selection_seed), scheduler.nodes


def allocating(given: str | Allocator, machine: SimulationBegins) -> tuple[Selection, NodeChoice]:
    """What an allocator says of hosts and of nodes; what it gives back is checked."""
    allocator = ALLOCATORS.instance(given)
    name = str(getattr(allocator, "name", type(allocator).__name__.lower()))
    with naming(f"allocator {name!r}"):
        allocator.begin(machine)

    def hosts(free: HostSet, count: int) -> HostSet:
        with naming(f"allocator {name!r}"):
            chosen = allocator.hosts(free, count)
        if not isinstance(chosen, HostSet) or len(chosen) != count or chosen - free:
            raise InputError(f"allocator {name!r} gives {chosen}, and not {count} of the hosts {free}")
        return chosen

    def nodes(offer: Offer) -> tuple[Any, bool]:
        import numpy as np

        with naming(f"allocator {name!r}"):
            places = np.asarray(allocator.nodes(offer), np.int64)
        if not np.array_equal(np.sort(places), np.arange(len(offer.nodes))):
            raise InputError(f"allocator {name!r} gives {places.tolist()}, and not {len(offer.nodes)} places")
        return places, allocator.one_by_one

    return hosts, nodes


def selection(name: SelectionName, machine: SimulationBegins, seed: int) -> Selection | None:
    """The selection of this name, for a machine as the simulator presents it.

    There is none for the hosts with the lowest numbers: the ledger hands those out by itself.
    """
    match name:
        case "lowest":
            return None
        case "contiguous":
            return contiguous
        case "best-fit":
            return best_fit
        case "spread":
            return spread
        case "random":
            from random import Random

            return partial(at_random, Random(seed))
        case "fastest":
            return partial(fastest, tiers(speeds(machine)))
        case "fewest-switches":
            return partial(fewest_switches, behind_switches(machine))
        case "least-loaded":
            return partial(least_loaded, behind_switches(machine))


def contiguous(free: HostSet, count: int) -> HostSet:
    """The first ones in a row; where no row of free hosts is long enough, those with the lowest numbers.

    >>> str(contiguous(HostSet.parse("0-1 3-6"), 3))
    '3-5'
    """
    for first, last in free.runs():
        if last - first + 1 >= count:
            return HostSet(((1 << count) - 1) << first)
    return free.lowest(count)


def best_fit(free: HostSet, count: int) -> HostSet:
    """From the shortest row that is long enough; where there is none, from as few rows as possible.

    >>> str(best_fit(HostSet.parse("0-4 6-7 9-11"), 2))
    '6-7'
    >>> str(best_fit(HostSet.parse("0-4 6-7 9-11"), 7))
    '0-4 6-7'
    """
    return _from_fewest([HostSet.of_runs([run]) for run in free.runs()], count)


def fewest_switches(switches: Sequence[HostSet], free: HostSet, count: int) -> HostSet:
    """From the switch that has just enough free hosts; where none has, from as few switches as possible.

    >>> pair, three = HostSet.parse("0-1"), HostSet.parse("2-4")
    >>> str(fewest_switches([three, pair], HostSet.range(5), 2))
    '0-1'
    """
    return _from_fewest([switch & free for switch in switches], count)


def least_loaded(switches: Sequence[HostSet], free: HostSet, count: int) -> HostSet:
    """From the switch of whose hosts the largest share is free, then from the next one.

    A decision process does not know what links carry at present. Busy hosts are what it knows.

    >>> two, four = HostSet.parse("0-1"), HostSet.parse("2-5")
    >>> str(least_loaded([two, four], HostSet.parse("1-4"), 2))
    '2-3'
    """
    taken = HostSet()
    for switch in sorted(switches, key=lambda switch: -len(switch & free) / len(switch)):
        taken |= (switch & free).lowest(count - len(taken))
        if len(taken) == count:
            break
    return taken


def _from_fewest(groups: Iterable[HostSet], count: int) -> HostSet:
    """From the smallest group that is large enough; where there is none, from as few groups as possible."""
    left = sorted((group for group in groups if group), key=len)
    taken = HostSet()
    while left and count:
        place = next((place for place, group in enumerate(left) if len(group) >= count), len(left) - 1)
        part = left.pop(place).lowest(count)
        taken |= part
        count -= len(part)
    return taken


def spread(free: HostSet, count: int) -> HostSet:
    """At even distances over the free hosts.

    >>> str(spread(HostSet.parse("0-7"), 4))
    '0 2 4 6'
    """
    hosts = list(free)
    return HostSet.of(hosts[place * len(hosts) // count] for place in range(count))


def at_random(random: Random, free: HostSet, count: int) -> HostSet:
    """Any of them, all choices being equally likely."""
    return HostSet.of(random.sample(list(free), count))


def fastest(tiers: Sequence[HostSet], free: HostSet, count: int) -> HostSet:
    """The fastest ones, given the hosts in tiers of equal speed, fastest first."""
    taken = HostSet()
    for tier in tiers:
        taken |= (free & tier).lowest(count - len(taken))
        if len(taken) == count:
            break
    return taken


def tiers(speeds: Sequence[float]) -> list[HostSet]:
    """The hosts in tiers of equal speed, fastest first."""
    hosts: dict[float, list[int]] = {}
    for host, speed in enumerate(speeds):
        hosts.setdefault(speed, []).append(host)
    return [HostSet.of(hosts[speed]) for speed in sorted(hosts, reverse=True)]


def speeds(machine: SimulationBegins) -> list[float]:
    """Of each host what the simulator says, else the property ``speed`` that the platform may give it."""
    if machine.speeds is not None:
        return machine.speeds
    try:
        return [float(host.properties["speed"]) for host in machine.hosts]
    except KeyError:
        raise InputError(
            "the speeds of the hosts are unknown, because Batsim's protocol does not tell them; to select "
            "the fastest, give each host of the platform a property `speed`"
        ) from None
    except ValueError as error:
        raise InputError(f"the property `speed` of a host is not a number: {error}") from None


def behind_switches(machine: SimulationBegins) -> list[HostSet]:
    """The hosts behind each switch, in the order of their first hosts."""
    if machine.switches is None:
        raise InputError(
            "the switches of the hosts are unknown: a machine without a network has none, and messages of "
            "Batsim's protocol do not tell them. Use `batsched-py run` with a platform file or --bandwidth; "
            "elsewhere, give each host of the platform a property `switch` and choose by -o "
            "nodes=fewest-switches"
        )
    hosts: dict[str, list[int]] = {}
    for host, switch in enumerate(machine.switches):
        hosts.setdefault(switch, []).append(host)
    return [HostSet.of(each) for each in hosts.values()]
