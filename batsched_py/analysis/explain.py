"""Why a job waited, from the schedule alone and from the remarks of the policy; and why it ran long.

The schedule says which jobs waited and ran, and where. That is enough for a job's place in the queue, for the
jobs that held the hosts that it got, and for those that overtook it. Why that was allowed follows from the
reservations, if the policy remarked on them; otherwise from whether the job would have fitted. Unavailable
and sleeping hosts are not in the schedule: they come from other files, if there are any. So does what the job
shared with others.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from batsched_py.analysis import conditions
from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis.schedule import INSTANT, RESIZES, SLACK, Resize
from batsched_py.analysis.validator.nodes import Demand, Nodes, Requests, Room
from batsched_py.errors import InputError
from batsched_py.ledger.nodes import EMPTY, TOGETHER, where
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import JobState
from batsched_py.protocol.requests import Request
from batsched_py.schedulers.decisions import HEADER, Remark


def moment(seconds: float) -> str:
    """A time of a simulation for people, to a tenth of a second.

    >>> moment(263546.4088), moment(3600.0)
    ('263546.4', '3600')
    """
    return f"{seconds:.1f}".removesuffix(".0")


def in_words(remark: Remark) -> str:
    """A remark with its times.

    >>> in_words(Remark(60.0, "w0!7", "heads the queue", 3600.0))
    'at 60: heads the queue, to start by 3600'
    """
    start = "" if remark.start is None else f", to start by {moment(remark.start)}"
    return f"at {moment(remark.time)}: {remark.text}{start}"


def read_remarks(lines: Iterable[str], name: str) -> dict[str, list[Remark]]:
    """The remarks on each job, in the order of time; a line that cannot be read is named."""

    def read(row: dict[str, str]) -> Remark:
        start = float(row["start"]) if row["start"] else None
        return Remark(float(row["time"]), row["job_id"], row["text"] or "", start)

    found: dict[str, list[Remark]] = {}
    for remark in jobs_csv.read_lines(lines, name, f"this is no line of remarks ({HEADER.strip()})", read):
        found.setdefault(remark.job_id, []).append(remark)
    return found


def remarks_beside(jobs_file: str | Path) -> dict[str, list[Remark]]:
    """The remarks beside a ``PREFIX_jobs.csv``; none if they were not asked for."""
    return jobs_csv.read_table(jobs_csv.tables_beside(jobs_file), "remarks", read_remarks) or {}


#: What is known about unavailable and sleeping hosts from a schedule alone.
NOTHING_TOLD: Final = conditions.Absences()

#: Why a job could overtake another. If a reservation is known: it ends by then, or takes hosts that are not
#: needed then. Otherwise: the other did not fit, or would have fitted and was not chosen.
Reason = Literal["ends by the reservation", "takes extra hosts", "did not fit", "was not chosen"]


@dataclass(frozen=True)
class Lack:
    """For how long a job lacked these resources; each of them alone was too little for it."""

    resources: Sequence[str]
    """As :func:`~batsched_py.ledger.nodes.lacking` tells; none while there was a place for it."""
    seconds: float


class NodeWaits:
    """What the jobs of a schedule took of the nodes, and what others lacked meanwhile.

    A job that has grown or shrunk has a row for each of its sizes.
    """

    def __init__(
        self,
        machine: Nodes,
        requests: Requests,
        ids: Sequence[str],
        hosts: Sequence[HostSet],
        starts: Sequence[float],
        finishes: Sequence[float],
    ) -> None:
        self._machine = machine
        self._requests = requests
        self._ids, self._hosts = ids, hosts
        self._first = {job: row for row, job in reversed(list(enumerate(ids)))}
        self._starts, self._finishes = np.asarray(starts), np.asarray(finishes)

    def where(self, job: str) -> str:
        """The kind of nodes that a job asks for, in words; nothing if any will do."""
        return where(self._demand(job).request)

    def lacks(self, job: str, begin: float, end: float, absences: Sequence[conditions.Absence]) -> list[Lack]:
        """What a job lacked between two times, what it lacked longest first."""
        demand = self._demand(job)
        lacked: dict[tuple[str, ...], float] = {}
        for since, until, room in self._over_time(begin, end, absences):
            found = tuple(_lacking(demand, room))
            lacked[found] = lacked.get(found, 0.0) + until - since
        longest = sorted(lacked.items(), key=lambda each: (-each[1], each[0]))
        return [Lack(resources, seconds) for resources, seconds in longest if seconds > SLACK]

    def would_fit(self, job: str, time: float, absences: Sequence[conditions.Absence]) -> bool:
        """Whether there was a place for a job at a time, before others were started then."""
        room = self._machine.empty()
        for other in np.flatnonzero((self._starts < time - SLACK) & (self._finishes > time + SLACK)).tolist():
            self._change(other, room, -1)
        for absence in absences:
            if absence.since <= time + SLACK < absence.until:
                self._change(absence.hosts, room, -1)
        return room.holds(self._demand(job))

    def _over_time(
        self, begin: float, end: float, absences: Sequence[conditions.Absence]
    ) -> Iterator[tuple[float, float, Room]]:
        """What is free from each change until the next one."""
        room = self._machine.empty()
        rows = np.flatnonzero((self._starts < end - SLACK) & (self._finishes > begin + SLACK))
        changes: list[tuple[float, int, int | HostSet]] = []
        for row in rows.tolist():
            changes += [(float(self._starts[row]), -1, row), (float(self._finishes[row]), 1, row)]
        for absence in absences:
            changes += [(absence.since, -1, absence.hosts), (absence.until, 1, absence.hosts)]
        changes.sort(key=lambda change: change[0])
        since = begin
        for time, sign, what in changes:
            if time >= end - SLACK:
                break
            if time > since + SLACK:
                yield since, time, room
                since = time
            self._change(what, room, sign)
        yield since, end, room

    def _demand(self, job: str) -> Demand:
        return self._machine.demand(self._request(self._first[job]))

    def _change(self, what: int | HostSet, room: Room, sign: int) -> None:
        """A job, by its row, takes or gives back what it has; hosts that are away are cores."""
        if isinstance(what, HostSet):
            for node, cores in self._machine.cores(what).items():
                room.amounts[node] += sign * self._machine.row({"cores": cores})
        else:
            demand = self._machine.demand(self._request(what))
            room.change(demand, demand.place(self._machine.cores(self._hosts[what])), sign)

    def _request(self, row: int) -> Request:
        return self._requests.get(self._ids[row]) or Request(max(1, len(self._hosts[row])))


def _lacking(demand: Demand, room: Room) -> list[str]:
    """The resources of which alone too little is free for a job; none if there is a place for it."""
    short = [name for name, count in demand.licences.items() if room.licences.get(name, 0) < count]
    if demand.nodes(room.amounts) is not None:
        return short
    machine = room.machine
    for column, name in enumerate(machine.resources):
        only = machine.has.copy()
        only[:, column] = room.amounts[:, column]
        if demand.nodes(only) is None:
            short.append(EMPTY if name == "places" else name)
    return short or [TOGETHER]


@dataclass(frozen=True)
class Holder:
    """A job that held hosts that another job got in the end."""

    id: str
    hosts: HostSet
    """Those of its hosts that the other got."""
    since: float
    until: float


@dataclass(frozen=True)
class Overtaker:
    """A job that was submitted later and started earlier."""

    id: str
    start: float
    size: int
    expected_end: float
    """By its walltime."""
    reason: Reason
    reserved_for: str | None
    """The job whose reservation it had to respect, if known."""
    reserved_at: float | None
    """When that job was to start."""
    free: int
    """How many hosts were free before it started, as far as known."""


@dataclass(frozen=True)
class Reservation:
    """By when a job was to start, from a given time on."""

    since: float
    start: float


@dataclass(frozen=True)
class Explanation:
    """The time from the submission of a job to its start."""

    id: str
    size: int
    walltime: float
    submission: float
    start: float | None
    """Nothing for a job that was rejected."""
    hosts: HostSet
    """Those that it got when it started."""
    nb_hosts: int
    """How many there were."""
    places: Sequence[tuple[float, int]] = ()
    """Its place in the order of submission among the waiting jobs, from each change on."""
    free: Sequence[tuple[float, int]] = ()
    """How many hosts were free, from each change on, as far as known."""
    holders: Sequence[Holder] = ()
    """The jobs that held its hosts while it waited, in the order of their ends."""
    absences: Sequence[conditions.Absence] = ()
    """The hosts that could not be used while it waited, in the order in which they came back."""
    untold: Sequence[conditions.State] = ()
    """The states about which nothing is known: hosts in them are counted as free."""
    overtakers: Sequence[Overtaker] = ()
    """In the order of their starts."""
    reservations: Sequence[Reservation] = ()
    """Each reservation that it had, as the policy remarked."""
    remarks: Sequence[Remark] = ()
    """The other remarks of the policy on it."""
    contention: conditions.Contention | None = None
    """Why it ran longer than alone, if it did and that is known."""
    lacks: Sequence[Lack] | None = None
    """What it waited for on a machine of nodes, if that and what jobs asked for is known."""
    where: str = ""
    """On which nodes, in words."""
    held: conditions.HeldJob | None = None
    """Until when it waited for other jobs, and was not in the queue."""
    resizes: Sequence[Resize] = ()
    """When it grew or shrank."""

    @property
    def waited(self) -> float:
        """For how long."""
        return 0.0 if self.start is None else self.start - self.submission

    @property
    def queued(self) -> float:
        """For how much of that it was in the queue, because it waited for no other job."""
        eligible = None if self.held is None else self.held.eligible
        return self.waited - (0.0 if eligible is None else eligible - self.submission)

    @property
    def room(self) -> float:
        """For how many seconds of its wait enough hosts were free."""
        assert self.start is not None
        ends = [*(time for time, _ in self.free[1:]), self.start]
        intervals = zip(self.free, ends, strict=True)
        return sum(max(0.0, end - since) for (since, count), end in intervals if count >= self.size)


@dataclass(frozen=True)
class Evidence:
    """What is known beside the schedule."""

    hosts: int | None = None
    """How many there were; if nothing tells it, as many as were used."""
    remarks: Mapping[str, Sequence[Remark]] = field(default_factory=dict)
    """Of the policy on jobs, by their full identifiers."""
    absences: conditions.Absences = NOTHING_TOLD
    carried: conditions.Carried | None = None
    """What links, hosts and storages carried."""
    machine: Nodes | None = None
    requests: Requests = field(default_factory=dict)
    """What jobs asked for on a machine of nodes: it tells which resource a job waited for."""
    held: Mapping[str, conditions.HeldJob] = field(default_factory=dict)
    """The jobs that waited for others, by their full identifiers."""


class Explainer:
    """Explains the jobs of one schedule."""

    def __init__(self, schedule: pd.DataFrame, known: Evidence) -> None:
        self._known = known
        self._ids = jobs_csv.full_ids(schedule).to_list()
        self._names = schedule["job_id"].to_list()
        pieces = jobs_csv.in_pieces(schedule.reset_index(drop=True))
        self._piece_hosts = jobs_csv.host_sets(pieces)
        self._row_of_piece = pieces.index.to_numpy()
        first = np.searchsorted(self._row_of_piece, np.arange(len(schedule)))
        self._hosts = [self._piece_hosts[piece] for piece in first]
        """Those that each job had first."""
        named = (*self._piece_hosts, *(absence.hosts for absence in known.absences.told))
        used = max((each.mask.bit_length() for each in named), default=0)
        self._nb_hosts = max(used, known.hosts or 0)
        self._ran = (schedule["final_state"] != JobState.REJECTED).to_numpy()
        self._submission = schedule["submission_time"].to_numpy()
        arrivals = jobs_csv.full_ids(schedule).map(conditions.arrivals_of(known.held))
        self._arrival = arrivals.fillna(schedule["submission_time"]).to_numpy(float)
        """When each job joined the queue: at its submission, or when it waited for no other job any more."""
        self._start = schedule["starting_time"].to_numpy()
        passing = schedule["execution_time"].to_numpy() <= INSTANT
        self._finish = np.where(passing, self._start, schedule["finish_time"].to_numpy())
        self._piece_start, self._piece_finish = self._start, self._finish
        if jobs_csv.has_resizes(schedule):
            self._piece_start = pieces["starting_time"].to_numpy()
            self._piece_finish = pieces["finish_time"].to_numpy()
        self._resizes = schedule[RESIZES].to_list() if RESIZES in schedule else [()] * len(schedule)
        self._size = schedule["requested_number_of_resources"].to_numpy()
        limit = schedule["requested_time"].to_numpy()
        self._walltime = np.where(limit < 0, inf, limit)
        self._reserved = sorted(
            (remark for each in known.remarks.values() for remark in each if remark.start is not None),
            key=lambda remark: remark.time,
        )
        self._reserved_times = [remark.time for remark in self._reserved]
        self._rows = {job_id: row for row, job_id in enumerate(self._ids)}
        self._nodes = None
        if known.machine is not None:
            rows = self._row_of_piece
            self._nodes = NodeWaits(
                known.machine,
                known.requests,
                [self._ids[row] for row in rows],
                self._piece_hosts,
                np.where(self._ran[rows], self._piece_start, inf).tolist(),
                self._piece_finish.tolist(),
            )

    def explain(self, job: str) -> Explanation:
        """Why a job waited, which is named as in the schedule, with or without its workload."""
        row = self._find(job)
        job_id = self._ids[row]
        submission = float(self._submission[row])
        common = (job_id, int(self._size[row]), float(self._walltime[row]), submission)
        own = self._known.remarks.get(job_id, ())
        others = [remark for remark in own if remark.start is None]
        reservations = [Reservation(remark.time, remark.start) for remark in own if remark.start is not None]
        if not self._ran[row]:
            return Explanation(
                *common,
                None,
                HostSet(),
                self._nb_hosts,
                reservations=reservations,
                remarks=others,
                held=self._known.held.get(job_id),
            )
        start, arrival = float(self._start[row]), float(self._arrival[row])
        absences = [
            each
            for each in map(partial(self._for_job, row), self._known.absences.told)
            if each.since < start - SLACK and each.until > arrival
        ]
        contention = None
        if self._known.carried is not None:
            contention = self._known.carried.contention(job_id, float(self._finish[row] - self._start[row]))
        return Explanation(
            *common,
            start,
            self._hosts[row],
            self._nb_hosts,
            list(self._places(row)),
            list(self._free_hosts(arrival, start, absences)),
            sorted(self._holders(row), key=lambda holder: (holder.until, holder.since, holder.id)),
            sorted(absences, key=lambda absence: (absence.until, absence.since)),
            self._known.absences.untold,
            [self._overtaker(row, int(other), absences) for other in self._overtakers(row)],
            reservations,
            others,
            contention,
            None if self._nodes is None else self._nodes.lacks(job_id, arrival, start, absences),
            "" if self._nodes is None else self._nodes.where(job_id),
            self._known.held.get(job_id),
            self._resizes[row],
        )

    def _for_job(self, row: int, absence: conditions.Absence) -> conditions.Absence:
        """From when on a job could not use these hosts: it must have ended when they close.

        One that ran there while they were closed was let in.
        """
        if absence.state != "closed":
            return absence
        start, end = float(self._start[row]), float(self._start[row] + self._walltime[row])
        if self._hosts[row] & absence.hosts and start < absence.until - SLACK and absence.since < end - SLACK:
            return replace(absence, since=inf)
        return replace(absence, since=absence.since - float(self._walltime[row]))

    def _find(self, job: str) -> int:
        rows = [row for row, names in enumerate(zip(self._ids, self._names, strict=True)) if job in names]
        if not rows:
            example = f"; its jobs are called like {self._ids[0]!r}" if self._ids else ""
            raise InputError(f"there is no job {job!r} in the schedule{example}")
        if len(rows) > 1:
            called = ", ".join(self._ids[row] for row in rows)
            raise InputError(f"there are several jobs {job!r}; say which one: {called}")
        return rows[0]

    # --- the queue -------------------------------------------------------------------------------

    def _places(self, row: int) -> Iterator[tuple[float, int]]:
        """Only starts of jobs in front of it change its place."""
        ahead = self._ran & self._earlier(row) & (self._start > self._arrival[row] + SLACK)
        place = int(ahead.sum()) + 1
        yield float(self._arrival[row]), place
        starts = np.sort(self._start[ahead & (self._start <= self._start[row] + SLACK)])
        for time, count in zip(*np.unique(starts, return_counts=True), strict=True):
            place -= int(count)
            yield float(time), place

    def _earlier(self, row: int) -> np.ndarray:
        """The jobs in the queue before a job; at one instant Batsim submits in the order of identifiers."""
        before = self._arrival < self._arrival[row] - SLACK
        together = np.flatnonzero(np.abs(self._arrival - self._arrival[row]) <= SLACK)
        before[[other for other in together if self._ids[other] < self._ids[row]]] = True
        return before

    def _overtakers(self, row: int) -> list[int]:
        later = ~self._earlier(row) & (self._start < self._start[row] - SLACK)
        found = np.flatnonzero(self._ran & later)
        return sorted(found.tolist(), key=lambda other: (self._start[other], self._ids[other]))

    # --- the hosts -------------------------------------------------------------------------------

    def _free_hosts(
        self, begin: float, end: float, absences: Sequence[conditions.Absence]
    ) -> Iterator[tuple[float, int]]:
        """How many hosts are free between two times, after everything of each instant has happened."""
        starts, finishes = self._piece_start, self._piece_finish
        pieces = np.flatnonzero(self._ran[self._row_of_piece] & (starts < end) & (finishes > begin))
        bounds = [(each.since, each.until) for each in absences]
        times = np.unique(np.concatenate([starts[pieces], finishes[pieces], np.ravel(bounds)]))
        free = None
        for time in [begin, *times[(times > begin + SLACK) & (times < end - SLACK)].tolist()]:
            before, free = free, self._free_at(time, pieces[starts[pieces] <= time + SLACK], absences)
            if free != before:
                yield time, free

    def _free_at(self, time: float, begun: np.ndarray, absences: Sequence[conditions.Absence]) -> int:
        """How many usable hosts are free at a time beside those of the pieces of jobs that have begun."""
        taken = 0
        for piece in begun[self._piece_finish[begun] > time + SLACK].tolist():
            taken |= self._piece_hosts[piece].mask
        for absence in absences:
            if absence.since <= time + SLACK < absence.until:
                taken |= absence.hosts.mask
        return self._nb_hosts - taken.bit_count()

    def _holders(self, row: int) -> Iterator[Holder]:
        wanted, begin, end = self._hosts[row], self._arrival[row], self._start[row]
        starts, finishes, rows = self._piece_start, self._piece_finish, self._row_of_piece
        overlapping = self._ran[rows] & (starts < end - SLACK) & (finishes > begin + SLACK)
        for piece in np.flatnonzero(overlapping).tolist():
            other = rows[piece]
            if other != row and (shared := self._piece_hosts[piece] & wanted):
                yield Holder(self._ids[other], shared, float(starts[piece]), float(finishes[piece]))

    # --- why -------------------------------------------------------------------------------------

    def _overtaker(self, row: int, other: int, absences: Sequence[conditions.Absence]) -> Overtaker:
        start = float(self._start[other])
        expected_end = start + float(self._walltime[other])
        reserved = self._reservation(row, start)
        begun = self._ran[self._row_of_piece] & (self._piece_start < start - SLACK)
        free = self._free_at(start, np.flatnonzero(begun), absences)
        reason: Reason
        if reserved is None:
            fits = free >= self._size[row]
            if self._nodes is not None:
                fits = fits and self._nodes.would_fit(self._ids[row], start, absences)
            reason = "was not chosen" if fits else "did not fit"
        else:
            assert reserved.start is not None
            in_time = expected_end <= reserved.start + SLACK
            reason = "ends by the reservation" if in_time else "takes extra hosts"
        job_id, at = (None, None) if reserved is None else (reserved.job_id, reserved.start)
        size = int(self._size[other])
        return Overtaker(self._ids[other], start, size, expected_end, reason, job_id, at, free)

    def _reservation(self, row: int, time: float) -> Remark | None:
        """The reservation of the job itself at a time, or else the last one that is still valid."""
        for remark in reversed(self._known.remarks.get(self._ids[row], ())):
            if remark.start is not None and remark.time <= time + SLACK:
                return remark
        for place in range(bisect_right(self._reserved_times, time + SLACK) - 1, -1, -1):
            remark = self._reserved[place]
            holder = self._rows.get(remark.job_id)
            if holder is not None and self._ran[holder] and self._start[holder] > time + SLACK:
                return remark
        return None
