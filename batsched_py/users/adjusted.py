"""Users who keep their think times between batches.

N. Zakay and D. Feitelson, "Preserving User Behavior Characteristics in Trace-Based Simulation of Parallel Job
Scheduling", MASCOTS 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from batsched_py.users.batches import InBatches, Presence, Record
from batsched_py.workload.model import Workload


@dataclass
class Adjusted(InBatches):
    """A batch of overlapping jobs starts when the think times since those it waits for have passed.

    Each user's jobs are cut into sessions and these into batches; inside a batch jobs keep their distances.
    The user is there at any hour. A rejected or killed job is over like any other. The papers let a job wait
    for what had ended before it *ran*; as a user can only wait before submitting, here it is what had ended
    before the batch was *submitted*.
    """

    name = "adjusted"

    def presences(self, workload: Workload) -> Callable[[Record], Presence]:
        """Always."""
        return lambda record: lambda time, opens: time
