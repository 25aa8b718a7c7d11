"""When each of the two loops runs.

Slurm's controller wakes once a second. It lets the main loop look at the first jobs when something has
happened, but not within some seconds of the last time, and at the whole queue once in a while. The backfill
loop runs some seconds after its last cycle, or, if there was nothing to do then, as soon as there is.
"""

from __future__ import annotations

from math import ceil, floor, inf

from batsched_py.schedulers.slurm.settings.scheduling import Scheduling

TICK = 1.0
"""Between two looks of the controller, in seconds."""

DELAY = TICK / 2
"""From an event to the next look, in the mean."""

CYCLE = 0.12
"""How long a backfill cycle takes; the next one is counted from its end."""


class Clock:
    """The times at which loops are due."""

    def __init__(self, settings: Scheduling) -> None:
        self._settings = settings
        self._has_full = settings.sched_interval >= 0
        self._interval = max(settings.sched_interval, TICK)
        self._has_backfill = settings.type == "backfill" and settings.bf_interval >= 0
        self._last_main = -inf
        self._last_backfill = -inf
        self._last_full = 0.0
        self._quick = inf
        """When the main loop is to look at the first jobs."""
        self._holds_until = inf
        self._is_polling = True
        """Whether there was nothing to do last time; then a cycle runs as soon as there is."""
        self._changed = -inf
        """When something last changed that the backfill loop takes note of."""

    # --- what happens ----------------------------------------------------------------------------

    def happened(self, now: float) -> None:
        """A job was submitted, or the nodes of one that ended are clean: the main loop is to look soon."""
        self._pass_unseen(now)
        earliest = max(now + DELAY, self._last_main + self._settings.batch_sched_delay)
        self._quick = min(self._quick, earliest)
        self.changed(now)

    def changed(self, now: float) -> None:
        """Something has changed that may matter to the backfill loop."""
        self._changed = now

    # --- when ------------------------------------------------------------------------------------

    def is_main_due(self, now: float) -> bool:
        """Whether the main loop is to look at the first jobs now."""
        return self._quick <= now

    def is_full_due(self, now: float) -> bool:
        """Whether the main loop is to look at the whole queue now."""
        self._pass_unseen(now)
        return self._has_full and self._last_full + self._interval <= now

    def _pass_unseen(self, now: float) -> None:
        """Looks at the whole queue that could find nothing have passed before now."""
        nb_passed = ceil((now - self._last_full) / self._interval) - 1
        if self._has_full and nb_passed > 0:
            self._last_full += nb_passed * self._interval
            self._last_main = max(self._last_main, self._last_full)

    def is_backfill_due(self, now: float) -> bool:
        """Whether it is time for a backfill cycle."""
        return self._next_backfill <= now

    def main_done(self, now: float, full: bool) -> None:
        """The main loop has run."""
        self._last_main = now
        self._quick = inf
        if full:
            self._last_full = now - (now - self._last_full) % self._interval

    def backfill_done(self, now: float, holds_until: float = 0.0) -> None:
        """A backfill cycle has run; until a time, cycles find the same unless something changes."""
        self._last_backfill = self._changed = now + CYCLE
        self._holds_until = holds_until
        self._is_polling = False

    @property
    def _next_backfill(self) -> float:
        interval, last, changed = self._settings.bf_interval, self._last_backfill, self._changed
        if not self._has_backfill:
            return inf
        if self._is_polling:
            return max(last + interval, changed + DELAY)
        matters = changed if changed > last else self._holds_until
        if matters == inf:
            return inf
        period = interval + CYCLE
        return last + max(ceil((matters + CYCLE - last) / period), 1) * period - CYCLE

    def next_time(self, full_matters: float) -> float:
        """When something is due next, as long as jobs wait.

        From the given time on, a look at the whole queue may find what the last one did not.
        """
        full = inf
        if self._has_full and full_matters < inf:
            nb_intervals = max(ceil((full_matters - self._last_full) / self._interval), 1)
            full = self._last_full + nb_intervals * self._interval
        return min(self._quick, full, self._next_backfill)

    def idle_until(self, now: float) -> None:
        """No job has waited until now: the loops have run in the meantime, and found nothing."""
        if not self._is_polling:
            period = self._settings.bf_interval + CYCLE
            unseen = floor((self._changed + CYCLE - self._last_backfill) / period)
            self._last_backfill += max(unseen, 0) * period
        passed = max(self._last_backfill + self._settings.bf_interval, self._changed)
        if passed <= now:
            self._last_backfill = passed
        self._is_polling = True
