"""Which of the free hosts a job gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Literal

from batsched_py.errors import InputError
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.hosts import HostSet

#: Given the free hosts and how many are needed, which of them to take.
Selection = Callable[[HostSet, int], HostSet]

SelectionName = Literal[
    "lowest", "contiguous", "best-fit", "spread", "random", "fastest", "fewest-switches", "least-loaded"
]


#: How the nodes are chosen whose hosts are selected; see :mod:`~batsched_py.schedulers.node_choice`.
NodeChoiceName = Literal[
    "first-fit", "best-fit", "worst-fit", "consolidate", "spread", "dominant-resource", "fewest-switches"
]


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
