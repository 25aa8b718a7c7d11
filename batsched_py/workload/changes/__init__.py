"""Changing a log before it is simulated: each change is found by name, as schedulers are.

Changes are written one after another, each as its name and its options: ``first jobs=1000 load factor=1.2``.
"""

import dataclasses
import shlex
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from numpy.typing import NDArray

from batsched_py.blame import naming
from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.protocol.shown import shown
from batsched_py.workload.swf.log import SwfLog

#: The key of the header under which each change leaves a line.
HISTORY: Final = "Change"


class Change(ABC):
    """Something that is done to a log before it is simulated: a frozen dataclass of its options."""

    name: ClassVar[str]

    @abstractmethod
    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The changed log, and a few words on what was done and what it distorts."""

    def apply(self, log: SwfLog) -> SwfLog:
        """The changed log, with a line in its header that says what was done, and its number of jobs."""
        with naming(f"change {self.name!r}"):
            done = self.alter(log)
        if not (isinstance(done, tuple) and len(done) == 2 and isinstance(done[0], SwfLog)):
            raise InputError(f"change {self.name!r} gives back {shown(done)}, and not a log and a few words")
        changed, remark = done
        header, line = dict(changed.header), f"{self}: {remark}"
        header[HISTORY] = f"{header[HISTORY]}\n{line}" if HISTORY in header else line
        header |= {key: str(len(changed)) for key in ("MaxJobs", "MaxRecords") if key in header}
        return dataclasses.replace(changed, header=header)

    def __str__(self) -> str:
        """The change as it is written on the command line and in a plan."""
        words = [self.name]
        fields: Any = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        for field in fields:
            value = getattr(self, field.name)
            if value != field.default:
                text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
                words.append(f"{field.name}={text}")
        return " ".join(words)


def kept(log: SwfLog, jobs: NDArray[Any], change: Change) -> tuple[SwfLog, str]:
    """The log with some of its jobs only, and how many they are; an error if there is none."""
    changed = log.select(jobs)
    if not len(changed):
        raise InputError(f"{change}: no job is left")
    return changed, f"{len(changed)} of {len(log)} jobs kept"


#: The known changes.
CHANGES = Registry[Change]("change", Change, __name__, "batsched_py.changes")  # type: ignore[type-abstract]


def parse_changes(words: Iterable[str]) -> list[Change]:
    """Read changes: a word with a ``=`` is an option of the change whose name came before it.

    >>> [str(change) for change in parse_changes("first jobs=1000 load by=sizes factor=1.2".split())]
    ['first jobs=1000', 'load factor=1.2 by=sizes']
    """
    steps: list[tuple[str, dict[str, str]]] = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            steps.append((word, {}))
        elif not steps:
            raise InputError(f"{word!r}: an option follows the name of its change, like `load factor=1.2`")
        elif key in steps[-1][1]:
            raise InputError(f"change {steps[-1][0]!r}: {key!r} is given twice")
        else:
            steps[-1][1][key] = value
    return [_create(name, options) for name, options in steps]


def _create(name: str, options: dict[str, str]) -> Change:
    cls = CHANGES.find(name)
    hints = typing.get_type_hints(cls)
    lists = {
        key: value.split(",") if typing.get_origin(hints.get(key)) is tuple else value
        for key, value in options.items()
    }
    return CHANGES.create(name, lists)  # type: ignore[arg-type]


def rename_changes(words: Iterable[str], rename: Callable[[str], str]) -> str:
    """The text of some changes with other names for them.

    >>> rename_changes(["first", "jobs=9", "own.py:Own"], lambda name: name.replace("own.py", "my own.py"))
    "first jobs=9 'my own.py:Own'"
    """
    return shlex.join(word if "=" in word else rename(word) for word in words)


def words_of(text: str) -> list[str]:
    """The words of changes; one with spaces stands between quotes, as in a shell.

    >>> words_of("first jobs=9 'my own.py:Own'")
    ['first', 'jobs=9', 'my own.py:Own']
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"changes {text!r}: {error}") from None


def change_log(log: SwfLog, changes: Sequence[str | Change]) -> SwfLog:
    """Do some changes one after another, each of them written as text or made in Python."""
    for change in changes:
        for step in parse_changes(words_of(change)) if isinstance(change, str) else [change]:
            log = step.apply(log)
    return log
