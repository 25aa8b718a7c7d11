"""The time of a calendar whose busy half hours are long: each takes as much of it as jobs come in it.

Time is spent along half hours of the day, of which each costs its weight, as in the slot weight method of
Lublin and Feitelson. Here days have weights as well, by their weekdays and months. In this time jobs come at
all hours alike; turned back into time of the clock, they come when jobs come.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.swf.log import Floats
from batsched_py.workload.wall_clock import DAY

SLOTS: Final = 48

#: Days until weekdays and months come in the same order again: 400 years.
_CYCLE: Final = 146_097

#: The weekday of 1970-01-01 when Monday is 0.
_THURSDAY: Final = 3


class SlotCalendar:
    """Turns times of the clock, in seconds since the first midnight, into times of the weights and back.

    The weights of the 48 slots of a day, of the weekdays from Monday and of the months from January are
    numbers not below 0, not all of which are 0. A day of weight 1 takes 1 of the time of the weights.
    """

    def __init__(
        self, first_day: int, slots: list[float], weekdays: list[float], months: list[float]
    ) -> None:
        """``first_day`` is counted from 1970-01-01."""
        weekday, month = kinds_of_days(first_day, _CYCLE)
        self._days = np.array(weekdays)[weekday] * np.array(months)[month]
        self._slots = np.array(slots) / max(sum(slots), np.finfo(float).tiny)
        self._ends_of_days, self._ends_of_slots = np.cumsum(self._days), np.cumsum(self._slots)
        if not (self._ends_of_days[-1] > 0 and self._ends_of_slots[-1] > 0):
            raise ValueError("no half hour has a weight")

    def spent(self, clock: Floats) -> Floats:
        """The time of the weights that has passed at some times of the clock."""
        days, seconds = np.divmod(clock, DAY)
        cycles, day = np.divmod(days.astype(np.int64), _CYCLE)
        slot, inside = np.divmod(seconds * SLOTS / DAY, 1)
        slot = slot.astype(np.int64)
        part = self._ends_of_slots[slot] - self._slots[slot] * (1 - inside)
        whole = self._ends_of_days[day] - self._days[day]
        return np.asarray(cycles * self._ends_of_days[-1] + whole + self._days[day] * part)

    def clock(self, spent: Floats) -> Floats:
        """The times of the clock at which so much time of the weights has passed."""
        cycles, rest = np.divmod(spent, self._ends_of_days[-1])
        day = np.minimum(np.searchsorted(self._ends_of_days, rest, side="right"), _CYCLE - 1)
        part = _share_of(rest, self._ends_of_days, self._days, day)
        slot = np.minimum(np.searchsorted(self._ends_of_slots, part, side="right"), SLOTS - 1)
        inside = _share_of(part, self._ends_of_slots, self._slots, slot)
        return np.asarray(((cycles * _CYCLE + day) + (slot + inside) / SLOTS) * DAY)


def kinds_of_days(first_day: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The weekdays, Monday 0, and the months, January 0, of so many days on from one since 1970-01-01."""
    days = np.arange(first_day, first_day + count)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    return (days + _THURSDAY) % 7, months


def _share_of(place: Floats, ends: Floats, lengths: Floats, number: NDArray[np.int64]) -> Floats:
    """How far a place is inside the interval of this number, from 0 to 1."""
    length = lengths[number]
    passed = place - (ends[number] - length)
    return np.clip(np.divide(passed, length, out=np.zeros_like(passed), where=length > 0), 0, 1)
