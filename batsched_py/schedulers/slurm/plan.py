"""The plan of a backfill cycle: which nodes no waiting job needs, and when."""

from __future__ import annotations


class Plan:
    """Spans of time from now to the end of the window, each with the nodes that are not kept for a job.

    All times are on a grid, to which they are rounded down.
    """

    def __init__(
        self, now: int, window: int, resolution: int, nodes: int, most_spans: int, origin: int = 0
    ) -> None:
        self._resolution = resolution
        self._origin = origin
        """How far time 0 is from the beginning of a step of the grid."""
        self.begins = [self.rounded(now)]
        self.ends = [self.rounded(now + window)]
        self.free = [nodes]
        """The nodes of each span."""
        self._nb_spans = 1
        """How many were ever made: there is room for so many only."""
        self._most_spans = most_spans

    def copy(self) -> Plan:
        """The same, to be changed."""
        other = Plan.__new__(Plan)
        other._resolution, other._nb_spans = self._resolution, self._nb_spans
        other._origin = self._origin
        other._most_spans = self._most_spans
        other.begins, other.ends, other.free = self.begins.copy(), self.ends.copy(), self.free.copy()
        return other

    def rounded(self, time: int) -> int:
        """A time on the grid."""
        return time - (time + self._origin) % self._resolution

    @property
    def is_full(self) -> bool:
        """Whether no more spans can be added."""
        return self._nb_spans >= self._most_spans

    def keep(self, nodes: int, start: int, end: int) -> None:
        """Keep nodes for a job, from one time on the grid to another; at least for one step of it."""
        begins, ends, free = self.begins, self.ends, self.free
        start = max(start, begins[0])
        end = max(end, start + self._resolution)
        if ends[-1] < start:
            return
        place = 0
        while ends[place] < start:
            place += 1
        if ends[place] > start:
            self._cut(place, start)
        place += 1
        left = ~nodes
        first = place
        while place < len(ends):
            if end < ends[place]:
                self._cut(place, end)
            free[place] &= left
            if ends[place] >= end:
                break
            place += 1
        self._join(max(first - 1, 0), place + 1)

    def _cut(self, place: int, time: int) -> None:
        """Begin another span where one goes on."""
        self.begins.insert(place + 1, time)
        self.ends.insert(place, time)
        self.free.insert(place, self.free[place])
        self._nb_spans += 1

    def _join(self, first: int, last: int) -> None:
        """Make one of spans with the same nodes, and of those that have no time."""
        begins, ends, free = self.begins, self.ends, self.free
        for place in range(min(last, len(free) - 1), first, -1):
            if free[place] == free[place - 1]:
                del begins[place], ends[place - 1], free[place]

    def is_kept(self, nodes: int, start: int, end: int) -> bool:
        """Whether some of these nodes are kept at some time of a span."""
        for place, begin in enumerate(self.begins):
            if begin >= end:
                return False
            if self.ends[place] > start and nodes & ~self.free[place]:
                return True
        return False

    def left(self, nodes: int, start: int, end: int) -> tuple[int, int]:
        """Those of some nodes that are kept for nobody in a span, and when to try again if they are too few.

        That is the first time after the start at which nodes come back that are not among those of before;
        0 if there is none.
        """
        begins, ends, free = self.begins, self.ends, self.free
        last = len(ends) - 1
        left, later = nodes, 0
        for place, until in enumerate(ends):
            if until > start:
                if not later and place < last and nodes & free[place + 1] & ~(left & free[place]):
                    later = until
                if begins[place] > end:
                    break
                left &= free[place]
        return left, later
