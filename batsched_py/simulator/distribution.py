"""How often numbers occur, in memory that does not grow with how many there are."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from math import ceil

#: So many of the 24 digits of a single number are dropped.
_DROPPED = 7

#: So many neighbours are counted in one array.
_PAGE = 256


class Distribution:
    """Counts of numbers that are not negative, rounded to 17 binary digits.

    Whole numbers up to 131,072, which are the seconds of a day and a half, are exact, and all others are
    right to one in 130,000. Of each power of two there are 65,536 counts at most, 256 KiB.

    >>> found = Distribution()
    >>> found.add([1, 2, 3, 4])
    >>> found.quantile(0.5), found.part_of_top(0.5)
    (2.5, 0.7)
    """

    def __init__(self) -> None:
        self.count = 0
        self._pages: dict[int, array[int]] = {}

    def add(self, values: Iterable[float]) -> None:
        """Count some numbers."""
        singles, pages, half = (
            array("f", [max(0.0, value) for value in values]),
            self._pages,
            1 << _DROPPED - 1,
        )
        for bits in memoryview(singles).cast("B").cast("I"):
            number, place = divmod(bits + half >> _DROPPED, _PAGE)
            if number not in pages:
                pages[number] = array("I", bytes(4 * _PAGE))
            pages[number][place] += 1
        self.count += len(singles)

    def quantile(self, share: float) -> float:
        """The number that this share of all does not exceed, between the two next to it as in pandas."""
        place = (self.count - 1) * share
        low = int(place)
        first = second = 0.0
        seen = 0
        for value, number in self._each():
            if seen <= low:
                first = value
            if seen <= min(low + 1, self.count - 1):
                second = value
            seen += number
        return first + (second - first) * (place - low)

    def part_of_top(self, share: float) -> float:
        """The part of the sum that this share of the numbers has, the largest ones."""
        others = self.count - ceil(self.count * share)
        total = top = 0.0
        seen = 0
        for value, number in self._each():
            total += value * number
            seen += number
            top += value * min(max(seen - others, 0), number)
        return top / total

    def _each(self) -> Iterator[tuple[float, int]]:
        """Each number and how often it occurs, the least first."""
        for number, page in sorted(self._pages.items()):
            bits = array(
                "I", range(number * _PAGE << _DROPPED, (number + 1) * _PAGE << _DROPPED, 1 << _DROPPED)
            )
            for value, count in zip(memoryview(bits).cast("B").cast("f"), page, strict=True):
                if count:
                    yield value, count
