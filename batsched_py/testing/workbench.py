"""A cluster by hand: put it into a state, let things happen, and see what a policy decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from batsched_py.decision.observers import AdditionalData, Monitor
from batsched_py.ledger.ledger import Effect, Ledger, RejectedJob
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.closures import Closure
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.testing.runs import Policy, new, process_of


@dataclass
class Decisions:
    """What a policy has decided, jobs by their names without that of the workload."""

    started: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    """When it wants to be asked again."""
    others: list[Effect] = field(default_factory=list)
    """Such as switches of power states."""


class Nothing(Scheduler):
    """Decides nothing."""

    name = "nothing"

    def schedule(self, cluster: Cluster) -> None:
        """Let everything wait."""


class Workbench:
    """So many hosts with a policy, and whatever a test lets happen on them; without a policy only the hosts.

    What happens is told as a simulator tells it; :meth:`decide` asks the policy, and what it decides is in
    ``cluster`` at once. Time passes when ``now`` is set. Hosts may be closed, as ``closures`` say. Monitors
    hear what happens, and the policy sees additional ``data``.
    """

    def __init__(
        self,
        hosts: int,
        policy: Policy = Nothing,
        now: float = 0.0,
        closures: Sequence[Closure] = (),
        monitors: Sequence[str | Monitor] = (),
        data: Sequence[str | AdditionalData] = (),
    ) -> None:
        begins = ev.SimulationBegins([Host(number, f"h{number}") for number in range(hosts)])
        self.ledger = Ledger(begins)
        self.policy = new(policy)
        self._process = process_of(self.policy, closures, monitors, data)
        self._process.join(begins, self.ledger)
        self.cluster = self._process.cluster
        """What the policy sees."""
        self.now = now

    @property
    def now(self) -> float:
        """What time it is."""
        return self.cluster.now

    @now.setter
    def now(self, now: float) -> None:
        self.cluster._go_to(now)

    def submit(self, *jobs: Job) -> None:
        """Jobs join the queue."""
        for job in jobs:
            self._process.job_submitted(job, self.now)

    def start(self, *jobs: Job) -> None:
        """Jobs join the queue and are started at once, whatever the policy thinks of that."""
        for job in jobs:
            self.submit(job)
            self.cluster._tell_start(self.ledger.start(job, None, self.now))

    def end(self, *jobs: Job) -> None:
        """Jobs leave their hosts."""
        for job in jobs:
            self._process.job_ended(job.id, JobState.SUCCESS, 0, self.now)

    def take_away(self, hosts: str) -> None:
        """Hosts such as ``"0-3 7"`` become unavailable."""
        self.hear(ev.HostsUnavailable(HostSet.parse(hosts)))

    def give_back(self, hosts: str) -> None:
        """Hosts become available again."""
        self.hear(ev.HostsAvailable(HostSet.parse(hosts)))

    def hear(self, event: ev.Event) -> None:
        """Anything else happens."""
        event.time = self.now
        self._process.happened(event)

    def decide(self) -> Decisions:
        """Ask the policy."""
        decisions = Decisions()
        for decision in self._process.decide(self.now):
            match decision:
                case RunningJob(job=job):
                    decisions.started.append(job.name)
                case RejectedJob(job=job):
                    decisions.rejected.append(job.name)
                case ev.KillJobs(job_ids=job_ids):
                    decisions.killed += [job_id.partition("!")[2] for job_id in job_ids]
                case ev.CallMeLater(at=at):
                    decisions.calls.append(at)
                case other:
                    decisions.others.append(other)
        return decisions
