"""What the overview of a run tells, without tables: to load pandas takes longer than to run a small log.

It is what :mod:`batsched_py.analysis.steadiness` and the outcome's ``busy`` tell.
"""

import csv
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappush, heapreplace
from itertools import accumulate, groupby
from math import ceil, inf
from operator import itemgetter
from typing import Final, NamedTuple, TextIO

from batsched_py.analysis.steadiness import LOOKS, Steadiness
from batsched_py.protocol.hosts import HostSet

#: The steady state of a run with more jobs is looked at in tables, which is quicker then.
MANY: Final = 20_000

#: The part of the jobs that are submitted before the end of what the utilization is about.
MOST_PERCENT: Final = 90

_EXECUTED: Final = "starting_time", "finish_time", "allocated_resources", "final_state"


class Ran(NamedTuple):
    """A job that was executed."""

    submitted: float
    begun: float
    ended: float
    held: int


def _rows(jobs: TextIO, *columns: str) -> Iterator[tuple[str, ...]]:
    """These columns of a ``jobs.csv``, whose notes and lists of hosts may be long."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        rows = csv.reader(jobs)
        header = next(rows)
        yield from map(itemgetter(*(header.index(column) for column in columns)), rows)
    finally:
        csv.field_size_limit(limit)


class _Counts(dict[str, int]):
    """How many hosts are in a list of them, by its text."""

    def __missing__(self, hosts: str) -> int:
        held, end = 0, -1
        for piece in hosts.split():
            first, dash, last = piece.partition("-")
            if not (first.isdecimal() and int(first) > end and (last.isdecimal() or not dash)):
                held = len(HostSet.parse(hosts))
                break
            end = int(last or first)
            held += end + 1 - int(first)
        if len(self) < MANY:
            self[hosts] = held
        return held


def _executed(jobs: TextIO) -> Iterator[Ran]:
    counts = _Counts()
    for submitted, begun, ended, hosts, state in _rows(jobs, "submission_time", *_EXECUTED):
        if state != "REJECTED":
            yield Ran(float(submitted), float(begun), float(ended), counts[hosts])


def busy(open_jobs: Callable[[], TextIO], nb_jobs: int, nb_hosts: int) -> tuple[float, float] | None:
    """Utilization until most jobs are submitted, and how long that takes, if users react.

    The file is read twice and only the latest submissions are kept, so that little of it is in memory.
    """
    latest: list[float] = []  # a heap
    nb_latest = nb_jobs - ceil(nb_jobs * MOST_PERCENT / 100) + 1
    begin, reacts = inf, False
    with open_jobs() as jobs:
        for submitted, metadata in _rows(jobs, "submission_time", "metadata"):
            time = float(submitted)
            if time < begin:
                begin = time
            if len(latest) < nb_latest:
                heappush(latest, time)
            elif time > latest[0]:
                heapreplace(latest, time)
            if not reacts:
                words = metadata.split(" ")
                reacts = any(word.startswith("session=") and word != "session=" for word in words)
    if not reacts or latest[0] <= begin:
        return None
    end = latest[0]
    with open_jobs() as jobs:
        counts = _Counts()
        inside = (
            (min(until, end) - max(since, begin)) * counts[hosts]
            for begun, ended, hosts, state in _rows(jobs, *_EXECUTED)
            if state != "REJECTED" and (since := float(begun)) < end and (until := float(ended)) > begin
        )
        total = 0.0
        for area in inside:  # one by one, as the native engine adds them: some versions of sum are more exact
            total += area
        return total / (nb_hosts * (end - begin)), end - begin


def kept_from_others(jobs: TextIO, exclusive: Callable[[str], bool], node_of: Sequence[str | None]) -> float:
    """Core seconds that jobs with whole nodes keep from others: of the cores on which they do not run."""
    cores, found = Counter(node_of), 0.0
    for workload, name, begun, ended, hosts, state in _rows(jobs, "workload_name", "job_id", *_EXECUTED):
        if state != "REJECTED" and exclusive(f"{workload}!{name.partition('#')[0]}"):
            held = HostSet.parse(hosts)
            whole = sum(cores[node] for node in {node_of[host] for host in held})
            found += (float(ended) - float(begun)) * (whole - len(held))
    return found


def steadiness(jobs: TextIO, nb_hosts: int) -> Steadiness | None:
    """Whether a run is steady; none if it has no two submissions of jobs that were executed."""
    ran, size = list(_executed(jobs)), nb_hosts
    first, last = (end((job.submitted for job in ran), default=0.0) for end in (min, max))
    if last <= first or not size:
        return None
    span = last - first
    looks = [first + place * (span / LOOKS) for place in range(LOOKS)] + [last]
    total, backlog, waiting, used = _seen(ran, looks, size)
    busy = [used[n + 1] - used[n] for n in range(LOOKS) if waiting[n] and waiting[n + 1]]
    enough = _mean(backlog) / 2
    rows = (sum(1 for _ in row) for above, row in groupby(backlog, lambda each: each > enough) if above)
    half = first + span / 2
    return Steadiness(
        offered=total / span,
        usable=(_mean(busy) if busy else used[-1] / LOOKS) * LOOKS / span,
        longest=max(rows, default=0) / len(backlog),
        first_wait=_mean([job.begun - job.submitted for job in ran if job.submitted < half]),
        second_wait=_mean([job.begun - job.submitted for job in ran if job.submitted >= half]),
        backlogs=tuple(round(_mean(fifth), 3) for fifth in _fifths(backlog)),
        span=span,
        jobs=len(ran),
    )


def _seen(
    ran: list[Ran], looks: list[float], size: int
) -> tuple[float, list[float], list[bool], list[float]]:
    """All of the work, and at each look how much waits, whether any does, and how much time hosts have run.

    Work and time are those of the whole machine.
    """
    backlogs, queues, levels, areas = ([0.0] * (LOOKS + 2) for _ in range(4))
    total = 0.0
    for submitted, begun, ended, held in ran:
        work = max(ended - begun, 0.0) * held / size
        total += work
        joined, left, over = (bisect_left(looks, time) for time in (submitted, begun, ended))
        backlogs[joined] += work
        backlogs[left] -= work
        queues[joined] += 1
        queues[left] -= 1
        levels[left] += held / size
        levels[over] -= held / size
        areas[left] -= held / size * begun
        areas[over] += held / size * ended
    waiting = [length > 0 for length in accumulate(queues[:-1])]
    sums = zip(looks, accumulate(levels[:-1]), accumulate(areas[:-1]), strict=True)
    used = [look * level + area for look, level, area in sums]
    return total, list(accumulate(backlogs[:-1])), waiting, used


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _fifths(values: list[float]) -> Iterable[list[float]]:
    """Five parts; where they cannot be equally long, the first ones have one more."""
    length, longer = divmod(len(values), 5)
    ends = [0, *accumulate(length + (place < longer) for place in range(5))]
    return [values[ends[place] : ends[place + 1]] for place in range(5)]
