"""Output files that are kept in memory, for programs that want results and no files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TextIO

from batsched_py.simulator.outputs import OutputFile

#: What the names of files begin with; nobody sees it.
PREFIX = "kept"


class MemoryFile:
    """The lines of one file."""

    def __init__(self, path: Path, header: str) -> None:
        self.path = path
        self._pieces = [header]

    def write(self, text: str) -> None:
        """Add some lines."""
        self._pieces.append(text)

    def complete(self) -> None:
        """What was written stays."""

    def abandon(self) -> None:
        """Nobody will ask for what was written."""

    @property
    def text(self) -> str:
        """All that was written."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]


class MemoryFiles:
    """The files of one simulation, by what their names end with: ``jobs.csv``, ``schedule.csv``, ..."""

    def __init__(self) -> None:
        self._files: dict[str, MemoryFile] = {}

    def new_file(self, path: Path, header: str) -> MemoryFile:
        """Begin a file."""
        file = MemoryFile(path, header)
        self._files[path.name.removeprefix(f"{PREFIX}_")] = file
        return file

    def open(self, name: str) -> TextIO | None:
        """The text of the table of this name, such as ``jobs``, if there is one."""
        file = self._files.get(f"{name}.csv")
        return None if file is None else io.StringIO(file.text)

    def save(self, prefix: str) -> list[str]:
        """Write all of them as ``PREFIX_jobs.csv`` and so on; their names."""
        saved = []
        for name, file in self._files.items():
            written = OutputFile(Path(f"{prefix}_{name}"), file.text)
            written.complete()
            saved.append(str(written.path))
        return saved
