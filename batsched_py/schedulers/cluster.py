"""What a policy sees and may do."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from math import inf
from operator import attrgetter

from msgspec import Struct

from batsched_py.protocol.clock import TICK
from batsched_py.protocol.events import (
    CallMeLater,
    Event,
    ExecuteJob,
    KillJobs,
    RejectJob,
    SetHostsState,
    Settings,
)
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job
from batsched_py.schedulers.availability import AvailabilityProfile
from batsched_py.schedulers.queue import Condition, Floats, JobQueue, Score, Waiting
from batsched_py.schedulers.selection import Selection, lowest

#: Scores of waiting jobs at a time; the lowest goes first, equal ones go in submission order.
Order = Callable[[Waiting, float], Floats]


class RunningJob(Struct, gc=False, eq=False):
    """A job on its hosts."""

    job: Job
    hosts: HostSet
    start: float
    expected_end: float
    """When its walltime will be over, or when the policy expects it to end."""


class Running:
    """The running jobs, ordered by expected end."""

    def __init__(self) -> None:
        self.by_end: list[tuple[float, int, RunningJob]] = []
        """Expected end, a number that breaks ties in order of start, and the job."""
        self._entry: dict[str, tuple[float, int, RunningJob]] = {}
        self._count = 0

    def add(self, running: RunningJob) -> None:
        """A job was started."""
        self._count += 1
        self._entry[running.job.id] = entry = (running.expected_end, self._count, running)
        insort(self.by_end, entry)

    def pop(self, job_id: str) -> RunningJob | None:
        """A job has ended; it is returned if it was running."""
        entry = self._entry.pop(job_id, None)
        if entry is None:
            return None
        del self.by_end[bisect_left(self.by_end, entry)]
        return entry[2]

    def expect(self, job_id: str, run_time: float) -> None:
        """A job is now expected to run for so long in all."""
        old = self._entry[job_id]
        del self.by_end[bisect_left(self.by_end, old)]
        _, number, running = old
        running.expected_end = running.start + run_time
        self._entry[job_id] = entry = (running.expected_end, number, running)
        insort(self.by_end, entry)

    def __iter__(self) -> Iterator[RunningJob]:
        return (running for _, _, running in self.by_end)

    def __len__(self) -> int:
        return len(self.by_end)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._entry


class Cluster:
    """The machine with its queue, as a policy sees it at the moment it is asked.

    A policy reads ``now``, ``queue``, ``running`` and ``free``, and says what to do with :meth:`start`,
    :meth:`reject`, :meth:`kill`, :meth:`call_at` and :meth:`switch`, which is checked before it leaves.
    """

    def __init__(
        self,
        hosts: HostSet,
        selection: Selection = lowest,
        estimate: Callable[[Job], float] = attrgetter("walltime"),
        machines: Sequence[Host] = (),
        settings: Settings = Settings(),
    ) -> None:
        self.now = 0.0
        """When what is decided takes effect: now, or later where a slow scheduler is simulated."""
        self.events: Sequence[Event] = ()
        """What was told since the policy was last asked."""
        self.settings = settings
        """What the simulator allows; ``settings.scheduler_config`` is its text for the policy."""
        self.machines = machines
        """The hosts by number, as the simulator describes them."""
        self.hosts = hosts
        self.nb_hosts = len(hosts)
        self.nb_free = len(hosts)
        self.queue = JobQueue()
        self.running = Running()
        self.quiet = False
        """Whether nothing but submissions has happened since the policy was last asked."""
        self._selection = selection
        self._estimate = estimate
        self._free = hosts.mask
        self._unavailable = 0
        self._asleep = 0
        self._switching = 0
        self._decisions: list[Event] = []
        self._listeners: list[Callable[[RunningJob], None]] = []

    # --- what a policy sees ----------------------------------------------------------------------

    @property
    def free(self) -> HostSet:
        """The hosts that can be given to a job now."""
        return HostSet(self._free)

    @property
    def available(self) -> HostSet:
        """The hosts that have not been taken away, busy or not."""
        return HostSet(self.hosts.mask & ~self._unavailable)

    @property
    def asleep(self) -> HostSet:
        """The hosts that sleep."""
        return HostSet(self._asleep & ~self._switching)

    @property
    def switching(self) -> HostSet:
        """The hosts that are on their way to another power state."""
        return HostSet(self._switching)

    def fits(self, job: Job) -> bool:
        """Whether enough hosts are free for the job now."""
        return job.size <= self.nb_free

    def fitting(
        self, condition: Condition | None = None, order: Order | None = None, only_new: bool = False
    ) -> Iterator[Job]:
        """The waiting jobs for which enough hosts are free, and that meet a condition, one after another.

        They may be started as they come: each one is looked at again when its turn has come. Where no order
        is given, it is the queue's. With ``only_new``, only those are looked at that have been submitted
        since the policy was last asked.
        """
        score = None if order is None else self._scoring(order)
        return self.queue.where(lambda: self.nb_free, condition, score, only_new)

    def reservation(self, job: Job) -> tuple[float, int]:
        """When the job can start at the latest, and how many hosts it will leave free then.

        Running jobs are gone through in the order of their expected ends, collecting their hosts until there
        are enough: the time at which this happens is the *shadow time*, what is left over then are the
        *extra* hosts. Where that never happens, the shadow time is infinite and there is nothing extra.
        """
        free, needed = self.nb_free, job.size
        if free >= needed:
            return self.now, free - needed
        usable = ~self._unavailable
        for end, _, running in self.running.by_end:
            free += (running.hosts.mask & usable).bit_count()
            if free >= needed:
                return max(end, self.now), free - needed
        return inf, 0

    def profile(self) -> AvailabilityProfile:
        """How many hosts will be free, and when, if the running jobs end as expected.

        One that should have ended already may end at any moment.
        """
        profile = AvailabilityProfile(self.now, self.nb_free)
        usable = ~self._unavailable
        for end, _, running in self.running.by_end:
            profile.give(max(end, self.now + TICK), inf, (running.hosts.mask & usable).bit_count())
        return profile

    # --- what a policy says ----------------------------------------------------------------------

    def order_queue(self, order: Order) -> None:
        """Keep the queue in this order from now on, instead of in submission order."""
        self.queue.order_by(self._scoring(order))

    def on_end(self, listener: Callable[[RunningJob], None]) -> None:
        """Call the listener with each job that ends, before the policy is asked."""
        self._listeners.append(listener)

    def expect(self, job: Job, run_time: float) -> None:
        """Expect a job, waiting or running, to run for so long in all."""
        self.quiet = False
        if job in self.queue:
            self.queue.expect(job, run_time)
        else:
            self.running.expect(job.id, run_time)

    def start(self, job: Job, hosts: HostSet | None = None) -> RunningJob:
        """Run a waiting job now, on the given hosts or on free ones that the selection chooses."""
        if hosts is None:
            free = HostSet(self._free)
            hosts = self._selection(free, job.size) if job.size <= self.nb_free else free
        self._free &= ~hosts.mask
        self.nb_free = self._free.bit_count()
        running = RunningJob(job, hosts, self.now, self.now + self.queue.discard(job))
        self.running.add(running)
        self._decisions.append(ExecuteJob(job.id, hosts, time=self.now))
        return running

    def reject(self, job: Job) -> None:
        """Refuse a waiting job for good."""
        self.quiet = False
        self.queue.discard(job)
        self._decisions.append(RejectJob(job.id, time=self.now))

    def kill(self, job: Job) -> None:
        """Stop a running job; it leaves its hosts when the simulator says so."""
        self._decisions.append(KillJobs([job.id], time=self.now))

    def call_at(self, time: float) -> None:
        """Ask to be called at a time in the future."""
        if self.now < time < self.now + TICK:
            time = self.now + TICK
        self._decisions.append(CallMeLater(time, time=self.now))

    def switch(self, hosts: HostSet, pstate: int) -> None:
        """Put idle or sleeping hosts into a power state; until they are there, they are not free."""
        self.quiet = False
        self._switching |= hosts.mask
        self._free &= ~hosts.mask
        self.nb_free = self._free.bit_count()
        self.decide(SetHostsState(hosts, pstate))

    def decide(self, decision: Event) -> None:
        """Say anything else that the protocol allows, such as a query, a note on a job or a message to it."""
        decision.time = self.now
        self._decisions.append(decision)

    # --- what happens ----------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """A job joins the queue."""
        self.queue.append(job, self._estimate(job))

    def settle(self) -> None:
        """The policy has been asked: what has happened so far is no news any more."""
        self.quiet = True
        self.events = ()
        self.queue.mark()

    def take_decisions(self) -> list[Event]:
        """What was said since the last time this was asked."""
        decisions, self._decisions = self._decisions, []
        return decisions

    def release(self, job_id: str) -> None:
        """A job has ended: its hosts are free again, except those that were taken away meanwhile."""
        running = self.running.pop(job_id)
        if running is None:
            return
        self.quiet = False
        free = running.hosts.mask & ~self._unavailable
        if self.settings.compute_sharing:
            free = self._without_jobs(free)
        self._free |= free
        self.nb_free = self._free.bit_count()
        for listener in self._listeners:
            listener(running)

    def take_away(self, hosts: HostSet) -> None:
        """Hosts became unavailable."""
        self.quiet = False
        self._unavailable |= hosts.mask
        self._free &= ~hosts.mask
        self.nb_free = self._free.bit_count()

    def give_back(self, hosts: HostSet) -> None:
        """Hosts became available again; those with a job on them are free when it ends."""
        self.quiet = False
        self._unavailable &= ~hosts.mask
        self._free |= self._without_jobs(hosts.mask & ~self._asleep & ~self._switching)
        self.nb_free = self._free.bit_count()

    def switched(self, hosts: HostSet, pstate: int) -> None:
        """Hosts have reached a power state: those that compute in it are free again."""
        self.quiet = False
        asleep = HostSet.of(
            host for host in hosts & self.hosts if pstate in self.machines[host].sleep_pstates
        )
        self._switching &= ~hosts.mask
        self._asleep = self._asleep & ~hosts.mask | asleep.mask
        self._free |= self._without_jobs(hosts.mask & ~asleep.mask & ~self._unavailable)
        self.nb_free = self._free.bit_count()

    def _without_jobs(self, mask: int) -> int:
        """Those of the hosts on which no job runs."""
        mask &= self.hosts.mask
        for running in self.running:
            mask &= ~running.hosts.mask
        return mask

    def _scoring(self, order: Order) -> Score:
        return lambda waiting: order(waiting, self.now)
