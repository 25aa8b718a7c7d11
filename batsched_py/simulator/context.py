"""What the parts of a simulation share."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.machines import Machines
from batsched_py.simulator.network.record import Record
from batsched_py.simulator.network.routing import Network
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.paje import PajeTrace
from batsched_py.simulator.platform import PlatformHost
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
