"""Submitting the jobs of the workload files, each at its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from batsched_py.protocol.jobs import Job
from batsched_py.simulator.agenda import Agenda
from batsched_py.workload.model import Workload


class Submitter:
    """Submits static jobs; those of one instant workload by workload, in the string order of their ids."""

    def __init__(
        self,
        workloads: Sequence[Workload],
        agenda: Agenda,
        submit: Callable[[Job], None],
        done: Callable[[None], None],
    ) -> None:
        jobs = [job for workload in workloads for job in sorted(workload.jobs, key=attrgetter("id"))]
        jobs.sort(key=attrgetter("submission_time"))
        self._jobs = jobs
        self._next = 0
        self._agenda = agenda
        self._submit = submit
        self._done = done
        self._to_come: set[str] | None = None
        """Who is to come, from when somebody has asked for the first time."""
        self._plan(0.0)

    @property
    def first(self) -> float | None:
        """When the first job is submitted, if there is one; before that time only."""
        return max(self._jobs[0].submission_time, 0.0) if self._jobs else None

    def is_to_come(self, job_id: str) -> bool:
        """Whether a job is yet to be submitted."""
        if self._to_come is None:
            self._to_come = {job.id for job in self._jobs[self._next :]}
        return job_id in self._to_come

    def _plan(self, now: float) -> None:
        if self._next < len(self._jobs):
            self._agenda.at(max(self._jobs[self._next].submission_time, now), self._run)
        else:
            self._agenda.notice(now, self._done)

    def _run(self, _: None) -> None:
        jobs, place = self._jobs, self._next
        time = jobs[place].submission_time
        while place < len(jobs) and jobs[place].submission_time == time:
            self._submit(jobs[place])
            if self._to_come is not None:
                self._to_come.remove(jobs[place].id)
            jobs[place] = None  # type: ignore[call-overload]
            place += 1
        self._next = place
        self._plan(time)
