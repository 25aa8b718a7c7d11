"""The backfill loop: plan a start for each waiting job, and start those that can start now.

Jobs are looked at in the order of the queue. Each gets the earliest start that the plans of the jobs before
it leave; nodes are kept for it from then on, on a grid of time. So a job may start before others in the queue
if it delays none of their planned starts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import inf

from batsched_py.schedulers.slurm.limits import Verdict
from batsched_py.schedulers.slurm.main_loop import Cancel, Start, make_way
from batsched_py.schedulers.slurm.nodes import Share
from batsched_py.schedulers.slurm.plan import Plan
from batsched_py.schedulers.slurm.records import Rank, WaitingRecord
from batsched_py.schedulers.slurm.state import State

#: Hears when a job is planned to start, and on which nodes.
Planned = Callable[[WaitingRecord, int, int], None]


class Backfill:
    """One cycle of the backfill loop."""

    def __init__(
        self,
        state: State,
        now: int,
        start: Start,
        planned: Planned | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        settings = state.configuration.scheduling
        self._state = state
        self._settings = settings
        self._now = now
        self._start = start
        self._planned = planned
        self._cancel = cancel
        """Lets a running job make way, if jobs do that at all."""
        self._resolution = int(settings.bf_resolution)
        self._window = int(settings.bf_window)
        origin = state.configuration.origin
        self._plan = Plan(now, self._window, self._resolution, state.up, settings.bf_max_job_test, origin)
        self._counts_kinds = bool(
            settings.bf_job_part_count_reserve
            or settings.bf_max_job_user_part
            or settings.bf_max_job_part
            or settings.bf_max_job_assoc
            or settings.bf_max_job_user
        )
        self._tested: dict[tuple[str, ...], int] = {}
        self._trail: list[tuple[Rank, Plan, int]] = []
        """The jobs that were looked at, each with the plan before it and the number of those tried."""
        self._nb_tried = 0
        """How many jobs were tried at all: for any other, too few nodes were left."""
        self._is_over = False
        """Whether it has stopped before the end of the queue."""
        self._epoch = -1
        self._holds_until = 0.0
        self._lengths: set[int] = set()
        """How long the jobs may run that were tried for a start now."""
        self._too_late: float = inf
        """When a start will be within the window that is not yet."""
        self._puts_off = False
        """Whether a job was tried later than it could start if nobody else waited."""
        self._kept = 0
        """All nodes that are kept for somebody."""
        self._started: set[str] = set()
        self._makes_way = False
        """Whether a job starts only after others have made way."""
        self._nb_reserved: dict[str, int] = {}
        self._planned_tasks: dict[str, int] = {}
        """How many tasks of each array have a planned start."""

    def run(self) -> None:
        """Go through the queue."""
        if self._settings.bf_running_job_reserve:
            for running in self._state.running:
                if running.share.exclusive:
                    self._plan.keep(running.share.nodes, 0, self._plan.rounded(running.end))
        self._go_through(self._state.waiting)

    def _go_through(self, queue: Sequence[WaitingRecord]) -> None:
        settings, now, state = self._settings, self._now, self._state
        self._epoch, state.news = state.epoch, []
        for record in list(queue):
            if record.eligible > now or record.job.id in self._started:
                continue
            if self._nb_tried >= settings.bf_max_job_test:
                self._is_over = True
                break
            if state.limits.before_selection(record, now) is Verdict.WAITS and not settings.assoc_limit_stop:
                continue
            if not state.has_licences(record):
                continue
            if (
                self._are_enough(record)
                or self._planned_tasks.get(record.array, 0) >= settings.bf_max_job_array_resv
            ):
                continue
            self._trail.append((record.rank, self._plan.copy(), self._nb_tried))
            if not self._look_at(record):
                self._is_over = True
                break
            if settings.bf_max_job_start and len(self._started) >= settings.bf_max_job_start:
                self._is_over = True
                break
        self._holds_until = self._until_when()

    def goes_on(self, now: int) -> bool:
        """Go on from the last cycle, if nothing but submissions can make a difference; whether that is so.

        The jobs before the first new one have the plans that they had.
        """
        state = self._state
        if state.epoch != self._epoch or now >= self._holds_until:
            return False
        if self._counts_kinds or self._planned_tasks:
            return not state.news
        self._now = now
        if state.news:
            first = min(record.rank for record in state.news)
            place = bisect_left(self._trail, first, key=lambda step: step[0])
            if place < len(self._trail):
                self._plan, self._nb_tried = self._trail[place][1:]
                del self._trail[place:]
                self._is_over = False
            if self._is_over:
                state.news = []
                return True
            self._go_through([record for record in state.waiting if record.rank >= first])
        return True

    @property
    def nb_jobs(self) -> int:
        """How many jobs it has looked at."""
        return len(self._trail)

    @property
    def repeats(self) -> bool:
        """Whether it has changed something, which makes Slurm run another cycle even if nothing happens.

        That is so if a start was put off until nodes come back, which is noted of the job, and if idle nodes
        are kept for later, which is written into their states.
        """
        return self._puts_off or bool(self._kept & self._state.usage.idle)

    @property
    def holds_until(self) -> float:
        """Until when another cycle would find the same, if no job starts, ends or is submitted."""
        return self._holds_until

    def _until_when(self) -> float:
        """Until when this cycle holds.

        A cycle depends on the time in a few ways: spans of the plan begin and end, a job that starts now
        reaches into the next span, a time limit is over, or a job may start from some time on.
        """
        state, now, plan = self._state, self._now, self._plan
        settings = self._settings
        if self._started or self._makes_way or state.reservations or settings.bf_min_age_reserve:
            return now
        times = [state.future.first_end, self._too_late]
        times += [record.eligible for record in state.waiting if record.eligible > now]
        for begin in plan.begins:
            if begin > now:
                times.append(begin)
                break
        for length in self._lengths:
            place = bisect_right(plan.begins, now + length)
            if place < len(plan.begins):
                times.append(plan.begins[place] - length)
        return min(times)

    def _are_enough(self, record: WaitingRecord) -> bool:
        """Whether enough jobs of the same kind were looked at; otherwise this one is counted."""
        settings, user, partition = self._settings, record.job.user or "", record.partition.name
        if not self._counts_kinds:
            return False
        tested = self._tested
        kinds = [
            (("user and partition", user, partition), settings.bf_max_job_user_part),
            (("partition", partition), settings.bf_max_job_part),
            (("association", record.fields.account, user), settings.bf_max_job_assoc),
            (("user", user), 0 if settings.bf_max_job_assoc else settings.bf_max_job_user),
        ]
        counted = [(key, most) for key, most in kinds if most]
        if any(tested.get(key, 0) >= most for key, most in counted):
            return True
        for key, _ in counted:
            tested[key] = tested.get(key, 0) + 1
        return False

    def _look_at(self, record: WaitingRecord) -> bool:
        """Start a job or plan its start; whether the cycle goes on."""
        now, plan, asked = self._now, self._plan, record.asked
        only_now = self._gets_no_plan(record)
        length = record.least_limit * 60
        self._lengths.add(length)
        later, was_tried = now, False
        while True:
            allowed = self._state.reservations.allowed(record, later, now, moves=True)
            if allowed is None:
                return True
            nodes, begin, overlaps = allowed
            end = max(begin, now) + length
            nodes, later = plan.left(nodes & asked.nodes, begin, end)
            if overlaps:
                later = self._end_of_reservation(begin, later)
            if not was_tried and nodes.bit_count() >= asked.least_nodes and not asked.required & ~nodes:
                was_tried = True
                self._nb_tried += 1
            found = self._earliest(record, nodes, only_now)
            if found is None:
                if later and not only_now:
                    continue
                return True
            start, share = max(found[0], begin), found[1]
            self._puts_off = self._puts_off or begin > found[0]
            record.cpus = self._state.machine.cpus_of(share)
            if start <= now:
                if share.nodes & self._state.completing:
                    start, later = now + 1, 0
                elif self._state.future.at_once(asked, nodes) is not None:
                    return self._start_now(record, share)
                else:
                    self._let_jobs_make_way(record, nodes)
                    later = 0
            if only_now:
                return True
            if later and start > later:
                continue
            if start > now + self._window:
                self._too_late = min(self._too_late, start - self._window)
                return True
            kept_from, kept_to = plan.rounded(start), plan.rounded(start + length)
            if plan.is_kept(share.nodes, kept_from, kept_to):
                later = start
                continue
            return self._keep(record, share.nodes, start, kept_from, kept_to)

    def _earliest(self, record: WaitingRecord, nodes: int, only_now: bool) -> tuple[int, Share] | None:
        """When a job could start on some of these nodes if nobody else waited, and its share of them."""
        asked, future, now = record.asked, self._state.future, self._now
        if nodes.bit_count() < asked.least_nodes:
            return None
        share = future.at_once(asked, nodes)
        if share is not None:
            return now, share
        if self._cancel is not None and (gone := self._state.preemptable(record, now)):
            future = self._state.future_without(gone)
            share = future.at_once(asked, nodes)
            if share is not None:
                return now, share
        found = None if only_now else future.later(asked, nodes)
        if found is None:
            return None
        last, share = found
        return last.end if last.end > now else max(last.end + int(self._settings.kill_wait), now + 1), share

    def _let_jobs_make_way(self, record: WaitingRecord, nodes: int) -> None:
        """Cancel running jobs for one that will start on their nodes."""
        assert self._cancel is not None
        self._makes_way = True
        make_way(self._state, record, nodes & ~self._state.completing, self._now, self._cancel)

    def _start_now(self, record: WaitingRecord, share: Share) -> bool:
        """Start a job on nodes that nobody else needs in the meantime."""
        if self._state.limits.after_selection(record, share, self._now) is Verdict.WAITS:
            return True
        self._started.add(record.job.id)
        record.limit = record.least_limit
        self._start(record, share)
        if share.exclusive and self._state.configuration.selection.type == "cons_tres":
            self._plan.keep(share.nodes, 0, self._plan.rounded(self._now + record.limit * 60))
        return True

    def _keep(self, record: WaitingRecord, nodes: int, start: int, kept_from: int, kept_to: int) -> bool:
        """Keep nodes for a job that will start later."""
        most = self._settings.bf_job_part_count_reserve
        if most:
            count = self._nb_reserved.get(record.partition.name, 0)
            if count >= most:
                return True
            self._nb_reserved[record.partition.name] = count + 1
        self._kept |= nodes
        if self._planned is not None:
            self._planned(record, start, nodes)
        if record.array:
            self._planned_tasks[record.array] = self._planned_tasks.get(record.array, 0) + 1
        if self._plan.is_full:
            return False
        self._plan.keep(nodes, kept_from, kept_to)
        return True

    def _gets_no_plan(self, record: WaitingRecord) -> bool:
        """Whether a job is only tried for a start now."""
        settings = self._settings
        if settings.bf_min_prio_reserve and record.priority < settings.bf_min_prio_reserve:
            return True
        if settings.bf_min_age_reserve and self._now - record.eligible < settings.bf_min_age_reserve:
            return True
        most = settings.bf_job_part_count_reserve
        return bool(most) and self._nb_reserved.get(record.partition.name, 0) >= most

    def _end_of_reservation(self, begin: int, later: int) -> int:
        """When to try again because a reservation ends, if that is before anything else changes."""
        state = self._state
        end = state.reservations.next_end(begin, self._resolution, state.configuration.origin)
        if end and end + 1 < self._plan.ends[-1] and (not later or end + 1 < later):
            return end + 1
        return later
