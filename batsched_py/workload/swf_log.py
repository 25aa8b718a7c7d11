"""What a log in the Standard Workload Format (SWF) says: 18 numbers a job, and comments."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.swf_text import machine_size

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SwfLog:
    """The records of a log in the order of their submissions, one array a field; -1 means unknown."""

    job_number: Integers
    submit: Floats
    """Seconds since the start of the log, as are all times here."""
    wait: Floats
    run_time: Floats
    allocated_processors: Integers
    average_cpu_time: Floats
    used_memory: Floats
    requested_processors: Integers
    requested_time: Floats
    requested_memory: Floats
    status: Integers
    user: Integers
    group: Integers
    executable: Integers
    queue: Integers
    partition: Integers
    preceding_job: Integers
    think_time: Floats
    header: dict[str, str] = field(default_factory=dict)
    """The comments ``; Key: value``, in order; a value has a line for each comment under its key."""
    path: str = ""
    more: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What else the source knew: columns by name, such as ``gpus``, which SWF files cannot keep."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Records of the source that are not here, counted by the reason."""
    guessed: dict[str, int] = field(default_factory=dict)
    """Values that the source did not say and that were filled in, counted by kind."""

    def __len__(self) -> int:
        return len(self.job_number)

    @property
    def processors(self) -> Integers:
        """What each job ran on: the processors it was allocated, else those it requested."""
        return np.where(self.allocated_processors > 0, self.allocated_processors, self.requested_processors)

    @property
    def machine_size(self) -> int | None:
        """Processors of the recorded machine, as far as the header says."""
        return machine_size(self.header)

    def select(self, records: NDArray[Any]) -> SwfLog:
        """The log with these records only, given as numpy indexes an array: a mask or positions."""
        return replace(
            self,
            **{name: getattr(self, name)[records] for name in COLUMNS},
            more={name: column[records] for name, column in self.more.items()},
        )


#: The 18 fields of a record, in the order of the format.
COLUMNS = tuple(column.name for column in fields(SwfLog)[:18])

#: Those that hold whole numbers only.
WHOLE = frozenset(column.name for column in fields(SwfLog)[:18] if column.type == "Integers")
