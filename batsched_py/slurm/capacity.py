"""What became of a machine over time: cores that were used, down, reserved and idle.

Away nodes are those that were kept from jobs: by ``sacctmgr -P show event`` down or drained, by listings of
reservations reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown
from batsched_py.slurm.reading import Clock, Findings, read_text
from batsched_py.slurm.reservations import read_reservations
from batsched_py.workload.swf.log import Floats

HOUR: Final = 3600.0


class Capacity(Struct, frozen=True, kw_only=True):
    """What became of a machine in a span of time, as shares of all its core hours; they add up to 1."""

    core_hours: float
    used: float
    down: float | None
    """Nodes that were down or drained; None where no listing tells of them, then they are among the idle."""
    reserved: float | None
    """Nodes that were reserved and idle; None where no listing tells of reservations."""
    idle_while_jobs_waited: float
    """For no waiting job fitted, or none was allowed to start: fragmentation, limits, priorities."""
    idle: float
    """While no job waited."""


class Machine(Struct, frozen=True):
    """How many cores there are, and how many each node has, as far as that is known."""

    cores: int
    nodes: dict[str, int] = {}


class Away(Struct, frozen=True):
    """Nodes that are kept from jobs for a time."""

    nodes: tuple[str, ...]
    """None are all of them."""
    begin: float
    end: float


def down(path: Path | None, clock: Clock) -> list[Away] | None:
    """The nodes that were down, of what ``sacctmgr -P show event`` printed."""
    if path is None:
        return None
    head, *lines = read_text(path, Findings()).splitlines() or [""]
    titles = [title.strip().lower() for title in head.split("|")]
    if not {"nodename", "timestart", "timeend"} <= set(titles):
        raise InputError(
            f"{path}: has no columns NodeName, TimeStart and TimeEnd; print it by sacctmgr -P show event"
        )
    found = []
    for number, line in enumerate(lines, start=2):
        row = dict(zip(titles, map(str.strip, line.split("|")), strict=False))
        if not row.get("nodename"):  # an event of the whole cluster, such as another number of processors
            continue
        try:
            begin = clock.moment(row["timestart"])
            end = np.inf if row["timeend"] in ("", "Unknown") else clock.moment(row["timeend"])
            found.append(Away(tuple(expand(row["nodename"])), begin, end))
        except (KeyError, ValueError):
            raise InputError(
                f"{path}, line {number}: {shown(line)} does not say which nodes, and when"
            ) from None
    return found


def reserved(paths: Sequence[Path], clock: Clock, remarks: list[str]) -> list[Away] | None:
    """The nodes that were reserved; of reservations that name none, it is told that there are some."""
    if not paths:
        return None
    findings = Findings()
    read = [each for path in paths for each in read_reservations(path, clock, findings)]
    findings.check()
    if nameless := sum(not each.nodes for each in read):
        remarks.append(f"left out: reservation that does not name its nodes ({nameless:,} x)")
    return [
        Away(() if each.nodes.upper() == "ALL" else tuple(expand(each.nodes)), each.start, each.end)
        for each in read
        if each.nodes
    ]


#: For each node, the spans of time in which it is away, in order and apart from each other.
Spans = dict[str, list[tuple[float, float]]]


def spans_of(away: Sequence[Away], machine: Machine, what: str, remarks: list[str]) -> Spans:
    """When each node is away. A node that is told twice is away once."""
    told: Spans = {}
    unknown = set()
    for each in away:
        for name in each.nodes or machine.nodes:
            if name in machine.nodes:
                told.setdefault(name, []).append((each.begin, each.end))
            else:
                unknown.add(name)
    if unknown:
        remarks.append(f"left out: {what} node that slurm.conf does not have ({len(unknown):,} nodes)")
    found: Spans = {}
    for name, spans in told.items():
        apart = found[name] = [min(spans)]
        for begin, end in sorted(spans):
            if begin <= apart[-1][1]:
                apart[-1] = apart[-1][0], max(apart[-1][1], end)
            else:
                apart.append((begin, end))
    return found


class Level(Struct, frozen=True):
    """A number that changes over time: so much from each moment on."""

    moments: Floats
    values: Floats

    @classmethod
    def of(cls, begins: Iterable[float], ends: Iterable[float], amounts: Iterable[float]) -> Level:
        """How much there is at once of what begins and ends."""
        begin, end = np.asarray(begins, float), np.asarray(ends, float)
        amount = np.asarray(amounts, float)
        moments, places = np.unique(np.concatenate([begin, end]), return_inverse=True)
        changes = np.zeros(len(moments))
        np.add.at(changes, places, np.concatenate([amount, -amount]))
        return cls(moments, np.cumsum(changes))

    @property
    def highest(self) -> float:
        """The most there is."""
        return float(self.values.max(initial=0.0))

    def at(self, moments: Floats) -> Floats:
        """How much there is from each of these moments on."""
        places = np.searchsorted(self.moments, moments, side="right") - 1
        return (
            np.where(places < 0, 0.0, self.values[np.maximum(places, 0)])
            if len(self.values)
            else 0.0 * moments
        )


class Levels(Struct, frozen=True):
    """How many cores are used, down, reserved and idle, and how many jobs wait, over time."""

    machine: Machine
    used: Level
    waiting: Level
    down: Level | None
    kept: Level | None
    """What is idle of reserved nodes."""

    @classmethod
    def of(cls, ran: pd.DataFrame, machine: Machine, down: Spans | None, reserved: Spans | None) -> Levels:
        """The levels of the jobs that ran."""
        waited = ran[ran["start"] > ran["eligible"]]
        return cls(
            machine,
            Level.of(ran["start"], ran["end"], ran["size"]),
            Level.of(waited["eligible"], waited["start"], np.ones(len(waited))),
            None if down is None else _level_of(down, machine),
            None if reserved is None else _idle_of(reserved, ran, machine),
        )

    @property
    def most_used(self) -> float:
        """The most cores that were in use at once."""
        return self.used.highest

    def within(self, begin: float, end: float) -> Capacity:
        """What became of the machine in a span of time."""
        levels = [each for each in (self.used, self.waiting, self.down, self.kept) if each is not None]
        inside = [each.moments[(each.moments > begin) & (each.moments < end)] for each in levels]
        moments = np.unique(np.concatenate([[begin], *inside]))
        lengths = np.diff(np.append(moments, end))
        cores = float(self.machine.cores)
        left = cores - np.minimum(used := self.used.at(moments), cores)
        down = np.minimum(0 * left if self.down is None else self.down.at(moments), left)
        kept = np.minimum(0 * left if self.kept is None else self.kept.at(moments), left - down)
        idle = left - down - kept
        waits = self.waiting.at(moments) > 0
        whole = cores * (end - begin)

        def share(amount: Floats) -> float:
            return float((amount * lengths).sum() / whole)

        return Capacity(
            core_hours=whole / HOUR,
            used=share(used),
            down=None if self.down is None else share(down),
            reserved=None if self.kept is None else share(kept),
            idle_while_jobs_waited=share(np.where(waits, idle, 0.0)),
            idle=share(np.where(waits, 0.0, idle)),
        )


def _level_of(spans: Spans, machine: Machine) -> Level:
    """How many cores are away."""
    rows = [(*span, machine.nodes[name]) for name, each in spans.items() for span in each]
    return Level.of(*zip(*rows, strict=True)) if rows else Level.of((), (), ())


def _idle_of(reserved: Spans, ran: pd.DataFrame, machine: Machine) -> Level:
    """How many cores of reserved nodes no job has; a job has as many cores of each of its nodes."""
    kept = _level_of(reserved, machine)
    begins, ends, amounts = [], [], []
    for hosts, start, end, size in ran[["hosts", "start", "end", "size"]].itertuples(index=False):
        names = expand(hosts) if hosts else []
        for begin, over in (span for name in names for span in reserved.get(name, ())):
            if max(start, begin) < min(end, over):
                begins.append(max(start, begin))
                ends.append(min(end, over))
                amounts.append(size / len(names))
    taken = Level.of(begins, ends, amounts)
    moments = np.unique(np.concatenate([kept.moments, taken.moments]))
    return Level(moments, np.maximum(kept.at(moments) - taken.at(moments), 0.0))
