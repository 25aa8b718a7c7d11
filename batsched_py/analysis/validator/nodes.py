"""The nodes of a machine, what jobs ask of them and have of them, and what is free: an account of its own.

It is written from ``docs/machines.md`` and shares no code with what makes the schedules that it is to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.analysis.schedule import full_ids, host_sets, started_again
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import NODE_PROPERTIES, Host, Job
from batsched_py.protocol.requests import Request, amount, parse_features, read_request
from batsched_py.protocol.sizes import SIZES, shaped
from batsched_py.workload.model import Workload

Integers = NDArray[np.int64]

#: What the jobs of workloads ask for, by their full identifiers.
Requests = Mapping[str, Request]

#: So many jobs may be on a node. A job that must have it alone takes all of these places.
PLACES: Final = 1 << 40


class Node(Struct):
    """Some cores, which are hosts, with what they share."""

    name: str
    first: int
    """Its first host."""
    resources: dict[str, int]
    """How much it has of each: of its cores, which are hosts, and of all else."""
    features: frozenset[str]
    switch: str
    partitions: list[str]


class Nodes:
    """The nodes that hosts make up, as their properties tell, and the licences of the machine."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        found: dict[str, Node] = {}
        for host in hosts:
            name, tells = host.properties.get("node", host.name), host.properties
            if name not in found:
                found[name] = Node(
                    name,
                    host.id,
                    {"cores": 0} | _amounts(tells.get("resources", "")),
                    frozenset(tells.get("features", "").split()),
                    tells.get("switch", ""),
                    tells.get("partitions", "").split(),
                )
            found[name].resources["cores"] += 1
        self.all = list(found.values())
        self.licences = _amounts(hosts[0].zone_properties.get("licences", ""))
        names = dict.fromkeys(name for node in self.all for name in node.resources if name != "cores")
        self.resources = ["cores", "places", *names]
        """The columns of amounts."""
        self.has: Integers = np.array([self.row(node.resources | {"places": PLACES}) for node in self.all])
        """What each node has, a row a node."""
        numbers = {switch: number for number, switch in enumerate(dict.fromkeys(n.switch for n in self.all))}
        self.switches = [numbers[node.switch] for node in self.all]
        """The number of the switch that each node is behind."""
        self._node_of = np.repeat(np.arange(len(self.all)), [node.resources["cores"] for node in self.all])
        self._demands: dict[Request, Demand] = {}

    @classmethod
    def of(cls, hosts: Sequence[Host]) -> Nodes | None:
        """The nodes of a machine, if its hosts are more than hosts."""
        told = any(name in host.properties for host in hosts for name in NODE_PROPERTIES)
        return cls(hosts) if told else None

    def empty(self) -> Room:
        """What is free if no job runs."""
        return Room(self, self.has.copy(), dict(self.licences))

    def demand(self, request: Request) -> Demand:
        """What a request means on this machine."""
        if request not in self._demands:
            self._demands[request] = Demand(self, request)
        return self._demands[request]

    def cores(self, hosts: HostSet) -> dict[int, int]:
        """How many of some hosts are cores of which node; hosts beyond the machine are left out."""
        known = np.array(list(hosts & HostSet.range(len(self._node_of))), np.int64)
        nodes, counts = np.unique(self._node_of[known], return_counts=True)
        return dict(zip(nodes.tolist(), counts.tolist(), strict=True))

    def row(self, amounts: Mapping[str, int]) -> Integers:
        """Amounts as a row of columns; what the machine does not have is left out."""
        return np.array([amounts.get(name, 0) for name in self.resources], np.int64)


def _amounts(text: str) -> dict[str, int]:
    """Amounts as a property of a host gives them, such as ``memory=256GB gpu=4``."""
    parts = (part.partition("=") for part in text.split())
    return {name: amount(name, value) for name, _, value in parts}


class Place(Struct, frozen=True, eq=False):
    """The nodes of a job, and what it takes of each, a row a node."""

    nodes: Integers
    taken: Integers


class Demand:
    """What a job asks for on a machine of nodes."""

    def __init__(self, machine: Nodes, request: Request) -> None:
        self.request = request
        self.licences = dict(request.licences)
        self.per_task = machine.row(dict(request.per_task) | {"cores": request.cores})
        places = PLACES if request.exclusive else 1
        self.per_node = machine.row(dict(request.per_node) | {"places": places})
        asked = {name for name, _ in (*request.per_task, *request.per_node)}
        lacks = bool(asked - {*machine.resources} or self.licences.keys() - machine.licences)
        self.alternatives = [] if lacks else list(self._alternatives(machine))
        """Nodes on which all of the job may be, the preferred ones first."""

    def _alternatives(self, machine: Nodes) -> Iterator[list[int]]:
        """In each of its partitions: all nodes that are meant, or before them those behind one switch."""
        meant = parse_features(self.request.features) if self.request.features else lambda _: True
        for partition in self.request.partitions or [None]:
            nodes = [
                number
                for number, node in enumerate(machine.all)
                if meant(node.features) and (partition is None or partition in node.partitions)
            ]
            if self.request.one_switch:
                for switch in dict.fromkeys(machine.switches):
                    yield [number for number in nodes if machine.switches[number] == switch]
            yield nodes

    def place(self, cores: Mapping[int, int]) -> Place:
        """What it takes where it has so many cores of nodes."""
        nodes = np.array(list(cores), np.int64)
        tasks = np.array([count // self.request.cores for count in cores.values()], np.int64)
        return Place(nodes, tasks[:, None] * self.per_task + self.per_node)

    def capacities(self, free: Integers) -> list[int]:
        """How many of its tasks each node could take, of which so much is free."""
        left, needed = free - self.per_node, self.per_task > 0
        tasks = (left[:, needed] // self.per_task[needed]).min(axis=1)
        tasks[(left < 0).any(axis=1)] = 0
        most: list[int] = np.clip(tasks, 0, min(self.request.tasks, self.request.tasks_per_node)).tolist()
        return most

    def nodes(self, free: Integers) -> dict[int, int] | None:
        """The first alternative that holds all tasks, as capacities of its nodes that can take any."""
        capacities = self.capacities(free)
        for nodes in self.alternatives:
            usable = {node: capacities[node] for node in nodes if capacities[node]}
            most = sorted(usable.values(), reverse=True)[: self.request.most_nodes]
            if len(usable) >= self.request.least_nodes and sum(most) >= self.request.tasks:
                return usable
        return None


class Room(Struct, eq=False):
    """What is free of nodes, and of licences."""

    machine: Nodes
    amounts: Integers
    licences: dict[str, int]

    def __copy__(self) -> Room:
        return Room(self.machine, self.amounts.copy(), dict(self.licences))

    def __eq__(self, other: object) -> bool:
        """Whether the same is free in another one."""
        if not isinstance(other, Room):
            return NotImplemented
        return self.licences == other.licences and np.array_equal(self.amounts, other.amounts)

    def change(self, demand: Demand, place: Place, sign: int) -> None:
        """A job takes its place (-1), or gives it back (1)."""
        self.amounts[place.nodes] += sign * place.taken
        for name, count in demand.licences.items():
            self.licences[name] = self.licences.get(name, 0) + sign * count

    def has_licences(self, demand: Demand) -> bool:
        """Whether the licences that a job asks for are free."""
        return all(self.licences.get(name, 0) >= count for name, count in demand.licences.items())

    def holds(self, demand: Demand) -> bool:
        """Whether a job would find a place."""
        return self.has_licences(demand) and demand.nodes(self.amounts) is not None

    def place(self, demand: Demand, choice: str) -> Place | None:
        """Where a choice of nodes puts a job, if it fits."""
        usable = demand.nodes(self.amounts) if self.has_licences(demand) else None
        if usable is None:
            return None
        rank = CHOICES[choice](self, demand, usable)
        order = sorted(usable, key=lambda node: (rank(node), node))
        deal = _dealt if choice == "spread" else _filled
        tasks = deal({node: usable[node] for node in order}, demand.request)
        return demand.place({node: tasks[node] * demand.request.cores for node in sorted(tasks)})

    def share(self, node: int) -> float:
        """How much of a node is free, summed over its resources."""
        share = 0.0
        for column, name in enumerate(self.machine.resources):
            if name != "places":
                share += float(self.amounts[node, column] / max(self.machine.has[node, column], 1))
        return share


#: Ranks the nodes that could take a task of a job; those with the least rank are filled first.
Choice = Callable[[Room, Demand, Mapping[int, int]], Callable[[int], object]]


def _dominant_resource(room: Room, demand: Demand, _usable: Mapping[int, int]) -> Callable[[int], float]:
    """The free share of the resource of which a task needs the largest share of the node."""

    def rank(node: int) -> float:
        has = np.maximum(room.machine.has[node], 1)
        dominant = (demand.per_task / has).argmax()
        return float(room.amounts[node, dominant] / has[dominant])

    return rank


def _fewest_switches(room: Room, demand: Demand, usable: Mapping[int, int]) -> Callable[[int], object]:
    """The switch that just holds the job; if none does, those that hold most of it."""
    switches, tasks = room.machine.switches, demand.request.tasks
    holds = dict.fromkeys(switches, 0)
    for node, capacity in usable.items():
        holds[switches[node]] += capacity

    def rank(node: int) -> tuple[bool, int, int]:
        held = holds[switches[node]]
        return held < tasks, held if held >= tasks else -held, switches[node]

    return rank


#: The choices of nodes by name.
CHOICES: Final[Mapping[str, Choice]] = {
    "first-fit": lambda room, demand, usable: int,
    "best-fit": lambda room, demand, usable: room.share,
    "worst-fit": lambda room, demand, usable: lambda node: -room.share(node),
    "consolidate": lambda room, demand, usable: lambda node: (-usable[node], room.share(node)),
    "spread": lambda room, demand, usable: lambda node: -room.share(node),
    "dominant-resource": _dominant_resource,
    "fewest-switches": _fewest_switches,
}


def _filled(capacities: Mapping[int, int], request: Request) -> dict[int, int]:
    """The tasks of each node, if nodes in their order take as many as they can.

    A node is left out if it and the largest of those after it, as many as are allowed, could not hold the
    rest. One task is kept for each further node that must be used.
    """
    tasks: dict[int, int] = {}
    left, after = request.tasks, list(capacities.values())
    for node, capacity in capacities.items():
        after = after[1:]
        more = request.most_nodes - len(tasks) - 1
        if more < len(after) and capacity + sum(sorted(after, reverse=True)[:more]) < left:
            continue
        tasks[node] = min(capacity, left - max(request.least_nodes - len(tasks) - 1, 0))
        left -= tasks[node]
        if not left:
            break
    return tasks


def _dealt(capacities: Mapping[int, int], request: Request) -> dict[int, int]:
    """The tasks of each node, if they are dealt out one by one, to as many nodes as are allowed."""
    chosen = list(capacities)[: request.most_nodes]
    if sum(capacities[node] for node in chosen) < request.tasks:
        kept = _filled(capacities, request)
        chosen = [node for node in capacities if node in kept]
    tasks = dict.fromkeys(chosen, 0)
    left = request.tasks
    while left:
        for node in [node for node in chosen if tasks[node] < capacities[node]][:left]:
            tasks[node] += 1
            left -= 1
    return {node: count for node, count in tasks.items() if count}


def least(one: Room, other: Room) -> Room:
    """What is free in both."""
    licences = {name: min(count, other.licences[name]) for name, count in one.licences.items()}
    return Room(one.machine, np.minimum(one.amounts, other.amounts), licences)


def requests_of(workloads: Sequence[Workload], schedule: pd.DataFrame) -> dict[str, Request]:
    """What the jobs of workloads ask for; those of several sizes, with the size that they have.

    A job that was started again after a failure, as ``w0!7#1``, asks for the same.
    """
    jobs = {job.id: job for load in workloads for job in load.jobs}
    requests = {name: _request(job) for name, job in jobs.items()}
    names = full_ids(schedule)
    again = started_again(schedule.assign(id=names))
    for name, hosts in zip(names, host_sets(schedule), strict=True):
        job = jobs.get(again.get(name, name))
        if job is not None and (SIZES in job.extra or name in again):
            requests[name] = _request(shaped(job, len(hosts)))
    return requests


def _request(job: Job) -> Request:
    try:
        return read_request(job.size, job.extra.get("request"))
    except ValueError as error:
        raise InputError(f"job {job.id}: {error}") from None


class Share(Struct, frozen=True):
    """What a job has of one node."""

    node: int
    """Its number."""
    cores: int
    """How many of its cores the job runs on."""
    tasks: int
    """How many tasks that makes; one that is split counts, too."""
    amounts: Mapping[str, int]
    """Of each resource, cores included."""


def shares_of(machine: Nodes, hosts: HostSet, request: Request) -> Iterator[Share]:
    """What a job that asks for this has, on these hosts, of each of its nodes in turn."""
    for node, cores in machine.cores(hosts).items():
        tasks = -(-cores // request.cores)
        amounts = {"cores": cores}
        for name, count in request.per_task:
            amounts[name] = amounts.get(name, 0) + tasks * count
        for name, count in request.per_node:
            amounts[name] = amounts.get(name, 0) + count
        yield Share(node, cores, tasks, amounts)
