"""What the validator finds: rules for every schedule, and for what comes from outside.

Closures, failures and caps on power come from outside. All rules are written from their definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from itertools import chain
from math import inf
from operator import or_
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis.conditions import Absence
from batsched_py.analysis.schedule import INSTANT, SLACK
from batsched_py.errors import InputError
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState, read_watts
from batsched_py.protocol.profiles import Composed, Profile
from batsched_py.protocol.sizes import SIZES, have_sizes, shapes_of
from batsched_py.workload.model import Workload, as_jobs


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


#: So many moments are made at a time: as objects of Python they need much more memory than as columns.
_MANY_MOMENTS = 10_000


def moments(executed: pd.DataFrame) -> Iterator[tuple[float, int, int]]:
    """When jobs begin and end, in the order of time, and what they do, with their rows.

    What ends when something begins ends before.
    """
    columns = ("starting_time", "execution_time", "finish_time")
    start, ran, finish = (executed[column].to_numpy() for column in columns)
    passes = ran <= INSTANT
    (ended,) = np.nonzero(~passes)
    times = np.concatenate([np.where(passes, start - SLACK, start), finish[ended] - SLACK])
    kinds = np.concatenate([np.where(passes, PASSES, BEGINS), np.full(len(ended), ENDS)]).astype(np.int8)
    rows = np.concatenate([np.arange(len(start)), ended])
    order = np.lexsort((rows, kinds, times))
    for first in range(0, len(order), _MANY_MOMENTS):
        some = order[first : first + _MANY_MOMENTS]
        yield from zip(times[some].tolist(), kinds[some].tolist(), rows[some].tolist(), strict=True)


def overlap(schedule: pd.DataFrame) -> Iterator[Violation]:
    """No host runs two jobs at a time.

    A job of no length does not hold its hosts, but they must not belong to another job when it runs.
    """
    executed = jobs_csv.started(schedule)
    ids, masks = executed["id"], [hosts.mask for hosts in executed["hosts"]]
    busy = contested = 0
    running: set[int] = set()
    for time, kind, row in moments(executed):
        mask = masks[row]
        if kind == ENDS:
            running.discard(row)
            busy &= ~mask
            if contested & mask:
                busy = reduce(or_, [masks[other] for other in running], 0)
            continue
        if busy & mask:
            contested |= busy & mask
            for other in sorted(running):
                if shared := masks[other] & mask:
                    jobs = (ids.iloc[other], ids.iloc[row])
                    text = f"jobs {jobs[0]} and {jobs[1]} both run on {HostSet(shared)}"
                    yield Violation("overlap", jobs, time, text)
        if kind == BEGINS:
            running.add(row)
            busy |= mask


def capacity(schedule: pd.DataFrame, hosts: int | None, moldable: set[str]) -> Iterator[Violation]:
    """Every job runs on as many hosts as it asked for, and on hosts that exist."""
    for row in jobs_csv.started(schedule).itertuples():
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


def single_rows(schedule: pd.DataFrame, late: bool = False) -> Iterator[Violation]:
    """What holds of each row.

    * causality: no job starts before it is submitted;
    * walltime: none runs longer than its walltime, unless jobs may be ``late``, and one that is stopped by it
      ran for exactly that long;
    * arithmetic: its times fit together;
    * state: the success flag agrees with the final state, and a rejected job was not executed;
    * twice: no job has two rows.
    """
    schedule = schedule.reset_index(drop=True)
    for rule, wrong, time, text in (*_checks(schedule, late), *_sums(schedule)):
        for row in schedule[wrong].itertuples() if wrong.any() else ():
            yield Violation(rule, (row.id,), getattr(row, time), f"job {row.id} {text(row)}")


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
    executed = start.notna() | schedule["finish_time"].notna() | schedule["hosts"].map(bool)
    yield (
        "state",
        (states == JobState.REJECTED) & executed,
        "submission_time",
        lambda row: "was rejected, but has times or hosts of an execution",
    )
    yield "twice", schedule["id"].duplicated(), "submission_time", lambda row: "has more than one row"


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


def workload(schedule: pd.DataFrame, workloads: Sequence[Workload]) -> Iterator[Violation]:
    """Every job of the workloads is there, as they describe it, and no other.

    Jobs with other workload names were registered during the simulation: no file describes them. A job that a
    user submitted has its recorded submission in a note, and may have a profile of its own. A job may come
    again when a failure has ended it, as its note says.
    """
    described = {load.name: as_jobs(load.jobs) for load in workloads}
    codes = {load.name: _return_codes(load.profiles) for load in workloads}
    present = set(schedule["id"])
    failed = jobs_csv.ended_by_failures(schedule)
    for job in chain.from_iterable(load.jobs for load in workloads):
        if job.id not in present:
            text = f"job {job.id} of the workload has no row"
            yield Violation("lost", (job.id,), job.submission_time, text)
    for row in schedule[schedule["workload_name"].isin(described)].itertuples():
        name = jobs_csv.before_restarts(row, failed)
        meant = described[row.workload_name].find(name)
        if meant is None:
            text = f"job {row.id} is not in the workload"
            yield Violation("invented", (row.id,), row.submission_time, text)
            continue
        for difference in _differences(row, meant, codes[meant.workload]):
            yield Violation("workload", (row.id,), row.submission_time, f"job {row.id} {difference}")


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
        if allowed is not None and len(row.hosts) not in allowed:
            sizes_text = ", ".join(map(str, sorted(allowed)))
            text = f"job {row.id} runs on {len(row.hosts)} hosts, which is none of its sizes: {sizes_text}"
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
