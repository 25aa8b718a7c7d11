"""The policy ``slurm``: what happens, when its loops run, and what becomes of their decisions."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Annotated, Literal

from msgspec import Meta

from batsched_py.errors import PolicyError
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.dependencies import AFTER
from batsched_py.protocol.events import ExecuteJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.idle_hosts import SleepStates
from batsched_py.slurm.policy.clock import MOMENT, Clock, TimeLimits
from batsched_py.slurm.policy.job import RunningRecord, WaitingRecord, fields_of
from batsched_py.slurm.policy.loops import Backfill, MainLoop
from batsched_py.slurm.policy.nodes import Share
from batsched_py.slurm.policy.power_saving import PowerSaving
from batsched_py.slurm.policy.priorities import AgesOfTasks
from batsched_py.slurm.policy.settings import Configuration, read_configuration
from batsched_py.slurm.policy.setup import Never, Setup
from batsched_py.slurm.policy.submit_plugin import Refused, Submissions
from batsched_py.slurm.policy.taking import Hosts

_log = logging.getLogger(__name__)

REQUEUED = 121
"""A job that was put back into the queue may start so many seconds later (``cred_expire`` and one)."""

KILLED = 0.35
"""So long it takes at least until the nodes of a job are clean that was killed, in seconds."""

DIGITS = 3
"""Times are kept to the millisecond."""


@dataclass
class Slurm(Scheduler):
    """A twin of Slurm: its main loop and its backfill loop, with partitions, priorities and limits."""

    name = "slurm"
    stands_alone = True

    configuration_file: Annotated[
        str,
        Meta(description="A slurm.toml, made by `batsched-py slurm import`; Slurm's defaults without one."),
    ] = ""
    completing: Annotated[
        float,
        Meta(
            ge=0, description="How long it takes to clean up the nodes of a job that has ended, in seconds."
        ),
    ] = 0.1
    started: Annotated[
        float,
        Meta(ge=0, description="When the controller was started, in seconds before the first submission."),
    ] = 64.5
    test_time: Annotated[
        float,
        Meta(
            ge=0,
            description="How long a backfill cycle takes for each job, in seconds: what `sdiag` tells as its "
            "mean cycle, divided by its mean depth.",
        ),
    ] = 0.0015

    submit_plugin: Annotated[
        str,
        Meta(
            description="A class of your own that changes or refuses jobs when they are submitted: "
            "path/to/file.py:ClassName."
        ),
    ] = ""
    stuck: Annotated[
        Literal["error", "pending"],
        Meta(description="What becomes of jobs that can never start: as in Slurm, they are left pending."),
    ] = "pending"

    def configuration(self) -> Configuration:
        """That of the file; without one, Slurm's defaults."""
        return read_configuration(self.configuration_file) if self.configuration_file else Configuration()

    @property
    def narrows_the_machine(self) -> bool:  # type: ignore[override]
        """Whether jobs ask for something else than what the workload says, or nodes sleep."""
        return bool(self.submit_plugin) or self.configuration().power.is_on

    @cached_property
    def requeues(self) -> bool:  # type: ignore[override]
        """Whether jobs make way for others by going back into the queue."""
        return self.configuration().requeues

    def begin(self, cluster: Cluster) -> None:
        """Read the configuration, and look up the nodes."""
        self._check_options(cluster)
        self._configuration = self.configuration()
        self._submissions = (
            Submissions(self.submit_plugin, self._configuration) if self.submit_plugin else None
        )
        self._setup = Setup(self._configuration, cluster.machines)
        self._state = self._setup.state(cluster.can_requeue)
        self._state.limits.spent.count_from(self.started)
        self._main_loop = MainLoop(self._state)
        self._priorities = self._setup.priorities()
        self._priorities.count_from(self.started)
        self._causes = self._setup.causes(self._state, self._priorities)
        self._told: dict[str, tuple[str, str]] = {}
        """Which cause of its wait was told last of a job."""
        self._hosts = Hosts(self._setup.machine)
        self._power = self._power_saving(cluster)
        self._configuring: dict[str, tuple[RunningRecord, HostSet]] = {}
        """Jobs that have their share, and start when all of their nodes are awake."""
        self._clock = Clock(self._configuration.scheduling, self.started, self.test_time)
        for created in sorted({each.created for each in self._configuration.reservations}):
            if -self.started < created < 0:  # for the backfill loop, it is a change when one is made
                self._clock.changed(created)
        self._time_limits = TimeLimits(self._configuration, self.started)
        self._known: dict[str, list[WaitingRecord]] = {}
        """The jobs that wait; those that can never run have no record."""
        self._never: dict[str, str] = {}
        """Why these cannot."""
        self._nb_heard = 0
        """How many jobs that have joined the queue were looked at."""
        self._running: dict[str, RunningRecord] = {}
        self._cleaned: list[tuple[float, int, RunningRecord, bool]] = []
        """Until when the nodes of which jobs are cleaned up, and whether they tell when they are clean."""
        self._available = cluster.available
        self._start = partial(self._begin_job, cluster)
        preempts = self._configuration.preemption.type != "none"
        self._make_way = partial(self._let_make_way, cluster) if preempts else None
        self._cancelled: set[str] = set()
        """Running jobs that make way for others."""
        self._in_grace: set[str] = set()
        """Those that have to make way, and go on running for a while."""
        self._ages = AgesOfTasks()
        self._requeued: dict[str, WaitingRecord] = {}
        """What jobs are called next that go back into the queue, and what they were."""
        self._called = -inf
        self._cycle: Backfill | None = None
        self._reordered = False
        """Whether priorities have changed since the last look at the whole queue, or a job has joined the
        queue that had waited for others; nobody tells the loops of that."""
        self._depth = self._configuration.scheduling.default_queue_depth
        self._nb_ended = 0
        cluster.on_end(lambda ended: self._ended(ended, cluster.now))

    def _check_options(self, cluster: Cluster) -> None:
        """Refuse what the configuration says in another way."""
        if cluster.outside.closures:
            raise PolicyError(
                "scheduler 'slurm': it knows the reservations of its configuration, and no closures; write "
                "them there, and leave out --closures"
            )
        if self.allocator or (self.selection, self.nodes) != (Scheduler.selection, Scheduler.nodes):
            raise PolicyError(
                "scheduler 'slurm': its configuration says which nodes and cores a job gets; leave out the "
                "options selection, nodes and allocator"
            )

    def schedule(self, cluster: Cluster) -> None:
        """Run the loops that are due, and ask for a call when the next one is."""
        now = round(cluster.now, DIGITS)
        self._advance(now)
        self._hear(cluster)
        if self._time_limits.next_time <= now:
            self._kill_exhausted(cluster, now)
        self._clean(now)
        if self._power is not None:
            self._switch_nodes(cluster, self._power, now)
        clock, state = self._clock, self._state
        clock.has_jobs(now, bool(state.waiting))
        if state.waiting:
            state.relax(now)
            start, makes_way = self._start, self._make_way
            full = clock.is_full_due(now)
            late = state.given_up(int(now))
            if late and (full or clock.is_main_due(now) or clock.is_backfill_due(now)):
                self._give_up(cluster, late)
            looks = full or clock.is_main_due(now)
            held_until = self._held_until(now)
            clock.hold_backfill(held_until)
            if looks:
                marks = held_until <= now and self._main_loop.run(int(now), start, full, makes_way)
                clock.main_done(now, full, marks)
                self._reordered = self._reordered and (not full or held_until > now)
            if clock.is_backfill_due(now):
                looks = True
                if self._cycle is None or not self._cycle.goes_on(int(now)):
                    self._cycle = Backfill(state, int(now), start, None, makes_way)
                    self._cycle.run()
                cycle = self._cycle
                clock.backfill_done(now, cycle.nb_jobs, cycle.repeats, cycle.holds_until, cycle.keeps_nodes)
                if cycle.goes_on_anyway:
                    clock.changed(now)
            clock.has_jobs(now, bool(state.waiting))
            if looks and cluster.heeded:
                self._tell_causes(cluster, int(now))
        self._ask_for_call(cluster)

    def _held_until(self, now: float) -> float:
        """Until when no loop starts jobs, because jobs have ended lately whose nodes are not clean."""
        wait = self._configuration.scheduling.complete_wait
        if not wait:
            return -inf
        ends = (min(clean, int(running.ended) + wait + 1) for clean, _, running, _ in self._cleaned)
        return max(ends, default=-inf)

    def _tell_causes(self, cluster: Cluster, now: int) -> None:
        """After a look at the queue, remark on each job that waits for another cause than before."""
        for job_id, records in self._known.items():
            if records and records[0].eligible <= now:
                cause = self._causes.of(records, now)
                if cause.reason != "None" and self._told.get(job_id) != cause.kind:
                    self._told[job_id] = cause.kind
                    cluster.remark(records[0].job, str(cause))

    def why_pending(self, job: Job) -> str:
        """The reason that ``squeue`` would show."""
        if job.id in self._never:
            return self._never[job.id]
        own = (record for record in self._known.get(job.id, ()) if not record.is_magnetic)
        reasons = map(self._state.why_waiting, own)
        return next(filter(None, reasons), "Resources")

    # --- what happens ----------------------------------------------------------------------------

    def _hear(self, cluster: Cluster) -> None:
        """Enter the jobs that are new, which are behind the others, and forget those that were taken back.

        Nodes of which hosts have been taken away are left out.
        """
        queue, known = cluster.queue, self._known
        if not cluster.quiet and (available := cluster.available) != self._available:
            self._available = available
            self._set_up()
            self._clock.happened(cluster.now)
        nb_new = queue.nb_joined - self._nb_heard
        self._nb_heard += nb_new
        if len(queue) - nb_new < len(known):
            for job_id in [job_id for job_id in known if queue.get(job_id) is None]:
                del known[job_id]
                self._state.remove(job_id)
                self._give_back(job_id, cluster.now)
        if not nb_new:
            return
        for job in list(islice(queue, len(known), None)):
            records, never = self._enter(cluster, job)
            if not records:
                cluster.remark(job, f"can never run: {never.reason}")
                self._never[job.id] = never.reason
                if never.is_refused:
                    cluster.reject(job)
                    continue
            known[job.id] = records
            if not records:
                continue
            self._ages.settle(records, self._state.running)
            self._priorities.enter(records, cluster.now)
            if job.id in self._requeued:
                for record in records:
                    record.go_back(self._requeued[job.id], int(cluster.now) + REQUEUED)
            self._state.add(records)
            if AFTER in job.extra and cluster.now > job.submission_time:
                self._reordered = True
            else:
                self._clock.happened(cluster.now)

    def _set_up(self) -> None:
        """Nodes are up that have not been taken away and do not fall asleep."""
        falling = 0 if self._power is None else self._power.falling
        self._state.set_up(self._setup.nodes_within(self._available) & ~falling)

    def _give_back(self, job_id: str, now: float) -> None:
        """A job is taken back that waited for its nodes to wake up."""
        if self._power is not None and job_id in self._configuring:
            running, _ = self._configuring.pop(job_id)
            self._power.forget(running)
            self._state.ended(running, int(now))
            self._state.set_completing([each for _, _, each, _ in self._cleaned])
            self._hosts.give(running.taken)
            self._power.left(running.share.nodes, now)
            self._clock.happened(now)

    def _power_saving(self, cluster: Cluster) -> PowerSaving | None:
        """What lets nodes sleep, if the configuration does, and the platform says what they do then."""
        if not self._configuration.power.is_on:
            return None
        sleep_states = SleepStates(cluster.machines)
        if not sleep_states.hosts:
            _log.warning(
                "SuspendTime has no effect: the platform does not say what nodes draw while they sleep, and "
                "how long they take; give its nodes sleep_watts, switch_on_seconds and switch_off_seconds"
            )
            return None
        return PowerSaving(self._configuration, self._setup.machine, sleep_states, self.started)

    def _switch_nodes(self, cluster: Cluster, power: PowerSaving, now: float) -> None:
        """Let nodes sleep and wake up, and start the jobs that have waited for theirs."""
        if power.look(self._state, cluster, now):
            self._set_up()
            self._clock.changed(now)
        for job_id, (running, hosts) in list(self._configuring.items()):
            if not power.must_wait(running.share.nodes) and self._time_limits.is_look(now):
                del self._configuring[job_id], self._known[job_id]
                self._state.begin_anew(running, int(now))
                self._run(cluster, running, hosts)

    def _enter(self, cluster: Cluster, job: Job) -> tuple[list[WaitingRecord], Never]:
        """A job that is new, as a submit plugin has made it, in each of its partitions."""
        if self._submissions is not None and not fields_of(job).runs:
            told = self._submissions.of(job)
            if isinstance(told, Refused):
                return [], Never(told.why, is_refused=True)
            if told != job:
                cluster.ask_instead(told)
                job = told
        return self._setup.records(job, cluster.now)

    def _advance(self, now: float) -> None:
        """Compute priorities again, if it is time for that."""
        state = self._state
        if state.limits.advance(now, state.running):
            state.epoch += 1
            self._reordered = True
            self._clock.changed(now)
            self._kill_users(now)
        if self._priorities.advance(now, state.waiting, state.running) and state.waiting:
            state.sort()
            self._reordered = True
            self._clock.changed(now)

    def _ended(self, ended: RunningJob, now: float) -> None:
        running = self._running.pop(ended.job.id, None)
        if running is not None:
            is_killed = ended.job.id in self._cancelled
            self._cancelled.discard(ended.job.id)
            self._in_grace.discard(ended.job.id)
            self._advance(now)
            self._priorities.ended(running, now)
            self._state.ended(running, int(now))
            self._kill_users(now)
            self._nb_ended += 1
            epilog, running.ended = self._configuration.scheduling.epilog_time, now
            delay = (max(self.completing, KILLED) if is_killed else self.completing) + epilog
            heappush(self._cleaned, (now + delay, self._nb_ended, running, is_killed or epilog > 0))
            self._clock.changed(now)

    def _kill_users(self, now: float) -> None:
        """Let the next look at time limits kill the jobs of those who have used as much as they may."""
        limits = self._state.limits
        for running in self._state.running if limits.kills else ():
            if limits.why_killed(running):
                self._time_limits.end_at(running, now)

    def _clean(self, now: float) -> None:
        """Free the nodes that are clean by now.

        The nodes of a job that was killed tell the controller, which lets the main loop look at once, unless
        it has to ``defer`` that; so do all nodes if there is an epilog. Any other job is gone when the
        controller asks for it; then it looks when it wakes next.
        """
        if not self._cleaned or self._cleaned[0][0] > now:
            return
        at_once = False
        while self._cleaned and self._cleaned[0][0] <= now:
            _, _, running, tells = heappop(self._cleaned)
            at_once = at_once or (tells and not self._configuration.scheduling.defer)
            self._hosts.give(running.taken)
            if self._power is not None:
                self._power.left(running.share.nodes, now)
        self._state.set_completing([running for _, _, running, _ in self._cleaned])
        self._clock.happened(now, at_once)

    def _give_up(self, cluster: Cluster, jobs: Iterable[Job]) -> None:
        """Take jobs out of the queue that cannot end before their deadlines any more."""
        for job in jobs:
            cluster.remark(job, "is given up, because it cannot end before its deadline")
            cluster.reject(job)
            del self._known[job.id]
            self._state.remove(job.id)
            self._clock.changed(cluster.now)

    # --- what is decided -------------------------------------------------------------------------

    def _begin_job(self, cluster: Cluster, record: WaitingRecord, share: Share) -> None:
        job: Job = record.job
        taken = self._hosts.take(record.asked, share)
        hosts = self._hosts.hosts(record.asked, share, taken, job.size)
        running = self._state.start(record, share, int(cluster.now))
        running.taken = taken
        self._clock.changed(cluster.now)
        if self._power is not None and self._power.must_wait(share.nodes):
            cluster.remark(job, "has its nodes, and waits until they have woken up")
            self._configuring[job.id] = running, hosts
            self._power.want(running, cluster.now)
        else:
            del self._known[job.id]
            self._run(cluster, running, hosts)

    def _run(self, cluster: Cluster, running: RunningRecord, hosts: HostSet) -> None:
        """A job that has its share runs on these hosts."""
        record, job = running.waiting, running.waiting.job
        if len(hosts) == job.size:
            cluster.start(job, hosts)
        else:
            places = [place % len(hosts) for place in range(job.size)]
            cluster.decide(ExecuteJob(job.id, hosts, mapping=places))
        self._running[job.id] = running
        self._time_limits.started(running)
        if self._power is not None:
            self._power.changed(cluster.now)
        last = self._state.reservations.last_end(record) + self._configuration.scheduling.resv_over_run
        if last < inf and not record.fields.runs:
            self._time_limits.end_at(running, last)

    def _let_make_way(self, cluster: Cluster, running: RunningRecord) -> None:
        """Let a running job make way for another one, at once or when its time of grace is over."""
        job_id = running.waiting.job.id
        if job_id in self._cancelled or job_id in self._in_grace or job_id in self._configuring:
            return
        if grace := self._state.preemption.grace_time(running.waiting):
            self._in_grace.add(job_id)
            self._state.shorten(running, int(cluster.now) + grace)
            self._time_limits.end_at(running, running.end)
        else:
            self._cancel(cluster, running)

    def _cancel(self, cluster: Cluster, running: RunningRecord) -> None:
        """Cancel a job that makes way, or put it back; its nodes are free when it has ended."""
        job = running.waiting.job
        self._cancelled.add(job.id)
        if self._state.preemption.requeues(running.waiting):
            cluster.remark(job, "goes back into the queue, because a job needs its nodes that may preempt it")
            self._requeued[cluster.requeue(job)] = running.waiting
        else:
            cluster.remark(job, "is cancelled, because a job needs its nodes that may preempt it")
            cluster.kill(job)

    def _kill_exhausted(self, cluster: Cluster, now: float) -> None:
        """Kill the jobs whose time limits are over."""
        for running in self._time_limits.exhausted(now):
            job = running.waiting.job
            if self._running.get(job.id) is not running or job.id in self._cancelled:
                continue
            if job.id in self._in_grace:
                self._cancel(cluster, running)
            else:
                self._cancelled.add(job.id)
                is_over = running.end > now and "its reservation is over"
                why = self._state.limits.why_killed(running) or is_over or "its time limit is over"
                cluster.remark(job, f"is killed, because {why}")
                cluster.kill(job)

    def _ask_for_call(self, cluster: Cluster) -> None:
        """Be called when something is due next."""
        now, due, state = cluster.now, self._time_limits.next_time, self._state
        if self._cleaned:
            due = min(due, self._cleaned[0][0])
        if self._power is not None:
            due = min(due, self._power.next_time(state, now))
            ready = (not self._power.must_wait(each.share.nodes) for each, _ in self._configuring.values())
            due = min(due, self._time_limits.look_from(now + MOMENT) if any(ready) else inf)
        if state.waiting:
            # from when on a look at the whole queue may start a job that the last one did not start
            is_partial = bool(state.reservations) or len(state.waiting) > self._depth
            has_seen_all = self._main_loop.has_seen_all and not state.running
            matters_now = self._reordered or (is_partial and not has_seen_all)
            since = self._main_loop.seen if is_partial else now
            reserved = inf if matters_now else state.next_of_reservations(since)
            matters = now if matters_now else min(reserved, state.next_moment(since))
            due = min(due, self._clock.next_time(matters))
            if self._running or reserved < inf or state.limits.eases(state.waiting):
                due = min(due, self._priorities.next_time, state.limits.spent.next_time)
        elif self._running and state.limits.kills:
            due = min(due, state.limits.spent.next_time)
        due = round(due, DIGITS)
        if due < inf and not now < self._called <= due:
            self._called = due
            cluster.call_at(max(due, now + 10**-DIGITS))
