"""What the properties in ``<config>`` of a platform file change: those that matter to parallel tasks.

Most of SimGrid's properties belong to other models than ``ptask_L07``, or say how its program runs: these
have no effect. One that would have an effect which is not simulated is refused, as is one that nobody knows.
"""

from contextlib import suppress
from math import isfinite

from msgspec.structs import replace

from batsched_py.simulator.network import zones
from batsched_py.simulator.network.routing import TCP_GAMMA
from batsched_py.simulator.network.zones import Link

#: Of other models of networks, hosts and disks, or overruled by the model that Batsim asks for.
OF_OTHER_MODELS = frozenset(
    {
        "network/bandwidth-factor",
        "network/latency-factor",
        "network/weight-S",
        "network/crosstraffic",
        "network/coordinates",
        "network/optim",
        "network/solver",
        "network/maxmin-selective-update",
        "cpu/optim",
        "cpu/solver",
        "cpu/maxmin-selective-update",
        "host/model",
        "path",
        "tracing",
    }
)
#: Of SimGrid's program, of its traces and of what Batsim does not use.
_OF_OTHER_THINGS = (
    "bmf/",
    "contexts/",
    "debug/",
    "disk/",
    "exception/",
    "model-check/",
    "ns3/",
    "smpi/",
    "storage/",
    "tracing/",
    "vm/",
)
#: What SimGrid's model computes with, where nothing else is simulated.
_ONLY: dict[str, float | str] = {
    "surf/precision": 1e-9,
    "precision/timing": 1e-9,
    "maxmin/precision": 1e-5,
    "precision/work-amount": 1e-5,
    "maxmin/concurrency-limit": -1,
    "host/solver": "fairbottleneck",
}


class Configuration:
    """What a platform file sets for all of its network."""

    def __init__(self) -> None:
        self.tcp_gamma = TCP_GAMMA
        self.loopback = Link("loopback", 10e9, 0.0, fatpipe=True)

    def set(self, name: str, value: str) -> None:
        """Take over a property; raises ``ValueError`` if it would change what is not simulated."""
        if name == "network/TCP-gamma":
            self.tcp_gamma = _positive(name, value)
        elif name == "network/loopback-bw":
            self.loopback = replace(self.loopback, bandwidth=_positive(name, value))
        elif name == "network/loopback-lat":
            self.loopback = replace(self.loopback, latency=zones.parse_latency(value))
        elif (only := _ONLY.get(name)) is not None:
            if not _means(value, only):
                raise ValueError(f"{name} is {value!r} where only {only} is simulated; remove it")
        elif name in ("network/model", "cpu/model"):
            raise ValueError(
                f"{name} is {value!r}: jobs need SimGrid's model ptask_L07, without it; remove it"
            )
        elif name not in OF_OTHER_MODELS and not name.startswith(_OF_OTHER_THINGS):
            raise ValueError(
                f"{name} of <config> is neither simulated nor known to have no effect; remove it"
            )


def _means(text: str, value: float | str) -> bool:
    if isinstance(value, str):
        return text == value
    with suppress(ValueError):
        return float(text) == value
    return False


def _positive(name: str, text: str) -> float:
    with suppress(ValueError):
        if isfinite(value := float(text)) and value > 0:
            return value
    raise ValueError(f"{name} is {text!r} where it needs a number above 0")
