"""The free hosts, as a store that jobs are served from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from batsched_py.protocol.hosts import HostSet, Run


class FreeHosts:
    """Which hosts are free, as intervals in order, and how many they are.

    Taking hosts and giving them back costs as much as the intervals that are taken or given, however many
    hosts those hold and however many others there are.
    """

    def __init__(self, hosts: HostSet) -> None:
        self.count = len(hosts)
        self._firsts = [first for first, _ in hosts.runs()]
        self._lasts = [last for _, last in hosts.runs()]

    def hosts(self) -> HostSet:
        """Which they are now."""
        return HostSet(None, tuple(zip(self._firsts, self._lasts, strict=True)))

    def __contains__(self, hosts: HostSet) -> bool:
        firsts, lasts = self._firsts, self._lasts
        for first, last in hosts.runs():
            place = bisect_right(firsts, first) - 1
            if place < 0 or lasts[place] < last:
                return False
        return True

    def overlap(self, hosts: HostSet) -> HostSet:
        """Those of the hosts that are free."""
        firsts, lasts = self._firsts, self._lasts
        runs: list[Run] = []
        for first, last in hosts.runs():
            place = max(bisect_right(firsts, first) - 1, 0)
            while place < len(firsts) and firsts[place] <= last:
                if lasts[place] >= first:
                    runs.append((max(first, firsts[place]), min(last, lasts[place])))
                place += 1
        return HostSet(None, tuple(runs))

    def take_lowest(self, count: int) -> HostSet:
        """Take the ones with the lowest numbers; there must be so many."""
        firsts, lasts = self._firsts, self._lasts
        self.count -= count
        first = firsts[0]
        end = first + count
        if end <= lasts[0]:
            firsts[0] = end
            return HostSet(None, ((first, end - 1),))
        runs: list[Run] = []
        place = 0
        while count:
            first, last = firsts[place], lasts[place]
            end = first + count
            if end <= last:
                firsts[place] = end
                runs.append((first, end - 1))
                break
            runs.append((first, last))
            count = end - last - 1
            place += 1
        del firsts[:place], lasts[:place]
        return HostSet(None, tuple(runs))

    def take(self, hosts: HostSet) -> None:
        """Take these, all of which must be free."""
        firsts, lasts = self._firsts, self._lasts
        for first, last in hosts.runs():
            place = bisect_right(firsts, first) - 1
            low, high = firsts[place], lasts[place]
            self.count -= last + 1 - first
            if low == first:
                if high == last:
                    del firsts[place], lasts[place]
                else:
                    firsts[place] = last + 1
            else:
                lasts[place] = first - 1
                if high != last:
                    firsts.insert(place + 1, last + 1)
                    lasts.insert(place + 1, high)

    def give(self, hosts: HostSet) -> None:
        """Give these back, none of which is free."""
        firsts, lasts = self._firsts, self._lasts
        for first, last in hosts.runs():
            place = bisect_left(firsts, first)
            self.count += last + 1 - first
            joins_next = place < len(firsts) and firsts[place] == last + 1
            if place and lasts[place - 1] == first - 1:
                if joins_next:
                    lasts[place - 1] = lasts[place]
                    del firsts[place], lasts[place]
                else:
                    lasts[place - 1] = last
            elif joins_next:
                firsts[place] = first
            else:
                firsts.insert(place, first)
                lasts.insert(place, last)
