"""What a resource manager does before and after a job: it launches it, and cleans its hosts.

Both take time in reality, and none in Batsim, which therefore underestimates how long jobs wait (Dutot,
Mercier, Poquet and Richard, 2016, sections 7.2 and 9).
"""

from __future__ import annotations

from collections.abc import Callable

from batsched_py.ledger.running import RunningJob
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.paje import PajeTrace
from batsched_py.simulator.setup import Setup


class Procedures:
    """Lets time pass between the decision to start a job and its start, and between its end and its report.

    The hosts of the job are not free in these times, and compute nothing.
    """

    def __init__(
        self, setup: Setup, agenda: Agenda, trace: PajeTrace | None, begin: Callable[[RunningJob], None]
    ) -> None:
        self._launch_time = setup.launch_time
        self._cleaning_time = setup.cleaning_time
        self._agenda = agenda
        self._trace = trace
        self._begin = begin
        self._launching: dict[str, tuple[int, RunningJob]] = {}

    def launch(self, running: RunningJob) -> None:
        """A job is to be started."""
        if not self._launch_time:
            self._begin(running)
            return
        now = self._agenda.clock
        number = self._agenda.at(now + self._launch_time, self._launched, running.job.id)
        self._launching[running.job.id] = number, running
        if self._trace is not None:
            self._trace.job_launches(running.hosts, now)

    def _launched(self, job_id: str) -> None:
        _, running = self._launching.pop(job_id)
        self._begin(running)

    def stop_launching(self, job_id: str) -> None:
        """Begin a job at once if it is being launched, because it is to be killed."""
        if job_id in self._launching:
            self._agenda.cancel(self._launching[job_id][0])
            self._launched(job_id)

    def clean(self, then: Callable[[], None]) -> None:
        """Do something when the hosts of a job that has ended are clean."""
        if self._cleaning_time:
            self._agenda.at(self._agenda.clock + self._cleaning_time, _do, then)
        else:
            then()


def _do(action: Callable[[], None]) -> None:
    action()
