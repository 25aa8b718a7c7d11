"""What generated jobs ask for on each of their nodes, between limits, and how fast it computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.requests import amount
from batsched_py.workload.swf.log import Floats, Integers

CORE: Final = "core"
MEMORY: Final = "memory"


@dataclass(frozen=True)
class Asked:
    """What some jobs ask for."""

    processors: Integers
    speed: Floats
    """How much each does in a second, relative to one processor of the log."""
    columns: dict[str, NDArray[Any]]
    """What else a log says about it."""


@dataclass(frozen=True)
class UnitRequests:
    """The least and the most of each unit on a node, and the speed of those units that compute."""

    limits: dict[str, tuple[int, int]]
    """Memory is in KiB. Without any limits, jobs ask for processors only."""
    speeds: dict[str, float]

    @classmethod
    def read(cls, limits: str, performance: str, speed: float) -> UnitRequests:
        """As options of a model write them.

        >>> UnitRequests.read("core:1-8,gpu:0-2", "gpu:560", 1.5)
        UnitRequests(limits={'core': (1, 8), 'gpu': (0, 2)}, speeds={'core': 1.5, 'gpu': 560.0})
        """
        read = {name: _limit(name, text) for name, text in _pairs("limits", limits)}
        if read and read.get(CORE, (0, 0))[0] < 1:
            raise InputError(f"limits={limits}: give the cores of a node, at least 1, as in core:1-8")
        speeds = {CORE: speed}
        for name, text in _pairs("performance", performance):
            if name == CORE:
                raise InputError(f"performance={performance}: the performance of cores is the option speed")
            if name not in read:
                raise InputError(
                    f"performance={performance}: limits does not say how many {name} jobs ask for"
                )
            speeds[name] = _speed(name, text)
        return cls(read, speeds)

    def draw(self, sizes: Integers, machine: int, random: np.random.Generator) -> Asked:
        """What jobs of these sizes ask for.

        Each amount is drawn from all between its limits alike, but no job gets more cores than its size if it
        can be helped. A job has as many nodes as come nearest to its size.
        """
        if not self.limits:
            return Asked(sizes, np.multiply(sizes, self.speeds[CORE], dtype=np.float64), {})
        amounts = {
            name: random.integers(least, most, len(sizes), endpoint=True)
            for name, (least, most) in self.limits.items()
        }
        cores = np.minimum(
            np.clip(amounts.pop(CORE), self.limits[CORE][0], sizes.clip(self.limits[CORE][0])), machine
        )
        nodes = np.clip(np.rint(sizes / cores).astype(np.int64), 1, np.maximum(machine // cores, 1))
        speed = cores * self.speeds[CORE]
        for name, each in self.speeds.items():
            if name != CORE:
                speed = speed + amounts[name] * each
        columns: dict[str, NDArray[Any]] = {"nodes": nodes, "request": _requests(nodes, cores, amounts)}
        if MEMORY in amounts:
            columns["requested_memory"] = np.ceil(amounts[MEMORY] / cores)
        if "gpu" in amounts:
            columns["gpus"] = nodes * amounts["gpu"]
        return Asked(nodes * cores, nodes * speed, columns)


def _requests(nodes: Integers, cores: Integers, amounts: Mapping[str, Integers]) -> NDArray[Any]:
    """The requests of jobs in JSON: a task with these cores on each node, beside its share of the rest."""
    made = []
    for row, (node, core) in enumerate(zip(nodes.tolist(), cores.tolist(), strict=True)):
        rest = [int(each[row]) for each in amounts.values()]
        asked = {
            name: f"{count} kB" if name == MEMORY else count
            for name, count in zip(amounts, rest, strict=True)
            if count
        }
        request = {"tasks": node, "cores": core, "nodes": node} | ({"per_node": asked} if asked else {})
        made.append(msgspec.json.encode(request).decode())
    return np.array(made, dtype=object)


def _pairs(option: str, text: str) -> list[tuple[str, str]]:
    pairs = [each.partition(":") for each in text.split(",")] if text else []
    for name, colon, value in pairs:
        if not (name.strip() and colon and value.strip()):
            raise InputError(f"{option}={text}: write UNIT:VALUE for each unit, with commas between them")
    found = [(name.strip(), value.strip()) for name, _, value in pairs]
    if len(dict(found)) < len(found):
        raise InputError(f"{option}={text}: a unit is given twice")
    return found


def _limit(name: str, text: str) -> tuple[int, int]:
    least, dash, most = text.partition("-")
    try:
        limit = amount(name, least), amount(name, most if dash else least)
    except ValueError as error:
        raise InputError(f"limits: {name}:{text}: {error}") from None
    if limit[0] > limit[1]:
        raise InputError(f"limits: {name}:{text}: the least is more than the most")
    return limit


def _speed(name: str, text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = -1.0
    if not 0 < speed < 1e12:
        raise InputError(f"performance: {name}:{text}: give a number above 0")
    return speed
