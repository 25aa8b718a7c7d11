"""When each of the two loops runs, and when jobs are killed that have run out of time.

Slurm's controller wakes once a second. It lets the main loop look at the first jobs when something has
happened, but not within some seconds of the last time, and at the whole queue once in a while. The backfill
loop wakes some seconds after its last cycle. If jobs or nodes have changed since then, it runs another one;
otherwise it looks once a second whether they have.

The controller looks at time limits every 30 s. A job that runs out of time between two looks goes on until
the next one, and with ``OverTimeLimit`` for so much longer.
"""

from heapq import heappop, heappush
from math import ceil, floor, inf

from batsched_py.slurm.policy.job import RunningRecord
from batsched_py.slurm.policy.settings import Configuration, Scheduling

MOMENT = 0.002
"""Times that are no further apart are the same."""

WAKES = 1.01
"""How long it takes from one time that the controller wakes to the next, in seconds."""

LOOKS = 1.001
"""How long the backfill loop waits before it looks again whether something has changed, in seconds."""

CYCLE = 0.002
"""How long a backfill cycle takes without jobs, in seconds; the next one is counted from its end."""

NODES_KNOWN = 22.0
"""How long after its start the controller hears of its last node."""


class Controller:
    """When the controller wakes, and at which of these times it looks at the whole queue.

    It counts in whole seconds: a look comes when it wakes for the first time in, or after, the second that is
    so many ``interval`` seconds after its start.
    """

    def __init__(self, started: float, interval: float) -> None:
        self._started = started
        self._interval = max(interval, 1.0)

    def wakes(self, time: float) -> float:
        """When it wakes next, not before a time.

        >>> Controller(started=64.0, interval=60.0).wakes(10.0)
        10.74
        """
        return round(ceil((time + self._started) / WAKES - 1e-6) * WAKES - self._started, 3)

    def look(self, number: int) -> float:
        """When it looks at the whole queue for the n-th time; it was started at the 0-th."""
        return self.wakes(floor(-self._started) + number * self._interval) if number else -self._started

    def look_from(self, time: float) -> int:
        """The number of the first look that is not before a time."""
        number = max(floor((time - floor(-self._started)) / self._interval) - 1, 0)
        while self.look(number) < time - MOMENT:
            number += 1
        return number


class Clock:
    """The times at which loops are due.

    Times count from the first submission; the controller ``started`` so many seconds before. A backfill cycle
    takes ``test_time`` for each job that it looks at.
    """

    def __init__(self, settings: Scheduling, started: float, test_time: float) -> None:
        self._settings = settings
        self._test_time = test_time
        self._has_full = settings.sched_interval >= 0
        self._controller = Controller(started, settings.sched_interval)
        self._has_backfill = settings.type == "backfill" and settings.bf_interval >= 0
        self._last_main = -started
        """When the controller woke last and let the main loop look."""
        self._nb_full = 0
        """How often it has let it look at the whole queue."""
        self._next_full = self._controller.look(1)
        """When it lets it do so next."""
        self._quick = inf
        """When the controller lets the main loop look at the first jobs next."""
        self._at_once = False
        """Whether the main loop is to look without waiting for the controller."""
        self._rests_until = -inf
        """Until when the main loop does not look again, whatever happens."""
        self._owes_full = False
        """Whether it looks at the whole queue then."""
        self._held_until = -inf
        """Until when no backfill cycle begins, because jobs are completing."""
        self._marks = False
        """Whether each run of the main loop changes jobs, because it notes why they wait."""
        self._last_cycle = -started
        """When the last backfill cycle ended."""
        self._period = settings.bf_interval + CYCLE
        self._repeats = False
        """Whether a cycle changes jobs or nodes, so that there is always another one."""
        self._keeps_nodes = False
        """Whether the last cycle has marked idle nodes; the next one takes that back, which is a change."""
        self._holds_until = inf
        self._has_jobs = False
        self._first_change = NODES_KNOWN - started
        """When something changed that the last backfill cycle has not seen; infinite if nothing has."""
        self._last_change = NODES_KNOWN - started

    # --- what happens ----------------------------------------------------------------------------

    def happened(self, now: float, at_once: bool = False) -> None:
        """A job was submitted, or nodes are free again: the main loop is to look soon, or even at once."""
        self._pass_unseen(now)
        if at_once:
            self._at_once = True
        else:
            earliest = max(now, floor(self._last_main) + self._settings.batch_sched_delay)
            self._quick = min(self._quick, self._controller.wakes(earliest))
        self.changed(now)

    def changed(self, now: float) -> None:
        """Jobs or nodes have changed, which makes the backfill loop run again."""
        self._pass_unseen(now)
        self._first_change = min(self._first_change, now)
        self._last_change = now

    def has_jobs(self, now: float, has_jobs: bool) -> None:
        """Jobs wait from now on, or no job does."""
        if has_jobs != self._has_jobs:
            self._pass_unseen(now)
            self._has_jobs = has_jobs
            if self._repeats:
                self._first_change = min(self._first_change, self._last_cycle)
            self._repeats = self._marks = self._at_once = False

    # --- when ------------------------------------------------------------------------------------

    def is_main_due(self, now: float) -> bool:
        """Whether the main loop is to look at the first jobs now."""
        return (self._at_once or self._quick <= now) and self._may_look(now)

    def _may_look(self, now: float) -> bool:
        return now > self._rests_until - MOMENT

    def is_full_due(self, now: float) -> bool:
        """Whether the main loop is to look at the whole queue now."""
        self._pass_unseen(now)
        is_due = self._has_full and self._next_full <= now
        if is_due and not self._may_look(now):
            self._owes_full = True
            self._count_looks(self._controller.look_from(now))
        return (is_due or self._owes_full) and self._may_look(now)

    def is_backfill_due(self, now: float) -> bool:
        """Whether it is time for a backfill cycle."""
        return self._next_cycle() < now + MOMENT

    def main_done(self, now: float, full: bool, marks: bool) -> None:
        """The main loop has run; whether it has noted why jobs wait.

        A run at once does not count for the controller, which may let it look again soon.
        """
        if full or self._quick <= now:
            self._last_main = now
            self._quick = inf
        self._at_once = False
        self._rests_until = now + self._settings.sched_min_interval
        self._owes_full = self._owes_full and not full
        self._marks = marks
        if marks:
            self.changed(now)
        if full and self._next_full <= now:
            self._count_looks(self._controller.look_from(now))

    def hold_backfill(self, until: float) -> None:
        """No backfill cycle begins before a time, because jobs are completing; it is asked for again then."""
        self._held_until = until

    def backfill_done(
        self,
        now: float,
        nb_jobs: int,
        repeats: bool,
        holds_until: float = 0.0,
        keeps_nodes: bool = False,
    ) -> None:
        """A backfill cycle has looked at so many jobs.

        If it ``repeats``, it has changed jobs or nodes. Until a time, cycles find the same if nothing else
        changes. If it ``keeps_nodes``, idle nodes are marked as kept for later.
        """
        duration = round(CYCLE + nb_jobs * self._test_time, 3)
        taken_back = self._repeats or self._keeps_nodes
        seen = not (taken_back or int(self._last_change) >= int(now + duration))
        self._period = self._settings.bf_interval + duration
        self._repeats, self._holds_until, self._keeps_nodes = repeats, holds_until, keeps_nodes
        self._last_cycle = now + duration
        self._first_change = inf if seen or repeats else self._last_cycle

    def next_time(self, full_matters: float) -> float:
        """When something is due next, as long as jobs wait.

        From the given time on, a look at the whole queue may find what the last one did not.
        """
        full = self._next_full if self._has_full and full_matters < inf else inf
        if full < full_matters:
            full = self._controller.look(self._controller.look_from(full_matters))
        if self._owes_full or self._at_once:
            full = self._rests_until
        return min(max(min(self._quick, full), self._rests_until), self._next_cycle())

    def _next_cycle(self) -> float:
        """When a backfill cycle is due that may find something else than the last one."""
        due = self._cycle_due()
        return self._cycle_after(self._held_until) if due < self._held_until else due

    def _cycle_due(self) -> float:
        """The same, if no jobs are completing."""
        if not self._has_backfill:
            return inf
        if self._repeats:
            matters = min(self._first_change, self._holds_until)
            begin = self._last_begin
            return inf if matters == inf else begin + _nb_steps(begin, self._period, matters) * self._period
        if self._first_change < inf:
            return self._cycle_after(self._first_change)
        mark = self._next_mark()
        if mark < inf and self._holds_until < inf:
            controller = self._controller
            return self._cycle_after(max(mark, controller.look(controller.look_from(self._holds_until))))
        return inf

    def _cycle_after(self, change: float) -> float:
        """When the backfill loop sees a change."""
        wakes = self._last_cycle + self._settings.bf_interval
        return wakes + max(ceil((change - wakes - MOMENT) / LOOKS), 0) * LOOKS

    @property
    def _last_begin(self) -> float:
        """When the last backfill cycle began."""
        return self._last_cycle + self._settings.bf_interval - self._period

    def _pass_unseen(self, now: float) -> None:
        """Looks and cycles that could find nothing have passed before now."""
        if self._has_backfill and self._repeats:
            nb_passed = _nb_steps(self._last_begin, self._period, now) - 1
            self._last_cycle += nb_passed * self._period
        elif self._has_backfill:
            self._pass_unseen_cycles(now)
        if not self._has_jobs and self._quick <= now:
            self._last_main, self._quick = self._quick, inf
        if self._has_full and self._next_full < now - MOMENT:
            self._count_looks(self._controller.look_from(now) - 1)
            last = self._controller.look(self._nb_full)
            self._last_main = max(self._last_main, last)
            if self._marks:
                self._last_change = max(self._last_change, last)

    def _count_looks(self, number: int) -> None:
        """There were so many looks at the whole queue."""
        self._nb_full = number
        self._next_full = self._controller.look(number + 1)

    def _pass_unseen_cycles(self, now: float) -> None:
        """Pass cycles after changes while no job waited, and after looks that have found nothing."""
        if self._has_jobs and self._first_change < inf:
            return
        while True:
            change = min(self._first_change, self._next_mark())
            if change == inf or (due := self._cycle_after(change)) >= now - MOMENT:
                return
            self._last_cycle = due + self._period - self._settings.bf_interval
            is_seen = int(max(change, self._last_change)) < int(due) and not self._keeps_nodes
            self._first_change = inf if is_seen else due
            self._keeps_nodes = False

    def _next_mark(self) -> float:
        """When a look at the whole queue changes jobs next, if nothing has changed since the last cycle."""
        if not (self._marks and self._has_full) or self._first_change < inf:
            return inf
        return self._controller.look(self._controller.look_from(self._last_cycle + 2 * MOMENT))


def _nb_steps(last: float, step: float, time: float) -> int:
    """How many steps after the last one the first comes that is not before a time.

    >>> _nb_steps(10.0, 30.0, 70.0), _nb_steps(10.0, 30.0, 70.1), _nb_steps(10.0, 30.0, 5.0)
    (2, 3, 1)
    """
    return max(ceil((time - last - MOMENT) / step), 1)


PERIOD = 30.0
"""Between two looks, in seconds."""


class TimeLimits:
    """The jobs whose end is up to Slurm: those that the simulation lets run on beyond their time limits.

    The controller ``started`` so many seconds before time 0, and counts its looks from then on.
    """

    def __init__(self, configuration: Configuration, started: float) -> None:
        self._controller = Controller(started, PERIOD)
        self._over = configuration.scheduling.over_time_limit
        self._due: list[tuple[float, int, RunningRecord]] = []

    def started(self, running: RunningRecord) -> None:
        """A job runs from now on."""
        record = running.waiting
        if record.fields.time_limit is not None or record.fields.time_min is not None:
            over = record.partition.settings.over_time_limit
            self.end_at(running, running.end + (self._over if over is None else over))

    def end_at(self, running: RunningRecord, end: float) -> None:
        """A job has to end at a time; one that makes way for another, earlier than by its time limit."""
        heappush(self._due, (self.look_from(end), running.waiting.number, running))

    def look_from(self, time: float) -> float:
        """The first look that is not before a time."""
        return self._controller.look(self._controller.look_from(time))

    def is_look(self, now: float) -> bool:
        """Whether the controller looks at time limits now."""
        return abs(self.look_from(now) - now) <= MOMENT

    @property
    def next_time(self) -> float:
        """When a job may have to be killed next."""
        return self._due[0][0] if self._due else inf

    def exhausted(self, now: float) -> list[RunningRecord]:
        """The jobs that a look finds, if there is one now; some may have ended by themselves."""
        found = []
        while self._due and self._due[0][0] <= now:
            found.append(heappop(self._due)[2])
        return found
