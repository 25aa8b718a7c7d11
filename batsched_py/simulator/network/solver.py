"""What tasks ask of hosts and links, and how fast they advance when they share them.

The rates are those of SimGrid's *fair bottleneck*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from operator import attrgetter

from msgspec import Struct, field

from batsched_py.errors import RuleBroken
from batsched_py.protocol.profiles import Composed, Computation, Homogeneous, HomogeneousTotal, Parallel
from batsched_py.simulator.execution import Execution, Profiles
from batsched_py.simulator.network.routing import Network
from batsched_py.simulator.network.zones import Link, Route


class Demand(Struct):
    """What a task asks for: flops of hosts, and bytes of links."""

    flops: list[tuple[int, float]] = field(default_factory=list)
    """Of each executor: its host, and what it computes."""
    bytes: dict[Link, float] = field(default_factory=dict)
    """What each link has to carry. Of a fat pipe, that is the most that one pair of hosts exchanges."""
    latency: float = 0.0
    """Of the longest route, in seconds."""
    latency_bytes: float = 0.0
    """The largest product of a route's latency and the bytes that take it."""
    stored: dict[int, float] | None = None
    """Bytes that each storage host sends and receives, where that is recorded."""

    def send(self, network: Network, source: int, target: int, amount: float) -> None:
        """Let one executor send bytes to another, by the numbers of their hosts."""
        if amount > 0:
            self.send_along(network.route(source, target), amount)
            if self.stored is not None:
                self._store((source, target), amount)

    def send_along(self, route: Route, amount: float) -> None:
        """Let bytes take a route."""
        carried = self.bytes
        for link in route.links:
            before = carried.get(link, 0.0)
            carried[link] = max(before, amount) if link.fatpipe else before + amount
        self._wait(route.latency, amount)

    def send_to_all(self, network: Network, hosts: Sequence[int], amount: float) -> None:
        """Let each executor send bytes to each other."""
        if amount <= 0 or len(hosts) < 2:
            return
        if len(set(hosts)) < len(hosts):
            for place, source in enumerate(hosts):
                for other, target in enumerate(hosts):
                    if place != other:
                        self.send(network, source, target, amount)
            return
        everyone, carried = network.all_to_all(hosts), self.bytes
        for link, count in everyone.bytes.items():
            before = carried.get(link, 0.0)
            carried[link] = max(before, amount) if link.fatpipe else before + count * amount
        self._wait(everyone.latency, amount)
        if self.stored is not None:
            self._store(hosts, 2 * (len(hosts) - 1) * amount)

    def _store(self, hosts: Iterable[int], amount: float) -> None:
        """Count what those of the hosts that are storages send or receive."""
        assert self.stored is not None
        for host in hosts:
            if host in self.stored:
                self.stored[host] += amount

    def _wait(self, latency: float, amount: float) -> None:
        self.latency = max(self.latency, latency)
        self.latency_bytes = max(self.latency_bytes, latency * amount)

    def network_bound(self, tcp_gamma: float) -> float:
        """The highest rate that TCP allows: it waits for an answer now and then."""
        return tcp_gamma / (2.0 * self.latency_bytes) if self.latency_bytes > 0 else inf


def add_computation(demand: Demand, task: Computation, hosts: Sequence[int], network: Network | None) -> None:
    """Add what a task asks for that computes, with one executor on each of these hosts.

    What a single executor sends to itself takes no time, as in SimGrid.
    """
    demand.flops += zip(hosts, task.flops(len(hosts)), strict=False)
    if network is None or not task.sends_bytes or len(hosts) < 2:
        return
    match task:
        case HomogeneousTotal(bytes_sent=amount):
            demand.send_to_all(network, hosts, amount / len(hosts))
        case Homogeneous(bytes_sent=amount):
            demand.send_to_all(network, hosts, amount)
        case Parallel(bytes_sent=amounts):
            pairs = iter(amounts)
            for source in hosts:
                for target in hosts:
                    demand.send(network, source, target, next(pairs))


def add_io(demand: Demand, execution: Execution, profiles: Profiles, network: Network | None) -> None:
    """Add what is moved beside the present task of a job: of a sequence, the part at the same place."""
    assert execution.io is not None
    hosts, profile = execution.io
    whose = f"the IO job of job {execution.job.id}"
    for frame in execution.frames:
        if not isinstance(frame.profile, Composed):
            return
        step = frame.step % len(frame.profile.sequence)
        parts = profile.sequence if isinstance(profile, Composed) else ()
        if step >= len(parts) or parts[step] not in profiles:
            raise RuleBroken(f"{whose} has no part for each task of {frame.name!r}")
        profile = profiles[parts[step]]
    if not isinstance(profile, Computation):
        raise RuleBroken(f"{whose} is of type {profile.kind}; it must be a parallel one")
    places = list(hosts)
    if isinstance(profile, Parallel) and len(profile.work) != len(places):
        raise RuleBroken(f"{whose} has {len(places)} hosts, its profile is made for {len(profile.work)}")
    add_computation(demand, profile, places, network)


#: What is left of a resource below this is nothing, for SimGrid.
LEAST_REST = 1e-5

#: Rounds after which the solver stops.
MOST_ROUNDS = 1_000


class Use(Struct, frozen=True, gc=False):
    """What one task wants of a resource."""

    total: float
    """For the whole task: flops of a host, bytes of a link."""
    largest: float
    """The largest part of it, when several executors of a task are on one host."""
    parts: int = 1
    """How many there are. Each counts as one when the resource is divided."""

    @property
    def is_even(self) -> bool:
        """Whether all parts are alike. Otherwise even a task alone comes near its rate in several rounds."""
        return self.parts == 1 or self.largest * self.parts == self.total


class Resource(Struct, eq=False):
    """A host or a link that tasks use at present."""

    name: str
    capacity: float
    """In a second."""
    fatpipe: bool = False
    """Whether each task gets all of it."""
    host: int = -1
    """Its number, if it is a host."""
    users: dict[Fluid, Use] = field(default_factory=dict)
    rest: float = 0.0
    """What is not given away yet."""
    share: float = 0.0
    """What each that still wants more may take of the rest."""


class Fluid(Struct, eq=False):
    """Something that advances on all its resources at one rate."""

    number: int
    """Those that begin later have higher ones."""
    uses: dict[Resource, Use]
    bound: float = inf
    """Its rate is never higher."""
    rate: float = 0.0
    """Which part of the whole is done in a second."""
    alone: float = 0.0
    """The rate that its bound and the resources that it has for itself allow."""
    shared: dict[Resource, Use] = field(default_factory=dict)
    """The other resources: those that others use, too, or that it uses unevenly."""
    gain: float = 0.0
    """By how much its rate was increased last."""
    wants: bool = False
    """Whether it can still be faster."""


def join(fluid: Fluid) -> None:
    """A task begins to use its resources."""
    for resource, use in fluid.uses.items():
        users = resource.users
        if len(users) == 1:
            (other,) = users
            other.shared[resource] = users[other]
            _find_alone(other)
        users[fluid] = use
        if len(users) > 1 or not use.is_even:
            fluid.shared[resource] = use
    _find_alone(fluid)


def leave(fluid: Fluid) -> None:
    """A task uses its resources no more."""
    for resource in fluid.uses:
        users = resource.users
        del users[fluid]
        if len(users) == 1:
            (other,) = users
            if users[other].is_even:
                del other.shared[resource]
                _find_alone(other)


def component(fluids: Iterable[Fluid]) -> list[Fluid]:
    """These tasks, and all that share resources with them, directly or through others, in their order."""
    found = dict.fromkeys(fluids)
    to_visit = list(found)
    seen: set[Resource] = set()
    while to_visit:
        for resource in to_visit.pop().shared:
            if resource not in seen:
                seen.add(resource)
                for other in resource.users:
                    if other not in found:
                        found[other] = None
                        to_visit.append(other)
    return sorted(found, key=_number)


_number = attrgetter("number")


def solve(fluids: list[Fluid]) -> bool:
    """Set the rates of tasks, which must be all of one component or of several; whether they are final.

    In each round, what is left of a resource is divided evenly among the tasks that still want of it, and
    each task takes of all its resources what the scarcest of them allows. Who has met a used-up resource or
    its own bound wants no more. As in SimGrid, a resource loses in each round what *all* its tasks took last,
    also those that want no more.

    With fat pipes, SimGrid may need any number of rounds, and gives rates above the bandwidth, or does not
    end at all. Here the rates stay as they are after :data:`MOST_ROUNDS`.
    """
    resources: dict[Resource, None] = {}
    for fluid in fluids:
        fluid.rate = fluid.gain = 0.0
        fluid.wants = True
        resources |= dict.fromkeys(fluid.shared)
    for resource in resources:
        resource.rest = resource.capacity
    wanting, scarce = fluids, list(resources)
    for _ in range(MOST_ROUNDS):
        if not wanting:
            return True
        scarce = [resource for resource in scarce if _divide(resource)]
        for fluid in wanting:
            gain = fluid.alone - fluid.rate
            for resource, use in fluid.shared.items():
                if resource.share < gain * use.largest:
                    gain = resource.share / use.largest
            fluid.gain = gain
            fluid.rate += gain
            if fluid.rate == fluid.alone:
                fluid.wants = False
        scarce = [resource for resource in scarce if _take(resource)]
        wanting = [fluid for fluid in wanting if fluid.wants]
    return False


def _divide(resource: Resource) -> bool:
    """Divide what is left of a resource, if anybody wants of it."""
    parts = sum([use.parts for fluid, use in resource.users.items() if fluid.wants])
    resource.share = resource.rest / (1 if resource.fatpipe else parts) if parts else 0.0
    return parts > 0


def _take(resource: Resource) -> bool:
    """Take from a resource what was given; whether anything is left."""
    if resource.fatpipe:
        taken = min([use.total * fluid.gain for fluid, use in resource.users.items()])
        resource.rest -= min(resource.share, taken)
        left = resource.rest >= LEAST_REST
    else:
        rest = resource.rest
        for fluid, use in resource.users.items():
            rest -= use.total * fluid.gain
            if rest < LEAST_REST:
                rest = 0.0
        resource.rest = rest
        left = rest > 0.0
    if not left:
        for fluid in resource.users:
            fluid.wants = False
    return left


def _find_alone(fluid: Fluid) -> None:
    """A resource that only one task uses is no more than a bound of its rate."""
    alone, shared = fluid.bound, fluid.shared
    for resource, use in fluid.uses.items():
        if resource not in shared:
            rate = resource.capacity / use.total
            if rate < alone:
                alone = rate
    fluid.alone = alone
