"""Reading and writing logs: one kind of file per module, found by name or by the ending of a file's name."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import isfile
from pathlib import Path

from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.workload.lines import check_is_file
from batsched_py.workload.sources.base import Source
from batsched_py.workload.swf.log import SwfLog

#: The known kinds of files.
SOURCES = Registry[Source](
    "kind of log",
    Source,  # type: ignore[type-abstract]
    package="batsched_py.workload.sources",
    group="batsched_py.sources",
)

__all__ = ["SOURCES", "Source", "read_log", "source_of", "write_log"]


def source_of(path: str | Path, kind: str | None = None, options: Mapping[str, str] | None = None) -> Source:
    """The kind of a file: the named one, else by the ending of its name, else by its first bytes."""
    if kind is None:
        kind = _by_ending(path) or _by_beginning(Path(path))
    if kind is None:
        known = ", ".join(f"{name} ({', '.join(cls.endings)})" for name, cls in SOURCES.all().items())
        raise InputError(f"{path}: what kind of log is it? Name it so, or say which; known are {known}")
    return SOURCES.create(kind, options or {})


def read_log(path: str | Path, kind: str | None = None, options: Mapping[str, str] | None = None) -> SwfLog:
    """Read a log from a file of any known kind."""
    path = check_is_file(path)
    return source_of(path, kind, options).read(path)


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


def _by_ending(path: str | Path) -> str | None:
    """The kind with the longest ending that fits."""
    name = Path(path).name.lower()
    endings = {ending: kind for kind, cls in SOURCES.all().items() for ending in cls.endings}
    fitting = [ending for ending in endings if name.endswith(ending)]
    return endings[max(fitting, key=len)] if fitting else None


def _by_beginning(path: Path) -> str | None:
    if not isfile(path):
        return None
    try:
        with path.open("rb") as file:
            beginning = file.read(4096)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return next((kind for kind, cls in SOURCES.all().items() if cls().recognises(beginning)), None)
