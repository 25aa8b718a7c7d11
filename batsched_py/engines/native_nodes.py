"""The nodes of a machine, as the native engine gets them."""

from collections.abc import Callable
from typing import Any

from batsched_py.errors import InputError
from batsched_py.ledger.nodes import NodeMachine, Refusal, demand_of, why_never
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import Request, read_request
from batsched_py.schedulers.node_choice import CHOICES
from batsched_py.schedulers.selection import NodeChoiceName


class NativeNodes:
    """Tells the library which nodes there are, and what jobs ask of them, each kind of request once."""

    def __init__(
        self,
        engine: Any,
        machine: NodeMachine,
        choice: NodeChoiceName,
        on_refusal: Callable[[Job, Refusal], None],
    ) -> None:
        """``on_refusal`` is told of jobs that are submitted and can never run, before they are rejected."""
        self._engine = engine
        self._machine = machine
        self._on_refusal = on_refusal
        self._refusals: dict[int, Refusal] = {}
        self._numbers: dict[Request, int] = {}
        self._licences = {name: number for number, name in enumerate(machine.licences)}
        switch_of = [0] * len(machine.nodes)
        for number, nodes in enumerate(machine.switches):
            for node in nodes.tolist():
                switch_of[node] = number
        self._nodes = engine.set_nodes(
            len(machine.resources),
            machine.has.T.ravel().tolist(),
            list(machine.licences.values()),
            machine.firsts.tolist(),
            switch_of,
            list(CHOICES).index(choice),
            machine.are_hosts,
            self._number,
        )

    def _number(self, job: Job) -> int:
        """The number by which the library knows what a job asks for."""
        try:
            request = read_request(job.size, job.extra.get("request"))
            number = self._numbers.get(request)
            if number is None:
                self._numbers[request] = number = self._add(request)
        except ValueError as error:
            raise InputError(f"job {job.id}: {error}") from None
        refusal = self._refusals.get(number)
        if refusal is not None and self._is_submitted(job):
            self._on_refusal(job, refusal)
        return number

    def _is_submitted(self, job: Job) -> bool:
        """Whether this is a job that waits; a policy may also ask about jobs that it has made up."""
        if not self._engine.state(job.id):
            return False
        known = self._engine.job(job.id)
        return bool(known.size == job.size and known.extra.get("request") == job.extra.get("request"))

    def _add(self, request: Request) -> int:
        demand = demand_of(request, self._machine)
        number: int = self._nodes.add(
            request.tasks,
            request.cores,
            request.least_nodes,
            request.most_nodes,
            request.tasks_per_node,
            request.exclusive,
            demand.per_task.tolist(),
            demand.per_node.tolist(),
            [nodes.tolist() for nodes in demand.alternatives],
            [(self._licences[name], count) for name, count in request.licences if demand.alternatives],
        )
        refusal = why_never(demand, self._machine)
        if refusal is not None:
            self._refusals[number] = refusal
        return number
