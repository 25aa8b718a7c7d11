"""Jobs that users submit while the simulation runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf

from msgspec.structs import replace

from batsched_py.decision.restarts import Failure, Restarts
from batsched_py.errors import ProtocolError, RuleBroken
from batsched_py.ledger import rules
from batsched_py.ledger.ledger import Effect, Ledger, RegisteredJob, describe
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState, to_tick
from batsched_py.protocol.profiles import Profile
from batsched_py.users.base import Action, Submission, User, Withdrawal
from batsched_py.users.broker import Broker


class Submissions:
    """Turns what users do into decisions, and tells them what became of their jobs.

    A submission is a registration; a job that is withdrawn is rejected if it waits and killed if it runs.

    To Batsim a job is submitted as soon as it is registered. Where it was told to acknowledge, it also
    announces the job in its next message. That echo is no news, so it changes nothing here, and a simulation
    runs alike with and without it.
    """

    def __init__(
        self,
        users: Iterable[User],
        begins: ev.SimulationBegins,
        ledger: Ledger,
        restarts: Restarts | None = None,
    ) -> None:
        self._broker = Broker(users)
        self._restarts = restarts
        if not (begins.settings.dynamic_jobs or self._broker.done):
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

    @property
    def hears_starts(self) -> bool:
        """Whether any user wants to know when jobs start."""
        return self._broker.hears_starts

    def job_started(self, running: RunningJob) -> None:
        """Tell the user whose job it is; one that is submitted again after a failure is no news."""
        self._broker.job_started(running.job.id, running.start)

    def job_ended(self, job_id: str, state: JobState, now: float) -> bool:
        """Tell the user whose job it was, and those who wait for it; not if it is to be submitted again."""
        if self._restarts is not None and job_id in self._restarts:
            first, next_name = self._restarts.ended(job_id, state)
            if next_name is not None:
                if self._ledger.holds is not None:
                    self._ledger.holds.comes_back(first, job_id, next_name)
                return False
            if first.id != job_id and self._ledger.holds is not None:
                self._ledger.holds.over(first, now, state is JobState.SUCCESS)
            job_id = first.id
        self._broker.job_ended(job_id, state, now)
        return True

    def hosts_fail(self, hosts: HostSet) -> None:
        """Hosts were taken away, and the jobs on them with them, if that is the rule."""
        if self._restarts is not None:
            self._restarts.hosts_fail(hosts, list(self._ledger.running))

    def requeue(self, running: RunningJob, now: float) -> tuple[str, str]:
        """A policy puts a job back into the queue: its next name, and what is noted about this execution."""
        if self._restarts is None or running.job.id not in self._restarts:
            raise RuleBroken("it cannot be put back into the queue, because no user has handed it in")
        return self._restarts.requeue(running, now)

    @property
    def will_act(self) -> bool:
        """Whether somebody will act, whatever happens."""
        return self._broker.next_time != inf

    def is_due(self, now: float) -> bool:
        """Whether somebody wants to act now."""
        return self._broker.next_time <= now or (self._restarts is not None and self._restarts.is_due)

    def actions(self, now: float) -> list[Action | Failure]:
        """What is done about failures, and what users do now."""
        if self._restarts is None:
            return [*self._broker.actions(now)]
        submitted = self._restarts.submitted
        return [
            *self._restarts.take(),
            *(
                submitted(action) if isinstance(action, Submission) else action
                for action in self._broker.actions(now)
            ),
        ]

    def take(self, action: Action | Failure, now: float) -> list[Effect]:
        """What makes the simulator know something that a user does, or that a failure does.

        A job that is rejected as soon as it is submitted needs no withdrawal any more.
        """
        if isinstance(action, Submission):
            return [self._register(action, now)]
        if isinstance(action, Failure):
            return self._fail(action, now)
        if not self._broker.awaits(action.job_id):
            return []
        if self._restarts is not None:
            action = replace(action, job_id=self._restarts.latest(action.job_id))
            if action.note:
                self._restarts.noted(action.job_id, action.note)
        if isinstance(action, Withdrawal):
            return self._withdraw(action, now)
        return self._decide([ev.SetJobMetadata(action.job_id, action.note, time=now)], now)

    def _fail(self, failure: Failure, now: float) -> list[Effect]:
        """Kill a job that has lost hosts, if it still runs."""
        running = self._ledger.running.get(failure.job_id)
        if running is None or self._restarts is None:
            return []
        time = max(now, running.start)
        note = self._restarts.kill(failure, running, time)
        return self._decide(
            [
                ev.SetJobMetadata(failure.job_id, note, time=now),
                ev.KillJobs([failure.job_id], time=time),
            ],
            now,
        )

    def _withdraw(self, withdrawal: Withdrawal, now: float) -> list[Effect]:
        """Take a job back. Its user hears of a rejection at once, and of a kill when it has happened.

        What a slow scheduler has just decided to start can be killed when it has started, not before.
        """
        job_id = withdrawal.job_id
        decisions: list[ev.Event] = []
        if withdrawal.note:
            decisions.append(ev.SetJobMetadata(job_id, withdrawal.note, time=now))
        if self._restarts is not None:
            self._restarts.withdrawn(job_id)
        running = self._ledger.running.get(job_id)
        if running is not None:
            return self._decide([*decisions, ev.KillJobs([job_id], time=max(now, running.start))], now)
        effects = self._decide([*decisions, ev.RejectJob(job_id, time=now)], now)
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
            self._meet_profile(job, submission.profile)
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

    def _meet_profile(self, job: Job, profile: Profile) -> None:
        """Make known what a job does, and others like it may do."""
        workload = job.workload
        try:
            self._ledger.registry.add_profile(workload, job.profile, profile)
        except RuleBroken as broken:
            raise RuleBroken(f"RegisterProfile: {broken}") from None
        if self._settings.profile_reuse:
            self._known_profiles[workload].add(job.profile)

    def closing(self, now: float) -> list[Effect]:
        """What to say after all that: when to be called next, or that nobody will ever submit again."""
        if self._open and self._broker.done:
            self._open = False
            return self._decide([ev.RegistrationFinished(time=now)], now)
        call = self._broker.call_to_ask(now)
        return [] if call is None else self._decide([ev.CallMeLater(call, time=now)], now)

    def _decide(self, decisions: Sequence[ev.Event], now: float) -> list[Effect]:
        effects = []
        for decision in decisions:
            try:
                effects.append(self._ledger.decide(decision, now))
            except RuleBroken as broken:
                raise RuleBroken(f"{describe(decision)}: {broken}") from None
        return effects
