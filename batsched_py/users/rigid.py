"""Users who react to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.users.base import Behaviour, Submission, User
from batsched_py.users.note import recorded_note
from batsched_py.workload.jobs import as_jobs
from batsched_py.workload.model import Workload


class Rigid(Behaviour):
    """Every job at its recorded time, whatever happens."""

    name = "rigid"

    def native_users(self) -> tuple[str, dict[str, Any]]:
        """The native engine has such a user."""
        return "rigid", {}

    def users(self, workload: Workload) -> list[User]:
        """One user who submits for all, since none of them reacts to anything.

        Jobs of one instant go in the order in which Batsim itself submits those of a workload file.
        """
        jobs = as_jobs(workload.jobs).in_submission_order()
        return [RigidUser(workload.name, jobs, workload.profiles)]


class RigidUser(User):
    """Submits each job at its own submission time."""

    def __init__(self, name: str, jobs: Iterator[Job], profiles: Mapping[str, Profile]) -> None:
        self.name = name
        self._jobs = jobs
        self._profiles = profiles
        self._next = next(jobs, None)

    def next_time(self) -> float:
        """The time of the next job."""
        return inf if self._next is None else self._next.submission_time

    def submit(self, now: float) -> list[Submission]:
        """All jobs whose time has come."""
        submissions = []
        job = self._next
        while job is not None and job.submission_time <= now:
            submissions.append(Submission(job, self._profiles[job.profile], recorded_note(job)))
            job = next(self._jobs, None)
        self._next = job
        return submissions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Take no notice."""
