"""How often numbers occur, in memory that does not grow with how many there are."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, compress
from math import ceil

#: So many of the 24 digits of a single number are dropped.
_DROPPED = 7

#: So many different numbers are counted in a dictionary, which is quick, before they go into arrays.
_FEW = 1 << 16

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
        self._few: Counter[int] = Counter()
        self._pages: dict[int, array[int]] = {}
        self._sorted: tuple[Sequence[float], Sequence[int]] | None = None

    def add(self, values: Iterable[float]) -> None:
        """Count some numbers."""
        singles, half = array("f", [value if value > 0 else 0.0 for value in values]), 1 << _DROPPED - 1
        self._few.update([bits + half >> _DROPPED for bits in memoryview(singles).cast("B").cast("I")])
        self.count += len(singles)
        self._sorted = None
        if len(self._few) > _FEW:
            self._turn_pages()

    def quantile(self, share: float) -> float:
        """The number that this share of all does not exceed, between the two next to it as in pandas."""
        values, counts = self._in_order()
        before = list(accumulate(counts, initial=0))
        place = (self.count - 1) * share
        low = int(place)
        first = values[bisect_right(before, low) - 1]
        second = values[bisect_right(before, min(low + 1, self.count - 1)) - 1]
        return first + (second - first) * (place - low)

    def part_of_top(self, share: float) -> float:
        """The part of the sum that this share of the numbers has, the largest ones."""
        others = self.count - ceil(self.count * share)
        total = top = 0.0
        seen = 0
        for value, number in zip(*self._in_order(), strict=True):
            total += value * number
            seen += number
            if seen > others:
                top += value * min(seen - others, number)
        return top / total

    def _turn_pages(self) -> None:
        """Count in arrays what was counted in the dictionary."""
        for key, count in self._few.items():
            number, place = divmod(key, _PAGE)
            if number not in self._pages:
                self._pages[number] = array("I", bytes(4 * _PAGE))
            self._pages[number][place] += count
        self._few.clear()

    def _in_order(self) -> tuple[Sequence[float], Sequence[int]]:
        """The different numbers, the least first, and how often each occurs."""
        if self._sorted is None:
            if self._pages:
                self._turn_pages()
            keys, counts = array("I", sorted(self._few)), array("I")
            counts.extend(map(self._few.__getitem__, keys))
            for number, page in sorted(self._pages.items()):
                keys.extend(compress(range(number * _PAGE, (number + 1) * _PAGE), page))
                counts.extend(filter(None, page))
            bits = array("I", [key << _DROPPED for key in keys])
            self._sorted = memoryview(bits).cast("B").cast("f"), counts
        return self._sorted
