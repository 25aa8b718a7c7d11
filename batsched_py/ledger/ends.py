"""When jobs ended, for any number of jobs."""

from __future__ import annotations

from array import array
from math import isnan, nan

#: The place in a page for the last two characters of a name, if they are digits.
_PLACE = {f"{number:02}": number for number in range(100)}


class Ends:
    """The times at which jobs ended or started, by their names, and which of them did not succeed.

    Names that agree in all but their last two digits share a page of numbers. So the ends of the jobs
    ``w0!100`` to ``w0!199`` take some 10 bytes each, where a dictionary takes 200.

    >>> ends = Ends()
    >>> ends.put("w0!123", 60.0, True)
    >>> ends.get("w0!123"), ends.get("w0!124"), ends.succeeded("w0!123")
    (60.0, None, True)
    """

    def __init__(self) -> None:
        self._pages: dict[str, array[float]] = {}
        self._others: dict[str, float] = {}
        self._unsuccessful: set[str] = set()

    def put(self, name: str, time: float, success: bool) -> None:
        """A job has ended."""
        place = _PLACE.get(name[-2:])
        if place is None:
            self._others[name] = time
        else:
            page = self._pages.get(name[:-2])
            if page is None:
                page = self._pages[name[:-2]] = array("d", [nan]) * 100
            page[place] = time
        if not success:
            self._unsuccessful.add(name)

    def get(self, name: str) -> float | None:
        """When a job ended, if it did."""
        place = _PLACE.get(name[-2:])
        if place is None:
            return self._others.get(name)
        page = self._pages.get(name[:-2])
        return None if page is None or isnan(page[place]) else page[place]

    def succeeded(self, name: str) -> bool:
        """Whether a job that has ended did so successfully."""
        return name not in self._unsuccessful
