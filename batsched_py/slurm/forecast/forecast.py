"""When each waiting job of a live cluster will start: by time limits, and by how much of them jobs use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.terminal import shown
from batsched_py.errors import InputError
from batsched_py.simulator.machine_files import NodeKind
from batsched_py.slurm.changes import with_partitions
from batsched_py.slurm.conf import Cluster, read_cluster
from batsched_py.slurm.forecast.advice import alternatives, submitted
from batsched_py.slurm.forecast.backtest import settled
from batsched_py.slurm.forecast.history import History, Past
from batsched_py.slurm.forecast.live import LiveJob, RunTime, completed, limit_of, pinned, workload_of
from batsched_py.slurm.forecast.squeue_table import read_live
from batsched_py.slurm.forecast.standing import computed_again, with_known_usage
from batsched_py.slurm.forecast.waiting import SETTLED, Telling
from batsched_py.slurm.jobs import task_names
from batsched_py.slurm.prepared import Prepared
from batsched_py.slurm.reading import Clock, Findings, time_limit
from batsched_py.slurm.scenario import CONFIGURATION, PLATFORM, WORKLOAD_FILE, configured, platform_text
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of, zone_named


class Accuracy:
    """The shares of their time limits that jobs of a log used."""

    def __init__(self, past: Past, users: Sequence[str]) -> None:
        self._past = past
        self._users = {name: number for number, name in enumerate(users)}

    @classmethod
    def of_log(cls, path: Path, zone: str) -> Accuracy:
        """What the jobs of a log of ``sacct`` used."""
        log = read_log(path, "sacct", {"zone": zone})
        log = log.select((log.requested_time > 0) & (log.run_time > 0) & ~log.never_started)
        if not len(log):
            raise InputError(f"{path}: no job of this log has a time limit and a run time")
        names, users = np.unique(names_of(log, "user"), return_inverse=True)
        ends = log.submit + np.maximum(log.wait, 0.0) + log.run_time
        history = History(
            log.submit,
            ends,
            log.run_time,
            log.requested_time,
            log.requested_processors,
            users.astype(np.int64),
        )
        return cls(history.before(inf), names.tolist())

    def __len__(self) -> int:
        """How many jobs tell of it."""
        return len(self._past)

    def longer(self, user: str, share: float) -> float:
        """The share of the user's jobs that used more than such a share of their limits."""
        return float(np.mean(self._past.like(self._users.get(user, -1)) > share))

    def drawn(self, seed: int) -> RunTime:
        """How long a job may run that has run for so long, drawn from jobs alike."""
        draw = self._past.drawing(np.random.default_rng(seed))

        def run_time(job: LiveJob, ran: float) -> float:
            user, size = self._users.get(job.user, -1), job.tasks * job.cpus_per_task
            return draw(user, size, limit_of(job), ran)

        return run_time


#: The interval leaves out this share of the repetitions at each end.
TAIL = 0.1


class Start(Struct, frozen=True, kw_only=True):
    """When a job will start, in seconds from now."""

    by_limits: float | None
    """If every job runs as long as it may; none if the job does not start."""
    median: float | None = None
    """Over run times that are like those of a log, as the two others."""
    early: float | None = None
    late: float | None = None


class Expected(Struct, frozen=True, kw_only=True):
    """What is expected for a job that waits."""

    id: str
    user: str
    account: str
    partition: str
    nodes: int
    cpus: int
    time_limit: float
    priority: int
    start: Start
    waits_for: str = ""
    """What it waits for now, as Slurm calls it; nothing if it starts at once."""


class Advice(Struct, frozen=True, kw_only=True):
    """What comes of asking for something else. A gain is by how many seconds the job starts earlier."""

    option: str
    """What to tell ``sbatch``."""
    expected: Expected
    gain_by_limits: float | None
    """None if the job does not start, here or as it is."""
    gain: float | None = None
    """The median over run times like those of a log, each taken for both, as the two others."""
    least_gain: float | None = None
    most_gain: float | None = None
    too_short: float | None = None
    """The share of the jobs alike that ran longer than such a time limit."""


class Forecast(Struct, frozen=True, kw_only=True):
    """All waiting jobs, those that start first come first."""

    now: str
    """The date and time in UTC."""
    running: int
    held: int
    repetitions: int
    """How many times run times were drawn; 0 without a log."""
    jobs: list[Expected]
    instead: Expected | None = None
    """The job that was asked about, if it asked for less."""
    about: str = ""
    """The job that advice is for; ``new`` is one that is not submitted yet."""
    advice: list[Advice] = []
    """What gains most comes first."""
    misplaced: int = 0
    """Running jobs that do not fit on their nodes, as it seems; they wait there until they do."""
    not_modelled: list[str] = []
    """What was left out or assumed, each with its place."""


class Wish(Struct, frozen=True):
    """What a job might ask for instead."""

    job: str
    time: float | None = None
    nodes: int | None = None

    def applied(self, jobs: Sequence[LiveJob]) -> LiveJob:
        """The job as it would be then."""
        job = waiting_job(jobs, self.job)
        least, most = job.nodes
        changed = replace(job, time=self.time or job.time)
        if self.nodes is not None:
            tasks = job.tasks if most is None else job.tasks * self.nodes // least
            changed.nodes, changed.tasks = (self.nodes, self.nodes), max(tasks, self.nodes)
        return changed


def waiting_job(jobs: Sequence[LiveJob], name: str) -> LiveJob:
    """A job that waits, by its number."""
    found = [job for job in jobs if job.id == name and job.state == "waiting"]
    if not found:
        raise InputError(f"there is no waiting job {name!r}")
    if found[0].is_held:
        raise InputError(f"job {name!r} is held, and has no forecast")
    return found[0]


INSTEAD = "instead"
"""What a change is called that was asked about."""


def forecast(
    cluster: Cluster,
    jobs: Sequence[LiveJob],
    now: float,
    accuracy: Accuracy | None,
    repetitions: int,
    changes: Mapping[str, LiveJob],
    findings: Findings,
    computes_priorities: bool = False,
) -> Forecast:
    """Simulate the queue from now on, by time limits and with run times like those of a log.

    The same is done with each of some changes of a job. With such run times, priorities may be computed again
    as time passes; by limits they stay, as in what Slurm plans.
    """
    repetitions = 0 if accuracy is None else repetitions
    variants = [list(jobs)]
    variants += [[change if job.id == change.id else job for job in jobs] for change in changes.values()]
    found: list[list[dict[str, float]]] = [[]]
    with (
        TemporaryDirectory(prefix="forecast-") as room,
        shown("simulations", lambda: (sum(map(len, found)), len(variants) * (1 + repetitions))),
    ):
        known = with_known_usage(cluster, findings) if computes_priorities else cluster
        simulator = Simulator(known, now, Path(room), findings)
        for variant in variants:
            later = computed_again(known, variant, now) if computes_priorities else variant
            found[-1].append(simulator.starts(variant, lambda job, ran: limit_of(job), len(found) == 1))
            for seed in range(repetitions):
                assert accuracy is not None
                found[-1].append(simulator.starts(later, accuracy.drawn(seed)))
            found.append([])
    as_it_is, *changed = found[:-1]
    answers = [
        _advice(option, jobs, change, as_it_is, of_change, accuracy)
        for (option, change), of_change in zip(changes.items(), changed, strict=True)
    ]
    instead = next((each.expected for each in answers if each.option == INSTEAD), None)
    advice = [] if instead is not None else sorted(answers, key=_worst_last)
    return Forecast(
        now=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        running=sum(job.runs for job in jobs),
        held=sum(job.is_held for job in jobs),
        repetitions=repetitions,
        jobs=_first_come_first(jobs, as_it_is, simulator.waits_for),
        instead=instead,
        about=advice[0].expected.id if advice else "",
        advice=advice,
        misplaced=simulator.misplaced,
    )


def _first_come_first(
    jobs: Sequence[LiveJob], starts: Sequence[Mapping[str, float]], waits_for: Mapping[str, str]
) -> list[Expected]:
    """What is expected for all jobs that may start, in the order of their starts by limits."""
    expected = [
        _expected(job, _start(job.id, *starts), waits_for.get(job.id, ""))
        for job in jobs
        if not job.runs and not job.is_held
    ]
    return sorted(expected, key=lambda job: (job.start.by_limits is None, job.start.by_limits or 0.0, job.id))


def _advice(
    option: str,
    jobs: Sequence[LiveJob],
    change: LiveJob,
    as_it_is: Sequence[Mapping[str, float]],
    changed: Sequence[Mapping[str, float]],
    accuracy: Accuracy | None,
) -> Advice:
    name, limit = change.id, limit_of(next(job for job in jobs if job.id == change.id))
    gains = [
        before[name] - after[name] if name in before and name in after else None
        for before, after in zip(as_it_is, changed, strict=True)
    ]
    by_limits, *rest = gains
    drawn = [gain for gain in rest if gain is not None]
    least, median, most = np.quantile(drawn, (TAIL, 0.5, 1 - TAIL)).tolist() if drawn else (None,) * 3
    share = limit_of(change) / limit
    return Advice(
        option=option,
        expected=_expected(change, _start(name, *changed)),
        gain_by_limits=by_limits,
        gain=median,
        least_gain=least,
        most_gain=most,
        too_short=accuracy.longer(change.user, share) if accuracy is not None and share < 1 else None,
    )


def _worst_last(advice: Advice) -> tuple[bool, float, float]:
    gain = advice.gain if advice.gain is not None else advice.gain_by_limits
    return gain is None, -(gain or 0.0), -(advice.gain_by_limits or 0.0)


class Simulator:
    """Simulates queues of a cluster from one moment on, under which all running jobs start at once."""

    def __init__(self, cluster: Cluster, now: float, room: Path, findings: Findings) -> None:
        self._machine: list[NodeKind] = pinned(cluster.machine)
        self._configuration = settled(cluster.configuration)
        self._now = now
        self._findings = findings
        self.misplaced = 0
        self.waits_for: dict[str, str] = {}
        """What jobs waited for as soon as all running jobs were on their nodes, as far as that was asked."""
        self._prepared = Prepared(room / PLATFORM, room / WORKLOAD_FILE, room / CONFIGURATION, room)
        platform, partitions = platform_text(self._machine, cluster.licences), self._configuration.partitions
        self._prepared.platform.write_text(with_partitions(platform, partitions) if partitions else platform)
        self._prepared.configure(self._configuration)

    def starts(self, jobs: Sequence[LiveJob], run_time: RunTime, asks_why: bool = False) -> dict[str, float]:
        """When each job starts; of an array, its first task. What jobs wait for is kept if asked for."""
        workload = workload_of(jobs, self._now, self._configuration, self._machine, run_time, self._findings)
        self._findings.check()
        self._prepared.submit(workload)
        policy = Telling(configuration_file=str(self._prepared.configuration)) if asks_why else None
        result = self._prepared.simulated("rigid", {}, scheduler=policy)
        table = result.jobs.dropna(subset=["starting_time"])
        ids = {name: job.id for job in jobs if job.array for name in task_names(job.name, job.array)[0]}
        firsts = table["starting_time"].groupby([ids.get(name, name) for name in table["job_id"].astype(str)])
        found: dict[str, float] = firsts.min().to_dict()
        if policy is not None:
            self._keep_why(policy.waits_for, jobs, ids, found)
        running = {job.id for job in jobs if job.runs}
        self.misplaced = max(self.misplaced, sum(found.get(name, inf) > SETTLED for name in running))
        return found

    def _keep_why(
        self,
        waits_for: Mapping[str, str],
        jobs: Sequence[LiveJob],
        ids: Mapping[str, str],
        starts: Mapping[str, float],
    ) -> None:
        told: dict[str, str] = {}
        for name, why in waits_for.items():
            told.setdefault(ids.get(name, name), why)
        for job in jobs:
            if not job.runs and starts.get(job.id, inf) > SETTLED:
                refused = "" if job.id in starts else "BadConstraints"
                self.waits_for[job.id] = told.get(job.id, "Dependency" if job.dependency else refused)


def _start(name: str, by_limits: Mapping[str, float], *drawn: Mapping[str, float]) -> Start:
    known = [starts[name] for starts in drawn if name in starts]
    early, median, late = np.quantile(known, (TAIL, 0.5, 1 - TAIL)).tolist() if known else (None,) * 3
    return Start(by_limits=by_limits.get(name), median=median, early=early, late=late)


def _expected(job: LiveJob, start: Start, waits_for: str = "") -> Expected:
    return Expected(
        id=job.id,
        user=job.user,
        account=job.fields.get("account", ""),
        partition=",".join(job.partitions),
        nodes=job.nodes[0],
        cpus=(job.tasks or job.nodes[0] * (job.tasks_per_node or 1)) * job.cpus_per_task,
        time_limit=inf if job.time is None else job.time,
        priority=job.fields["priority"],
        start=start,
        waits_for=waits_for,
    )


class Question(Struct, frozen=True):
    """What is asked: the options of the command."""

    conf: Path
    listing: Path
    log: Path | None
    job: str | None
    time: str | None
    nodes: int | None
    submit: str | None
    moment: str | None
    repetitions: int
    accounting: tuple[Path, ...]
    reservations: tuple[Path, ...]
    zone: str


def answer(question: Question) -> Forecast:
    """The forecast."""
    zone_named(question.zone)
    findings = Findings()
    moment = time = None
    with findings.noting("--at"):
        if question.moment is not None:
            moment = Clock(0.0, question.zone).moment(question.moment)
    live = read_live(question.listing, question.zone, findings, moment)
    now = live.now if moment is None else moment
    with findings.noting("--time"):
        time = None if question.time is None else time_limit(question.time)
    if now is None:
        findings.mistake(str(question.listing), "does not tell when it was printed; give --at TIME")
    cluster = read_cluster(question.conf, findings)
    findings.check()
    assert now is not None
    clock = Clock(now, question.zone)
    configuration = configured(cluster, question.reservations, question.accounting, clock, findings)
    coming = [each for each in configuration.reservations if each.end > 0]
    cluster.configuration = replace(
        configuration, reservations=tuple(replace(each, start=max(each.start, 0.0)) for each in coming)
    )
    findings.check()
    accuracy = None if question.log is None else Accuracy.of_log(question.log, question.zone)
    jobs = completed(live, question.listing, cluster, findings)
    findings.check()
    changes: dict[str, LiveJob] = {}
    if question.submit is not None:
        new = submitted(question.submit, jobs, cluster, now, question.zone, findings)
        jobs.append(new)
        changes = alternatives(new, cluster, now)
    elif question.job is not None and time is None and question.nodes is None:
        changes = alternatives(waiting_job(jobs, question.job), cluster, now)
    elif question.job is not None:
        changes = {INSTEAD: Wish(question.job, time, question.nodes).applied(jobs)}
    tells_priorities = live.columns is None or "PRIORITY" in live.columns
    again = accuracy is not None and tells_priorities
    found = forecast(cluster, jobs, now, accuracy, question.repetitions, changes, findings, again)
    return replace(found, not_modelled=list(dict.fromkeys(map(str, findings.unmodelled))))
