"""The machine of a cluster, as a TOML file of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from batsched_py.campaign.toml_text import to_toml
from batsched_py.protocol.hosts import compact
from batsched_py.simulator.machine_files.nodes import NodeKind
from batsched_py.workload.requests import NodeWords

_NUMBER = re.compile(r"([0-9]+)")
_MEGABYTE = 1024


def platform_text(kinds: Sequence[NodeKind], licences: Mapping[str, int]) -> str:
    """The machine, its nodes in the order in which Slurm keeps them: that of their names and numbers."""
    nodes = sorted(
        ((name, kind, place) for kind in kinds for place, name in enumerate(kind.names)),
        key=lambda node: _natural(node[0]),
    )
    tables: list[tuple[dict[str, Any], list[str]]] = []
    for name, kind, place in nodes:
        table = _table(kind, kind.switches[place] if kind.switches else "")
        if tables and tables[-1][0] == table:
            tables[-1][1].append(name)
        else:
            tables.append((table, [name]))
    content: dict[str, Any] = {"nodes": [{"names": compact(names), **table} for table, names in tables]}
    return to_toml(content | ({"licences": dict(licences)} if licences else {}))


def words_of(kinds: Sequence[NodeKind]) -> NodeWords:
    """What jobs can ask for on the machine."""
    return NodeWords(
        frozenset(name for kind in kinds for name in kind.resources),
        frozenset(name for kind in kinds for name in kind.partitions),
        frozenset(name for kind in kinds for name in kind.features),
    )


def _table(kind: NodeKind, switch: str) -> dict[str, Any]:
    table: dict[str, Any] = {"cores": kind.cores}
    for name, amount in kind.resources.items():
        if name == "memory":
            whole, rest = divmod(amount, _MEGABYTE)
            table[name] = f"{amount} kB" if rest else f"{whole} MB"
        else:
            table[name] = amount
    if kind.features:
        table["features"] = list(kind.features)
    if kind.partitions:
        table["partitions"] = list(kind.partitions)
    if switch:
        table["switch"] = switch
    return table


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Numbers in a name count as numbers.

    >>> sorted(["n10", "n9", "m1"], key=_natural)
    ['m1', 'n9', 'n10']
    """
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in _NUMBER.split(name)]
