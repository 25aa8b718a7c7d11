"""Simulations of populations, and what is measured of each; shared by the experiments with users."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.metrics import DAY, measure
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.schedule import read_schedule
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario
from batsched_py.experiment.run import run_experiment
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import LOG_SPEED
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload

MINUTE, HOUR, WEEK = 60.0, 3600.0, 7 * DAY

#: Run times at which classes of jobs can be told apart.
EDGES = (MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR)

#: Schedulers by name; the more weight on responsiveness, the higher is alpha. EASY is alpha = 0.
SCHEDULERS = {
    "fcfs": Choice("fcfs"),
    "easy": Choice("easy"),
    "user-aware": Choice("user-aware"),
    "user-aware, alpha=1": Choice("user-aware", {"alpha": "1"}),
}


class Setting(Struct, frozen=True):
    """Who submits, under which schedulers, and how long."""

    behaviour: str
    options: dict[str, str] = {}
    schedulers: tuple[str, ...] = ("easy",)
    loads: tuple[float, ...] = (1.0,)
    """How many times the users there are: those of the log, or a hundred at a site."""
    weeks: int = 0
    """How long users submit, if that is not what the command says."""

    def users(self, seed: int, load: float, weeks: int) -> Choice:
        """The users of one simulation."""
        if self.behaviour == "site-level":
            size = {"nb_users": str(round(100 * load)), "days": str(7 * weeks)}
        else:
            size = {"load": str(load), "weeks": str(weeks)}
        return Choice(self.behaviour, self.options | size | {"seed": str(seed)})


class Task(Struct, frozen=True):
    """One simulation."""

    setting: str
    scheduler: str
    seed: int
    load: float


class Figures(Struct, frozen=True):
    """What came out of one simulation."""

    log: str
    weeks: int
    task: Task
    submitted_per_day: float
    done_per_day: float
    """Jobs that ended while users submitted, by the days of that time."""
    utilization: float
    """While users submitted."""
    mean_wait: float
    mean_bounded_slowdown: float
    jobs_per_session: float
    sessions_per_day: float
    session_length: float
    class_sizes: list[int]
    """The number of jobs in each class of run times, cut at :data:`EDGES`."""
    class_responses: list[float]
    """The sums of their response times."""
    queue_by_hour: list[float]
    """The mean number of waiting jobs in each hour of the day, while users submitted."""

    def responses(self, edges: tuple[float, ...]) -> list[float]:
        """The mean response time in each class of run times, cut at some of :data:`EDGES`."""
        place = np.searchsorted(edges, [*EDGES, np.inf])
        sizes = np.bincount(place, self.class_sizes, len(edges) + 1)
        sums = np.bincount(place, self.class_responses, len(edges) + 1)
        return [total / size if size else np.nan for total, size in zip(sums, sizes, strict=True)]


def read_figures(path: Path) -> Iterator[Figures]:
    """What is stored in a file, a line for each simulation."""
    if path.exists():
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=Figures)


def log_name(log_file: str) -> str:
    """What a log is called in the results."""
    return Path(log_file).name.split("-")[0]


@cache
def read_workload(log_file: str) -> Workload:
    """The log, read once in each process, with jobs that are made once and not each time."""
    logging.getLogger("batsched_py").setLevel(logging.ERROR)
    workload = swf_to_workload(read_swf(log_file))
    return replace(workload, jobs=list(workload.jobs))


def simulate(workload: Workload, scheduler: str, users: Choice) -> pd.DataFrame:
    """The schedule that comes out."""
    experiment = Experiment(
        scenario=Scenario(machine=Machine(hosts=workload.nb_hosts)),
        actors=Actors(scheduler=SCHEDULERS[scheduler], users=users),
    )
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(experiment, [workload], f"{folder}/out")
        return read_schedule(f"{folder}/out_jobs.csv")


def replay(workload: Workload, scheduler: str) -> pd.DataFrame:
    """A simulation of jobs that are submitted at their times, by somebody who notes whose they were."""
    return simulate(workload, scheduler, Choice("rigid"))


def recorded(schedule: pd.DataFrame, workload: Workload) -> Workload:
    """The jobs of a simulation as a log would have recorded them."""
    jobs, profiles = [], {}
    users = schedule["metadata"].str.extract(r"user=(\S+)", expand=False)
    for number, submit, size, walltime, run_time, user in zip(
        schedule["job_id"],
        schedule["submission_time"],
        schedule["requested_number_of_resources"],
        schedule["requested_time"],
        schedule["execution_time"],
        users,
        strict=True,
    ):
        profile = f"run_{run_time!r}"
        profiles[profile] = Homogeneous(run_time * LOG_SPEED)
        jobs.append(Job(f"w0!{number}", submit, int(size), walltime, profile, {"user": user}))
    return Workload("w0", jobs, profiles, nb_hosts=workload.nb_hosts)


def figures(schedule: pd.DataFrame, log: str, workload: Workload, task: Task, weeks: int) -> Figures:
    """What is measured of a schedule in which users submitted for so many weeks; 0 for as long as the log."""
    end = weeks * WEEK or max(job.submission_time for job in workload.jobs)
    days = end / DAY
    outcome = Outcome(schedule, workload.nb_hosts)
    metrics = measure(outcome)
    executed = outcome.executed
    overlap = executed["finish_time"].clip(upper=end) - executed["starting_time"].clip(upper=end)
    busy = float((overlap * executed["requested_number_of_resources"]).sum())
    classes = np.searchsorted(EDGES, executed["execution_time"])
    return Figures(
        log,
        weeks,
        task,
        submitted_per_day=len(schedule) / days,
        done_per_day=int((executed["finish_time"] <= end).sum()) / days,
        utilization=busy / (outcome.machine_size * end),
        mean_wait=metrics["mean_waiting_time"],
        mean_bounded_slowdown=metrics["mean_bounded_slowdown"],
        jobs_per_session=metrics["jobs_per_session"],
        sessions_per_day=metrics["nb_sessions"] / days,
        session_length=metrics["mean_session_length"],
        class_sizes=np.bincount(classes, minlength=len(EDGES) + 1).tolist(),
        class_responses=np.bincount(classes, executed["turnaround_time"], len(EDGES) + 1).tolist(),
        queue_by_hour=_queue_by_hour(executed, end),
    )


def _queue_by_hour(executed: pd.DataFrame, end: float) -> list[float]:
    """How many jobs wait on average in each hour of the day: job-seconds of waiting by seconds."""
    edges = np.arange(0, end + 1, HOUR)
    waited = np.zeros(len(edges))
    for times, sign in ((executed["submission_time"], 1), (executed["starting_time"], -1)):
        since = np.sort(times.to_numpy())
        sums = np.concatenate([[0.0], np.cumsum(since)])
        nb_before = np.searchsorted(since, edges)
        waited += sign * (nb_before * edges - sums[nb_before])
    by_hour = np.diff(waited)[: int(end // DAY) * 24].reshape(-1, 24)
    return [float(mean) for mean in by_hour.mean(axis=0) / HOUR]
