"""The conditions of jobs: hosts away, closed or asleep, jobs that waited for others, links that were shared.

What links, hosts and storages carried is known of simulations with ``--links``, which write
``PREFIX_uses.csv`` and ``PREFIX_rates.csv`` beside the jobs (see :mod:`batsched_py.simulator.network.tasks`).
A task that does the share *rate* of its whole in a second puts *rate* times its amount on each of its links.
Alone it may be done sooner; the difference is the time it lost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import floor, inf, isfinite, log10
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis.schedule import (
    INSTANT,
    beside,
    mean_level,
    open_table,
    read_lines,
    read_table,
    tables_beside,
)
from batsched_py.errors import InputError
from batsched_py.outside.failures import ABSENCES_HEADER
from batsched_py.protocol.events import Event, HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet

if TYPE_CHECKING:
    import pandas as pd

#: Why a host is not usable.
State = Literal["away", "closed", "falling asleep", "asleep", "waking up"]

#: The marks in ``pstate_changes.csv`` of hosts that wake up, and of hosts that fall asleep.
_ON_THE_WAY: Final[dict[int, State]] = {-1: "waking up", -2: "falling asleep"}


@dataclass(frozen=True)
class Absence:
    """Hosts that are in such a state for a while."""

    hosts: HostSet
    state: State
    since: float
    until: float
    """Infinite if they never come back."""


@dataclass(frozen=True)
class Absences:
    """Everything known about hosts that could not be used."""

    told: Sequence[Absence] = ()
    untold: Sequence[State] = ("away", "asleep")
    """The states for which it is unknown whether a host was ever in them."""


def outages(events: Iterable[Event]) -> Iterator[Absence]:
    """The hosts that events make unavailable and available; an event takes effect at its time."""
    board = _Board()
    for event in sorted(events, key=lambda event: event.time):
        match event:
            case HostsUnavailable(hosts=hosts):
                yield from board.turn(hosts, "away", event.time)
            case HostsAvailable(hosts=hosts):
                yield from board.turn(hosts, None, event.time)
    yield from board.left()


def read_absences(lines: Iterable[str], name: str) -> list[Absence]:
    """The failures and closures in the lines of an ``absences.csv``; a line that cannot be read is named."""
    states: dict[str, State] = {"away": "away", "closed": "closed"}
    what = f"these are no hosts that were away or closed ({ABSENCES_HEADER.strip()})"

    def read(row: dict[str, str]) -> Absence:
        since, until = float(row["since"]), float(row["until"])
        return Absence(HostSet.parse(row["hosts"]), states[row["state"]], since, until)

    return list(read_lines(lines, name, what, read))


def failures_and_closures_beside(jobs_file: Path) -> list[Absence]:
    """What is in the ``PREFIX_absences.csv`` beside the jobs; nothing if no such file was written."""
    return read_table(tables_beside(jobs_file), "absences", read_absences) or []


def sleeps(lines: Iterable[str], name: str, schedule: pd.DataFrame) -> Iterator[Absence]:
    """The absences in the lines of a ``pstate_changes.csv``; a line that cannot be read is named.

    A host is asleep when it has finished falling asleep, or if it begins in a power state in which hosts are
    seen to sleep. Batsim writes six digits of each time; a rounded time stands for the nearest instant of the
    schedule with the same digits, if there is one.
    """
    times = schedule[["submission_time", "starting_time", "finish_time"]].to_numpy()
    changes = list(_changes(lines, name, np.unique(times[np.isfinite(times)]).tolist()))
    sleep_states, moved = _sleep_states(changes), HostSet()
    board = _Board()
    for time, hosts, pstate in changes:
        if (way := _ON_THE_WAY.get(pstate)) is not None:
            yield from board.turn(hosts, way, time)
            moved = moved | hosts
        else:
            arrived = hosts & board.those("falling asleep")
            asleep = arrived | (hosts - moved if pstate in sleep_states else HostSet())
            yield from board.turn(asleep, "asleep", time)
            yield from board.turn(hosts - asleep, None, time)
    yield from board.left()


#: A time, hosts, and the power state that they reach or switch to.
_Change = tuple[float, HostSet, int]


def _changes(lines: Iterable[str], name: str, instants: Sequence[float]) -> Iterator[_Change]:
    def read(row: dict[str, str]) -> _Change:
        time, hosts, pstate = float(row["time"]), HostSet.parse(row["machine_id"]), int(row["new_pstate"])
        if not isfinite(time):
            raise ValueError
        return _meant(time, instants), hosts, pstate

    return read_lines(lines, name, "this is no change of a power state (time,machine_id,new_pstate)", read)


def _sleep_states(changes: Iterable[_Change]) -> set[int]:
    """The power states in which hosts sleep: they fall asleep into them, or take time to wake from them."""
    sleep_states: set[int] = set()
    present: dict[int, int] = {}
    begun: dict[int, tuple[State, float]] = {}
    for time, hosts, pstate in changes:
        way = _ON_THE_WAY.get(pstate)
        for host in hosts:
            if way is not None:
                begun[host] = way, time
                continue
            before, since = begun.pop(host, (None, time))
            if before == "falling asleep":
                sleep_states.add(pstate)
            elif before == "waking up" and since < time and host in present:
                sleep_states.add(present[host])
            present[host] = pstate
    return sleep_states


def _meant(time: float, instants: Sequence[float]) -> float:
    """The nearest of these instants with the same six digits, or else the time itself.

    >>> _meant(1002.41, [988.404, 1002.408, 1022.408]), _meant(1002.4, [988.404, 1002.408])
    (1002.408, 1002.4)
    """
    place = bisect_left(instants, time)
    near = min(instants[max(place - 1, 0) : place + 1], key=lambda each: abs(each - time), default=time)
    last_digit = 10.0 ** (floor(log10(time)) - 5) if time > 0 else 0.0
    return near if abs(near - time) <= last_digit / 2 else time


class _Board:
    """Which hosts are in which state since when."""

    def __init__(self) -> None:
        self._entries: list[tuple[HostSet, State, float]] = []

    def those(self, state: State) -> HostSet:
        """The hosts in a state."""
        found = (hosts for hosts, theirs, _ in self._entries if theirs == state)
        return reduce(or_, found, HostSet())

    def turn(self, hosts: HostSet, state: State | None, time: float) -> Iterator[Absence]:
        """Hosts change to a state, or are usable again; yields the absences that end by this."""
        kept = []
        for present, theirs, since in self._entries:
            if (gone := present & hosts) and since < time:
                yield Absence(gone, theirs, since, time)
            if left := present - hosts:
                kept.append((left, theirs, since))
        if hosts and state is not None:
            kept.append((hosts, state, time))
        self._entries = kept

    def left(self) -> Iterator[Absence]:
        """The absences that do not end."""
        for hosts, state, since in self._entries:
            yield Absence(hosts, state, since, inf)


@dataclass(frozen=True)
class HeldJob:
    """A job that was held until others were over."""

    eligible: float | None
    """When it joined the queue; nothing if it was rejected."""
    reason: str


def read_held(lines: Iterable[str], name: str) -> dict[str, HeldJob]:
    """The jobs that were held, by their identifiers; a line that cannot be read is named."""

    def read(row: dict[str, str]) -> tuple[str, HeldJob]:
        eligible = float(row["eligible_time"]) if row["eligible_time"] else None
        return row["job_id"], HeldJob(eligible, row["reason"])

    what = "this is no line of held jobs (job_id,submission_time,eligible_time,reason)"
    return dict(read_lines(lines, name, what, read))


def held_beside(jobs_file: str | Path) -> dict[str, HeldJob]:
    """The jobs that were held, beside a ``PREFIX_jobs.csv``; none if no such file was written."""
    return read_table(tables_beside(jobs_file), "held", read_held) or {}


def arrivals_of(held: Mapping[str, HeldJob]) -> dict[str, float]:
    """When the jobs joined the queue that were held, and were not rejected."""
    return {name: job.eligible for name, job in held.items() if job.eligible is not None}


#: What tasks share.
Shared = Literal["link", "host", "storage"]

#: A job that ran at most so many times longer than alone was not slowed down, as far as anybody cares.
UNNOTICED: Final = 1.005

_USES: Final = {"task": int, "job_id": str, "kind": str, "name": str, "capacity": float, "amount": float}
_RATES: Final = {"time": float, "task": int, "rate": float, "rate_alone": float, "kind": str, "name": str}


@dataclass(frozen=True)
class Contention:
    """That a job ran longer than alone."""

    times: float
    """Its run time, divided by the one that it would have had alone on the same hosts."""
    kind: Shared
    name: str
    """Of what it lost most time on."""
    others: Sequence[str]
    """The jobs it shared that with while it lost time, the longest first."""


@dataclass(frozen=True, eq=False)
class Carried:
    """The record of a simulation."""

    uses: pd.DataFrame
    """What each task asked of each link, host and storage: the columns of ``uses.csv``."""
    rates: pd.DataFrame
    """How fast tasks were, from each change on: the columns of ``rates.csv``."""

    @cached_property
    def end(self) -> float:
        """When the last task was done."""
        return float(self.rates["time"].max()) if len(self.rates) else 0.0

    @cached_property
    def steps(self) -> pd.DataFrame:
        """From when to when each task had which rate, what held it back, and how many seconds it lost."""
        rates = self.rates.sort_values(["task", "time"], kind="stable")
        steps = rates.rename(columns={"time": "begin"})
        steps["end"] = rates.groupby("task")["time"].shift(-1)
        steps = steps[steps["end"] > steps["begin"]]
        lost = (steps["end"] - steps["begin"]) * (1 - steps["rate"] / steps["rate_alone"])
        jobs = self.uses.drop_duplicates("task").set_index("task")["job_id"]
        return steps.assign(lost=lost.clip(lower=0.0), job_id=steps["task"].map(jobs))

    @cached_property
    def lost(self) -> pd.Series[float]:
        """The seconds that each job lost, by its full identifier."""
        return self.steps.groupby("job_id")["lost"].sum()

    @cached_property
    def totals(self) -> pd.DataFrame:
        """What each link, host and storage carried in all, the most loaded first.

        ``carried`` is in bytes or flops, ``load`` the mean share of the capacity that was in use, and
        ``lost`` the seconds that jobs lost there. A storage has no capacity but that of its links.
        """
        done = self.steps["rate"] * (self.steps["end"] - self.steps["begin"])
        parts = done.groupby(self.steps["task"]).sum()
        uses = self.uses.assign(carried=self.uses["amount"] * self.uses["task"].map(parts).fillna(0.0))
        keys = ["kind", "name"]
        totals = uses.groupby(keys, sort=False).agg(capacity=("capacity", "max"), carried=("carried", "sum"))
        totals["load"] = totals["carried"] / totals["capacity"] / (self.end or 1.0)
        totals["lost"] = self.steps[self.steps["name"] != ""].groupby(keys)["lost"].sum()
        totals["lost"] = totals["lost"].fillna(0.0)
        return totals.sort_values(["load", "carried"], ascending=False, kind="stable").reset_index()

    def most_loaded(self, kind: Shared, most: int) -> pd.DataFrame:
        """The rows of :attr:`totals` of so many links, hosts or storages."""
        return self.totals[self.totals["kind"] == kind].head(most)

    def mean_flow(self, kind: Shared, name: str, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean bytes or flops in a second, between each two successive ``edges`` of time."""
        used = self.uses[(self.uses["kind"] == kind) & (self.uses["name"] == name)]
        amounts = used.groupby("task")["amount"].sum()
        steps = self.steps[self.steps["task"].isin(amounts.index)]
        if steps.empty:
            return np.zeros(len(edges) - 1)
        heights = steps["rate"].to_numpy() * amounts.loc[steps["task"]].to_numpy()
        return mean_level(steps["begin"], steps["end"], heights, edges)

    def contention(self, job_id: str, run_time: float) -> Contention | None:
        """Why a job ran longer than alone, if it did to speak of."""
        slowed = self.steps[(self.steps["job_id"] == job_id) & (self.steps["name"] != "")]
        times = float(slowdown_by_contention(run_time, self.lost.get(job_id, 0.0)))
        if slowed.empty or times <= UNNOTICED:
            return None
        kind, name = slowed.groupby(["kind", "name"], sort=False)["lost"].sum().idxmax()
        slowed = slowed[(slowed["kind"] == kind) & (slowed["name"] == name)]
        return Contention(times, kind, name, self._beside(job_id, kind, name, slowed))

    def _beside(self, job_id: str, kind: Shared, name: str, slowed: pd.DataFrame) -> list[str]:
        """The other jobs that used something during some steps, the longest first."""
        import pandas as pd

        used = (self.uses["kind"] == kind) & (self.uses["name"] == name) & (self.uses["job_id"] != job_id)
        others = self.steps[self.steps["task"].isin(self.uses.loc[used, "task"])]
        begins, ends = others["begin"].to_numpy()[:, None], others["end"].to_numpy()[:, None]
        common = np.minimum(ends, slowed["end"].to_numpy()) - np.maximum(begins, slowed["begin"].to_numpy())
        seconds = pd.Series(common.clip(min=0.0).sum(axis=1)).groupby(others["job_id"].to_numpy()).sum()
        longest = seconds[seconds > INSTANT].sort_values(ascending=False, kind="stable")
        return [str(other) for other in longest.index]


def slowdown_by_contention(
    run_time: pd.Series[float] | float, lost: pd.Series[float] | float
) -> pd.Series[float]:
    """How many times longer jobs ran than alone, given the seconds that they lost.

    Both times are rounded in their files, so a job of almost no length may seem to have lost more than all.
    """
    return run_time / np.maximum(run_time - lost, INSTANT)


def read_carried(uses: TextIO, rates: TextIO, names: tuple[str, str] = ("uses.csv", "rates.csv")) -> Carried:
    """The record in two files, which have these names in errors."""
    return Carried(_table(uses, _USES, names[0]), _table(rates, _RATES, names[1]))


def _table(file: TextIO, types: dict[str, type], name: str) -> pd.DataFrame:
    import pandas as pd

    try:
        table = pd.read_csv(file, dtype=types, keep_default_na=False, na_values={"capacity": [""]})
        return table[list(types)]
    except (ValueError, KeyError):
        raise InputError(
            f"{name}: is not what a simulation with --links writes ({','.join(types)})"
        ) from None


def carried_beside(jobs_file: str | Path) -> Carried | None:
    """The record beside a ``PREFIX_jobs.csv``; nothing if it was not asked for."""
    uses, rates = beside(jobs_file, "uses"), beside(jobs_file, "rates")
    if not (uses.is_file() and rates.is_file()):
        return None
    with open_table(uses) as first, open_table(rates) as second:
        return read_carried(first, second, (str(uses), str(rates)))
