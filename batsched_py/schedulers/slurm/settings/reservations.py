"""Reservations and times of maintenance: the entries of ``[[reservations]]``."""

from __future__ import annotations

from math import inf
from typing import Literal

from msgspec import Struct

from batsched_py.schedulers.slurm.settings.amounts import Count, Seconds, Tres

ReservationFlag = Literal[
    "any_nodes", "daily", "flex", "hourly", "ignore_jobs", "magnetic", "maint", "no_hold_jobs_after",
    "overlap", "part_nodes", "purge_comp", "replace", "replace_down", "spec_nodes", "static", "time_float",
    "weekday", "weekend", "weekly",
]  # fmt: skip


class Reservation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Nodes that are kept for some, or for nobody, in a span of time."""

    name: str
    start: float
    """Seconds from the beginning of the simulation, as all moments."""
    end: float = inf
    nodes: str = ""
    """As Slurm writes them, like ``n[1-6]``; ``ALL`` are all of them."""
    node_count: Count = 0
    """How many nodes, if they are not named."""
    cores: Count = 0
    """How many cores of each of its nodes; 0 is all of them."""
    partition: str = ""
    tres: Tres = {}
    users: tuple[str, ...] = ()
    """Who may use it; names that begin with ``-`` may not."""
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    flags: tuple[ReservationFlag, ...] = ()
    max_start_delay: Seconds | None = None
    created: float = 0.0
    """Since when the scheduler knows of it."""
