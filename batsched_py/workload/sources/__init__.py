"""Reading and writing logs: one kind of file per module, found by name or by the ending of a file's name."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os.path import isfile
from pathlib import Path
from typing import ClassVar, TextIO

from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.workload.doubts import warn_of_doubts
from batsched_py.workload.lines import check_is_file, has_more_fields
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

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a log, piece by piece; a kind that is only read need not say how."""
        raise InputError(f"{path}: logs of this kind can be read, but not written")

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


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A file to read text from; one that cannot be read is reported in one line."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


#: The known kinds of files.
SOURCES = Registry[Source]("kind of log", Source, __name__, "batsched_py.sources")  # type: ignore[type-abstract]


def source_of(path: str | Path, kind: str | None = None, options: Mapping[str, str] | None = None) -> Source:
    """The kind of a file: the named one, else by the longest ending that fits, else by its first bytes."""
    if kind is None:
        name = Path(path).name.lower()
        endings = {ending: kind for kind, cls in SOURCES.all().items() for ending in cls.endings}
        fitting = [ending for ending in endings if name.endswith(ending)]
        kind = endings[max(fitting, key=len)] if fitting else _by_beginning(Path(path))
        if kind == "swf" and has_more_fields(Path(path)):
            kind = "frontier"
    if kind is None:
        known = ", ".join(f"{name} ({', '.join(cls.endings)})" for name, cls in SOURCES.all().items())
        raise InputError(f"{path}: what kind of log is it? Name it so, or say which; known are {known}")
    return SOURCES.create(kind, options or {})


def read_log(path: str | Path, kind: str | None = None, options: Mapping[str, str] | None = None) -> SwfLog:
    """Read a log from a file of any known kind."""
    path = check_is_file(path)
    log = source_of(path, kind, options).read(path)
    warn_of_doubts(log)
    return log


def write_log(
    path: str | Path, log: SwfLog, kind: str | None = None, options: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Write a log to a file of any known kind; tells what such a file cannot keep, counted by kind."""
    source = source_of(path, kind, options)
    try:
        source.write(Path(path), log)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    return source.lost(log)


def _by_beginning(path: Path) -> str | None:
    if not isfile(path):
        return None
    try:
        with path.open("rb") as file:
            beginning = file.read(4096)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return next((kind for kind, cls in SOURCES.all().items() if cls().recognises(beginning)), None)
