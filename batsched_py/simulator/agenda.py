"""What is going to happen, ordered by time."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

Action = Callable[[Any], None]


class Agenda:
    """Future actions. Those of one instant happen in the order in which they were put down.

    A *notice* is an action that waits until everything else of its instant has happened and has been told.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, Action, Any]] = []
        self._count = 0
        self._cancelled: set[int] = set()

    def at(self, time: float, action: Action, argument: Any = None) -> int:
        """Put an action down; the number it gets is what :meth:`cancel` wants."""
        self._count += 1
        heappush(self._heap, (time, 0, self._count, action, argument))
        return self._count

    def notice(self, time: float, action: Action, argument: Any = None) -> None:
        """Put down an action that comes after all others of its instant."""
        self._count += 1
        heappush(self._heap, (time, 1, self._count, action, argument))

    def cancel(self, number: int) -> None:
        """Strike an action out, as if it had never been put down."""
        self._cancelled.add(number)
        self._drop_cancelled()

    @property
    def next_time(self) -> float:
        """When something happens next; infinite when nothing does."""
        return self._heap[0][0] if self._heap else inf

    @property
    def notice_is_next(self) -> bool:
        """Whether all that is left of the next instant are notices."""
        return bool(self._heap) and self._heap[0][1] == 1

    def run_instant(self) -> None:
        """Do everything that happens at the next instant, up to its notices, or else its next notice."""
        heap = self._heap
        time, phase = heap[0][:2]
        while heap and heap[0][0] == time and heap[0][1] == phase:
            _, _, _, action, argument = heappop(heap)
            action(argument)
            if self._cancelled:
                self._drop_cancelled()
            if phase:
                return

    def _drop_cancelled(self) -> None:
        heap, cancelled = self._heap, self._cancelled
        while heap and heap[0][2] in cancelled:
            cancelled.remove(heappop(heap)[2])

    def __len__(self) -> int:
        return len(self._heap)
