"""What a kind of log file is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TextIO

from batsched_py.errors import InputError
from batsched_py.workload.swf.log import SwfLog


class Source(ABC):
    """A kind of file that a log can be read from and written to."""

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    """How the names of such files end, in small letters."""
    keeps_cancelled: ClassVar[bool] = True
    """Whether such files can tell of jobs that were cancelled while they waited."""

    @abstractmethod
    def read(self, path: Path) -> SwfLog:
        """Read a log; what was left out of it or guessed is counted in the log by kind."""

    @abstractmethod
    def write(self, path: Path, log: SwfLog) -> None:
        """Write a log, piece by piece."""

    def lost(self, log: SwfLog) -> dict[str, int]:
        """What such a file cannot keep of a log: how many values of which kind."""
        return count_lost(log)

    def recognises(self, beginning: bytes) -> bool:
        """Whether a file of any name that begins like this is one of this kind."""
        return False


def count_lost(log: SwfLog, columns: Sequence[str] = (), kept: Sequence[str] = ()) -> dict[str, int]:
    """How many values are known in some columns, and in those beyond the format that are not kept."""
    known = {name.replace("_", " ").replace("cpu", "processor"): getattr(log, name) >= 0 for name in columns}
    counts = {name: int(values.sum()) for name, values in known.items() if values.any()}
    return counts | {
        f"column {name}": int((column != "").sum()) for name, column in log.more.items() if name not in kept
    }


def read_text(path: Path) -> str:
    """The text of a file."""
    with open_text(path) as file:
        return file.read()


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A file to read text from; one that cannot be read is reported in one line."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
