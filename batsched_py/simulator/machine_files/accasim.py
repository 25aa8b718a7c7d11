"""Machines of AccaSim: a JSON file with groups of equal nodes, and how many nodes each group has.

::

    {"groups": {"g0": {"core": 4, "mem": 1048576}}, "resources": {"g0": 120}}

Memory is in KiB, as in the logs that AccaSim reads. Any other resource of a group is counted under its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from batsched_py.errors import InputError
from batsched_py.protocol.requests import MOST
from batsched_py.simulator.machine_files.nodes import NodeKind, platform_of
from batsched_py.simulator.platform import MOST_HOSTS, Platform

_Amount = Annotated[int, Meta(ge=0, le=MOST)]
_Count = Annotated[int, Meta(ge=1, le=MOST_HOSTS)]


class _File(Struct):
    groups: dict[str, dict[str, _Amount]]
    resources: dict[str, _Count]


def read_accasim_machine(path: str | Path) -> Platform:
    """The machine that a file of AccaSim describes."""
    try:
        file = msgspec.json.decode(Path(path).read_bytes(), type=_File)
        kinds = [_kind(name, file.groups, count) for name, count in file.resources.items()]
    except OSError as error:
        raise InputError(f"{path}: cannot read this machine ({error.strerror})") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    return platform_of(kinds, {}, str(path))


def _kind(group: str, groups: dict[str, dict[str, int]], count: int) -> NodeKind:
    if group not in groups:
        raise ValueError(f"`resources` names group {group!r}, which is not among the `groups`")
    resources = dict(groups[group])
    cores = resources.pop("core", 0)
    if not cores:
        raise ValueError(f"the nodes of group {group!r} have no `core`")
    if "mem" in resources:
        resources["memory"] = resources.pop("mem")
    width = len(str(count - 1))
    return NodeKind([f"{group}_{number:0{width}}" for number in range(count)], cores, resources)
