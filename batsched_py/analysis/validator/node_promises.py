"""What EASY and conservative backfilling promise on a machine of nodes: it holds in every resource.

See :mod:`~batsched_py.analysis.validator.promises` for what is promised, and for what is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np
from msgspec import Struct

from batsched_py.analysis.nodes import Requests, cores_by_node
from batsched_py.analysis.schedule import SLACK
from batsched_py.analysis.validator.promises import Life, Timeline, waiting_instants
from batsched_py.analysis.validator.rules import Violation
from batsched_py.ledger.free_nodes import NodeAccount, NodeProfile
from batsched_py.ledger.nodes import CORES, Demand, Integers, NodeMachine, Placement, demand_of
from batsched_py.protocol.requests import Request


class Room(Struct, frozen=True, eq=False):
    """What is free: of each node, and of the licences."""

    amounts: Integers
    licences: dict[str, int]

    def copy(self) -> Room:
        """One of its own."""
        return Room(self.amounts.copy(), dict(self.licences))

    def change(self, demand: Demand, placement: Placement, sign: int) -> None:
        """A job takes its place, or gives it back."""
        self.amounts[placement.nodes] += sign * placement.taken
        for name, count in demand.request.licences:
            self.licences[name] = self.licences.get(name, 0) + sign * count

    def holds(self, demand: Demand) -> bool:
        """Whether a job would find a place."""
        return demand.nodes(self.amounts) is not None and all(
            self.licences.get(name, 0) >= count for name, count in demand.request.licences
        )


class Places:
    """What the jobs of a schedule ask of a machine, and where they were."""

    def __init__(self, machine: NodeMachine, requests: Requests) -> None:
        self.machine = machine
        self._requests = requests
        self._demands: dict[Request, Demand] = {}

    def demand(self, life: Life) -> Demand:
        """What a job asks for; one that no workload describes asks for cores alone."""
        request = self._requests.get(life.id) or Request(life.size)
        if request not in self._demands:
            self._demands[request] = demand_of(request, self.machine)
        return self._demands[request]

    def place(self, life: Life) -> Placement:
        """Where a job was, and what it had there."""
        demand = self.demand(life)
        cores = cores_by_node(self.machine, life.hosts)
        nodes, count = np.array(list(cores), np.int64), np.array(list(cores.values()), np.int64)
        tasks = count // demand.request.cores
        taken = tasks[:, None] * demand.per_task + demand.per_node
        if demand.request.exclusive:
            taken[:, CORES] = self.machine.has[nodes, CORES]
        return Placement(nodes, tasks, taken)

    def room(self, running: Sequence[Life]) -> Room:
        """What is free while these jobs run."""
        room = Room(self.machine.has.copy(), dict(self.machine.licences))
        for life in running:
            room.change(self.demand(life), self.place(life), -1)
        return room


def easy(timeline: Timeline, places: Places) -> Iterator[Violation]:
    """EASY backfilling: no job delays the head of the queue, in any resource.

    The head starts as soon as there is a place for it, and no later than at its first shadow time. Jobs that
    overtake it end by its shadow time, by their walltimes, or leave a place for it.
    """
    idle, promised = set[Life](), set[Life]()
    for waiting in waiting_instants(timeline):
        now, head = waiting.instant.time, waiting.heads[0]
        free = places.room(waiting.running)
        if all(free.holds(places.demand(life)) for life in waiting.heads) and head not in idle:
            idle.add(head)
            text = f"job {head.id} at the head of the queue waits, but all that it asks for is free"
            yield Violation("easy-idle", (head.id,), now, text)

        overtaking = [life for life in waiting.instant.beginning if life.arrives > head.arrives]
        if any(life.passing for life in waiting.instant.beginning):
            overtaking = []
        first_sight = len(waiting.heads) == 1 and head not in promised
        if not overtaking and not first_sight:
            continue
        others = [life for life in waiting.running if life not in overtaking]
        reservations = [_reservation(life, others, places, now) for life in waiting.heads]
        beyond = [
            _beyond(life, overtaking, places, now, *reservation)
            for life, reservation in zip(waiting.heads, reservations, strict=True)
        ]
        shadow = reservations[0][0]
        if all(beyond):
            jobs = tuple(life.id for life in beyond[0])
            text = (
                f"job {', '.join(jobs)} overtakes {head.id}, but may run beyond its shadow time "
                f"{shadow:.6f} on what it needs then"
            )
            yield Violation("easy-backfill", (*jobs, head.id), now, text)
        if first_sight:
            promised.add(head)
            if head.start > shadow + SLACK:
                text = f"job {head.id} starts at {head.start:.6f}, but its shadow time was {shadow:.6f}"
                yield Violation("easy-reservation", (head.id,), now, text)


def _reservation(head: Life, running: Sequence[Life], places: Places, now: float) -> tuple[float, Room]:
    """The shadow time of a job, and what is free then."""
    demand, room = places.demand(head), places.room(running)
    shadow = now if room.holds(demand) else inf
    for life in running:
        if life.expected_end > shadow + SLACK:
            break
        room.change(places.demand(life), places.place(life), 1)
        if shadow == inf and room.holds(demand):
            shadow = life.expected_end
    return shadow, room


def _beyond(
    head: Life, overtaking: Sequence[Life], places: Places, now: float, shadow: float, room: Room
) -> list[Life]:
    """The jobs that may run beyond the shadow time, if they leave no place for the job that waits."""
    beyond = [life for life in overtaking if now + life.walltime > shadow + SLACK]
    left = room.copy()
    for life in beyond:
        left.change(places.demand(life), places.place(life), -1)
    return [] if left.holds(places.demand(head)) else beyond


def conservative(timeline: Timeline, places: Places, account: NodeAccount) -> Iterator[Violation]:
    """Conservative backfilling: every job starts no later than at the reservation it gets on arrival.

    A reservation is a time and a place. The schedule does not show places that jobs gave up, so the plan is
    made again: ``account`` is that of an empty machine and chooses nodes as the scheduler did. When jobs have
    ended, each waiting job in turn moves to an earlier time, if there is one, and keeps its place otherwise.
    """
    profile = NodeProfile(account, -inf)
    reserved: dict[Life, tuple[float, Placement | None]] = {}

    def change(life: Life, start: float, end: float, placement: Placement | None, takes: bool) -> None:
        if placement is not None:
            act = profile.take if takes else profile.give
            act(_same(start), _same(end), places.demand(life), placement.nodes, placement.taken)

    def reserve(life: Life, before: tuple[float, Placement | None] | None = None) -> None:
        found = profile.earliest(places.demand(life), life.walltime) or (inf, None)
        reserved[life] = found if before is None or found[0] < before[0] else before
        start, placement = reserved[life]
        change(life, start, start + life.walltime, placement, takes=True)

    def release(life: Life) -> tuple[float, Placement | None]:
        start, placement = reserved.pop(life)
        change(life, start, start + life.walltime, placement, takes=False)
        return start, placement

    for instant in timeline.instants:
        now = instant.time
        profile.advance(_same(now))
        for life in instant.leaving:
            change(life, now, life.expected_end, places.place(life), takes=False)
        ended, arriving, beginning = bool(instant.leaving), instant.arriving, instant.beginning
        while ended or arriving or beginning:
            if ended:
                for life in list(reserved):
                    reserve(life, release(life))
            for life in arriving:
                reserve(life)
                if _same(life.start) > reserved[life][0] + SLACK:
                    text = (
                        f"job {life.id} starts at {life.start:.6f}, "
                        f"but its reservation was for {reserved[life][0]:.6f}"
                    )
                    yield Violation("conservative-reservation", (life.id,), now, text)
            due = [life for life in beginning if reserved[life][0] <= _same(now) + SLACK] or beginning
            for life in due:
                release(life)
                if not life.passing:
                    change(life, now, life.expected_end, places.place(life), takes=True)
            ended = any(life.passing for life in due)
            arriving, beginning = [], [life for life in beginning if life not in due]


def _same(time: float) -> float:
    """A time without its last printed digit, which is not certain: equal times are to be equal again."""
    return round(time, 5)
