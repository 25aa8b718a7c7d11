"""What becomes of the jobs on hosts that fail, and of those that a policy puts back into the queue.

In Batsim a job goes on when its hosts are taken away. So the decision process kills it, and submits it again
where that is wanted, under a new name: ``w0!7`` comes back as ``w0!7#1``, then as ``w0!7#2``. Its user
hears of the last end only. Notes on the jobs tell what happened; ``docs/outside.md`` describes them.
"""

from __future__ import annotations

from math import inf

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.checkpoints import Checkpoints, lasting, work_of
from batsched_py.protocol.dependencies import without_dependencies
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.sizes import MALLEABLE
from batsched_py.users.base import Submission


class FailureRule(Struct, frozen=True):
    """What is done with a job on hosts that fail."""

    resubmits: bool = True
    """Whether it is submitted again."""
    checkpoints: Checkpoints | None = None
    """How it saves its work, if it does."""


class Failure(Struct, frozen=True):
    """A job that has lost hosts, and is to be killed."""

    job_id: str
    hosts: HostSet
    """Those that it has lost."""


class _Piece(Struct, eq=False):
    """One execution of a job, out of several if hosts fail."""

    first: Submission
    """The job as its user submitted it."""
    number: int
    """How many executions were before."""
    done: float
    """The seconds of work that they have saved."""
    note: str
    saved: float = 0.0
    """What this one has saved when it is killed."""
    is_requeued: bool = False
    """Whether a policy puts it back into the queue."""
    is_withdrawn: bool = False


class Restarts:
    """The executions of jobs, and what follows when one has lost hosts or was put back into the queue.

    Without a rule jobs go on when their hosts fail.
    """

    def __init__(self, rule: FailureRule | None, begins: SimulationBegins) -> None:
        self._rule = rule
        self._checkpoints = None if rule is None else rule.checkpoints
        speeds = set(begins.speeds or ())
        self._speed = speeds.pop() if len(speeds) == 1 else None
        self._pieces: dict[str, _Piece] = {}
        """The executions that wait or run."""
        self._latest: dict[str, str] = {}
        """For jobs that were submitted again, the execution that waits or runs."""
        self._failed: dict[str, HostSet] = {}
        """The executions that have lost hosts, and which."""
        self._killed: set[str] = set()
        """Those of them that are being killed."""
        self._again: list[_Piece] = []
        """The executions that are to be submitted."""

    @property
    def is_due(self) -> bool:
        """Whether there are jobs to kill, or to submit again."""
        return bool(self._again or self._failed)

    def hosts_fail(self, hosts: HostSet, running: list[RunningJob]) -> None:
        """Hosts fail while these jobs run."""
        if self._rule is None:
            return
        for job in running:
            if job.job.id in self._pieces and job.job.id not in self._killed and (lost := job.hosts & hosts):
                self._failed[job.job.id] = lost | self._failed.get(job.job.id, HostSet())

    def take(self) -> list[Failure | Submission]:
        """The jobs that are to be killed, and those that are to be submitted again, now."""
        actions: list[Failure | Submission] = [Failure(*failed) for failed in self._failed.items()]
        again, self._again = self._again, []
        self._failed = {}
        return [*actions, *map(self._submission, again)]

    def submitted(self, submission: Submission) -> Submission:
        """What the simulator is given when a user submits a job."""
        return self._submission(_Piece(submission, 0, 0.0, submission.note))

    def kill(self, failure: Failure, running: RunningJob, now: float) -> str:
        """A job that has lost hosts is killed now: the note on this execution."""
        return self._stop(running, f"failed={str(failure.hosts).replace(' ', ',')}", now)

    def requeue(self, running: RunningJob, now: float) -> tuple[str, str]:
        """A policy puts a job back into the queue: its next name, and the note on this execution."""
        piece = self._pieces[running.job.id]
        piece.is_requeued = True
        return f"{piece.first.job.id}#{piece.number + 1}", self._stop(running, "requeued=1", now)

    def _stop(self, running: RunningJob, fact: str, now: float) -> str:
        """An execution is killed now: the note on it."""
        piece, rule = self._pieces[running.job.id], self._checkpoints
        self._killed.add(running.job.id)
        facts = [fact]
        if rule is not None:
            job, profile = piece.first.job, piece.first.profile
            left = work_of(profile, job.size, self._speed) - piece.done
            piece.saved = rule.saved(left, now - running.start)
            nb_saved = round(piece.saved / rule.interval)
            facts += [f"saved={piece.saved:.10g}", f"overhead={nb_saved * rule.overhead:.10g}"]
        return " ".join(filter(None, [_without(piece.note, "overhead"), *facts]))

    def __contains__(self, job_id: str) -> bool:
        """Whether this is an execution of a job that a user has submitted."""
        return job_id in self._pieces

    def ended(self, job_id: str, state: JobState) -> tuple[Job, str | None]:
        """An execution has ended: its job, and the next name of that if it will be submitted again."""
        piece = self._pieces.pop(job_id)
        self._failed.pop(job_id, None)
        was_killed = job_id in self._killed
        self._killed.discard(job_id)
        resubmits = piece.is_requeued or (self._rule is not None and self._rule.resubmits)
        if was_killed and state is JobState.KILLED and resubmits and not piece.is_withdrawn:
            self._again.append(
                _Piece(piece.first, piece.number + 1, piece.done + piece.saved, piece.first.note)
            )
            return piece.first.job, f"{piece.first.job.id}#{piece.number + 1}"
        self._latest.pop(piece.first.job.id, None)
        return piece.first.job, None

    def latest(self, job_id: str) -> str:
        """The execution of a job that waits or runs."""
        return self._latest.get(job_id, job_id)

    def noted(self, job_id: str, note: str) -> None:
        """A user has noted this about an execution."""
        self._pieces[job_id].note = note

    def withdrawn(self, job_id: str) -> None:
        """The user withdraws the job of which this is an execution."""
        self._pieces[job_id].is_withdrawn = True

    def _submission(self, piece: _Piece) -> Submission:
        job, profile = piece.first.job, piece.first.profile
        if piece.number:
            piece.note = " ".join(filter(None, [piece.first.note, f"restart={piece.number}"]))
            name = f"{job.id}#{piece.number}"
            self._latest[job.id] = name
            job = without_dependencies(replace(job, id=name))
        if self._checkpoints is not None:
            job, profile = self._with_checkpoints(self._checkpoints, job, profile, piece)
        self._pieces[job.id] = piece
        return Submission(job, profile, piece.note, piece.first.decided)

    def _with_checkpoints(
        self, rule: Checkpoints, job: Job, profile: Profile, piece: _Piece
    ) -> tuple[Job, Profile]:
        """The job with the work that is left and the time for saving it; its walltime grows alike."""
        if MALLEABLE in job.extra:
            raise InputError(
                f"job {job.id} is malleable, and how much of its work a checkpoint saves is not known; use "
                "--on-failure resubmit, then it begins again"
            )
        left = work_of(profile, job.size, self._speed) - piece.done
        seconds = rule.lasts(left)
        if overhead := seconds - left:
            piece.note = " ".join(filter(None, [piece.note, f"overhead={overhead:.10g}"]))
        if not (piece.done or overhead):
            return job, profile
        walltime = job.walltime if job.walltime == inf else rule.lasts(job.walltime - piece.done)
        name = f"{job.profile}_{job.size}_for_{seconds!r}"
        return replace(job, walltime=walltime, profile=name), lasting(profile, seconds, job.size, self._speed)


def _without(note: str, key: str) -> str:
    """A note without one of its facts."""
    return " ".join(fact for fact in note.split(" ") if not fact.startswith(f"{key}="))
