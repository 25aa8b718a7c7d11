"""The two loops that start jobs.

The main loop looks at jobs in the order of the queue, after events and once in a while, and starts each that
fits. The first one of a partition that has to wait stops the partition: no later job of it is started, and no
job of any partition on its nodes. What is behind it is left to the backfill loop.

The backfill loop plans a start for each waiting job, and starts those that can start now. Each gets the
earliest start that the plans of the jobs before it leave; nodes are kept for it from then on, on a grid of
time. So a job may start before others in the queue if it delays none of their planned starts.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from batsched_py.slurm.policy.job import RunningRecord, WaitingRecord, rank_of
from batsched_py.slurm.policy.nodes import Share
from batsched_py.slurm.policy.plan import Allowed
from batsched_py.slurm.policy.state import State

#: Starts a job on its share of the nodes.
Start = Callable[[WaitingRecord, Share], None]

#: Cancels a running job.
Cancel = Callable[[RunningRecord], None]


class MainLoop:
    """The main loop with its last look: if nothing has changed since then, another one finds the same."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._depends_on_time = bool(state.configuration.scheduling.bf_min_age_reserve)
        self._last = -1, -1
        """The changes of the state before the last look that started nothing and was not cut."""
        self._last_full = -1, -1
        """The same before the last look at the whole queue."""
        self.seen = -1
        """When that was."""
        self._marks = False
        """Whether it has noted of a job that others keep it waiting: that counts as a change of the job."""

    def run(self, now: int, start: Start, full: bool, cancel: Cancel | None = None) -> bool:
        """Look at the ``full`` queue or at its first jobs; whether it has noted why jobs wait."""
        state, changes = self._state, self._state.changes
        if full:
            self._last_full, self.seen = changes, now
        if full and changes == self._last:
            return self._marks
        self._marks = False
        is_whole = self._look(now, start, full, cancel)
        finds_same = changes == state.changes and state.waits_for_nodes_only and cancel is None
        if finds_same and is_whole and not (self._depends_on_time or state.waits_for_reservations(now)):
            self._last = changes
        return self._marks

    @property
    def has_seen_all(self) -> bool:
        """Whether nothing has changed but the time since the last look at the whole queue."""
        return self._state.changes == self._last_full

    def _look(self, now: int, start: Start, full: bool, cancel: Cancel | None) -> bool:
        """Start those that may start; whether it has not stopped because it was to look at some only."""
        state, available = self._state, self._state.up
        limits = state.limits if state.limits.are_set else None
        stopped = 0
        """Partitions that are stopped, as bits."""
        most = None if full else state.configuration.scheduling.default_queue_depth + 1
        started: set[str] = set()
        due = _due(state, now, started)
        for record in islice(due, most):
            partition, asked = record.partition, record.asked
            if stopped & partition.bit and not record.fields.reservation:
                self._marks = True
                continue
            if (limits is not None and limits.forbid(record)) or not state.licences.suffice(asked):
                continue
            if asked.least_nodes > (available & partition.nodes).bit_count():
                self._marks = True
            is_part = bool(record.fields.het)  # the backfill loop starts these
            waits = is_part or _try(state, record, now, available, start, cancel)
            if waits is None:
                started.add(record.job.id)
            elif waits and not record.fields.reservation and not _is_too_young(state, record, now):
                stopped |= partition.bit
                available &= ~partition.nodes
                if stopped.bit_count() == len(state.partitions):
                    self._marks = self._marks or self._are_behind(record, now)
                    return True
        return next(due, None) is None

    def _are_behind(self, record: WaitingRecord, now: int) -> bool:
        """Whether jobs that may start are behind one in the queue."""
        behind = (each for each in reversed(self._state.waiting) if each.rank > record.rank)
        return any(each.eligible <= now for each in behind)


def _due(state: State, now: int, started: Collection[str]) -> Iterator[WaitingRecord]:
    """The jobs that the main loop looks at, as long as not too many were ``started`` in the meantime."""
    settings = state.configuration.scheduling
    most_started, depth = settings.sched_max_job_start, settings.partition_job_depth
    looked_at_of: Counter[str] = Counter()
    for record in list(state.waiting):
        if record.eligible > now or (started and record.job.id in started):
            continue
        if most_started and len(started) >= most_started:
            return
        if depth:
            looked_at_of[record.partition.name] += 1
            if looked_at_of[record.partition.name] > depth:
                continue
        yield record


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
    share = state.selector.select(record.asked, nodes & ~state.completing, state.usage)
    if share is not None:
        if state.limits.forbid_share(record, share):
            return state.configuration.scheduling.assoc_limit_stop
        start(record, share)
        return None
    if state.limits.forbid_wherever(record):  # a limit counts as the cause, even if nodes are busy as well
        return state.configuration.scheduling.assoc_limit_stop
    if cancel is not None:
        make_way(state, record, nodes & ~state.completing, now, cancel)
    return _is_busy(state, record, nodes)


def make_way(state: State, record: WaitingRecord, nodes: int, now: int, cancel: Cancel) -> None:
    """Cancel the jobs that have to make way for a job on some nodes."""
    if candidates := state.preemption.candidates(record, state.running, now):
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
    is_young = now - record.eligible < settings.bf_min_age_reserve
    return is_young or record.priority < settings.bf_min_prio_reserve


#: The settings by which jobs of a kind are counted.
_COUNTED = (
    "bf_job_part_count_reserve", "bf_max_job_user_part", "bf_max_job_part", "bf_max_job_assoc",
    "bf_max_job_user",
)  # fmt: skip

#: Hears when a job is planned to start, and on which nodes.
Planned = Callable[[WaitingRecord, int, int], None]


@dataclass(eq=False)
class Backfill:
    """One cycle of the backfill loop."""

    _state: State
    _now: int
    _start: Start
    _planned: Planned | None = None
    _cancel: Cancel | None = None
    """Lets a running job make way, if jobs do that at all."""

    def __post_init__(self) -> None:
        state = self._state
        self._settings = settings = state.configuration.scheduling
        self._resolution = max(int(settings.bf_resolution), 1)
        self._plan = state.kernel.plan(
            state.machine,
            self._now,
            int(settings.bf_window),
            self._resolution,
            state.up,
            settings.bf_max_job_test,
            state.configuration.origin,
        )
        self._counts_kinds = any(getattr(settings, name) for name in _COUNTED)
        self._has_reservations = bool(state.reservations)
        self._plans_all = not (
            settings.bf_min_prio_reserve
            or settings.bf_min_age_reserve
            or settings.bf_job_part_count_reserve
            or any("no_reserve" in each.flags for each in state.configuration.qos)
        )
        """Whether each job may have a planned start."""
        self._has_het_jobs = state.has_het_jobs
        self._are_simple = self._plans_all and self._planned is None
        """Whether jobs are looked at together, as far as no more must be known than what they ask for."""
        self._is_mixed = bool(self._has_reservations or self._cancel is not None or self._has_het_jobs)
        """Whether more must be known of some jobs."""
        self._other: WaitingRecord | None = None
        """The next job, if more must be known of it."""
        self._tested: Counter[tuple[str, ...]] = Counter()
        self._takes_all = False
        """Whether all jobs in the queue are looked at."""
        self._seen: list[WaitingRecord] = []
        """The jobs that were looked at."""
        self._is_over = False
        """Whether it has stopped before the end of the queue."""
        self._epoch = -1
        self.holds_until = 0.0
        """Until when another cycle would find the same, if no job starts, ends or is submitted."""
        self._kept_nodes = 0
        """All nodes that are kept for jobs that will start later."""
        self._started: set[str] = set()
        self._makes_way = False
        """Whether a job starts only after others have made way."""
        self._nb_reserved: Counter[str] = Counter()
        self._planned_tasks: Counter[str] = Counter()
        """How many tasks of each array have a planned start."""

    def run(self) -> None:
        """Go through the queue."""
        if self._has_het_jobs:
            self._state.het.begin_cycle(self._state.epoch)
        if self._settings.bf_running_job_reserve:
            for running in self._state.running:
                if running.share.exclusive:
                    self._plan.keep(running.share, 0, running.end)
        self._go_through(self._state.waiting)
        if self._has_het_jobs:
            for parts in self._state.het.ready(self._now):
                self._start_together(parts)
            self.holds_until = self._until_when()

    def _start_together(self, parts: Sequence[WaitingRecord]) -> None:
        """Start all parts of a heterogeneous job on nodes of their own, if limits let them."""
        state, now, used = self._state, self._now, self._state.completing
        begun: list[RunningRecord] = []
        is_allowed = True
        for record in parts:
            left = state.reservations.allowed(record, now, record.least_limit * 60, now, moves=False)
            nodes = 0 if left is None else record.partition.nodes & state.up & left[0] & ~used
            share = state.selector.select(record.asked, nodes, state.usage)
            if share is None:
                break
            if state.limits.forbid(record) or state.limits.forbid_share(record, share):
                is_allowed = False
                break
            used |= share.nodes
            begun.append(RunningRecord(record, share, now, now + record.limit * 60))
            state.limits.change(begun[-1], 1, now)
        for running in begun:
            state.limits.change(running, -1, now)
        if len(begun) == len(parts):
            state.het.started(parts[0])
            for running in begun:
                self._start_now(running.waiting, running.share)
        elif not is_allowed:
            state.het.put_off(parts[0], now)

    def _go_through(self, queue: Sequence[WaitingRecord]) -> None:
        state = self._state
        self._epoch, state.news = state.epoch, []
        self._takes_all = state.waits_for_nodes_only and not (self._counts_kinds or self._is_mixed)
        records = iter(list(queue))
        look = self._look_at_some if self._are_simple else self._look_at_next
        while not self._is_over and not self._plan.has_tried_enough and look(records):
            pass
        if self._plan.has_tried_enough:
            self._is_over = self._is_over or any(self._may_start(record) for record in records)
        self.holds_until = self._until_when()

    def _may_start(self, record: WaitingRecord) -> bool:
        """Whether a job has not started, and its submitter lets it start."""
        return record.eligible <= self._now and record.job.id not in self._started

    def _due(self, records: Iterator[WaitingRecord]) -> Iterator[WaitingRecord]:
        """Those of the next jobs that are looked at, up to a task of an array: what becomes of it matters."""
        settings, state = self._settings, self._state
        limits, most_tasks = state.limits, settings.bf_max_job_array_resv
        skips = limits.are_set and not settings.assoc_limit_stop
        for record in records:
            if not self._may_start(record):
                continue
            if skips and (limits.forbid(record) or limits.forbid_wherever(record)):
                continue
            if record.asked.licences and not state.licences.suffice(record.asked):
                continue
            if self._counts_kinds and self._are_enough(record):
                continue
            if record.array and self._planned_tasks[record.array] >= most_tasks:
                continue
            yield record
            if record.array:
                return

    def _simple(self, records: Iterator[WaitingRecord]) -> Iterator[WaitingRecord]:
        """Those of the next jobs that are looked at, up to one of which more must be known."""
        state, now, cancels = self._state, self._now, self._cancel is not None
        for record in self._due(records):
            if (
                record.fields.het
                or (cancels and state.preemption.may_make_way_for(record))
                or (self._has_reservations and state.reservations.matter(record, now))
            ):
                self._other = record
                return
            yield record

    def _look_at_some(self, records: Iterator[WaitingRecord]) -> bool:
        """Plan the starts of jobs up to one that can start now or is special; whether there were any."""
        state = self._state
        due = records if self._takes_all else self._simple(records) if self._is_mixed else self._due(records)
        record, found, kept, is_full = self._plan.plan_starts(
            state.future, due, self._seen, self._now, state.completing
        )
        self._kept_nodes |= kept
        other, self._other = self._other, None
        if record is not None and found is not None:
            start, share, *_ = found
            if start is not None and share is not None:
                if start <= self._now:
                    self._start_now(record, share)
                elif record.array:
                    self._planned_tasks[record.array] += 1
            self._is_over = self._is_over or is_full
        if other is not None:
            self._look_at(other)
        return record is not None or other is not None

    def goes_on(self, now: int) -> bool:
        """Go on from the last cycle, if nothing but submissions can make a difference; whether that is so.

        The jobs before the first new one have the plans that they had.
        """
        state = self._state
        if state.epoch != self._epoch or now >= self.holds_until:
            return False
        if self._counts_kinds or self._planned_tasks:
            return not state.news
        self._now = now
        if state.news:
            first = min(map(rank_of, state.news))
            place = bisect_left(self._seen, first, key=rank_of)
            if place < len(self._seen):
                del self._seen[place:]
                self._plan.go_back(place)
                self._is_over = False
            if self._is_over:
                state.news = []
            else:
                self._go_through([record for record in state.waiting if record.rank >= first])
        return True

    @property
    def nb_jobs(self) -> int:
        """How many jobs it has looked at."""
        return len(self._seen)

    @property
    def goes_on_anyway(self) -> bool:
        """Whether another cycle is to come for the sake of heterogeneous jobs."""
        return self._has_het_jobs and self._state.het.matter(self._now)

    @property
    def repeats(self) -> bool:
        """Whether it has changed something, which makes Slurm run another cycle even if nothing happens.

        That is so if a start was put off until nodes come back, which is noted of the job, and if idle nodes
        are kept for later, which is written into their states.
        """
        return self._plan.puts_off or self.keeps_nodes

    @property
    def keeps_nodes(self) -> bool:
        """Whether it has kept idle nodes for later, which is written into their states."""
        return bool(self._kept_nodes & self._state.usage.idle)

    def _until_when(self) -> float:
        """Until when this cycle holds: until its plan changes, a time limit is over, or a job may start."""
        state, now = self._state, self._now
        must_look = self._settings.bf_min_age_reserve or self.goes_on_anyway
        meets_reservations = bool(state.running) and state.waits_for_reservations(now)
        if self._started or self._makes_way or must_look or meets_reservations:
            return now
        moments = self._plan.next_change(now), state.next_moment(now), state.limits.spent.next_time
        return min(state.future.first_end, *moments, state.next_of_reservations(now))

    def _are_enough(self, record: WaitingRecord) -> bool:
        """Whether enough jobs of the same kind were looked at; otherwise this one is counted."""
        settings, user, partition = self._settings, record.job.user or "", record.partition.name
        kinds = [
            (("user and partition", user, partition), settings.bf_max_job_user_part),
            (("partition", partition), settings.bf_max_job_part),
            (("association", record.fields.account, user), settings.bf_max_job_assoc),
            (("user", user), 0 if settings.bf_max_job_assoc else settings.bf_max_job_user),
        ]
        if any(most and self._tested[key] >= most for key, most in kinds):
            return True
        self._tested.update(key for key, most in kinds if most)
        return False

    def _look_at_next(self, records: Iterator[WaitingRecord]) -> bool:
        """Start the next job or plan its start; whether there was one."""
        record = next(self._due(records), None)
        if record is not None:
            self._look_at(record)
        return record is not None

    def _look_at(self, record: WaitingRecord) -> None:
        """Start a job or plan its start."""
        self._seen.append(record)
        now, state, length = self._now, self._state, record.least_limit * 60
        preemption = state.preemption
        earliest = state.het.earliest(record) if record.fields.het else 0
        if earliest > now + self._settings.bf_window:
            return
        gone = [] if self._cancel is None else preemption.candidates(record, state.running, now)
        start, share, cpus, _, make_way_on, _ = self._plan.find_start(
            state.future,
            state.future_without(gone) if gone else None,
            record.asked,
            length,
            now,
            not self._plans_all and self._gets_no_plan(record),
            state.completing,
            self._allowed(record, earliest)
            if earliest > now or state.reservations.matter(record, now)
            else None,
        )
        if cpus:
            record.cpus = cpus
        if make_way_on and self._cancel is not None:
            self._makes_way = True
            make_way(state, record, make_way_on & ~state.completing, now, self._cancel)
        if start is None or share is None:
            return
        if record.fields.het:
            state.het.note(record, start)
        if start <= now and not make_way_on and not record.fields.het:
            self._start_now(record, share)
        else:
            self._plan_start(record, share, start, start + length)

    def _allowed(self, record: WaitingRecord, earliest: int) -> Allowed:
        """What reservations leave to a job, which does not start before a time."""
        reservations, now, origin = self._state.reservations, self._now, self._state.configuration.origin

        def allowed(later: int) -> tuple[int, int, int] | None:
            left = reservations.allowed(record, later, record.least_limit * 60, now, moves=True)
            if left is None:
                return None
            nodes, begin, overlaps = left
            end = reservations.next_end(begin, self._resolution, origin) if overlaps else 0
            return nodes, max(begin, earliest), end + 1 if end else 0

        return allowed

    def _start_now(self, record: WaitingRecord, share: Share) -> None:
        """Start a job on nodes that nobody else needs in the meantime."""
        if self._state.limits.forbid_share(record, share):
            return
        self._started.add(record.job.id)
        record.limit = record.least_limit
        self._start(record, share)
        if share.exclusive and self._state.configuration.selection.type == "cons_tres":
            self._plan.keep(share, 0, self._now + record.limit * 60)
        most = self._settings.bf_max_job_start
        self._is_over = self._is_over or (bool(most) and len(self._started) >= most)

    def _plan_start(self, record: WaitingRecord, share: Share, start: int, end: int) -> None:
        """Keep nodes for a job that will start later, if there is room in the plan."""
        most = self._settings.bf_job_part_count_reserve
        if most:
            if self._nb_reserved[record.partition.name] >= most:
                return
            self._nb_reserved[record.partition.name] += 1
        self._kept_nodes |= share.nodes
        if self._planned is not None:
            self._planned(record, start, share.nodes)
        if record.array:
            self._planned_tasks[record.array] += 1
        if self._plan.is_full:
            self._is_over = True
        else:
            self._plan.keep(share, start, end)

    def _gets_no_plan(self, record: WaitingRecord) -> bool:
        """Whether a job is only tried for a start now."""
        most = self._settings.bf_job_part_count_reserve
        are_enough = bool(most) and self._nb_reserved[record.partition.name] >= most
        return are_enough or not record.reserves or _is_too_young(self._state, record, self._now)
