"""Reservations and maintenance: nodes that jobs have to keep away from for a time."""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.protocol.hosts import expand
from batsched_py.schedulers.slurm.nodes import Machine
from batsched_py.schedulers.slurm.records import WaitingRecord
from batsched_py.schedulers.slurm.settings.reservations import Reservation

MOST_MOVES = 10
"""So often a start is put off to the end of a reservation of all nodes, before Slurm gives up."""


class Reserved:
    """A reservation with its nodes."""

    __slots__ = ("end", "nodes", "settings", "start")

    def __init__(self, settings: Reservation, nodes: int) -> None:
        self.settings = settings
        self.nodes = nodes
        self.start, self.end = settings.start, settings.end

    def is_for(self, record: WaitingRecord) -> bool:
        """Whether a job may use it."""
        settings, user = self.settings, record.job.user or ""
        if f"-{user}" in settings.users or (
            record.fields.account and f"-{record.fields.account}" in settings.accounts
        ):
            return False
        return user in settings.users or record.fields.account in settings.accounts


class Reservations:
    """All reservations of a machine."""

    def __init__(self, settings: Sequence[Reservation], machine: Machine) -> None:
        self._machine = machine
        self.all = [Reserved(each, _nodes(each, machine)) for each in settings]

    def __bool__(self) -> bool:
        return bool(self.all)

    def allowed(
        self, record: WaitingRecord, start: int, length: int, now: int, moves: bool
    ) -> tuple[int, int, bool] | None:
        """Which nodes a job may use for so long from a time on, when, and whether it is kept off some.

        If it may not start then at all, the start ``moves`` to the end of the reservation, or there is none.
        """
        if not self.all:
            return self._machine.all, start, False
        if record.fields.reservation:
            return self._within(record, start, length)
        for _ in range(MOST_MOVES + 1):
            nodes, overlaps, moved = self._machine.all, False, None
            for reserved in self.all:
                if (
                    reserved.settings.created > now
                    or reserved.start >= start + length
                    or reserved.end <= start
                ):
                    continue
                part = record.partition.nodes
                if "maint" in reserved.settings.flags and part & ~reserved.nodes == 0:
                    moved = reserved.end
                    break
                nodes &= ~reserved.nodes
                overlaps = overlaps or bool(part & reserved.nodes)
            if moved is None:
                return nodes, start, overlaps
            if not moves:
                return None
            start = int(moved)
        return None

    def _within(self, record: WaitingRecord, start: int, length: int) -> tuple[int, int, bool] | None:
        """The nodes of the reservation that a job names."""
        for reserved in self.all:
            if reserved.settings.name != record.fields.reservation:
                continue
            if not reserved.is_for(record) or not reserved.start <= start <= reserved.end:
                return None
            nodes, overlaps = reserved.nodes, False
            for other in self.all:
                if other is reserved or "maint" in reserved.settings.flags:
                    continue
                if "overlap" in reserved.settings.flags and "maint" not in other.settings.flags:
                    continue
                if other.start < start + length and other.end > start and nodes & other.nodes:
                    nodes &= ~other.nodes
                    overlaps = True
            return nodes, start, overlaps
        return None

    def next_end(self, time: int, resolution: int, origin: int = 0) -> int:
        """When the next reservation ends, rounded up to the grid; 0 if none does.

        Time 0 is so far from the beginning of a step of the grid.
        """
        ends = [reserved.end for reserved in self.all if time <= reserved.end]
        return -int(-(min(ends) + origin) // resolution) * resolution - origin if ends else 0


def _nodes(settings: Reservation, machine: Machine) -> int:
    if settings.nodes.upper() == "ALL":
        return machine.all
    return machine.named(expand(settings.nodes))
