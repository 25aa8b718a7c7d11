"""The notes on jobs, for a simulator that has no place for them.

Batsim 4 writes what a user notes on a job into the column ``metadata`` of its ``jobs.csv``. A Batsim 5 leaves
that column empty. So the decision process can keep the notes, in a CSV file of its own.
"""

from __future__ import annotations

import csv
from pathlib import Path

from batsched_py.decision.server import Answers
from batsched_py.errors import InputError
from batsched_py.protocol.events import Message, SetJobMetadata, Settings

_HEADER = ["job_id", "metadata"]


class NoteKeeper:
    """A decision process whose notes are kept, and written to a file when the simulation has ended."""

    def __init__(self, process: Answers, path: Path) -> None:
        self._process = process
        self._path = path
        self._notes: dict[str, str] = {}

    @property
    def needs(self) -> Settings:
        """What a simulator must allow."""
        return self._process.needs

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._process.finished

    def react(self, request: Message) -> Message:
        """Answer one request."""
        reply = self._process.react(request)
        for event in reply.events:
            if isinstance(event, SetJobMetadata):
                self._notes[event.job_id] = event.metadata
        if self.finished:
            write_notes(self._path, self._notes)
        return reply


def write_notes(path: Path, notes: dict[str, str]) -> None:
    """Write the notes on jobs, by their identifiers."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(_HEADER)
            writer.writerows(notes.items())
    except OSError as error:
        raise InputError(f"cannot write the notes to {path}: {error.strerror}") from None
