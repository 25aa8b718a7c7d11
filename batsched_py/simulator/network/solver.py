"""How fast tasks advance when they share hosts and links: SimGrid's *fair bottleneck*."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from operator import attrgetter

from msgspec import Struct, field

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
