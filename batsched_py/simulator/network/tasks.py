"""Tasks that share hosts or links: the pace of some changes whenever another begins or ends.

This is SimGrid's model of parallel tasks (L07). A task first waits for the latency of its longest route. Then
it advances on all its hosts and links at one rate, which the solver finds again for all tasks that are
connected to one that began or ended. Messages to the master are such tasks, too.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from msgspec import Struct

from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.execution import Computing, Execution
from batsched_py.simulator.network.routing import TCP_GAMMA, Network
from batsched_py.simulator.network.solver import Demand, Fluid, Resource, Use, component, join, leave, solve
from batsched_py.simulator.network.zones import Link
from batsched_py.simulator.outputs import Outputs, quoted
from batsched_py.simulator.platform import PlatformHost

USES_HEADER = "task,job_id,kind,name,capacity,amount\n"
RATES_HEADER = "time,task,rate,rate_alone,kind,name\n"

#: A task that is slower by less than this share is as fast as alone, but for rounding.
LEAST_SLOWING = 1e-6


class Record:
    """What links, hosts and storages carry over time, in two files.

    ``PREFIX_uses.csv`` has what each task asks of each link, host and storage, written when it begins to
    flow. ``PREFIX_rates.csv`` has which part of the whole it does in a second, whenever that changes, and 0
    at its end; beside it the rate that it would have alone, and what holds it back if others share that.

    The product of both files is what a link carries. They are far smaller than a row for each link and
    change. Messages to the master, of one byte each, are left out.
    """

    def __init__(
        self, hosts: Sequence[PlatformHost], storages: int, agenda: Agenda, outputs: Outputs
    ) -> None:
        self._names = [quoted(host.name) for host in hosts]
        self._storages = range(len(hosts) - storages, len(hosts))
        self._agenda = agenda
        self._write_uses = outputs.open("uses", USES_HEADER)
        self._write_rates = outputs.open("rates", RATES_HEADER)

    def new_demand(self) -> Demand:
        """A demand that counts the bytes that storages send and receive."""
        return Demand(stored=dict.fromkeys(self._storages, 0.0))

    def begins(self, owner: object, fluid: Fluid, stored: Mapping[int, float] | None) -> None:
        """A task begins to use its resources."""
        if not isinstance(owner, Execution):
            return
        begin = f"{fluid.number},{quoted(owner.job.id)}"
        rows = [
            f"{begin},{self._kind_and_name(resource)},{resource.capacity!r},{use.total!r}\n"
            for resource, use in fluid.uses.items()
        ]
        rows += [
            f"{begin},storage,{self._names[host]},,{amount!r}\n"
            for host, amount in (stored or {}).items()
            if amount > 0
        ]
        self._write_uses("".join(rows))

    def changes(self, owner: object, fluid: Fluid) -> None:
        """A task has another rate from now on."""
        if not isinstance(owner, Execution):
            return
        alone, held_by = rate_alone(fluid), ","
        if fluid.rate < alone * (1 - LEAST_SLOWING) and fluid.shared:
            fullest = min(fluid.shared, key=lambda resource: resource.rest / resource.capacity)
            held_by = self._kind_and_name(fullest)
        self._write_rates(f"{self._agenda.clock!r},{fluid.number},{fluid.rate!r},{alone!r},{held_by}\n")

    def ends(self, owner: object, fluid: Fluid) -> None:
        """A task uses its resources no more."""
        if isinstance(owner, Execution):
            self._write_rates(f"{self._agenda.clock!r},{fluid.number},0.0,{rate_alone(fluid)!r},,\n")

    def _kind_and_name(self, resource: Resource) -> str:
        if resource.host >= 0:
            return f"host,{self._names[resource.host]}"
        return f"link,{quoted(resource.name)}"


def rate_alone(fluid: Fluid) -> float:
    """The rate that a task would have if nobody shared anything with it."""
    return min(fluid.bound, min([resource.capacity / use.total for resource, use in fluid.uses.items()]))


class Owner(Protocol):
    """Who has a task: the execution of a job, or a message."""

    agenda_number: int
    """Of what happens to it next, 0 if that is not known."""


#: Says that the task of its owner will be done in so many seconds, or that something else will happen then.
HappenIn = Callable[[Any, float, Callable[[Any], None] | None], None]


class FluidTask(Struct, eq=False):
    """A task under way."""

    owner: Owner
    happen_in: HappenIn
    fluid: Fluid
    left: float = 1.0
    """Which part of the whole was left at the last change of the rate."""
    since: float = 0.0
    rate: float = 0.0
    waits: bool = False
    """Whether its first bytes have not arrived yet."""
    stored: dict[int, float] | None = None
    """Bytes that storages send and receive for it, where that is recorded."""


class FluidTasks:
    """An execution model: tasks on shared hosts and links."""

    def __init__(
        self,
        computing: Computing,
        network: Network | None,
        agenda: Agenda,
        meter: Meter | None,
        record: Record | None = None,
    ) -> None:
        self._computing = computing
        self._tcp_gamma = TCP_GAMMA if network is None else network.tcp_gamma
        self._agenda = agenda
        self._meter = meter
        self._record = record
        self._hosts: dict[int, Resource] = {}
        self._links: dict[Link, Resource] = {}
        self._tasks: dict[Owner, FluidTask] = {}
        self._of: dict[Fluid, FluidTask] = {}
        self._count = 0
        self.unsettled = 0
        """How often the solver stopped before all rates were final."""

    def begin(self, owner: Owner, demand: Demand, happen_in: HappenIn) -> None:
        """A task begins, with its latency; others on its hosts and links slow down then."""
        bound = demand.network_bound(self._tcp_gamma)
        uses: dict[Resource, Use] = {}
        for host, flops in demand.flops:
            if flops > 0:
                bound = min(bound, self._computing.speed(host) / flops)
                resource = self._host(host)
                before = uses.get(resource)
                uses[resource] = (
                    Use(flops, flops)
                    if before is None
                    else Use(before.total + flops, max(before.largest, flops), before.parts + 1)
                )
        for link, amount in demand.bytes.items():
            uses[self._link(link)] = Use(amount, amount)
        if not uses:
            happen_in(owner, 0.0, None)
            return
        self._count += 1
        fluid = Fluid(self._count, uses, bound)
        task = FluidTask(owner, happen_in, fluid, since=self._agenda.clock, waits=demand.latency > 0)
        task.stored = demand.stored
        self._tasks[owner] = self._of[fluid] = task
        if task.waits:
            happen_in(owner, demand.latency, self._latency_is_over)
        else:
            self._flow(task)

    def stop(self, owner: Owner) -> None:
        """A task is under way no more; others on its hosts and links speed up."""
        task = self._tasks.pop(owner)
        del self._of[task.fluid]
        if task.waits:
            return
        neighbours = dict.fromkeys(other for resource in task.fluid.shared for other in resource.users)
        neighbours.pop(task.fluid, None)
        leave(task.fluid)
        if self._record is not None:
            self._record.ends(owner, task.fluid)
        self._solve(component(neighbours))
        if self._meter is not None:
            self._load_hosts(task.fluid)

    def linger(self, owner: Owner) -> None:
        """Nobody waits for a task any more, but it goes on until it is done or is stopped."""
        task = self._tasks[owner]
        if task.waits:
            self.stop(owner)
            return
        task.happen_in = self._end_in
        left = max(task.left - task.rate * (self._agenda.clock - task.since), 0.0)
        self._end_in(owner, left / task.rate, None)

    def _end_in(self, owner: Owner, seconds: float, _: object) -> None:
        owner.agenda_number = self._agenda.at(self._agenda.clock + seconds, self.stop, owner)

    def has(self, owner: Owner) -> bool:
        """Whether a task of this owner is under way."""
        return owner in self._tasks

    def rate(self, owner: Owner) -> float:
        """Which part of a task is done in a second at present."""
        return self._tasks[owner].rate

    def done(self, owner: Owner) -> float:
        """Which part of a task is done."""
        task = self._tasks[owner]
        return min(1.0 - task.left + task.rate * (self._agenda.clock - task.since), 1.0)

    def _latency_is_over(self, owner: Owner) -> None:
        task = self._tasks[owner]
        task.waits = False
        task.since = self._agenda.clock
        self._flow(task)

    def _flow(self, task: FluidTask) -> None:
        """A task begins to use its resources."""
        join(task.fluid)
        if self._record is not None:
            self._record.begins(task.owner, task.fluid, task.stored)
        task.owner.agenda_number = 0
        self._solve(component([task.fluid]))

    def _solve(self, fluids: list[Fluid]) -> None:
        """Find the rates of all tasks of a component, and when they will be done."""
        if not fluids:
            return
        if not solve(fluids):
            self.unsettled += 1
        now, agenda = self._agenda.clock, self._agenda
        for fluid in fluids:
            task, rate = self._of[fluid], fluid.rate
            if rate == task.rate:
                continue
            task.left = max(task.left - task.rate * (now - task.since), 0.0)
            task.rate, task.since = rate, now
            if task.owner.agenda_number:
                agenda.cancel(task.owner.agenda_number)
            task.happen_in(task.owner, task.left / rate, None)
            if self._record is not None:
                self._record.changes(task.owner, fluid)
            if self._meter is not None:
                self._load_hosts(fluid)

    def _load_hosts(self, fluid: Fluid) -> None:
        assert self._meter is not None
        for resource in fluid.uses:
            if resource.host >= 0:
                used = sum([use.total * other.rate for other, use in resource.users.items()])
                self._meter.put_load(resource.host, used / resource.capacity)

    def _host(self, host: int) -> Resource:
        resource = self._hosts.get(host)
        if resource is None:
            resource = self._hosts[host] = Resource(f"host {host}", inf, host=host)
        resource.capacity = self._computing.capacity(host)
        return resource

    def _link(self, link: Link) -> Resource:
        resource = self._links.get(link)
        if resource is None:
            resource = self._links[link] = Resource(link.name, link.bandwidth, link.fatpipe)
        return resource


#: Bytes of a message.
SIZE = 1.0


class Message(Struct, eq=False):
    """A message of one byte."""

    host: int | None
    """Where it comes from; nothing if it comes from the master itself."""
    arrive: Callable[[], None]
    """What happens when it has arrived."""
    then: Callable[[], None] | None = None
    """How its sender goes on when it has arrived."""
    agenda_number: int = 0


class Courier:
    """Carries messages to the master over the same links that jobs use.

    As in Batsim, the master receives one message at a time, in the order in which they were sent. The next
    one sets out when the one before has arrived. What the master tells itself (submissions, calls, each
    decision of a reply) takes the way from the master to itself, and waits in the same line. So a job without
    any work that ends while a reply is carried out delays the decisions after it by its message.
    """

    def __init__(self, network: Network, tasks: FluidTasks, agenda: Agenda) -> None:
        self.busy = False
        """Whether a message is on its way."""
        self._network = network
        self._tasks = tasks
        self._agenda = agenda
        self._waiting: deque[Message] = deque()

    def send(self, message: Message) -> None:
        """Send a message, as soon as those before have arrived."""
        self._waiting.append(message)
        if not self.busy:
            self._go_on()

    def _go_on(self) -> None:
        """Let the next message set out."""
        self.busy = bool(self._waiting)
        if self.busy:
            message, demand = self._waiting.popleft(), Demand()
            demand.send_along(self._network.route_to_master(message.host), SIZE)
            self._tasks.begin(message, demand, self._happen_in)

    def _happen_in(self, message: Message, seconds: float, then: Callable[[Message], None] | None) -> None:
        message.agenda_number = self._agenda.at(self._agenda.clock + seconds, then or self.arrive, message)

    def arrive(self, message: Message) -> None:
        """Let the sender of a message go on, and the next one set out; then what it says has an effect."""
        if self._tasks.has(message):
            self._tasks.stop(message)
        if message.then is not None:
            message.then()
        self._go_on()
        message.arrive()
