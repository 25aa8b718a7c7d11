"""What the parts of a simulation share."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from batsched_py.outside.curve import NOTHING_KNOWN
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.bill import Bill
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.machines import Machines, SharedMachines
from batsched_py.simulator.network.record import Record
from batsched_py.simulator.network.routing import Network
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.paje import PajeTrace
from batsched_py.simulator.platform import PlatformHost
from batsched_py.simulator.setup import Setup
from batsched_py.simulator.traces import EnergyTrace, MachineStateTrace


class Context(Struct):
    """The hosts, the clock, and the files that tell what happens."""

    hosts: Sequence[PlatformHost]
    agenda: Agenda
    machines: Machines
    outputs: Outputs
    energy: EnergyTrace | None
    states: MachineStateTrace | None
    network: Network | None = None
    """What jobs send bytes over, if that takes time."""
    record: Record | None = None
    """Of what links, hosts and storages carry, if that is asked for."""
    trace: PajeTrace | None = None
    """Of the schedule, if that is asked for."""


def context_of(setup: Setup, outputs: Outputs) -> Context:
    """The context of a simulation that begins."""
    platform = setup.platform
    hosts = [*platform.hosts, *platform.storages]
    agenda = Agenda()
    machines = (SharedMachines if setup.shares_hosts else Machines)(
        len(platform.hosts), len(platform.storages)
    )
    return Context(
        hosts,
        agenda,
        machines,
        outputs,
        _energy_trace(setup, hosts, agenda, outputs) if setup.energy else None,
        MachineStateTrace(machines, agenda, outputs) if outputs.machine_states else None,
        setup.network,
        Record(hosts, len(platform.storages), agenda, outputs) if outputs.links else None,
        PajeTrace([host.name for host in hosts], outputs.open_schedule_trace)
        if outputs.schedule_trace
        else None,
    )


def _energy_trace(
    setup: Setup, hosts: Sequence[PlatformHost], agenda: Agenda, outputs: Outputs
) -> EnergyTrace:
    bill = None if setup.known is NOTHING_KNOWN else Bill(setup.known)
    meter = Meter(hosts, agenda, None if bill is None else bill.draw)
    return EnergyTrace(meter, agenda, outputs, bill)
