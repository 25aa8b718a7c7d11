"""Jobs that grew and shrank while they ran: ``PREFIX_resizes.csv`` beside the other files.

A schedule that was read together with that file has a column ``resizes``. Whoever asks which hosts were busy
when looks at the *pieces* of the jobs: the times between two changes, each with its hosts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.ledger.running import RESIZES_HEADER
from batsched_py.protocol.hosts import HostSet

#: The column of a schedule with the resizes of each job, in the order of time.
RESIZES: Final = "resizes"


@dataclass(frozen=True)
class Resize:
    """A job goes on with other hosts."""

    time: float
    before: HostSet
    after: HostSet


@dataclass(frozen=True)
class Piece:
    """A job between two changes of its hosts."""

    start: float
    finish: float
    hosts: HostSet


def read_resizes(lines: Iterable[str], name: str) -> dict[str, list[Resize]]:
    """The resizes of jobs, by their full identifiers; a line that cannot be read is named."""
    rows = csv.DictReader(lines)
    found: dict[str, list[Resize]] = {}
    try:
        for row in rows:
            hosts = [HostSet.parse(row[column]) for column in ("hosts_before", "hosts_after")]
            resize = Resize(float(row["time"]), *hosts)
            if not (isfinite(resize.time) and resize.after):
                raise ValueError
            found.setdefault(row["job_id"], []).append(resize)
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error):
        raise InputError(
            f"{name}:{rows.line_num}: this is no line of resizes ({RESIZES_HEADER.strip()})"
        ) from None
    return found


def has_resizes(schedule: pd.DataFrame) -> bool:
    """Whether any job of a schedule has grown or shrunk."""
    return RESIZES in schedule and bool(schedule[RESIZES].map(len).any())


def pieces_of(start: float, finish: float, resizes: Sequence[Resize]) -> Iterator[Piece]:
    """The pieces of a job that has grown or shrunk; those of no length are left out, but for the last."""
    hosts = resizes[0].before
    for resize in resizes:
        if resize.time > start:
            yield Piece(start, resize.time, hosts)
        start, hosts = resize.time, resize.after
    yield Piece(start, finish, hosts)


def in_pieces(schedule: pd.DataFrame) -> pd.DataFrame:
    """The schedule with a row for each piece of a job, in place of the job's row, under the same label.

    The times of a piece are its own, and so are its hosts, ``allocated_resources`` and ``hosts``.
    """
    if not has_resizes(schedule):
        return schedule
    places: list[int] = []
    changed: list[tuple[int, Piece]] = []
    rows = zip(schedule["starting_time"], schedule["finish_time"], schedule[RESIZES], strict=True)
    for place, (start, finish, resizes) in enumerate(rows):
        for piece in pieces_of(start, finish, resizes) if resizes else ():
            changed.append((len(places), piece))
            places.append(place)
        if not resizes:
            places.append(place)
    pieces = schedule.iloc[places].copy()
    columns: dict[str, Any] = {
        "starting_time": lambda piece: piece.start,
        "finish_time": lambda piece: piece.finish,
        "execution_time": lambda piece: piece.finish - piece.start,
        "allocated_resources": lambda piece: piece.hosts.text(),
        "hosts": lambda piece: piece.hosts,
    }
    for name, value in columns.items():
        if name in pieces:
            column = pieces[name].tolist()
            for place, piece in changed:
                column[place] = value(piece)
            pieces[name] = column
    return pieces


def mean_hosts(schedule: pd.DataFrame, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many hosts each job had in the mean of its run time; ``counts`` are those it had at its end."""
    means = counts.astype(float)
    if has_resizes(schedule):
        rows = zip(schedule["starting_time"], schedule["finish_time"], schedule[RESIZES], strict=True)
        for place, (start, finish, resizes) in enumerate(rows):
            if resizes and finish > start:
                pieces = pieces_of(start, finish, resizes)
                work = sum((piece.finish - piece.start) * len(piece.hosts) for piece in pieces)
                means[place] = work / (finish - start)
    return means
