"""Small CSV files with what comes from outside, and the hosts that they name."""

import csv
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TypeVar

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host

T = TypeVar("T")


def read_table(path: str, columns: Sequence[str], read: Callable[[dict[str, str]], T]) -> list[T]:
    """What is read from each row of a file whose first line names its columns.

    Empty lines and lines that begin with ``#`` are skipped. An error names the line.
    """
    try:
        text = read_input(path).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    if not lines:
        raise InputError(f"{path}: is empty; its first line names the columns {', '.join(columns)}")
    names = [name.strip() for name in next(csv.reader([lines[0][1]]))]
    if missing := [name for name in columns if name not in names]:
        raise InputError(f"{path}, line {lines[0][0]}: has no column {missing[0]!r}")
    found = []
    for number, line in lines[1:]:
        try:
            cells = [cell.strip() for cell in next(csv.reader([line]))]
            if len(cells) != len(names):
                raise ValueError(f"has {len(cells)} cells, not {len(names)}")
            found.append(read(dict(zip(names, cells, strict=True))))
        except (ValueError, OverflowError, csv.Error) as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return found


def seconds(row: dict[str, str], column: str) -> float:
    """The time in a cell, in seconds; it is not negative."""
    time = finite(row, column)
    if time < 0:
        raise ValueError(f"{column} is negative: {row[column]}")
    return time


def finite(row: dict[str, str], column: str) -> float:
    """The number in a cell; it is finite."""
    try:
        value = float(row[column])
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise ValueError(f"{column} must be a number, not {row[column]!r}")
    return value


def period(row: dict[str, str], first: str, last: str) -> tuple[float, float]:
    """The times in two cells, the second one later."""
    start, end = seconds(row, first), seconds(row, last)
    if not start < end:
        raise ValueError(f"{last} {row[last]} is not after {first} {row[first]}")
    return start, end


class Units:
    """The nodes of a machine by name, each with its hosts; on a plain machine, the hosts.

    >>> units = Units([Host(0, "a", properties={"node": "n1"}), Host(1, "b", properties={"node": "n1"})])
    >>> units.by_name
    {'n1': HostSet.parse('0-1')}
    >>> units.named("1")
    HostSet.parse('0-1')
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        numbers: dict[str, list[int]] = {}
        self._partitions: dict[str, list[int]] = {}
        for host in hosts:
            numbers.setdefault(host.properties.get("node", host.name), []).append(host.id)
            for partition in host.properties.get("partitions", "").split():
                self._partitions.setdefault(partition, []).append(host.id)
        self.all = HostSet.range(len(hosts))
        self.by_name = {name: HostSet.of(ids) for name, ids in numbers.items()}

    def named(self, text: str) -> HostSet:
        """The hosts of whole units: ``all``, names of nodes or partitions, or numbers like ``0-3 7``.

        A number of a host stands for the whole node.
        """
        if text.strip() == "all":
            return self.all
        mask = 0
        for word in text.split():
            mask |= self._one(word).mask
        if not mask:
            raise ValueError("no hosts are named")
        return HostSet(mask)

    def _one(self, word: str) -> HostSet:
        if word in self.by_name:
            return self.by_name[word]
        if word in self._partitions:
            return HostSet.of(self._partitions[word])
        try:
            hosts = HostSet.parse(word)
        except ValueError:
            raise ValueError(f"{word!r} is no node, no partition and no number of a host") from None
        if hosts.mask & ~self.all.mask:
            raise ValueError(f"hosts {hosts - self.all} do not exist")
        mask = 0
        for unit in self.by_name.values():
            if unit.mask & hosts.mask:
                mask |= unit.mask
        return HostSet(mask)
