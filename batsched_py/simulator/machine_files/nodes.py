"""From kinds of nodes to a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.simulator.platform import MOST_HOSTS, Platform, PlatformHost, PowerState, SleepState
from batsched_py.workload.swf.conventions import LOG_SPEED


class NodeSleep(Struct, frozen=True):
    """How each core of a node sleeps, and what it draws on its way there and back."""

    watts: float
    on_seconds: float
    on_watts: float
    off_seconds: float
    off_watts: float


class NodePower(Struct, frozen=True):
    """The watts of each core of a node."""

    idle: float
    full: float
    sleep: NodeSleep | None = None
    """Nothing if it cannot sleep."""

    def states(self, speed: float) -> list[PowerState]:
        """Its power states: to compute in, then to sleep in, to switch off in and to switch on in.

        A host passes through the last two by executing one flop.
        """
        states = [PowerState(speed, self.idle, self.idle, self.full)]
        if (sleep := self.sleep) is not None:
            states += [
                PowerState(1.0, sleep.watts, sleep.watts, sleep.watts),
                PowerState(1 / sleep.off_seconds, sleep.off_watts, sleep.off_watts, sleep.off_watts),
                PowerState(1 / sleep.on_seconds, sleep.on_watts, sleep.on_watts, sleep.on_watts),
            ]
        return states


#: The power states of a node that can sleep: asleep, switching off, switching on.
_SLEEP = SleepState(1, 2, 3)


class NodeKind(Struct, frozen=True):
    """Some equal nodes."""

    names: Sequence[str]
    cores: int
    resources: Mapping[str, int]
    """What each has beside cores; memory is in KiB."""
    features: Sequence[str] = ()
    switches: Sequence[str] = ()
    """The switch of each node; none where that is not known."""
    partitions: Sequence[str] = ()
    speed: float = 1.0
    """Of each core, relative to the machine of a log."""
    power: NodePower | None = None


def platform_of(kinds: Sequence[NodeKind], licences: Mapping[str, int], path: str) -> Platform:
    """The platform of these nodes: a host for each core, next to each other, named after node and core."""
    names = [name for kind in kinds for name in kind.names]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: there are two nodes called {twice!r}")
    nb_hosts = sum(len(kind.names) * kind.cores for kind in kinds)
    if not 1 <= nb_hosts <= MOST_HOSTS:
        raise InputError(f"{path}: a machine has 1 to {MOST_HOSTS} cores, not {nb_hosts}")
    zone = {"licences": _written(licences)} if licences else {}
    hosts: list[PlatformHost] = []
    for kind in kinds:
        power = kind.power or NodePower(0.0, 0.0)
        pstates = power.states(kind.speed * LOG_SPEED)
        sleep_states = {} if power.sleep is None else {_SLEEP.sleep: _SLEEP}
        for place, name in enumerate(kind.names):
            properties = _properties(kind, name, place)
            width = len(str(kind.cores - 1))
            for core in range(kind.cores):
                hosts.append(
                    PlatformHost(
                        len(hosts),
                        f"{name}-{core:0{width}}",
                        pstates,
                        sleep_states=sleep_states,
                        properties=properties,
                        zone_properties=zone,
                    )
                )
    return Platform(hosts, path=path)


def _properties(kind: NodeKind, name: str, place: int) -> dict[str, str]:
    """What the hosts of a node tell of it; see :mod:`batsched_py.ledger.nodes`."""
    properties = {"role": "", "node": name, "resources": _written(kind.resources)}
    properties |= {"features": " ".join(kind.features), "partitions": " ".join(kind.partitions)}
    if kind.switches:
        properties["switch"] = kind.switches[place]
    if kind.power:
        properties["wattage_per_state"] = ",".join(
            f"{_number(state.idle_watts)}:{_number(state.full_watts)}" for state in kind.power.states(1.0)
        )
        if kind.power.sleep is not None:
            properties["sleep_pstates"] = f"{_SLEEP.sleep}:{_SLEEP.switch_off}:{_SLEEP.switch_on}"
    return {key: value for key, value in properties.items() if value or key == "role"}


def _number(watts: float) -> str:
    """A number as short as it can be without losing anything."""
    short = f"{watts:g}"
    return short if float(short) == watts else repr(watts)


def _written(amounts: Mapping[str, int]) -> str:
    return " ".join(f"{name}={count}{'kB' if name == 'memory' else ''}" for name, count in amounts.items())
