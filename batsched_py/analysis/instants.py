"""A schedule as the sequence of instants at which a scheduler could decide.

Whether two printed times are the same is decided here only: times that differ by less than the printing
error are one instant, and from then on instants are compared by their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import repeat
from math import inf

import numpy as np
import pandas as pd

from batsched_py.analysis.schedule import INSTANT, started
from batsched_py.analysis.violation import SLACK
from batsched_py.protocol.hosts import HostSet


@dataclass(slots=True, eq=False)
class Life:
    """A job from its submission to its end; the instants are numbers of :attr:`Timeline.instants`."""

    id: str
    arrives: int
    begins: int
    leaves: int
    """Its beginning, for a job of no length."""
    start: float
    size: int
    """How many hosts it asked for."""
    walltime: float
    hosts: HostSet
    """Those that it was given."""
    turn: float = 0.0
    """Of jobs that arrive at one instant, the lowest turn is first in the queue."""

    @property
    def held(self) -> int:
        """How many hosts it was given."""
        return len(self.hosts)

    @property
    def expected_end(self) -> float:
        """When it ends at the latest, as a scheduler knows when the job has begun."""
        return self.start + self.walltime

    @property
    def passing(self) -> bool:
        """Whether it has no length: its hosts are free again at the instant at which it begins."""
        return self.leaves == self.begins


@dataclass(slots=True)
class Instant:
    """All that happens at one time."""

    time: float
    arriving: list[Life] = field(default_factory=list)
    beginning: list[Life] = field(default_factory=list)
    leaving: list[Life] = field(default_factory=list)
    """Without those of no length."""


@dataclass(slots=True)
class Timeline:
    """The executed jobs of a schedule, and the instants of their submissions, starts and ends."""

    lives: list[Life]
    """In the order of submission; at one instant by turns, and then by identifiers, as Batsim submits."""
    instants: list[Instant]


def timeline(schedule: pd.DataFrame) -> Timeline:
    """The timeline of a schedule with the columns ``id`` and ``hosts``, without rejected jobs.

    A column ``turn`` tells more of the order in which jobs of one instant join the queue.
    Instants of a job never go backwards, even if a wrong schedule starts it before it is submitted.
    """
    executed = started(schedule)
    starts = executed["starting_time"].to_numpy()
    submissions = np.minimum(executed["submission_time"].to_numpy(), starts)
    passing = executed["execution_time"].to_numpy() <= INSTANT
    finishes = np.where(passing, starts, np.maximum(executed["finish_time"].to_numpy(), starts))
    times = np.sort(np.concatenate([submissions, starts, finishes]))
    firsts = times[np.diff(times, prepend=-inf) > SLACK]
    limits = executed["requested_time"].to_numpy()
    lives = [
        Life(*fields)
        for fields in zip(
            executed["id"],
            *(_numbers(firsts, column) for column in (submissions, starts, finishes)),
            starts.tolist(),
            executed["requested_number_of_resources"].to_list(),
            np.where(limits < 0, inf, limits).tolist(),
            executed["hosts"],
            executed["turn"] if "turn" in executed else repeat(0.0, len(executed)),
            strict=True,
        )
    ]
    lives.sort(key=lambda life: (life.arrives, life.turn, life.id))
    instants = [Instant(time) for time in firsts.tolist()]
    for life in lives:
        instants[life.arrives].arriving.append(life)
        instants[life.begins].beginning.append(life)
        if not life.passing:
            instants[life.leaves].leaving.append(life)
    return Timeline(lives, instants)


def _numbers(firsts: np.ndarray, times: np.ndarray) -> list[int]:
    """For each time the instant it belongs to, given the first time of each instant."""
    return (np.searchsorted(firsts, times, side="right") - 1).tolist()
