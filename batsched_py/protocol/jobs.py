"""Jobs and hosts, as both sides know them, with their clock and what counts as a number in a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from math import inf, isfinite
from sys import float_info
from typing import Any, NoReturn

from msgspec import Struct, field, structs
from msgspec.structs import force_setattr

from batsched_py.errors import ProtocolError
from batsched_py.protocol.shown import shown


class ReadOnlyDict(dict[str, Any]):
    """A dictionary that is as it was made, so that many may hold it.

    >>> ReadOnlyDict(user="7")["user"]
    '7'
    """

    __slots__ = ()

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this dictionary cannot be changed; make a dict of it, and change that")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> ReadOnlyDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnlyDict, (dict(self),)


_LARGEST = float_info.max

#: Up to here every integer is a double as well.
_LARGEST_INTEGER = 2**53


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number, and one that a double can hold."""
    return type(value) in (float, int) and -_LARGEST <= value <= _LARGEST


def is_natural(value: Any) -> bool:
    """Whether a value of JSON is an integer that is not negative, and that a double holds exactly."""
    return type(value) is int and 0 <= value <= _LARGEST_INTEGER


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


#: A call cannot be requested for sooner than this.
TICK = 1e-6


def to_tick(time: float) -> float:
    """A time as messages contain it: rounded to the nearest tick.

    >>> to_tick(12.3456789)
    12.345679
    """
    return time if time.is_integer() else round(time, 6)


def first_tick_from(time: float) -> float:
    """The first tick that is not before a time.

    >>> first_tick_from(12.3456784)
    12.345679
    """
    tick = to_tick(time)
    return tick if tick >= time else to_tick(time + TICK)


def as_told(job: Job) -> Job:
    """The job as messages contain it: its times rounded to ticks."""
    submission, walltime = to_tick(job.submission_time), to_tick(job.walltime)
    if submission == job.submission_time and walltime == job.walltime:
        return job
    return structs.replace(job, submission_time=submission, walltime=walltime)


def sleep_pstates(properties: dict[str, str]) -> dict[int, tuple[int, int]]:
    """The power states in a host's ``sleep_pstates``, a text of triplets ``SLEEP:OFF:ON``; none without."""
    text = properties.get("sleep_pstates", "")
    if not re.fullmatch(r"(\s*\d{1,9}\s*:\s*\d{1,9}\s*:\s*\d{1,9}\s*(,|$))*", text, re.ASCII):
        raise ProtocolError(f"property `sleep_pstates`: expected triplets like 1:2:3, got {shown(text)}")
    triplets = [[int(state) for state in triplet.split(":")] for triplet in filter(None, text.split(","))]
    return {sleep: (off, on) for sleep, off, on in triplets}


#: Watts of a power state: while nothing runs, at a load of almost nothing, and while all cores are busy.
Watts = tuple[float, float, float]


def read_watts(properties: Mapping[str, str]) -> list[Watts] | None:
    """The watts of each power state of a host; nothing if its properties do not tell.

    >>> read_watts({"wattage_per_state": "90:200, 80:92:130"})
    [(90.0, 90.0, 200.0), (80.0, 92.0, 130.0)]
    """
    name = "wattage_per_state" if "wattage_per_state" in properties else "watt_per_state"
    if name not in properties:
        return None
    found = []
    for text in properties[name].split(","):
        watts = [read_power(name, part) for part in text.split(":")]
        if len(watts) not in (2, 3):
            raise ValueError(f"{name} has {text.strip()!r} where it needs IDLE:FULL or IDLE:EPSILON:FULL")
        found.append((watts[0], watts[-2], watts[-1]))
    return found


def read_power(name: str, text: str) -> float:
    """A power in watts, as a property gives it."""
    try:
        watts = float(text)
    except ValueError:
        watts = -1.0
    if watts < 0 or not isfinite(watts):
        raise ValueError(f"{name} has {text.strip()!r} where it needs a power in watts")
    return watts
