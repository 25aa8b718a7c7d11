"""The machines of a simulation: which there are, how fast, and what power they draw.

A platform is either so many equal hosts or what a SimGrid file says. Hosts are numbered as Batsim does it:
computing hosts first, then storage, each in the order of their names as plain text (``a10`` before ``a2``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, overload

from msgspec import Struct, field

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import NODE_PROPERTIES, Host, read_power, read_watts
from batsched_py.workload.swf.conventions import LOG_SPEED

if TYPE_CHECKING:
    from batsched_py.ledger.nodes import NodeMachine
    from batsched_py.simulator.network.routing import Network, SimpleNetwork
    from batsched_py.simulator.simgrid_xml import DeclaredHost

#: The largest machine that is simulated; each host takes a kilobyte.
MOST_HOSTS = 1 << 20


class Role(StrEnum):
    """What a host is there for."""

    MASTER = "master"
    COMPUTE_NODE = "compute_node"
    STORAGE = "storage"


_ROLES = ", ".join(Role)


class PowerState(Struct, frozen=True):
    """A speed a host can run at, and the power it draws then (0 when the platform says nothing of it)."""

    speed: float
    """Flop/s."""
    idle_watts: float = 0.0
    """While nothing runs."""
    epsilon_watts: float = 0.0
    """While something runs, at a load of almost nothing."""
    full_watts: float = 0.0
    """While all cores are busy."""

    def watts(self, load: float) -> float:
        """The power drawn at ``load``, the busy share of all cores.

        It grows linearly from the epsilon to the full power; a host without any load draws its idle power.
        A state of speed 0 always counts as fully loaded, as it does in SimGrid.
        """
        if self.speed <= 0:
            return self.full_watts
        if load <= 0:
            return self.idle_watts
        return self.epsilon_watts + (self.full_watts - self.epsilon_watts) * min(load, 1.0)


class SleepState(Struct, frozen=True):
    """A power state in which a host sleeps, and the two it passes through to get there and back."""

    sleep: int
    switch_off: int
    switch_on: int


class PlatformHost(Struct):
    """A machine as the platform describes it."""

    id: int
    name: str
    pstates: list[PowerState]
    pstate: int = 0
    """The power state it begins in."""
    sleep_states: dict[int, SleepState] = field(default_factory=dict)
    """By the number of the power state."""
    properties: dict[str, str] = field(default_factory=lambda: {"role": ""})
    zone_properties: dict[str, str] = field(default_factory=dict)
    role: Role = Role.COMPUTE_NODE
    cores: int = 1

    @property
    def speed(self) -> float:
        """Its speed at the beginning, in flop/s."""
        return self.pstates[self.pstate].speed

    @property
    def has_power(self) -> bool:
        """Whether the platform says what power it draws."""
        return "wattage_per_state" in self.properties or "watt_per_state" in self.properties

    def computes_in(self, pstate: int) -> bool:
        """Whether ``pstate`` is a power state of this host in which jobs can run."""
        return 0 <= pstate < len(self.pstates) and not any(
            pstate in (state.sleep, state.switch_off, state.switch_on) for state in self.sleep_states.values()
        )


class EqualHosts(Sequence[PlatformHost]):
    """So many hosts of one speed, made when somebody looks at them."""

    def __init__(self, count: int, speed: float) -> None:
        self.speed = speed
        """In flop/s."""
        self._count = count
        self._pstates = [PowerState(speed)]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> PlatformHost: ...
    @overload
    def __getitem__(self, place: slice) -> list[PlatformHost]: ...
    def __getitem__(self, place: int | slice) -> PlatformHost | list[PlatformHost]:
        numbers = range(self._count)[place]
        if isinstance(numbers, int):
            return PlatformHost(numbers, f"host{numbers}", self._pstates)
        return [PlatformHost(number, f"host{number}", self._pstates) for number in numbers]


class Platform(Struct):
    """All machines a simulation may use."""

    hosts: Sequence[PlatformHost]
    """Those that compute, numbered from 0."""
    storages: list[PlatformHost] = field(default_factory=list)
    """Those that store, numbered after them."""
    path: str = ""
    """The file that describes it, if there is one."""
    network: Network | None = None
    """How hosts reach each other; without links, nobody can send anything."""

    @classmethod
    def homogeneous(cls, count: int, speed: float = 1.0, network: SimpleNetwork | None = None) -> Platform:
        """``count`` equal hosts, ``speed`` times as fast as the machine on which a log was recorded."""
        if count < 1:
            raise InputError(f"a platform needs at least 1 host, not {count}")
        if count > MOST_HOSTS:
            raise InputError(f"a platform has at most {MOST_HOSTS} hosts, not {count}")
        if not 0 < speed < float("inf"):
            raise InputError(f"the speed of hosts must be a positive number, not {speed}")
        hosts = EqualHosts(count, speed * LOG_SPEED)
        return cls(hosts, network=None if network is None else network.build(count))

    @property
    def even_speed(self) -> float | None:
        """The speed of all hosts that compute in flop/s, if it is one."""
        if isinstance(self.hosts, EqualHosts):
            return self.hosts.speed
        speeds = {host.speed for host in self.hosts}
        return speeds.pop() if len(speeds) == 1 else None

    @property
    def has_nodes(self) -> bool:
        """Whether hosts are more than hosts: cores of nodes, or with features or partitions."""
        return not isinstance(self.hosts, EqualHosts) and any(
            name in host.properties for host in self.hosts for name in NODE_PROPERTIES
        )

    @property
    def switches(self) -> list[str] | None:
        """The switch of each host that computes, if there is a network."""
        return None if self.network is None else self.network.switches(len(self.hosts))

    def as_nodes(self) -> NodeMachine | None:
        """The nodes that hosts make up, if they are more than hosts."""
        if not self.has_nodes:
            return None
        from batsched_py.ledger.nodes import NodeMachine

        return NodeMachine.of(self.as_protocol()[0])

    def as_protocol(self) -> tuple[list[Host], list[Host]]:
        """The computing and the storage hosts, as a decision process is shown them."""
        return [_as_protocol(host) for host in self.hosts], [_as_protocol(host) for host in self.storages]


def _as_protocol(host: PlatformHost) -> Host:
    return Host(
        host.id,
        host.name,
        properties=host.properties,
        zone_properties=host.zone_properties,
        sleep_pstates={
            state.sleep: (state.switch_off, state.switch_on) for state in host.sleep_states.values()
        },
    )


def parse_roles(options: Iterable[str]) -> dict[str, str]:
    """Roles by host name, from Batsim's ``-r`` options: ``host[,host...]:role``.

    >>> parse_roles(["io0,io1:storage", "front:master"])
    {'io0': 'storage', 'io1': 'storage', 'front': 'master'}
    """
    roles: dict[str, str] = {}
    for option in options:
        names, colon, role = option.partition(":")
        if not colon or not names or role not in tuple(Role):
            raise InputError(
                f"role {option!r} is not of the form HOST[,HOST...]:ROLE with a role of {_ROLES}"
            )
        roles |= dict.fromkeys(names.split(","), role)
    return roles


def read_platform(
    path: str | Path,
    master_host: str = "master_host",
    roles: dict[str, str] | None = None,
    mmax: int | None = None,
) -> Platform:
    """The platform that the SimGrid file at ``path`` describes.

    The host called ``master_host`` is Batsim's own and left out. ``roles`` gives further hosts a role by
    name, as the property ``role`` does in the file. With ``mmax``, only the first so many computing hosts are
    kept; 0 keeps all, as in Batsim.
    """
    from batsched_py.simulator.network.reading import NetworkReader
    from batsched_py.simulator.simgrid_xml import declared_hosts, read_root

    root = read_root(path)
    given = {master_host: str(Role.MASTER)} | (roles or {})
    by_role: dict[Role, list[PlatformHost]] = {role: [] for role in Role}
    declared = sorted(declared_hosts(path, root), key=lambda host: host.name)
    if unknown := (roles or {}).keys() - {host.name for host in declared}:
        raise InputError(f"{path}: there is no host {min(unknown)!r} to give a role to")
    for host in declared:
        try:
            described = _describe(host, given.get(host.name, ""))
        except ValueError as error:
            raise InputError(f"{path}: host {host.name!r}: {error}") from None
        by_role[described.role].append(described)
    masters, hosts, storages = by_role.values()
    if not masters:
        raise InputError(
            f"{path}: there is no master host; add a host called {master_host!r} (its speed does not "
            "matter), name another with -m, or give one the property role=master"
        )
    if len(masters) > 1:
        raise InputError(
            f"{path}: hosts {masters[0].name!r} and {masters[1].name!r} are both master; keep one"
        )
    if not hosts:
        raise InputError(f"{path}: there is no host to compute on beside the master")
    if mmax and not 1 <= mmax <= len(hosts):
        raise InputError(f"{path}: cannot keep {mmax} computing hosts (--mmax), there are {len(hosts)}")
    hosts = hosts[: mmax or None]
    for number, numbered in enumerate(hosts + storages):
        numbered.id = number
    try:
        reader = NetworkReader(root)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    network = None
    if reader.connects:
        network = reader.network([host.name for host in hosts + storages], masters[0].name, str(path))
    return Platform(hosts, storages, str(path), network)


def _describe(host: DeclaredHost, given_role: str) -> PlatformHost:
    """What the properties of ``host`` mean; it has no number yet."""
    declared = host.properties.get("role", "")
    if declared and given_role:
        raise ValueError(f"its role is {declared!r} in the file and {given_role!r} by option; give it once")
    role = declared or given_role or Role.COMPUTE_NODE
    if role not in tuple(Role):
        raise ValueError(f"role {role!r} is unknown, there are {_ROLES}")
    states, sleep_states = _power_states(host), _sleep_states(host)
    if role == Role.COMPUTE_NODE:
        for number, state in enumerate(states):
            if state.speed <= 0 and number not in sleep_states:
                raise ValueError(f"its speed in pstate {number} must be more than 0")
    return PlatformHost(
        -1,
        host.name,
        states,
        host.pstate,
        sleep_states,
        {"role": ""} | host.properties | {"role": declared or given_role},
        host.zone_properties,
        Role(role),
        host.cores,
    )


def _power_states(host: DeclaredHost) -> list[PowerState]:
    for name in ("wattage_off", "watt_off"):
        if name in host.properties:
            read_power(name, host.properties[name])
    watts = read_watts(host.properties)
    if watts is None:
        return [PowerState(speed) for speed in host.speeds]
    if len(watts) != len(host.speeds):
        name = "wattage_per_state" if "wattage_per_state" in host.properties else "watt_per_state"
        raise ValueError(f"{name} describes {len(watts)} pstates, but there are {len(host.speeds)} speeds")
    return [PowerState(speed, *state) for speed, state in zip(host.speeds, watts, strict=True)]


def _sleep_states(host: DeclaredHost) -> dict[int, SleepState]:
    states: dict[int, SleepState] = {}
    transitions: set[int] = set()
    for triplet in filter(None, host.properties.get("sleep_pstates", "").split(",")):
        parts = [part.strip() for part in triplet.split(":")]
        for part in parts:
            if not (part.isascii() and part.isdigit() and int(part) < len(host.speeds)):
                what = f"{triplet.strip()!r}, but the pstates are 0 to {len(host.speeds) - 1}"
                raise ValueError(f"sleep_pstates has {what}")
        if len(parts) != 3:
            raise ValueError(f"sleep_pstates has {triplet.strip()!r} where it needs SLEEP:OFF:ON")
        state = SleepState(*map(int, parts))
        if state.sleep in states:
            raise ValueError(f"sleep_pstates defines the sleep pstate {state.sleep} twice")
        states[state.sleep] = state
        transitions |= {state.switch_off, state.switch_on}
    if both := transitions & states.keys():
        raise ValueError(f"sleep_pstates uses pstate {min(both)} for sleeping and for switching")
    return states
