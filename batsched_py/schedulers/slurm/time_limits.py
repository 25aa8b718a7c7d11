"""When jobs are killed that have run out of time.

Slurm's controller looks at time limits every 30 s. A job that runs out of time between two looks goes on
until the next one, and with ``OverTimeLimit`` for so much longer.
"""

from __future__ import annotations

from heapq import heappop, heappush

from batsched_py.schedulers.slurm.clock import Controller
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.records import RunningRecord

PERIOD = 30.0
"""Between two looks, in seconds."""


class TimeLimits:
    """The jobs whose end is up to Slurm: those that the simulation lets run on beyond their time limits.

    The controller ``started`` so many seconds before time 0, and counts its looks from then on.
    """

    def __init__(self, configuration: Configuration, started: float) -> None:
        self._controller = Controller(started, PERIOD)
        self._over = configuration.scheduling.over_time_limit
        self._due: list[tuple[float, int, RunningRecord]] = []

    def started(self, running: RunningRecord) -> None:
        """A job runs from now on."""
        record = running.waiting
        if record.fields.time_limit is not None or record.fields.time_min is not None:
            over = record.partition.settings.over_time_limit
            self._end_at(running, running.end + (self._over if over is None else over))

    def shortened(self, running: RunningRecord) -> None:
        """A job has to end earlier, because it makes way for another."""
        self._end_at(running, running.end)

    def _end_at(self, running: RunningRecord, end: float) -> None:
        look = self._controller.look(self._controller.look_from(end))
        heappush(self._due, (look, running.waiting.number, running))

    @property
    def next_time(self) -> float:
        """When a job may have to be killed next."""
        return self._due[0][0] if self._due else float("inf")

    def exhausted(self, now: float) -> list[RunningRecord]:
        """The jobs that a look finds, if there is one now; some may have ended by themselves."""
        found = []
        while self._due and self._due[0][0] <= now:
            found.append(heappop(self._due)[2])
        return found
