"""What is going to happen, ordered by time."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[[Any], None]


class Agenda:
    """Future actions. Those of one instant happen in the order in which they were put down.

    A *notice* is an action that waits until everything else of its instant has happened and has been told.
    """

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, int, Action, Any]] = []
        """Time, 1 for a notice, number, action and its argument; the first is next."""
        self._count = 0
        self._cancelled: set[int] = set()

    def at(self, time: float, action: Action, argument: Any = None) -> int:
        """Put an action down; the number it gets is what :meth:`cancel` wants."""
        self._count += 1
        heappush(self.heap, (time, 0, self._count, action, argument))
        return self._count

    def notice(self, time: float, action: Action, argument: Any = None) -> None:
        """Put down an action that comes after all others of its instant."""
        self._count += 1
        heappush(self.heap, (time, 1, self._count, action, argument))

    def cancel(self, number: int) -> None:
        """Strike an action out, as if it had never been put down."""
        self._cancelled.add(number)
        self._drop_cancelled()

    def next(self) -> tuple[float, Action, Any]:
        """Take the next action off: its time, what to do, and with what."""
        time, _, _, action, argument = heappop(self.heap)
        if self._cancelled:
            self._drop_cancelled()
        return time, action, argument

    def _drop_cancelled(self) -> None:
        heap, cancelled = self.heap, self._cancelled
        while heap and heap[0][2] in cancelled:
            cancelled.remove(heappop(heap)[2])
