"""Jobs that users submit while the simulation runs, and those that are submitted again.

In Batsim a job goes on when its hosts are taken away. So the decision process kills it, and submits it again
where that is wanted, under a new name: ``w0!7`` comes back as ``w0!7#1``, then as ``w0!7#2``. Jobs that a
policy puts back into the queue come back likewise. The user hears of the last end only. Notes on the jobs
tell what happened; ``docs/outside.md`` describes them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError, ProtocolError, RuleBroken
from batsched_py.ledger import rules
from batsched_py.ledger.effects import Effect, RegisteredJob, describe
from batsched_py.ledger.ledger import Ledger
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.failures import Checkpoints, lasting, work_of
from batsched_py.protocol import events as ev
from batsched_py.protocol.dependencies import without_dependencies
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState, to_tick
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.sizes import MALLEABLE
from batsched_py.users import Action, Submission, User, Withdrawal
from batsched_py.users.broker import Broker


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

    Without a rule jobs go on when their hosts fail. If the policy puts no jobs back into the queue either,
    nothing ever follows, and no execution is remembered.
    """

    def __init__(self, rule: FailureRule | None, requeues: bool, begins: ev.SimulationBegins) -> None:
        self._rule = rule
        self._remembers = requeues or rule is not None
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
        again, self._again = self._again, []
        failed, self._failed = self._failed, {}
        return [*(Failure(*each) for each in failed.items()), *map(self._submission, again)]

    def submitted(self, submission: Submission) -> Submission:
        """What the simulator is given when a user submits a job."""
        if not self._remembers:
            return submission
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
            number = piece.number + 1
            self._again.append(_Piece(piece.first, number, piece.done + piece.saved, piece.first.note))
            return piece.first.job, f"{piece.first.job.id}#{number}"
        self._latest.pop(piece.first.job.id, None)
        return piece.first.job, None

    def latest(self, job_id: str) -> str:
        """The execution of a job that waits or runs."""
        return self._latest.get(job_id, job_id)

    def noted(self, job_id: str, note: str) -> None:
        """A user has noted this about an execution."""
        if job_id in self._pieces:
            self._pieces[job_id].note = note

    def withdrawn(self, job_id: str) -> None:
        """The user withdraws the job of which this is an execution."""
        if job_id in self._pieces:
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


class Submissions:
    """Turns what users do into decisions, and tells them what became of their jobs.

    A submission is a registration; a job that is withdrawn is rejected if it waits and killed if it runs.

    To Batsim a job is submitted as soon as it is registered. Where it was told to acknowledge, it also
    announces the job in its next message. That echo is no news, so it changes nothing here, and a simulation
    runs alike with and without it.
    """

    def __init__(
        self, users: Iterable[User], begins: ev.SimulationBegins, ledger: Ledger, restarts: Restarts
    ) -> None:
        self.broker = Broker(users)
        """Knows whose jobs they are, and who wants to hear of them."""
        self._restarts = restarts
        if not (begins.settings.dynamic_jobs or self.broker.done):
            raise ProtocolError(
                "users submit jobs while the simulation runs, and this simulator does not accept that; "
                "start it with --enable-dynamic-jobs"
            )
        self._ledger = ledger
        self._settings = begins.settings
        self._static_workloads = begins.workloads
        self._known_profiles: defaultdict[str, set[str]] = defaultdict(set)
        self._unacknowledged: set[str] = set()
        self._open = begins.settings.dynamic_jobs

    def news(self, events: list[ev.Event]) -> list[ev.Event]:
        """The events without the echoes of registrations."""
        if not self._unacknowledged:
            return events
        return [event for event in events if not self._is_echo(event)]

    def _is_echo(self, event: ev.Event) -> bool:
        if isinstance(event, ev.JobSubmitted) and event.job.id in self._unacknowledged:
            self._unacknowledged.remove(event.job.id)
            return True
        return False

    def job_started(self, running: RunningJob) -> None:
        """Tell the user whose job it is; one that is submitted again after a failure is no news."""
        self.broker.job_started(running.job.id, running.start)

    def job_ended(self, job_id: str, state: JobState, now: float) -> bool:
        """Tell the user whose job it was, and those who wait for it; not if it is to be submitted again."""
        if job_id in self._restarts:
            first, next_name = self._restarts.ended(job_id, state)
            if next_name is not None:
                self._ledger.holds.comes_back(first, job_id, next_name)
                return False
            if first.id != job_id:
                self._ledger.holds.over(first, now, state is JobState.SUCCESS)
            job_id = first.id
        self.broker.job_ended(job_id, state, now)
        return True

    def hosts_fail(self, hosts: HostSet) -> None:
        """Hosts were taken away, and the jobs on them with them, if that is the rule."""
        self._restarts.hosts_fail(hosts, list(self._ledger.running))

    def requeue(self, running: RunningJob, now: float) -> tuple[str, str]:
        """A policy puts a job back into the queue: its next name, and what is noted about this execution."""
        if running.job.id not in self._restarts:
            raise RuleBroken("it cannot be put back into the queue, because no user has handed it in")
        return self._restarts.requeue(running, now)

    def is_due(self, now: float) -> bool:
        """Whether somebody wants to act now."""
        return self.broker.next_time <= now or self._restarts.is_due

    def actions(self, now: float) -> list[Action | Failure]:
        """What is done about failures, and what users do now."""
        actions: list[Action | Failure] = [*self._restarts.take()]
        for action in self.broker.actions(now):
            actions.append(self._restarts.submitted(action) if isinstance(action, Submission) else action)
        return actions

    def take(self, action: Action | Failure, now: float) -> list[Effect]:
        """What makes the simulator know something that a user does, or that a failure does.

        A job that is rejected as soon as it is submitted needs no withdrawal any more.
        """
        if isinstance(action, Submission):
            return [self._register(action, now)]
        if isinstance(action, Failure):
            return self._fail(action, now)
        if not self.broker.awaits(action.job_id):
            return []
        action = replace(action, job_id=self._restarts.latest(action.job_id))
        if action.note:
            self._restarts.noted(action.job_id, action.note)
        if isinstance(action, Withdrawal):
            return self._withdraw(action, now)
        return self._decide([ev.SetJobMetadata(action.job_id, action.note, time=now)], now)

    def _fail(self, failure: Failure, now: float) -> list[Effect]:
        """Kill a job that has lost hosts, if it still runs."""
        running = self._ledger.running.get(failure.job_id)
        if running is None:
            return []
        time = max(now, running.start)
        note = self._restarts.kill(failure, running, time)
        noted = ev.SetJobMetadata(failure.job_id, note, time=now)
        return self._decide([noted, ev.KillJobs([failure.job_id], time=time)], now)

    def _withdraw(self, withdrawal: Withdrawal, now: float) -> list[Effect]:
        """Take a job back. Its user hears of a rejection at once, and of a kill when it has happened.

        What a slow scheduler has just decided to start can be killed when it has started, not before.
        """
        job_id = withdrawal.job_id
        noted = [ev.SetJobMetadata(job_id, withdrawal.note, time=now)] if withdrawal.note else []
        self._restarts.withdrawn(job_id)
        running = self._ledger.running.get(job_id)
        if running is not None:
            return self._decide([*noted, ev.KillJobs([job_id], time=max(now, running.start))], now)
        effects = self._decide([*noted, ev.RejectJob(job_id, time=now)], now)
        self.job_ended(job_id, JobState.REJECTED, now)
        return effects

    def _register(self, submission: Submission, now: float) -> RegisteredJob:
        """Make a job known, its profile before it if that is new, and what is noted about it."""
        job, ledger, settings = submission.job, self._ledger, self._settings
        workload, _, name = job.id.partition("!")
        if workload in self._static_workloads:
            raise ProtocolError(
                f"the simulator plays workload {workload!r} itself; start it without -w, users submit"
            )
        profile_name = job.profile if settings.profile_reuse else f"job_{name}"
        walltime = float(job.walltime)
        if not walltime > 0:
            raise RuleBroken(f"RegisterJob {job.id}: a walltime of {walltime:g} s makes no sense")
        if walltime != inf:
            walltime = to_tick(walltime)
        job = Job(job.id, now, job.size, walltime, profile_name, job.extra)
        is_new = profile_name not in self._known_profiles[workload]
        if is_new:
            try:
                ledger.registry.add_profile(workload, profile_name, submission.profile)
            except RuleBroken as broken:
                raise RuleBroken(f"RegisterProfile: {broken}") from None
            if settings.profile_reuse:
                self._known_profiles[workload].add(profile_name)
        step: type[ev.Event] = ev.RegisterJob
        try:
            ledger.register(job)
            step = ev.SetJobMetadata
            rules.check_note(submission.note)
        except RuleBroken as broken:
            raise RuleBroken(f"{step.__name__} {job.id}: {broken}") from None
        if settings.acknowledge_dynamic_jobs:
            self._unacknowledged.add(job.id)
        return RegisteredJob(job, now, submission.profile if is_new else None, submission.note)

    def closing(self, now: float) -> list[Effect]:
        """What to say after all that: when to be called next, or that nobody will ever submit again."""
        if self._open and self.broker.done:
            self._open = False
            return self._decide([ev.RegistrationFinished(time=now)], now)
        call = self.broker.call_to_ask(now)
        return [] if call is None else self._decide([ev.CallMeLater(call, time=now)], now)

    def _decide(self, decisions: Sequence[ev.Event], now: float) -> list[Effect]:
        effects = []
        for decision in decisions:
            try:
                effects.append(self._ledger.decide(decision, now))
            except RuleBroken as broken:
                raise RuleBroken(f"{describe(decision)}: {broken}") from None
        return effects
