"""What time it is, and what is going to happen."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from batsched_py.protocol.jobs import to_tick

Action = Callable[[Any], None]


class Agenda:
    """The clock and the future actions. Those of one instant happen in the order in which they were put down.

    A *notice* is an action that waits until everything else of its instant has happened and has been told.
    """

    def __init__(self) -> None:
        self.clock = 0.0
        self.now = 0.0
        """The clock as it is told."""
        self.heap: list[tuple[float, int, int, Any, Any]] = []
        """Time, 1 for a notice, number, action and its argument; the first is next.

        Code that goes through the heap by itself may put down other things than actions.
        """
        self.count = 0
        """The number of the last action that was put down."""
        self.cancelled: set[int] = set()

    def __len__(self) -> int:
        return len(self.heap)

    def at(self, time: float, action: Action, argument: Any = None) -> int:
        """Put an action down; the number it gets, which is never 0, is what :meth:`cancel` wants."""
        self.count += 1
        heappush(self.heap, (time, 0, self.count, action, argument))
        return self.count

    def notice(self, time: float, action: Action, argument: Any = None) -> None:
        """Put down an action that comes after all others of its instant."""
        self.count += 1
        heappush(self.heap, (time, 1, self.count, action, argument))

    def cancel(self, number: int) -> None:
        """Strike an action out, as if it had never been put down."""
        self.cancelled.add(number)
        self.drop_cancelled()

    def instant_is_over(self) -> bool:
        """Whether nothing but notices is left to happen now."""
        heap = self.heap
        return not heap or heap[0][0] > self.clock or heap[0][1] == 1

    def give_notices(self) -> None:
        """Let the notices of this instant happen, when nothing else is left of it."""
        while self.heap and self.heap[0][0] <= self.clock and self.heap[0][1] == 1:
            self.happen()

    def happen(self) -> None:
        """Go to the next action's time and let it happen."""
        time, _, _, action, argument = heappop(self.heap)
        if self.cancelled:
            self.drop_cancelled()
        if time != self.clock:
            self.clock = time
            self.now = time if time.is_integer() else to_tick(time)
        action(argument)

    def drop_cancelled(self) -> None:
        """Make the first one that is not struck out the next."""
        heap, cancelled = self.heap, self.cancelled
        while heap and heap[0][2] in cancelled:
            cancelled.remove(heappop(heap)[2])
