"""Jobs and hosts, as both sides know them."""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import Any

from msgspec import Struct, field
from msgspec.structs import force_setattr

from batsched_py.protocol.read_only import ReadOnlyDict

#: The properties of hosts that make them cores of nodes, or say more of these.
NODE_PROPERTIES = ("node", "resources", "features", "switch", "partitions")


class JobState(StrEnum):
    """The state of a job."""

    NOT_SUBMITTED = "NOT_SUBMITTED"
    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    SUCCESS = "COMPLETED_SUCCESSFULLY"
    FAILED = "COMPLETED_FAILED"
    WALLTIME_REACHED = "COMPLETED_WALLTIME_REACHED"
    KILLED = "COMPLETED_KILLED"
    REJECTED = "REJECTED"


class HostState(StrEnum):
    """What a host is doing."""

    SLEEPING = "sleeping"
    IDLE = "idle"
    COMPUTING = "computing"
    SWITCHING_ON = "switching_on"
    SWITCHING_OFF = "switching_off"
    UNAVAILABLE = "unavailable"


class Job(Struct, frozen=True, gc=False, eq=False):
    """A job as its submitter describes it; nobody can change it."""

    id: str
    """Full identifier, ``WORKLOAD!NAME``."""
    submission_time: float
    size: int
    """How many hosts it asks for."""
    walltime: float
    """How long it may run before it is killed; infinite if there is no limit."""
    profile: str
    """Name of its profile, in its own workload."""
    extra: dict[str, Any] = field(default_factory=ReadOnlyDict)
    """All other fields, such as its user."""

    def __post_init__(self) -> None:
        if type(self.extra) is dict:
            force_setattr(self, "extra", ReadOnlyDict(self.extra))

    @property
    def workload(self) -> str:
        """Name of the workload it belongs to."""
        return self.id.partition("!")[0]

    @property
    def name(self) -> str:
        """Its identifier inside its workload."""
        return self.id.partition("!")[2]

    @property
    def user(self) -> str | None:
        """Who submitted it, if known."""
        user = self.extra.get("user")
        return None if user is None else str(user)

    @property
    def has_walltime(self) -> bool:
        """Whether its run time is bounded."""
        return self.walltime != inf


class Host(Struct):
    """A machine of the platform, as the simulator presents it."""

    id: int
    name: str
    state: HostState = HostState.IDLE
    properties: dict[str, str] = field(default_factory=dict)
    zone_properties: dict[str, str] = field(default_factory=dict)
    sleep_pstates: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The power states in which it sleeps, each with those it passes through to get there and back.

    A simulator may give none.
    """

    @property
    def computing_pstate(self) -> int:
        """The first of the power states in which it computes."""
        others = {state for sleep, ways in self.sleep_pstates.items() for state in (sleep, *ways)}
        return next(state for state in range(len(others) + 1) if state not in others)
