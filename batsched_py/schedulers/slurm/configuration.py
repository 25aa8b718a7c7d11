"""All that sets the twin of Slurm, in one file ``slurm.toml``::

    [scheduling]
    bf_interval = 60
    bf_continue = true

    [priority]
    type = "multifactor"
    weight_age = 1000

    [[partitions]]
    name = "batch"
    nodes = "n[1-16]"
    default = true

``batsched-py slurm import`` makes the file from a ``slurm.conf`` and from what ``sacctmgr`` and ``scontrol``
print. The policy has it by its option ``configuration_file``.
"""

from __future__ import annotations

import tomllib
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.hosts import expand
from batsched_py.schedulers.slurm.settings.associations import Association
from batsched_py.schedulers.slurm.settings.partitions import Partition
from batsched_py.schedulers.slurm.settings.preemption import Preemption
from batsched_py.schedulers.slurm.settings.priority import Priority
from batsched_py.schedulers.slurm.settings.qos import Qos
from batsched_py.schedulers.slurm.settings.reservations import Reservation
from batsched_py.schedulers.slurm.settings.scheduling import Scheduling
from batsched_py.schedulers.slurm.settings.selection import NodeSettings, Selection

Enforced = Literal["associations", "limits", "qos", "safe"]


class Configuration(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A cluster of Slurm, as far as its scheduler goes; its machine is a platform of nodes beside it."""

    cluster: str = "cluster"
    enforce: tuple[Enforced, ...] = ()
    """``AccountingStorageEnforce``: which limits count at all."""
    start: str = ""
    """The date and time of time 0, in UTC; plans are on a grid of time that is counted by dates."""
    scheduling: Scheduling = Scheduling()
    selection: Selection = Selection()
    priority: Priority = Priority()
    preemption: Preemption = Preemption()
    nodes: tuple[NodeSettings, ...] = ()
    partitions: tuple[Partition, ...] = ()
    qos: tuple[Qos, ...] = ()
    associations: tuple[Association, ...] = ()
    reservations: tuple[Reservation, ...] = ()

    @property
    def origin(self) -> int:
        """How many seconds time 0 is after the beginning of 1970; 0 if nobody knows."""
        return _seconds(self.start)

    @property
    def requeues(self) -> bool:
        """Whether jobs may make way for others by going back into the queue."""
        of_parts = self.partitions if self.preemption.type == "partition_prio" else self.qos
        modes = {self.preemption.mode, *(each.preempt_mode for each in of_parts)}
        return self.preemption.type != "none" and "requeue" in modes

    def __post_init__(self) -> None:
        _seconds(self.start)
        for what, names in (
            ("partitions", [partition.name for partition in self.partitions]),
            ("qos", [qos.name for qos in self.qos]),
            ("associations", [(each.account, each.user, each.partition) for each in self.associations]),
            ("reservations", [reservation.name for reservation in self.reservations]),
        ):
            if len(set(names)) != len(names):
                twice = next(name for place, name in enumerate(names) if name in names[:place])
                raise ValueError(f"{what} has {twice!r} twice")
        named = [each.nodes for each in self.nodes] + [each.nodes for each in self.partitions]
        for nodes in named + [each.nodes for each in self.reservations]:
            expand(nodes)


@lru_cache(maxsize=16)
def _seconds(date: str) -> int:
    """A date in UTC, in seconds since the beginning of 1970."""
    try:
        return int(datetime.fromisoformat(date).timestamp()) if date else 0
    except ValueError:
        raise ValueError(f"start: {date!r} is not a date like 2026-01-31T12:00:00Z") from None


def read_configuration(path: str | Path) -> Configuration:
    """The configuration in a file."""
    try:
        return msgspec.convert(tomllib.loads(read_input(path).decode()), Configuration)
    except OSError as error:
        raise InputError(f"{path}: cannot read this configuration of Slurm ({error.strerror})") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{path}: {error}") from None
