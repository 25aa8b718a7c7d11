"""What links, hosts and storages carry over time, in two files.

``PREFIX_uses.csv`` has what each task asks of each link, host and storage, written when it begins to flow.
``PREFIX_rates.csv`` has which part of the whole it does in a second, whenever that changes, and 0 at its end;
beside it the rate that it would have alone, and what holds it back if others share that.

The product of both files is what a link carries. They are far smaller than a row for each link and change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.network.demand import Demand
from batsched_py.simulator.network.solver import Fluid, Resource
from batsched_py.simulator.outputs import Outputs, quoted
from batsched_py.simulator.platform import PlatformHost

USES_HEADER = "task,job_id,kind,name,capacity,amount\n"
RATES_HEADER = "time,task,rate,rate_alone,kind,name\n"

#: A task that is slower by less than this share is as fast as alone, but for rounding.
LEAST_SLOWING = 1e-6


class Record:
    """Writes down tasks of jobs. Messages to the master, of one byte each, are left out."""

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
        alone = rate_alone(fluid)
        is_slowed = fluid.rate < alone * (1 - LEAST_SLOWING) and bool(fluid.shared)
        held_by = self._kind_and_name(fullest(fluid)) if is_slowed else ","
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


def fullest(fluid: Fluid) -> Resource:
    """Of what a task shares, the one of which the least was left when rates were last found."""
    return min(fluid.shared, key=lambda resource: resource.rest / resource.capacity)
