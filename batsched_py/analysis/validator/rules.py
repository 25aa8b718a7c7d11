"""What the validator finds: rules for every schedule, and for what comes from outside.

Closures, failures and caps on power come from outside. All rules are written from their definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from heapq import merge
from itertools import chain, islice
from math import inf
from operator import or_
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis.conditions import Absence
from batsched_py.analysis.schedule import INSTANT, SLACK
from batsched_py.analysis.validator.rows import MANY, Places, Rows, are_in, blocks, with_hosts
from batsched_py.errors import InputError
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState, read_watts
from batsched_py.protocol.profiles import Composed, Profile
from batsched_py.protocol.sizes import SIZES, have_sizes, shapes_of
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.quick_reader import NativeJobs, RunTimeProfiles


@dataclass(frozen=True)
class Violation:
    """A broken rule: by which jobs, when and how."""

    rule: str
    jobs: tuple[str, ...]
    """Full identifiers, ``WORKLOAD!JOB``."""
    time: float
    """When it happened in the simulation, or the job's submission if that makes no sense."""
    text: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.time:.6f}: {self.text}"


#: What a job does at a moment: it ends, it begins and ends at once, or it begins.
ENDS, PASSES, BEGINS = range(3)


def moments(rows: Rows) -> Iterator[tuple[float, int, int]]:
    """When jobs begin and end, in the order of time, and what they do, with their rows.

    What ends when something begins ends before.
    """
    executed = rows.executed
    passes = rows["execution_time"][executed] <= INSTANT
    passing, others = executed[passes], executed[~passes]
    begins = _in_order(rows["starting_time"], {PASSES: passing, BEGINS: others})
    return merge(begins, _in_order(rows["finish_time"], {ENDS: others}))


def _in_order(times: NDArray[Any], kinds: dict[int, Places]) -> Iterator[tuple[float, int, int]]:
    """The moments at some times, by what happens to which rows; all but beginnings come a bit earlier."""
    rows = np.concatenate(list(kinds.values()))
    what = np.repeat(np.array(list(kinds), np.int8), list(map(len, kinds.values())))
    del kinds

    def at(rows: Places, what: NDArray[np.int8]) -> NDArray[np.float64]:
        found = times[rows].astype(np.float64)
        found[what != BEGINS] -= SLACK
        return found

    when = np.empty(len(rows))
    for first in range(0, len(rows), MANY):
        part = slice(first, first + MANY)
        when[part] = at(rows[part], what[part])
    order = np.argsort(when, kind="stable")
    del when
    rows, what = rows[order], what[order]
    del order
    for some, kind in zip(blocks(rows), blocks(what), strict=True):
        yield from zip(at(some, kind).tolist(), kind.tolist(), some.tolist(), strict=True)


def overlap(rows: Rows) -> Iterator[Violation]:
    """No host runs two jobs at a time.

    A job of no length does not hold its hosts, but they must not belong to another job when it runs.
    """
    busy = contested = 0
    running: dict[int, int] = {}
    """The rows of jobs, with their hosts as masks."""
    for time, kind, row in moments(rows):
        mask = running.get(row) or rows.mask(row)
        if kind == ENDS:
            running.pop(row, None)
            busy &= ~mask
            if contested & mask:
                busy = reduce(or_, running.values(), 0)
            continue
        if busy & mask:
            contested |= busy & mask
            for other in sorted(running):
                if shared := running[other] & mask:
                    jobs = (rows.name(other), rows.name(row))
                    text = f"jobs {jobs[0]} and {jobs[1]} both run on {HostSet(shared)}"
                    yield Violation("overlap", jobs, time, text)
        if kind == BEGINS:
            running[row] = mask
            busy |= mask


def twice(rows: Rows, names: NDArray[np.bytes_]) -> Iterator[Violation]:
    """No job has two rows; these are the names of all in order."""
    if not (names[1:] == names[:-1]).any():
        return
    order = np.argsort(rows.names, kind="stable")
    for row in np.sort(order[1:][names[1:] == names[:-1]]).tolist():
        name = rows.name(row)
        time = float(rows["submission_time"][row])
        yield Violation("twice", (name,), time, f"job {name} has more than one row")


def capacity(schedule: pd.DataFrame, hosts: int | None, moldable: set[str]) -> Iterator[Violation]:
    """Every job runs on as many hosts as it asked for, and on hosts that exist."""
    executed = jobs_csv.started(schedule)
    wrong = (executed["held"] == 0) | (executed["held"] != executed["requested_number_of_resources"])
    if hosts is not None:
        wrong |= executed["highest"] >= hosts
    for row in with_hosts(executed[wrong]).itertuples():
        asked, given = row.requested_number_of_resources, row.hosts
        if not given or (len(given) != asked and row.id not in moldable):
            text = f"job {row.id} runs on {len(given)} hosts instead of {asked}"
            yield Violation("capacity", (row.id,), row.starting_time, text)
        if hosts is not None and given.mask >> hosts:
            beyond = HostSet(given.mask >> hosts << hosts)
            text = f"job {row.id} runs on {beyond}, but the last host is {hosts - 1}"
            yield Violation("capacity", (row.id,), row.starting_time, text)


#: A rule, the rows that break it, the column that says when they did, and how they did, in words.
_Check = tuple[str, "pd.Series[bool]", str, Callable[[Any], str]]


def single_rows(schedule: pd.DataFrame, late: bool = False) -> Iterator[tuple[int, Violation]]:
    """What holds of each row.

    * causality: no job starts before it is submitted;
    * walltime: none runs longer than its walltime, unless jobs may be ``late``, and one that is stopped by it
      ran for exactly that long;
    * arithmetic: its times fit together;
    * state: the success flag agrees with the final state, and a rejected job was not executed.

    Each comes with the number of the check that found it.
    """
    schedule = schedule.reset_index(drop=True)
    for number, (rule, wrong, time, text) in enumerate((*_checks(schedule, late), *_sums(schedule))):
        for row in schedule[wrong].itertuples() if wrong.any() else ():
            yield number, Violation(rule, (row.id,), getattr(row, time), f"job {row.id} {text(row)}")


def _checks(schedule: pd.DataFrame, late: bool) -> Iterator[_Check]:
    start, ran, states = schedule["starting_time"], schedule["execution_time"], schedule["final_state"]
    yield (
        "causality",
        start < schedule["submission_time"] - SLACK,
        "starting_time",
        lambda row: f"starts at {row.starting_time:.6f}, before its submission at {row.submission_time:.6f}",
    )
    limit = schedule["requested_time"].where(schedule["requested_time"] >= 0, inf)
    yield (
        "walltime",
        (ran > limit + SLACK) & (not late),
        "finish_time",
        lambda row: f"runs for {row.execution_time:.6f}, longer than its walltime {row.requested_time:.6f}",
    )
    yield (
        "walltime",
        (states == JobState.WALLTIME_REACHED) & (ran < limit - SLACK),
        "finish_time",
        lambda row: f"reached its walltime {row.requested_time:.6f} after {row.execution_time:.6f}",
    )
    yield "arithmetic", ran < 0, "starting_time", lambda row: f"runs for {row.execution_time:.6f}"
    yield (
        "state",
        schedule["success"] != (states == JobState.SUCCESS),
        "submission_time",
        lambda row: f"is {row.final_state}, but its success flag is {row.success}",
    )
    executed = start.notna() | schedule["finish_time"].notna() | (schedule["held"] > 0)
    yield (
        "state",
        (states == JobState.REJECTED) & executed,
        "submission_time",
        lambda row: "was rejected, but has times or hosts of an execution",
    )


def _sums(schedule: pd.DataFrame) -> Iterator[_Check]:
    """The columns that are computed from others."""
    columns = ("starting_time", "submission_time", "finish_time", "execution_time")
    start, submission, finish, ran = (schedule[column] for column in columns)
    stretch = schedule["turnaround_time"] / ran.where(ran > SLACK)  # shorter ones have no digits left
    for column, formula, expected, slack in (
        ("finish_time", "starting_time + execution_time", start + ran, SLACK),
        ("waiting_time", "starting_time - submission_time", start - submission, SLACK),
        ("turnaround_time", "finish_time - submission_time", finish - submission, SLACK),
        ("stretch", "turnaround_time / execution_time", stretch, SLACK * (1 + (1 + stretch.abs()) / ran)),
    ):
        wrong = (schedule[column] - expected).abs() > slack
        yield "arithmetic", wrong, "starting_time", partial(_miscalculated, column, formula, expected)


def _miscalculated(column: str, formula: str, expected: pd.Series[float], row: Any) -> str:
    return f"has the {column} {getattr(row, column):.6f}, but {formula} is {expected[row.Index]:.6f}"


def lost(names: NDArray[np.bytes_], workloads: Sequence[Workload]) -> Iterator[Violation]:
    """Every job of the workloads is there; these are the names in order."""
    jobs = chain.from_iterable(load.jobs for load in workloads)
    while some := list(islice(jobs, MANY)):
        there = are_in(names, [job.id for job in some])
        for job in [job for job, is_there in zip(some, there.tolist(), strict=True) if not is_there]:
            text = f"job {job.id} of the workload has no row"
            yield Violation("lost", (job.id,), job.submission_time, text)


#: Finds jobs of a workload by their identifiers.
Finder = Callable[[Sequence[str]], Iterator[Job | None]]


def workload(
    schedule: pd.DataFrame, workloads: Sequence[Workload], finders: Mapping[str, Finder]
) -> Iterator[Violation]:
    """Every job is as the workloads describe it, and there is no other.

    Jobs with other workload names were registered during the simulation: no file describes them. A job that a
    user submitted has its recorded submission in a note, and may have a profile of its own. A job may come
    again when a failure has ended it, as its note says.
    """
    names = pd.Series(jobs_csv.names_before_restarts(schedule), schedule.index)
    for load in workloads:
        is_of_it, code = schedule["workload_name"] == load.name, _return_codes(load.profiles)
        jobs = finders[load.name](names[is_of_it].tolist())
        for row, meant in zip(schedule.loc[is_of_it, _DESCRIBED].itertuples(), jobs, strict=True):
            if meant is None:
                text = f"job {row.id} is not in the workload"
                yield Violation("invented", (row.id,), row.submission_time, text)
                continue
            for difference in _differences(row, meant, code):
                yield Violation("workload", (row.id,), row.submission_time, f"job {row.id} {difference}")


#: The columns that tell what a workload describes, too.
_DESCRIBED = [
    "id",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "profile",
    "final_state",
    "metadata",
]


_RECORDED = re.compile(r"(?:^| )recorded=(\d+(?:\.\d+)?)(?: |$)")


def _differences(row: Any, job: Job, code: Callable[[str], int]) -> Iterator[str]:
    note = _RECORDED.search(row.metadata)
    submission = row.submission_time if note is None else float(note[1])
    if row.requested_number_of_resources != job.size:
        yield f"asks for {row.requested_number_of_resources} hosts, in the workload for {job.size}"
    if abs(submission - job.submission_time) > SLACK:
        yield f"is submitted at {submission:.6f}, in the workload at {job.submission_time:.6f}"
    if row.profile.startswith(f"{job.profile}_{job.size}_for_"):
        return  # with checkpoints, or what they have left to do
    limit = job.walltime if job.has_walltime else -1.0
    if abs(row.requested_time - limit) > SLACK:
        yield f"has the walltime {row.requested_time:.6f}, in the workload {limit:.6f}"
    if row.profile != job.profile and (note is None or row.profile != f"job_{job.name}"):
        yield f"has the profile {row.profile!r}, in the workload {job.profile!r}"
    elif row.final_state == (JobState.FAILED if code(job.profile) == 0 else JobState.SUCCESS):
        yield f"ends {row.final_state}, but its profile returns {code(job.profile)}"


def _return_codes(profiles: Mapping[str, Profile]) -> Callable[[str], int]:
    """The return codes of the profiles of a workload when they run to their end, by their names.

    A composed one stops at the first part that does not return 0.
    """

    if isinstance(profiles, RunTimeProfiles):
        return lambda name: 0

    @cache
    def code(name: str) -> int:
        profile = profiles.get(name)
        parts = profile.parts if isinstance(profile, Composed) else ()
        return next(filter(None, map(code, parts)), 0 if profile is None else profile.return_code)

    return code


#: A job that tells Slurm one of these things may run on fewer hosts than it asks for.
FEWER_HOSTS = frozenset({"cpus_per_task", "least_cpus"})


def moldable_jobs(workloads: Sequence[Workload]) -> set[str]:
    """The jobs that may run on any number of hosts, because their work is a total to be divided.

    A Slurm may give fewer processors to a job whose tasks it cuts, or that asks for a range of nodes.
    """
    moldable = set()
    for load in workloads:
        if isinstance(load.jobs, NativeJobs) and isinstance(load.profiles, RunTimeProfiles):
            continue  # a log tells nothing like this
        names = {name for name, profile in load.profiles.items() if profile.is_moldable(load.profiles)}
        moldable |= {
            job.id
            for job in load.jobs
            if job.profile in names or not FEWER_HOSTS.isdisjoint(job.extra.get("slurm") or ())
        }
    return moldable


def sizes(schedule: pd.DataFrame, workloads: Sequence[Workload]) -> Iterator[Violation]:
    """A job that gives several sizes runs with one of them, or with as many hosts as it asks for."""
    given = {
        job.id: {job.size, *(shape.job.size for shape in shapes_of(job))}
        for load in workloads
        if have_sizes(load.jobs)
        for job in load.jobs
        if SIZES in job.extra
    }
    failed = jobs_csv.ended_by_failures(schedule) if given else set()
    for row in jobs_csv.started(schedule).itertuples() if given else ():
        allowed = given.get(jobs_csv.before_restarts(row, failed))
        if allowed is not None and row.held not in allowed:
            sizes_text = ", ".join(map(str, sorted(allowed)))
            text = f"job {row.id} runs on {row.held} hosts, which is none of its sizes: {sizes_text}"
            yield Violation("sizes", (row.id,), row.starting_time, text)


def into_closures(
    schedule: pd.DataFrame, closures: Sequence[Closure], workloads: Sequence[Workload]
) -> Iterator[Violation]:
    """The jobs that are started on hosts which close before their walltime is over, or grow into such hosts.

    The workloads tell whose jobs they are, and so which of them a reservation lets in.
    """
    if not closures:
        return
    users = {job.id: job.user for workload in workloads for job in workload.jobs}
    schedule = schedule.assign(id=jobs_csv.full_ids(schedule))
    failed = jobs_csv.ended_by_failures(schedule)
    walltimes = schedule["requested_time"].where(schedule["requested_time"] >= 0, inf)
    pieces = jobs_csv.in_pieces(
        jobs_csv.started(schedule.assign(latest=schedule["starting_time"] + walltimes))
    )
    for row, hosts in zip(pieces.itertuples(), jobs_csv.host_sets(pieces), strict=True):
        start, end, user = row.starting_time, row.latest, users.get(jobs_csv.before_restarts(row, failed))
        for closure in closures:
            closed = hosts & closure.hosts
            if closed and closure.bars(user, start + SLACK, end - SLACK):
                text = (
                    f"job {row.id} begins on hosts {closed}, which are closed from {closure.start:g} to "
                    f"{closure.end:g}, and could still run then"
                )
                yield Violation("closed", (row.id,), start, text)


_FAILED = re.compile(r"(?:^| )failed=([0-9,-]+)(?: |$)")


def on_failed_hosts(
    schedule: pd.DataFrame, absences: Sequence[Absence], events: Sequence[Absence] = ()
) -> Iterator[Violation]:
    """The jobs that run on hosts while these are away, and those that no failure has ended as they say.

    The absences are those of ``PREFIX_absences.csv``: a failure ends the jobs on its hosts. Where hosts are
    taken away by ``events``, jobs may go on.
    """
    away = [absence for absence in absences if absence.state == "away"]
    executed = jobs_csv.started(schedule.assign(id=jobs_csv.full_ids(schedule)))
    pieces = jobs_csv.in_pieces(executed)
    for row, hosts in zip(pieces.itertuples(), jobs_csv.host_sets(pieces), strict=True):
        for absence in away:
            shared, since, until = hosts & absence.hosts, absence.since, absence.until
            if shared and row.starting_time < until - SLACK and row.finish_time > since + SLACK:
                text = f"job {row.id} runs on hosts {shared}, which are away from {since:g} to {until:g}"
                yield Violation("away", (row.id,), max(row.starting_time, since), text)
    for row, hosts in zip(executed.itertuples(), jobs_csv.host_sets(executed), strict=True):
        if (found := _FAILED.search(row.metadata)) is not None:
            lost, failing = HostSet.parse(found[1].replace(",", " ")), HostSet()
            for absence in (*away, *events):
                if abs(absence.since - row.finish_time) <= SLACK:
                    failing = failing | absence.hosts
            if not (lost <= failing and lost <= hosts):
                text = f"job {row.id} is ended by a failure of hosts {lost}, of which nothing is known"
                yield Violation("failure", (row.id,), row.finish_time, text)


#: A sum of watts may be more than the cap by this share.
PRECISION = 1e-9

#: What an instant does: a job ends, hosts change their power state, the cap changes, a job starts.
_END, _SWITCH, _CAP, _START = range(4)


def over_power_cap(
    schedule: pd.DataFrame, hosts: Sequence[Host], cap: Curve, switches: pd.DataFrame | None = None
) -> Iterator[Violation]:
    """When more power than a cap is drawn, if each host with a job is fully busy.

    ``switches`` are the changes of power states that the simulator has written down. Without them, hosts are
    always awake. On their way from one state to another, they may draw what they draw on any such way.
    """
    schedule = jobs_csv.in_pieces(schedule)
    schedule = schedule.assign(id=jobs_csv.full_ids(schedule), hosts=jobs_csv.host_sets(schedule))
    machine = _Machine(hosts)
    last = schedule["finish_time"].max()
    changes = [(time, _CAP, "", "", 0) for time in cap.changes(0.0, last)]
    for time, kind, name, allocation, pstate in sorted(
        [*_instants(schedule, switches), *changes], key=lambda instant: instant[:2]
    ):
        if kind != _CAP:
            machine.change(kind, list(HostSet.parse(allocation)), pstate)
        watts, most = machine.watts(), cap.at(time + SLACK)
        if kind != _END and watts > most * (1 + PRECISION):
            jobs = (name,) if name else ()
            whats = {
                _SWITCH: f"hosts {allocation} switch",
                _CAP: "the cap changes",
                _START: f"job {name} starts",
            }
            text = f"{whats[kind]} and {watts:g} W are drawn, the cap is {most:g} W"
            yield Violation("power", jobs, time, text)


def read_switches(file: TextIO | Path) -> pd.DataFrame:
    """The changes of power states in a ``pstate_changes.csv``."""
    return pd.read_csv(file, dtype={"machine_id": str})


def _instants(
    schedule: pd.DataFrame, switches: pd.DataFrame | None
) -> Iterator[tuple[float, int, str, str, int]]:
    """All that changes the power, with its time; what ends when something starts ends before.

    Power states change in the order in which the simulator tells it. Jobs of no length draw nothing.
    """
    for row in schedule[schedule["starting_time"].notna()].itertuples():
        if row.finish_time - row.starting_time > SLACK:
            yield row.starting_time, _START, row.id, str(row.hosts), 0
            yield row.finish_time - SLACK, _END, row.id, str(row.hosts), 0
    if switches is not None:
        for time, hosts, pstate in switches.itertuples(index=False):
            yield float(time) - SLACK / 2, _SWITCH, "", hosts, int(pstate)


class _Machine:
    """What each host draws now."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._states: list[list[tuple[float, float, float]]] = []
        self._ways: list[float] = []
        for host in hosts:
            states = read_watts(host.properties)
            if states is None:
                raise InputError(
                    f"host {host.name!r} does not say what power it draws, so no cap can be checked"
                )
            ways = [states[way][2] for ways in host.sleep_pstates.values() for way in ways]
            self._ways.append(max(ways, default=0.0))
            self._states.append(states)
        first = [states[host.computing_pstate] for host, states in zip(hosts, self._states, strict=True)]
        self._idle, _, self._full = np.array(first).reshape(-1, 3).T.copy()
        self._jobs = np.zeros(len(hosts), np.int64)

    def change(self, kind: int, hosts: list[int], pstate: int) -> None:
        """A job starts or ends, or hosts reach a power state; below 0, they are on their way."""
        if kind == _SWITCH:
            for host in hosts:
                way = self._ways[host]
                idle, _, full = (way, way, way) if pstate < 0 else self._states[host][pstate]
                self._idle[host], self._full[host] = idle, full
        else:
            self._jobs[hosts] += 1 if kind == _START else -1

    def watts(self) -> float:
        """What all hosts draw."""
        return float(np.where(self._jobs > 0, self._full, self._idle).sum())
