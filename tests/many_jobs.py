"""A simulation of 100,000 jobs that a user hands in batch by batch, and the memory that it takes.

Run as ``python -m tests.many_jobs PREFIX [--reuse]``, in a process of its own: prints the peak of its memory
in bytes after 20,000 finished jobs and after all.
"""

from __future__ import annotations

import sys
from math import inf

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.protocol.events import Settings
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import Submission, User
from tests.peak import peak

BATCH = 1_000
EARLY = 20_000
ALL = 100_000


class Batches(User):
    """Hands in a batch of jobs when the one before is finished."""

    name = "batches"

    def __init__(self) -> None:
        self.handed_in = 0
        self.finished = 0
        self.peaks: list[int] = []

    def next_time(self) -> float:
        return 0.0 if self.finished == self.handed_in < ALL else inf

    def submit(self, now: float) -> list[Submission]:
        first, self.handed_in = self.handed_in, self.handed_in + BATCH
        return [
            Submission(
                Job(f"many!{n}", now, 1, 60.0, f"p{n % 10}", {"user": "batches"}),
                Delay(1 + n % 10),
            )
            for n in range(first, self.handed_in)
        ]

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self.finished += 1
        if self.finished in (EARLY, ALL):
            self.peaks.append(peak())


if __name__ == "__main__":
    user = Batches()
    settings = Settings(dynamic_jobs=True, profile_reuse="--reuse" in sys.argv)
    batsim = Batsim(Setup(Platform.homogeneous(100), [], settings), Outputs(sys.argv[1]))
    simulate(batsim, DecisionProcess(Fcfs(), [user], remembers_ends=False))
    print(*user.peaks)
