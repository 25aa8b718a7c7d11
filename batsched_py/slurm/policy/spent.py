"""What associations and QOS have used over time, for the limits ``GrpTRESMins`` and ``GrpWall``.

Slurm counts it when it computes priorities: each ``PriorityCalcPeriod``, what is there decays, and what
running jobs have used since the last time is added. The rest of a job is added when it ends. At some moments
of the calendar, ``PriorityUsageResetPeriod`` lets all begin again from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from math import inf

from batsched_py.slurm.policy.job import RunningRecord
from batsched_py.slurm.policy.settings import Association, Configuration, Priority, Qos, ResetPeriod

#: Whose jobs are counted together.
Key = tuple[str, ...]

DAY = timedelta(days=1)
QUARTERS = {1: 4, 2: 4, 3: 4, 4: 7, 5: 7, 6: 7, 7: 10, 8: 10, 9: 10}
"""In which month of the same year the next quarter begins."""


def decay_of(priority: Priority) -> float:
    """What usage is multiplied with each second."""
    return 1 - 0.693 / priority.decay_half_life if priority.decay_half_life > 0 else 1.0


def next_reset(period: ResetPeriod, last: float) -> float:
    """When usage is reset next, in seconds since 1970, by a calendar of UTC; ``inf`` if it never is.

    >>> [next_reset(each, 86400.0 * 31) / 86400 for each in ("daily", "weekly", "monthly", "quarterly")]
    [32.0, 38.0, 59.0, 90.0]
    """
    midnight = datetime.fromtimestamp(last, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "daily":
            following = midnight + DAY
        case "weekly":  # weeks begin on Sunday
            following = midnight + DAY * (7 - midnight.isoweekday() % 7)
        case "monthly":
            following = (midnight.replace(day=1) + 32 * DAY).replace(day=1)
        case "quarterly":
            month = QUARTERS.get(midnight.month, 1)
            following = midnight.replace(day=1, month=month, year=midnight.year + (month == 1))
        case "yearly":
            following = midnight.replace(day=1, month=1, year=midnight.year + 1)
        case _:
            return inf
    return following.timestamp()


class Resets:
    """The moments at which usage begins again from nothing, in seconds from time 0."""

    def __init__(self, configuration: Configuration) -> None:
        self._period, self._origin = configuration.priority.usage_reset_period, configuration.origin
        self.next_time = 0.0 if self._period == "now" else self._after(0.0)

    def _after(self, time: float) -> float:
        return next_reset(self._period, self._origin + time) - self._origin

    def is_due(self, now: float) -> bool:
        """Whether usage is reset now; then the next time is a later one."""
        if now < self.next_time:
            return False
        self.next_time = self._after(now)
        return True


class Used:
    """What somebody has used: seconds of each resource, and of jobs."""

    def __init__(self, settings: Qos | Association) -> None:
        self.decays = not (isinstance(settings, Qos) and "no_decay" in settings.flags)
        self.tres: dict[str, float] = dict(settings.usage_tres)
        self.wall = settings.usage_wall
        self.left: dict[str, float] = {}
        """What running jobs may still use until their time limits are over."""

    def decay(self, factor: float) -> None:
        """Let some time pass, or forget all if the factor is 0."""
        self.tres = {name: amount * factor for name, amount in self.tres.items()}
        self.wall *= factor

    def add(self, tres: dict[str, float], seconds: float) -> None:
        """Somebody had so much for so long."""
        self.wall += seconds
        for name, amount in tres.items():
            self.tres[name] = self.tres.get(name, 0.0) + amount * seconds

    def leave(self, tres: dict[str, float], seconds: float) -> None:
        """A running job may have so much for so much longer, or shorter."""
        for name, amount in tres.items():
            self.left[name] = self.left.get(name, 0.0) + amount * seconds


NOTHING_USED = Used(Association(account=""))


class Spent:
    """The usage of all who have limits on it, under the keys by which their jobs are counted."""

    def __init__(self, configuration: Configuration, holders: dict[Key, Qos | Association]) -> None:
        is_limited = any(
            each.grp_tres_seconds or each.grp_tres_run_seconds or each.grp_wall is not None
            for each in holders.values()
        )
        is_counted = is_limited and configuration.priority.type == "multifactor"
        self.of = {key: Used(each) for key, each in holders.items()} if is_limited else {}
        self._decay = decay_of(configuration.priority)
        self._period = configuration.priority.calc_period
        self._resets = Resets(configuration)
        self._last = 0.0
        self.next_time = self._period if is_counted else inf
        """When it is computed again; ``priority/basic`` never does."""
        if is_counted and self._resets.next_time <= 0:
            self._reset(0.0)

    def count_from(self, started: float) -> None:
        """The controller was started so many seconds before time 0, and computes usage from then on."""
        if self.next_time < inf:
            self.next_time = self._period - started % self._period

    def _reset(self, now: float) -> None:
        if self._resets.is_due(now):
            for used in self.of.values():
                used.decay(0.0)

    def advance(self, now: float, running: Sequence[RunningRecord], bill: Bill) -> bool:
        """Go through all times until now at which Slurm computes usage; whether there are any."""
        if self.next_time > now:
            return False
        while self.next_time <= now:
            self._reset(self.next_time)
            factor = self._decay ** (self.next_time - self._last)
            for used in self.of.values():
                if used.decays:
                    used.decay(factor)
            for each in running:
                self._add(each, self.next_time, bill)
            self._last = self.next_time
            self.next_time += self._period
        return True

    def least(self, key: Key) -> Used:
        """What will be left of somebody's usage in the end, if nothing more is used."""
        used = self.of.get(key, NOTHING_USED)
        shrinks = (self._decay < 1 and used.decays) or self._resets.next_time < inf
        return NOTHING_USED if shrinks and self.next_time < inf else used

    def started(self, running: RunningRecord, bill: Bill) -> None:
        """A job runs from now on."""
        factor, tres, keys = bill(running)
        for key in keys:
            self.of[key].leave(tres, factor * running.waiting.limit * 60)

    def ended(self, running: RunningRecord, now: int, bill: Bill) -> None:
        """Count the rest of what a job has used; it uses no more."""
        self._add(running, now, bill, is_over=True)

    def _add(self, running: RunningRecord, until: float, bill: Bill, is_over: bool = False) -> None:
        since, limit = max(self._last, running.start), running.start + running.waiting.limit * 60
        factor, tres, keys = bill(running)
        seconds = max(until - since, 0.0) if self.next_time < inf else 0.0
        gone = max((limit if is_over else min(until, limit)) - since, 0.0)
        for key in keys:
            used = self.of[key]
            used.add(tres, factor * seconds * (self._decay**seconds if used.decays else 1.0))
            used.leave(tres, -factor * gone)


#: Tells of a running job its usage factor, what it has of each resource, and for whom it counts.
Bill = Callable[[RunningRecord], tuple[float, dict[str, float], Iterable[Key]]]
