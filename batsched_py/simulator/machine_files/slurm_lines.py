"""The lines of a ``slurm.conf`` and of the files that it includes: settings, and where they stand.

Nothing in a file is executed, and a file that is wrong somewhere is read to its end: each mistake is reported
with its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from os.path import realpath
from pathlib import Path

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.shown import shown

#: Is told where a mistake is, and what is wrong.
Report = Callable[[str, str], None]

_SETTING = re.compile(r'\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*(?:"([^"]*)"|([^\s"]*))(?=\s|$)')
_INCLUDE = re.compile(r"(?i)include\s+(\S+)")
_COMMENT = re.compile(r"(?<!\\)#.*")

#: So deep may files include others, and so many may there be in all.
_DEEPEST, _MOST_FILES = 50, 10_000


class ConfLine(Struct, frozen=True):
    """A line with at least one setting."""

    where: str
    settings: dict[str, str]
    """By their names in small letters, in which Slurm does not tell letters apart."""
    names: dict[str, str]
    """How these are written in the file."""

    def get(self, name: str, default: str = "") -> str:
        """What the line says for a name in small letters."""
        return self.settings.get(name, default)


def refuse(where: str, what: str) -> None:
    """Report a mistake by stopping at it."""
    raise InputError(f"{where}: {what}")


def read_conf(path: Path, report: Report = refuse) -> list[ConfLine]:
    """The lines of a configuration and of the files that it includes, in the order in which they count."""
    return list(_Files(report).lines(path, f"{path}"))


def conf_line(text: str, where: str, report: Report = refuse) -> ConfLine | None:
    """A single line that stands in no file; none if it has no setting."""
    return _Files(report).settings(where, text)


class _Files:
    """Reads files that include others."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._open: list[str] = []
        """The files that are being read, each included by the one before it."""
        self._read = 0
        """How many files were read."""
        self._cluster = ""

    def lines(self, path: Path, named_at: str) -> Iterator[ConfLine]:
        """The lines of a file that is named at a place."""
        file_itself = realpath(path)
        if file_itself in self._open:
            self._report(named_at, "this file includes itself")
            return
        if len(self._open) >= _DEEPEST:
            self._report(named_at, f"files include each other more than {_DEEPEST} deep")
            return
        self._read += 1
        if self._read > _MOST_FILES:
            if self._read == _MOST_FILES + 1:
                self._report(named_at, f"more than {_MOST_FILES} files are included")
            return
        try:
            text = read_input(path).decode("utf-8-sig")
        except OSError as error:
            file = "this file" if named_at == str(path) else path
            self._report(named_at, f"cannot read {file} ({error.strerror})")
            return
        except UnicodeDecodeError as error:
            self._report(f"{path}, byte {error.start}", "is no text in UTF-8")
            return
        self._open.append(file_itself)
        for place, line in self._joined(path, text):
            where = f"{path}, {place}"
            if included := _INCLUDE.fullmatch(line):
                name = included[1].replace("%c", self._cluster)
                yield from self.lines(path.parent / name, where)
            elif line and (found := self.settings(where, line)) is not None:
                self._cluster = found.get("clustername", self._cluster)
                yield found
        self._open.pop()

    def _joined(self, path: Path, text: str) -> Iterator[tuple[str, str]]:
        """The lines without comments, each with its place; those that a backslash continues are joined."""
        joined, first = "", 0
        lines = text.splitlines()
        for number, line in enumerate(lines, start=1):
            line = _COMMENT.sub("", line).rstrip()
            first = first or number
            if line.endswith("\\") and number < len(lines):
                joined += line[:-1]
                continue
            if line.endswith("\\"):
                self._report(f"{path}, line {number}", "the file ends where the line goes on")
            else:
                place = f"line {number}" if first == number else f"lines {first}-{number}"
                yield place, (joined + line).strip()
            joined, first = "", 0

    def settings(self, where: str, line: str) -> ConfLine | None:
        """What a line says."""
        settings: dict[str, str] = {}
        names: dict[str, str] = {}
        place = 0
        while match := _SETTING.match(line, place):
            name = match[1].lower()
            if name in settings:
                self._report(where, f"{match[1]} is given twice in one line")
            settings[name] = match[3] if match[2] is None else match[2]
            names[name] = match[1]
            place = match.end()
        rest = line[place:].strip()
        if '"' in rest and rest.count('"') % 2:
            self._report(where, f"{shown(rest)} has no second quotation mark")
        elif rest:
            self._report(where, f"{shown(rest)} is not of the form Name=Value")
        return ConfLine(where, settings, names) if settings else None
