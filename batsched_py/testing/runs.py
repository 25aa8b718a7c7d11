"""Small worlds: whole simulations of a few jobs, and a cluster by hand, to see what a policy decides.

What you have written besides policies is tried here, too: a session rule, a log reader and a figure with
functions of their own, monitors and additional data with :class:`Workbench` and :func:`schedule_of`. Each may
be an object, a class or ``path/to/file.py:ClassName``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Policy as Promise
from batsched_py.analysis.validator import validate
from batsched_py.decision.observers import DATA, MONITORS, AdditionalData, Monitor, ObservedProcess
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.submissions import FailureRule
from batsched_py.engines.python import Batsim, simulate
from batsched_py.ledger.effects import Effect, RejectedJob
from batsched_py.ledger.ledger import Ledger
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Known
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.protocol.profiles import Homogeneous, HomogeneousTotal, Profile
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.simulator.decision_side import Decides
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import UsersOf
from batsched_py.users.rigid import Rigid
from batsched_py.workload.model import Workload
from batsched_py.workload.sessions import SessionRule, cut_sessions, session_rule
from batsched_py.workload.sources import SOURCES, Source
from batsched_py.workload.swf.conventions import LOG_SPEED
from batsched_py.workload.swf.log import SwfLog

if TYPE_CHECKING:
    from batsched_py.analysis.plots.figures import Kind
    from batsched_py.analysis.plots.sheet import Sheet


@dataclass(frozen=True)
class JobSpec:
    """A job to be simulated: what it asks for, and how long it would run if it were never killed."""

    id: str
    submission: float
    size: int
    run_time: float
    walltime: float = inf
    user: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    """What it asks of nodes, as in a workload file; without it, single cores anywhere."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields, as in a workload file: ``after``, ``array``, ``sizes``, ``malleable``."""

    @property
    def duration(self) -> float:
        """How long it runs: until it ends by itself or is killed at its walltime."""
        return min(self.run_time, self.walltime)


def job(
    name: str,
    size: int = 1,
    walltime: float = inf,
    submission: float = 0.0,
    user: str | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Job:
    """A job as a policy sees it, which does not know how long it will run.

    Its further ``fields`` are those of a workload file, like ``{"after": "afterok:a"}``.
    """
    extra = {**(fields or {}), **({} if user is None else {"user": user})}
    return Job(f"w0!{name}", float(submission), size, float(walltime), "p", extra)


def workload_of(jobs: Sequence[JobSpec], name: str = "w0") -> Workload:
    """The jobs as a workload; those without a user belong to three users in turn."""
    found: list[Job] = []
    profiles: dict[str, Profile] = {}
    for number, spec in enumerate(jobs):
        profile, work = f"run_{spec.run_time}", spec.run_time * LOG_SPEED
        if "sizes" in spec.fields:  # a job with several sizes divides its work among its hosts
            profile += f"_shared_by_{spec.size}"
            profiles[profile] = HomogeneousTotal(work * spec.size)
        else:
            profiles[profile] = Homogeneous(work)
        extra: dict[str, Any] = {"user": str(number % 3) if spec.user is None else spec.user}
        if spec.request:
            extra["request"] = dict(spec.request)
        extra |= spec.fields
        job_id, submission, walltime = f"{name}!{spec.id}", float(spec.submission), float(spec.walltime)
        found.append(Job(job_id, submission, spec.size, walltime, profile, extra))
    return Workload(name, found, profiles)


#: A name as on the command line, or whatever makes a fresh policy, such as its class.
Policy: TypeAlias = str | Callable[[], Scheduler]


def new(policy: Policy) -> Scheduler:
    """A fresh policy, which has seen nothing yet."""
    return SCHEDULERS.create(policy, {}) if isinstance(policy, str) else policy()


class Meddler(Scheduler):
    """Lets another policy decide, but rejects every so-manieth job and kills every so-manieth that runs.

    So a policy is tested that has no such decisions itself: it must not lose its head when jobs vanish.
    """

    name = "meddler"
    narrows_the_machine = True

    def __init__(self, policy: Scheduler, rejects: int = 4, kills: int = 3) -> None:
        self.policy = policy
        self.rejects, self.kills = rejects, kills
        self.selection, self.selection_seed = policy.selection, policy.selection_seed
        self.allocator = policy.allocator
        self._met: dict[str, int] = {}
        self._killed: set[str] = set()

    def begin(self, cluster: Cluster) -> None:
        """The other policy's beginning."""
        self.policy.begin(cluster)

    def estimate(self, job: Job) -> float:
        """The other policy's estimate."""
        return self.policy.estimate(job)

    def schedule(self, cluster: Cluster) -> None:
        """Meddle, then let the other policy decide."""
        for job in cluster.queue:
            if self._met.setdefault(job.id, len(self._met)) % self.rejects == self.rejects - 1:
                cluster.reject(job)
        for running in list(cluster.running):
            job = running.job
            if (
                self._met[job.id] % self.kills == self.kills - 1
                and running.start < cluster.now < running.start + job.walltime
                and job.id not in self._killed
            ):
                self._killed.add(job.id)
                cluster.kill(job)
        self.policy.schedule(cluster)


def schedule_of(
    policy: Scheduler | Decides,
    jobs: Sequence[JobSpec] | Workload,
    hosts: int | Platform,
    outages: Sequence[ev.Event] = (),
    closures: Sequence[Closure] = (),
    kills: bool = False,
    monitors: Sequence[str | Monitor] = (),
    data: Sequence[str | AdditionalData] = (),
) -> pd.DataFrame:
    """The schedule of a whole simulation, in which hosts may go, come back, and be closed.

    Jobs go on when their hosts go, as in Batsim; or, with ``kills``, they are killed and submitted again.
    Monitors hear what happens, and the policy sees additional data.
    """
    looks = {"closures": closures, "monitors": monitors, "data": data}
    with jobs_csv(policy, jobs, hosts, outages, kills, **looks) as file:
        return read_schedule(file)


def rows_of(
    policy: Scheduler | Decides, jobs: Sequence[JobSpec] | Workload, hosts: int | Platform
) -> list[dict[str, str]]:
    """The rows of its ``jobs.csv`` as they are written, which is less work."""
    with jobs_csv(policy, jobs, hosts) as file:
        return rows_in(file)


def starts(policy: Scheduler | Decides, jobs: Sequence[JobSpec], hosts: int) -> dict[str, float]:
    """When each job starts, if it does, in the order of starts."""
    rows = rows_of(policy, jobs, hosts)
    begun = [(float(row["starting_time"]), row["job_id"]) for row in rows if row["starting_time"]]
    return {job_id: time for time, job_id in sorted(begun)}


def rows_in(file: Path) -> list[dict[str, str]]:
    """The rows of a ``jobs.csv``, each cell as it is written."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@contextmanager
def jobs_csv(
    policy: Scheduler | Decides,
    jobs: Sequence[JobSpec] | Workload,
    hosts: int | Platform,
    outages: Sequence[ev.Event] = (),
    kills: bool = False,
    **looks: Any,
) -> Iterator[Path]:
    """Simulate; the ``jobs.csv`` is there for a while. What :func:`process_of` takes may be given, too."""
    platform = Platform.homogeneous(hosts) if isinstance(hosts, int) else hosts
    workload = jobs if isinstance(jobs, Workload) else workload_of(jobs)
    static, settings = [workload], ev.Settings()
    if not isinstance(policy, Scheduler):
        process = policy
    elif kills:
        users = UsersOf(Rigid(), [workload])
        process = decides = process_of(policy, **looks, users=users, on_failure=FailureRule())
        static, settings = [], decides.needs
    else:
        process = process_of(policy, **looks)
    setup = Setup(platform, static, settings, events=[outages] if outages else [])
    with TemporaryDirectory() as folder:
        simulate(Batsim(setup, Outputs(f"{folder}/out")), process)
        yield Path(folder, "out_jobs.csv")


def process_of(
    policy: Scheduler,
    closures: Sequence[Closure] = (),
    monitors: Sequence[str | Monitor] = (),
    data: Sequence[str | AdditionalData] = (),
    **options: Any,
) -> DecisionProcess:
    """A decision process with this policy, which knows of closures, and with those who look on."""
    if closures:
        options["outlook"] = lambda hosts: Known(closures=tuple(closures))
    looking_on, added = [MONITORS.instance(each) for each in monitors], [DATA.instance(each) for each in data]
    return ObservedProcess(policy, monitors=looking_on, data=added, **options)


def assert_valid(
    schedule: pd.DataFrame, hosts: int, jobs: Sequence[JobSpec] | None = None, promise: Promise | None = None
) -> None:
    """The schedule breaks no rule of the validator.

    With ``jobs``, none of them may be missing or other than described; with a ``promise``, that of the policy
    of this name must be kept.
    """
    workloads = [] if jobs is None else [workload_of(jobs)]
    violations = validate(schedule, hosts, workloads, promise)
    assert not violations, "\n".join(map(str, violations))


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


def sessions_of(rule: str | SessionRule, jobs: Sequence[JobSpec]) -> list[list[str]]:
    """The jobs of one user, by their names, in the sessions into which a rule cuts them.

    >>> short = [JobSpec("a", 0, 1, 60), JobSpec("b", 120, 1, 60), JobSpec("c", 9000, 1, 60)]
    >>> sessions_of("arrival:60", short)
    [['a', 'b'], ['c']]
    """
    found = session_rule(rule) if isinstance(rule, str) else rule
    finishes = [job.submission + job.duration for job in jobs]
    sessions = cut_sessions(workload_of(jobs).jobs, finishes, found)
    return [[job.name for job in session.jobs] for session in sessions]


def log_of(reader: str | type[Source] | Source, text: str) -> SwfLog:
    """The log that a reader finds in a file with this text."""
    source = SOURCES.instance(reader)
    with TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_text(text, encoding="utf-8")
        return source.read(path)


def figure_of(kind: str | type[Kind] | Kind, *schedules: pd.DataFrame) -> Sheet:
    """The figure of one or more schedules, as :func:`schedule_of` gives them, in the order of their runs."""
    from batsched_py.analysis.plots.figures import KINDS, draw
    from batsched_py.analysis.plots.runs import run_of

    runs = [run_of(schedule, f"run {number}") for number, schedule in enumerate(schedules, 1)]
    return draw(KINDS.instance(kind), runs)
