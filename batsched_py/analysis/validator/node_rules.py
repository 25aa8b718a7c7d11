"""What a machine of nodes adds: rules for jobs that ask for more than hosts, and promises in every resource.

Like :mod:`~batsched_py.analysis.validator.rules`, the rules see a schedule with the columns ``id`` and
``hosts``. See :mod:`~batsched_py.analysis.validator.promises` for what is promised, and for what is assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf

import pandas as pd

from batsched_py.analysis.schedule import INSTANT, SLACK, in_pieces, started
from batsched_py.analysis.validator.nodes import (
    Demand,
    NodeForecast,
    Nodes,
    Place,
    Requests,
    Room,
    Share,
    shares_of,
)
from batsched_py.analysis.validator.promises import Life, Timeline, waiting_instants
from batsched_py.analysis.validator.rules import Violation
from batsched_py.protocol.requests import Request, parse_features


def node_rules(schedule: pd.DataFrame, machine: Nodes, requests: Requests) -> Iterator[Violation]:
    """All violations of what jobs ask for, and of what nodes have."""
    executed = started(in_pieces(schedule))
    taken = list(_executed_shares(executed, machine, requests))
    for job, time, (request, shares) in zip(executed["id"], executed["starting_time"], taken, strict=True):
        for rule, text in _misplaced(machine, request, shares):
            yield Violation(rule, (job,), time, f"job {job} {text}")
    yield from _Usage(machine, executed, taken).violations()


def _misplaced(machine: Nodes, request: Request, shares: list[Share]) -> Iterator[tuple[str, str]]:
    """What is wrong with the nodes of a job, whatever else runs: rules and texts."""
    nodes = [machine.all[share.node] for share in shares]
    if request.partitions and not any(
        all(partition in node.partitions for node in nodes) for partition in request.partitions
    ):
        yield "partition", f"is not on nodes of one of its partitions: {', '.join(request.partitions)}"
    meant = parse_features(request.features) if request.features else None
    for node in nodes:
        if meant is not None and not meant(node.features):
            yield "features", f"is on node {node.name}, which is not what it asks for: {request.features}"
    if not request.least_nodes <= len(nodes) <= request.most_nodes:
        least, most = request.least_nodes, min(request.most_nodes, request.tasks)
        asked = str(least) if least == most else f"{least} to {most}"
        yield "nodes", f"is on {len(nodes)} nodes instead of {asked}"
    for node, share in zip(nodes, shares, strict=True):
        if share.cores % request.cores:
            text = f"has {share.cores} cores of node {node.name}, but its tasks need {request.cores} each"
            yield "tasks", text
        elif share.tasks > request.tasks_per_node:
            text = f"has {share.tasks} tasks on node {node.name}, but at most {request.tasks_per_node} may be"
            yield "tasks", text


class _Usage:
    """What is in use, as jobs begin and end. A job of no length holds nothing, but must fit when it runs."""

    def __init__(
        self, machine: Nodes, executed: pd.DataFrame, taken: list[tuple[Request, list[Share]]]
    ) -> None:
        self._machine = machine
        self._executed = executed
        self._ids: list[str] = executed["id"].to_list()
        self._taken = taken
        self._used: list[Counter[str]] = [Counter() for _ in machine.all]
        self._on: list[dict[int, None]] = [{} for _ in machine.all]
        """The jobs on each node, by their places."""
        self._licences: Counter[str] = Counter()

    def violations(self) -> Iterator[Violation]:
        """Go through the schedule."""
        ends, passes, begins = range(3)
        executed, events = self._executed, list[tuple[float, int, int]]()
        times = zip(
            executed["starting_time"], executed["execution_time"], executed["finish_time"], strict=True
        )
        for row, (start, ran, finish) in enumerate(times):
            if ran <= INSTANT:
                events.append((start - SLACK, passes, row))
            else:
                events += [(start, begins, row), (finish - SLACK, ends, row)]
        for time, kind, row in sorted(events):
            if kind != ends:
                self._count(row, 1)
                yield from self._exceeded(row, time)
            if kind != begins:
                self._count(row, -1)

    def _count(self, row: int, sign: int) -> None:
        request, shares = self._taken[row]
        for share in shares:
            for name, count in share.amounts.items():
                self._used[share.node][name] += sign * count
            if sign > 0:
                self._on[share.node][row] = None
            else:
                self._on[share.node].pop(row, None)
        for name, count in request.licences:
            self._licences[name] += sign * count

    def _exceeded(self, row: int, time: float) -> Iterator[Violation]:
        """What a job that has just begun has too much of."""
        job, (request, shares) = self._ids[row], self._taken[row]
        for share in shares:
            node, used = self._machine.all[share.node], self._used[share.node]
            for name in share.amounts:
                if used[name] > node.resources.get(name, 0):
                    text = f"with job {job}, node {node.name} has {_amount_text(name, used[name])} in use"
                    text += f", but only {_amount_text(name, node.resources.get(name, 0))}"
                    yield Violation("resources", (job,), time, text)
            for other in self._on[share.node]:
                if other != row and (request.exclusive or self._taken[other][0].exclusive):
                    jobs = (self._ids[other], job)
                    alone = job if request.exclusive else jobs[0]
                    text = f"jobs {jobs[0]} and {job} share node {node.name}, which {alone} must have alone"
                    yield Violation("exclusive", jobs, time, text)
        for name, _ in request.licences:
            if self._licences[name] > self._machine.licences.get(name, 0):
                text = f"with job {job}, {self._licences[name]} licences of {name} are in use"
                text += f", but there are {self._machine.licences.get(name, 0)}"
                yield Violation("licences", (job,), time, text)


def _executed_shares(
    executed: pd.DataFrame, machine: Nodes, requests: Requests
) -> Iterator[tuple[Request, list[Share]]]:
    """What each job of a schedule asks for and has; one that no workload describes asks for cores alone."""
    for job, hosts in zip(executed["id"], executed["hosts"], strict=True):
        request = requests.get(job) or Request(max(1, len(hosts)))
        yield request, list(shares_of(machine, hosts, request))


def _amount_text(resource: str, count: int) -> str:
    """An amount in words.

    >>> _amount_text("memory", 3 * 1024**2), _amount_text("gpu", 1), _amount_text("memory", 100)
    ('3 GB of memory', '1 gpu', '100 kB of memory')
    """
    if resource != "memory":
        return f"{count} {resource}"
    for unit, size in (("TB", 1024**3), ("GB", 1024**2), ("MB", 1024)):
        if count >= size:
            return f"{count / size:.10g} {unit} of memory"
    return f"{count} kB of memory"


class Places:
    """What the jobs of a schedule ask of a machine, and where they were."""

    def __init__(self, machine: Nodes, requests: Requests) -> None:
        self.machine = machine
        self._requests = requests

    def demand(self, life: Life) -> Demand:
        """What a job asks for; one that no workload describes asks for cores alone."""
        return self.machine.demand(self._requests.get(life.id) or Request(life.size))

    def place(self, life: Life) -> Place:
        """Where a job was, and what it had there."""
        return self.demand(life).place(self.machine.cores(life.hosts))

    def room(self, running: Sequence[Life]) -> Room:
        """What is free while these jobs run."""
        room = self.machine.empty()
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


def conservative(timeline: Timeline, places: Places, choice: str) -> Iterator[Violation]:
    """Conservative backfilling: every job starts no later than at the reservation it gets on arrival.

    A reservation is a time and a place. The schedule does not show places that jobs gave up, so the plan is
    made again, on an empty machine, with the choice of nodes that the scheduler had. When jobs have ended,
    each waiting job in turn moves to an earlier time, if there is one, and keeps its place otherwise.
    """
    forecast = NodeForecast(places.machine)
    reserved: dict[Life, tuple[float, Place | None]] = {}

    def change(life: Life, start: float, end: float, place: Place | None, sign: int) -> None:
        if place is not None:
            forecast.change(_same(start), _same(end), places.demand(life), place, sign)

    def reserve(life: Life, before: tuple[float, Place | None] | None = None) -> None:
        found = forecast.earliest(places.demand(life), life.walltime, choice) or (inf, None)
        reserved[life] = found if before is None or found[0] < before[0] else before
        start, place = reserved[life]
        change(life, start, start + life.walltime, place, -1)

    def release(life: Life) -> tuple[float, Place | None]:
        start, place = reserved.pop(life)
        change(life, start, start + life.walltime, place, 1)
        return start, place

    for instant in timeline.instants:
        now = instant.time
        forecast.forget(_same(now))
        for life in instant.leaving:
            change(life, now, life.expected_end, places.place(life), 1)
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
                    change(life, now, life.expected_end, places.place(life), -1)
            ended = any(life.passing for life in due)
            arriving, beginning = [], [life for life in beginning if life not in due]


def _same(time: float) -> float:
    """A time without its last printed digit, which is not certain: equal times are to be equal again."""
    return round(time, 5)
