"""Submitting the jobs of the workload files, each at its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from heapq import merge
from operator import attrgetter

from batsched_py.protocol.jobs import Job
from batsched_py.simulator.agenda import Agenda
from batsched_py.workload.model import Workload, as_jobs


class Submitter:
    """Submits static jobs; those of one instant workload by workload, in the string order of their ids.

    It holds none of them but the next ones, so a workload may be larger than memory.

    Jobs are handed over by a message, which ``send`` delivers now or later. As in Batsim, the submitter waits
    for that, and sleeps afterwards as if it had not: the next jobs come that much later.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        agenda: Agenda,
        submit: Callable[[Job], None],
        done: Callable[[None], None],
        send: Callable[[Callable[[], None]], None] = lambda hand_over: hand_over(),
    ) -> None:
        every = [as_jobs(workload.jobs) for workload in workloads]
        names = [workload.name for workload in workloads]
        self._workloads = dict(zip(names, every, strict=True))
        self._ranks = {name: rank for rank, name in enumerate(names)}
        in_order = [jobs.in_submission_order() for jobs in every]
        self._jobs = (
            in_order[0] if len(in_order) == 1 else merge(*in_order, key=attrgetter("submission_time"))
        )
        self._next = next(self._jobs, None)
        self._last: Job | None = None
        self._agenda = agenda
        self._submit = submit
        self._done = done
        self._send = send
        self._plan(0.0, 0.0)

    @property
    def first(self) -> float | None:
        """When the first job is submitted, if there is one; before that time only."""
        return None if self._next is None else max(self._next.submission_time, 0.0)

    def is_to_come(self, job_id: str) -> bool:
        """Whether a job is yet to be submitted."""
        jobs = self._workloads.get(job_id.partition("!")[0])
        job = None if jobs is None else jobs.find(job_id)
        return job is not None and (self._last is None or self._turn(job) > self._turn(self._last))

    def _turn(self, job: Job) -> tuple[float, int, str]:
        """What the order of submissions goes by."""
        return job.submission_time, self._ranks[job.workload], job.id

    def _plan(self, now: float, late: float) -> None:
        if self._next is not None:
            self._agenda.at(max(self._next.submission_time, now) + late, self._run)
        else:
            self._agenda.notice(now + late, self._done)

    def _run(self, _: None) -> None:
        self._send(partial(self._hand_over, self._agenda.clock))

    def _hand_over(self, sent: float) -> None:
        job, submit, jobs = self._next, self._submit, self._jobs
        assert job is not None
        time = job.submission_time
        while job is not None and job.submission_time == time:
            self._last = job
            submit(job)
            job = next(jobs, None)
        self._next = job
        self._plan(time, self._agenda.clock - sent)
