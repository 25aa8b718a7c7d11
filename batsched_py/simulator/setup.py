"""What is simulated."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.protocol.events import Event, Settings
from batsched_py.simulator.network.routing import Network
from batsched_py.simulator.platform import Platform
from batsched_py.workload.model import Workload


class Setup(Struct, frozen=True):
    """A machine, the workloads that are played on it, and what is allowed meanwhile."""

    platform: Platform
    workloads: Sequence[Workload] = ()
    settings: Settings = Settings()
    ignore_communication: bool = False
    """Whether what sends bytes runs as if that took no time."""
    energy: bool = False
    """Whether the energy that hosts draw is accounted for, and their power states may be changed."""
    events: Sequence[Sequence[Event]] = ()
    """What happens from outside, as lists in the order of time."""
    known: Known = NOTHING_KNOWN
    """The price and the carbon intensity of energy, if they are to be added up."""
    launch_time: float = 0.0
    """Seconds from the decision to start a job to its first task; its hosts are taken meanwhile."""
    cleaning_time: float = 0.0
    """Seconds from the end of a job until its hosts are free, and its end is told."""

    @property
    def network(self) -> Network | None:
        """What jobs send bytes over, if they do that."""
        return None if self.ignore_communication else self.platform.network

    @property
    def shares_hosts(self) -> bool:
        """Whether several jobs may be on a host."""
        settings = self.settings
        return settings.compute_sharing or (settings.storage_sharing and bool(self.platform.storages))

    @property
    def may_send(self) -> bool:
        """Whether profiles that send bytes can be run."""
        return self.ignore_communication or self.platform.network is not None
