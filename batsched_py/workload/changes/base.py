"""What a change of a log is, and how a changed log tells its history."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

from batsched_py.blame import naming
from batsched_py.errors import InputError
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
        """The changed log, with a line in its header that says what was done."""
        with naming(f"change {self.name!r}"):
            done = self.alter(log)
        if not (isinstance(done, tuple) and len(done) == 2 and isinstance(done[0], SwfLog)):
            raise InputError(f"change {self.name!r} gives back {shown(done)}, and not a log and a few words")
        changed, remark = done
        return dataclasses.replace(changed, header=_with_line(changed, f"{self}: {remark}"))

    def __str__(self) -> str:
        """The change as it is written on the command line and in a plan."""
        fields: tuple[dataclasses.Field[Any], ...] = ()
        if dataclasses.is_dataclass(self):
            fields = dataclasses.fields(self)
        options = [
            f"{field.name}={_written(getattr(self, field.name))}"
            for field in fields
            if getattr(self, field.name) != field.default
        ]
        return " ".join([self.name, *options])


def _written(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _with_line(log: SwfLog, line: str) -> dict[str, str]:
    """The header with one more line of history, and the number of jobs that there are now."""
    history = log.header.get(HISTORY)
    header = log.header | {HISTORY: line if history is None else f"{history}\n{line}"}
    return header | {key: str(len(log)) for key in ("MaxJobs", "MaxRecords") if key in header}


def kept(before: SwfLog, after: SwfLog) -> str:
    """How many jobs are left."""
    return f"{len(after)} of {len(before)} jobs kept"
