"""The main loop: after events, and once in a while, start jobs from the front of the queue.

It looks at jobs in the order of the queue and starts each that fits. The first one of a partition that has to
wait stops the partition: no later job of it is started, and no job of any partition on its nodes. What is
behind it is left to the backfill loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batsched_py.schedulers.slurm.limits import Verdict
from batsched_py.schedulers.slurm.nodes import Share
from batsched_py.schedulers.slurm.records import RunningRecord, WaitingRecord
from batsched_py.schedulers.slurm.state import State

#: Starts a job on its share of the nodes.
Start = Callable[[WaitingRecord, Share], None]

#: Cancels a running job.
Cancel = Callable[[RunningRecord], None]


class Looked(NamedTuple):
    """What became of a look at the queue."""

    marks: bool
    """Whether it has noted of a job that others keep it waiting: that counts as a change of the job."""
    is_cut: bool
    """Whether it has stopped because it was to look at the first jobs only."""


class MainLoop:
    """The main loop with its last look: if nothing has changed since then, another one finds the same."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._depends_on_time = bool(state.reservations or state.configuration.scheduling.bf_min_age_reserve)
        self._last = -1, -1
        """The changes of the state before the last look that started nothing and was not cut."""
        self._marks = False

    def run(self, now: int, start: Start, full: bool, cancel: Cancel | None = None) -> bool:
        """Look at the ``full`` queue or at its first jobs; whether it has noted why jobs wait."""
        state, changes = self._state, self._state.changes
        if full and changes == self._last:
            return self._marks
        self._marks, is_cut = look(state, now, start, full, cancel)
        finds_same = changes == state.changes and state.waits_for_nodes_only and cancel is None
        if finds_same and not is_cut and not self._depends_on_time:
            self._last = changes
        return self._marks


def look(state: State, now: int, start: Start, full: bool, cancel: Cancel | None) -> Looked:
    """Look at the ``full`` queue or at its first jobs, and start those that may start."""
    settings = state.configuration.scheduling
    available = state.up
    stopped = 0
    """Partitions that are stopped, as bits."""
    nb_partitions = len(state.partitions)
    most_started, depth = settings.sched_max_job_start, settings.partition_job_depth
    most = len(state.waiting) if full else settings.default_queue_depth + 1
    nb_looked_at = nb_started = 0
    marks = False
    looked_at_of: dict[str, int] = {}
    started: set[str] = set()
    for record in list(state.waiting):
        partition = record.partition
        if record.eligible > now or (started and record.job.id in started):
            continue
        if most_started and nb_started >= most_started:
            break
        if depth:
            looked_at_of[partition.name] = looked_at_of.get(partition.name, 0) + 1
            if looked_at_of[partition.name] > depth:
                continue
        nb_looked_at += 1
        if nb_looked_at > most:
            return Looked(marks, True)
        bit = partition.bit
        if stopped & bit and not record.fields.reservation:
            marks = True
            continue
        if state.limits.before_selection(record, now) is Verdict.WAITS or not state.has_licences(record):
            continue
        if record.asked.least_nodes > (available & partition.nodes).bit_count():
            marks = True
        waits = _try(state, record, now, available, start, cancel)
        if waits is None:
            nb_started += 1
            started.add(record.job.id)
        elif waits and not record.fields.reservation and not _is_too_young(state, record, now):
            stopped |= bit
            available &= ~partition.nodes
            if stopped.bit_count() == nb_partitions:
                return Looked(marks or _is_another_behind(state, record, now), False)
    return Looked(marks, False)


def _is_another_behind(state: State, record: WaitingRecord, now: int) -> bool:
    """Whether more jobs wait behind one."""
    return any(each.eligible <= now and each.rank > record.rank for each in reversed(state.waiting))


def _try(
    state: State, record: WaitingRecord, now: int, available: int, start: Start, cancel: Cancel | None
) -> bool | None:
    """Start a job; otherwise say whether it stops its partition."""
    nodes = available & record.partition.nodes
    if record.asked.least_nodes > nodes.bit_count():
        return True
    allowed = state.reservations.allowed(record, now, record.limit * 60, now, moves=False)
    if allowed is None:
        return False
    nodes &= allowed[0]
    usage = state.usage
    share = state.selector.select(record.asked, nodes & ~state.completing, usage)
    if share is not None:
        verdict = state.limits.after_selection(record, share, now)
        if verdict is Verdict.WAITS:
            return state.configuration.scheduling.assoc_limit_stop
        start(record, share)
        return None
    if cancel is not None:
        make_way(state, record, nodes & ~state.completing, now, cancel)
    return _is_busy(state, record, nodes)


def make_way(state: State, record: WaitingRecord, nodes: int, now: int, cancel: Cancel) -> None:
    """Cancel the jobs that have to make way for a job on some nodes."""
    candidates = state.preemptable(record, now)
    if candidates and state.preemption is not None:
        for running in state.preemption.victims(record, nodes, state.usage, candidates, now):
            cancel(running)


def _is_busy(state: State, record: WaitingRecord, nodes: int) -> bool:
    """Whether a job waits for other jobs to end, and not for nodes that are kept for somebody else."""
    usage, asked = state.usage, record.asked
    usable = nodes & (usage.idle if asked.exclusive else ~usage.exclusive) & ~state.completing
    if usable != nodes:
        return True
    if usable.bit_count() < asked.least_nodes:
        return False
    return nodes == record.partition.nodes or state.selector.select(asked, nodes, state.empty) is not None


def _is_too_young(state: State, record: WaitingRecord, now: int) -> bool:
    """Whether nothing is kept for a job yet, so that it stops nobody."""
    settings = state.configuration.scheduling
    return now - record.eligible < settings.bf_min_age_reserve or (
        record.priority < settings.bf_min_prio_reserve
    )
