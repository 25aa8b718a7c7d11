"""What is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.protocol.events import Event, Settings
from batsched_py.protocol.profiles import Delay, Homogeneous
from batsched_py.simulator.platform import Platform
from batsched_py.workload.model import Workload

if TYPE_CHECKING:
    from batsched_py.simulator.network.routing import Network

#: Sums of multiples of this part of a second are exact in floating point.
EXACT_PART = 1 / 1024


def _add_up(workload: Workload, speed: float | None) -> bool:
    """Whether all times of a workload add up without rounding. Those of a log, in columns, are seconds."""
    if not isinstance(workload.jobs, list):
        return True
    times: set[float] = set()
    for profile in workload.profiles.values():
        match profile:
            case Delay(seconds=seconds):
                times.add(seconds)
            case Homogeneous(work=work) if speed is not None:
                times.add(work / speed)
    for job in workload.jobs:
        times.add(job.submission_time)
        if isfinite(job.walltime):
            times.add(job.walltime)
    return all([(time / EXACT_PART).is_integer() for time in times])


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
    failures: Callable[[], Iterator[Event]] | None = None
    """Begins to make the events of hosts that fail, in the order of time; they are made as time passes."""
    known: Known = NOTHING_KNOWN
    """The price and the carbon intensity of energy, if they are to be added up."""
    launch_time: float = 0.0
    """Seconds from the decision to start a job to its first task; its hosts are taken meanwhile."""
    cleaning_time: float = 0.0
    """Seconds from the end of a job until its hosts are free, and its end is told."""
    storages_by_name: bool = False
    """Whether a storage that is not mapped is the host of that name, as for a Batsim 5, and nothing else."""
    late_jobs_stay: bool = False
    """Whether walltimes are estimates only, and a job that is late runs to its end."""

    @property
    def network(self) -> Network | None:
        """What jobs send bytes over, if they do that."""
        return None if self.ignore_communication else self.platform.network

    @property
    def tells_of_messages(self) -> bool:
        """Whether the messages between the processes of a Batsim are simulated, too.

        They take time where links have latency. Elsewhere they decide which events of almost the same time
        are told together. That makes no difference where times can be added without rounding them.
        """
        if self.network is None:
            return False
        speed = self.platform.even_speed
        return self.network.delays_messages or not all(_add_up(each, speed) for each in self.workloads)

    @property
    def shares_hosts(self) -> bool:
        """Whether several jobs may be on a host."""
        settings = self.settings
        return settings.compute_sharing or (settings.storage_sharing and bool(self.platform.storages))

    @property
    def may_send(self) -> bool:
        """Whether profiles that send bytes can be run."""
        return self.ignore_communication or self.platform.network is not None
