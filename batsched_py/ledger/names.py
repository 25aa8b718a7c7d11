"""Names that are taken for good, in less memory than they are long."""

from __future__ import annotations

#: The bit that stands for the last three characters of a name, if they are digits.
_BIT = {f"{number:03}": 1 << number for number in range(1000)}


class Names:
    """A set of names, most of which are alike but for a number at their end.

    Names that agree in all but their last three digits share a page: one number with a bit for each of them.
    So the names ``w0!1000`` to ``w0!1999`` take some 300 bytes together, where a set takes 100 for each.

    >>> names = Names()
    >>> names.take("w0!1234"), names.take("w0!1234")
    (True, False)
    >>> "w0!1234" in names, "w0!1235" in names, "w0!01234" in names
    (True, False, False)
    """

    def __init__(self) -> None:
        self._pages: dict[str, int] = {}
        self._others: set[str] = set()

    def take(self, name: str) -> bool:
        """Take a name; whether it was free."""
        bit = _BIT.get(name[-3:])
        if bit is None:
            free = name not in self._others
            self._others.add(name)
            return free
        page = name[:-3]
        taken = self._pages.get(page, 0)
        self._pages[page] = taken | bit
        return not taken & bit

    def __contains__(self, name: str) -> bool:
        bit = _BIT.get(name[-3:])
        if bit is None:
            return name in self._others
        return bool(self._pages.get(name[:-3], 0) & bit)
