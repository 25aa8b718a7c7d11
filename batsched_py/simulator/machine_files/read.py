"""Which reader a machine file is for."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from batsched_py.protocol.jobs import NODE_PROPERTIES
from batsched_py.simulator.platform import Platform

#: The reader of each kind of file but SimGrid's, by the end of its name: module and function.
READERS = {
    ".toml": ("toml", "read_toml_machine"),
    ".conf": ("slurm", "read_slurm_machine"),
    ".config": ("accasim", "read_accasim_machine"),
    ".json": ("accasim", "read_accasim_machine"),
}


#: A property of SimGrid's that makes a host part of a node.
_NODE_PROPERTY = re.compile(
    rb"""id\s*=\s*["'](?:%b)["']""" % b"|".join(name.encode() for name in NODE_PROPERTIES)
)


def may_have_nodes(path: str) -> bool:
    """Whether a file may describe nodes, as far as a glance tells; most platforms of SimGrid do not."""
    if Path(path).suffix.lower() in READERS:
        return True
    try:
        return Path(path).is_file() and _NODE_PROPERTY.search(Path(path).read_bytes()) is not None
    except OSError:
        return False


def reader_of(path: str) -> Callable[[str], Platform] | None:
    """The function that reads a file of this name, if it describes nodes."""
    found = READERS.get(Path(path).suffix.lower())
    if found is None:
        return None
    module, function = found
    reader: Callable[[str], Platform] = getattr(
        import_module(f"batsched_py.simulator.machine_files.{module}"), function
    )
    return reader
