"""A slow and obvious model of ``malleable-easy`` on a machine of nodes, from its definition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf

from tests.malleable.reference import MalleableEasy, RefJob, Run
from tests.nodes import reference as nodes
from tests.nodes.reference import Place, State, beside, leaves


class MalleableEasyOnNodes(MalleableEasy):
    """``asks`` tells what each job asks of nodes; ``pieces`` has the cores of each node that a job had."""

    def __init__(
        self,
        machine: list[nodes.Node],
        licences: int,
        jobs: list[RefJob],
        asks: dict[str, nodes.RefJob],
    ) -> None:
        self.machine, self.licences, self.asks = machine, licences, asks
        self.places: dict[int, Place] = {}
        self.had: dict[str, list[tuple[Fraction, Place]]] = {}
        self.running = []
        empty = self.state({})
        super().__init__(0, [job for job in jobs if empty.place(asks[job.name]) is not None])

    def state(self, places: dict[int, Place], without: Run | None = None) -> State:
        """What is free, if running jobs have these places, and one of them is not there."""
        state = State(
            self.machine, [dict(n.has) for n in self.machine], [0] * len(self.machine), self.licences
        )
        for run in self.running:
            if run is not without:
                state.put(self.asks[run.job.name], places[run.number])
        return state

    def cores(self, run: Run) -> int:
        return self.asks[run.job.name].per_task["cores"]

    def decide(self, now: Fraction) -> None:
        while self.queue and self.make_room(self.queue[0]):
            self.start(self.queue[0], now)
        if self.queue:
            self.backfill(now)
        while not self.queue and self.grow_one():
            pass
        self.note(now)

    def malleable(self) -> list[Run]:
        return [run for run in self.running if run.job.least]

    def make_room(self, head: RefJob) -> bool:
        places = {number: dict(place) for number, place in self.places.items()}
        stiff: set[int] = set()
        while self.state(places).place(self.asks[head.name]) is None:
            left = [run for run in self.malleable() if run.number not in stiff]
            if not left:
                return False
            run = min(left, key=lambda run: (-sum(places[run.number].values()) * self.cores(run), run.number))
            if not self.shrink(run, places[run.number]):
                stiff.add(run.number)
        self.settle(places)
        return True

    def shrink(self, run: Run, place: Place) -> bool:
        """Give up a task on the last node that can do without it."""
        if (sum(place.values()) - 1) * self.cores(run) < run.job.least:
            return False
        for node in sorted(place, reverse=True):
            if place[node] > 1 or len(place) > self.asks[run.job.name].least:
                place[node] -= 1
                if not place[node]:
                    del place[node]
                return True
        return False

    def grow_one(self) -> bool:
        """Let the smallest job that can have one more task have it."""
        for run in sorted(self.malleable(), key=lambda run: (run.hosts, run.number)):
            if run.hosts + self.cores(run) <= run.job.most:
                node = self.node_for(run)
                if node is not None:
                    place = self.places[run.number]
                    self.settle(self.places | {run.number: place | {node: place.get(node, 0) + 1}})
                    return True
        return False

    def node_for(self, run: Run) -> int | None:
        asks, place = self.asks[run.job.name], self.places[run.number]
        any_number = replace(asks, tasks=10**6)
        state = self.state(self.places, without=run)
        for node in sorted(place):
            if state.capacity(any_number, node) > place[node]:
                return node
        if len(place) >= asks.most:
            return None
        partition = self.machine[min(place)].partition if asks.partitions else None
        for number, node in enumerate(self.machine):
            is_meant = partition in (None, node.partition) and (
                not asks.feature or asks.feature in node.features
            )
            if number not in place and is_meant and state.capacity(any_number, number):
                return number
        return None

    def settle(self, places: dict[int, Place]) -> None:
        self.places = places
        for run in self.running:
            run.hosts = sum(places[run.number].values()) * self.cores(run)

    def start(self, job: RefJob, now: Fraction, place: Place | None = None) -> Run:
        found = place or self.state(self.places).place(self.asks[job.name])
        assert found is not None
        run = super().start(job, now)
        self.places[run.number] = found
        return run

    def backfill(self, now: Fraction) -> None:
        head, shadow, future = self.asks[self.queue[0].name], inf, self.state(self.places)
        for run in sorted(self.running, key=lambda run: (run.limit, run.number)):
            future.put(self.asks[run.job.name], self.places[run.number], 1)
            if future.place(head) is not None:
                shadow = max(run.limit, now)
                break
        for job in self.queue[1:]:
            asks, state = self.asks[job.name], self.state(self.places)
            place, late = state.place(asks), now + job.walltime > shadow
            if place is not None and late and not leaves(future, asks, place, head):
                place = beside(state, future, asks, head)
            if place is not None:
                self.start(job, now, place)
                if late:
                    future.put(asks, place)

    def note(self, now: Fraction) -> None:
        for run in self.running:
            place = {node: tasks * self.cores(run) for node, tasks in self.places[run.number].items()}
            known = self.had.setdefault(run.job.name, [])
            if known and known[-1][0] == now:
                known.pop()
            if not known or known[-1][1] != place:
                known.append((now, place))
