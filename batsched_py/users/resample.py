"""A population that changes while the simulation runs; and a new log made of one, without feedback."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users import Action, Behaviour, NamedUsers, Submission, User, Wrapper, part_of
from batsched_py.users.broker import Broker
from batsched_py.users.population import WEEK, Pool, Rules, Stay, Turnover, no_longer_than, shuffled
from batsched_py.workload.dependencies import have_dependencies, with_names
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.workload import swf_to_workload


@dataclass
class Resample(NamedUsers, Wrapper):
    """New users made of those of the log come and go, each with the jobs of one recorded user.

    Long-term users, with activity over 12 weeks or more, stay for their recorded weeks, are away for as long
    as they were in the log, and start over; at the beginning each is in an arbitrary week of that, or with
    `begin=active` in one of the recorded weeks. Temporary users come at the log's rate, a random number each
    week, nobody twice in a week; at the beginning the log's mean number of them is there. All jobs keep their
    weekday and time of the day, but for what the behaviour of the users inside makes of them, which is
    `fluid` unless another one is named.
    """

    name = "resample"
    around: ClassVar[str] = "fluid"
    outermost: ClassVar[bool] = True

    weeks: Annotated[int, Meta(ge=0, description="How long users submit; 0 for as long as the log.")] = 0
    load: Annotated[
        float, Meta(gt=0, le=1e6, description="How many times the users of the log there are.")
    ] = 1.0
    long_term: Annotated[
        int, Meta(ge=1, description="From how many weeks of activity on a user is a long-term user.")
    ] = 12
    margin: Annotated[
        int,
        Meta(ge=0, description="Temporary users are left out who are only in so many weeks at either end."),
    ] = 1
    rest: Annotated[
        int | None, Meta(description="Weeks that long-term users are away; as in the log if not said.")
    ] = None
    begin: Annotated[
        Literal["any", "active"],
        Meta(description="Long-term users begin in any week, so that some are away, or in an active one."),
    ] = "any"
    cycles: Annotated[
        bool,
        Meta(description="Whether jobs keep their weekday and time of day; if not, users come any time."),
    ] = True
    oversample: Annotated[
        str, Meta(description="Users who are taken more often than others: USER:TIMES, several with commas.")
    ] = ""
    longest: Annotated[
        float, Meta(ge=0, description="Jobs that run for more hours than this are left out; 0 keeps all.")
    ] = 0.0
    shuffle: Annotated[
        bool,
        Meta(description="Whether jobs are dealt anew: users keep when they submit, and submit any job."),
    ] = False
    seed: Annotated[int, Meta(ge=0, description="Of the population.")] = 0

    def __post_init__(self) -> None:
        if self.rest is not None and self.rest < 0:
            raise InputError(f"rest={self.rest}: users cannot be away for less than 0 weeks")
        self.rules = Rules(
            seed=self.seed,
            load=self.load,
            rest=self.rest,
            begin_active=self.begin == "active",
            cycles=self.cycles,
            weights=_read_weights(self.oversample),
        )

    def pool(self, workload: Workload) -> Pool:
        """The users of whom the population is made."""
        workload = no_longer_than(workload, self.longest)
        if self.shuffle:
            workload = shuffled(workload, self.seed)
        return Pool.of(workload, self.long_term, self.margin)

    def named_users(self, workload: Workload) -> list[User]:
        """One who speaks for the whole population."""
        self.inner.learn(workload)
        pool = self.pool(workload)
        nb_weeks = self.weeks or pool.nb_weeks
        return [PopulationUser(workload.name, Turnover(pool, self.rules), self.inner, nb_weeks)]


def _read_weights(text: str) -> dict[str, float]:
    """How many times more often users are taken.

    >>> _read_weights("12:5,7:0")
    {'12': 5.0, '7': 0.0}
    """
    weights = {}
    for part in filter(None, text.split(",")):
        user, _, times = part.rpartition(":")
        try:
            weights[user] = float(times)
        except ValueError:
            weights[user] = -1.0
        if not (user and 0 <= weights[user] < inf):
            raise InputError(f"oversample {part!r}: write USER:TIMES, like 12:5")
    return weights


class PopulationUser(User):
    """Lets users come when their week has begun, and speaks for those who are there.

    Nobody is kept who has left, and nobody is made before the week begins. So memory and time grow with the
    users who are there, not with the length of the simulation.
    """

    def __init__(self, name: str, turnover: Turnover, behaviour: Behaviour, nb_weeks: int) -> None:
        self.name = name
        self._turnover = turnover
        self._behaviour = behaviour
        self._nb_weeks = nb_weeks
        self._next_week = 0
        self._nb_jobs = 0
        self._stays: dict[str, Stay] = {}
        """Who is there and has jobs to come."""
        self._nb_to_come: dict[str, int] = {}
        """How many."""
        self._present = Broker(on_leave=lambda user: self._end(user.name))

    def next_time(self) -> float:
        """When somebody acts, or another week begins."""
        end = self._nb_weeks * WEEK
        time = min(self._present.next_time, self._next_week * WEEK)
        return time if time < end else inf

    def submit(self, now: float) -> Sequence[Action]:
        """What those do who are there."""
        while self._next_week < self._nb_weeks and self._next_week * WEEK <= now:
            self._next_week += 1
            for stay in self._turnover.come(self._next_week - 1):
                self._begin(stay, now)
        actions = self._present.actions(now)
        for action in actions:
            if isinstance(action, Submission) and action.job.user in self._nb_to_come:
                self._nb_to_come[action.job.user] -= 1
                if not self._nb_to_come[action.job.user]:
                    self._end(action.job.user)
        return actions

    def _begin(self, stay: Stay, now: float) -> None:
        """Somebody comes, with jobs that have numbers of their own."""
        part = part_of(stay.stream.workload, list(stay.places))
        extras: dict[int, dict[str, Any]] = {}
        jobs: list[Job] = []
        names: dict[str, str] = {}
        first = self._nb_jobs
        for job in part.jobs:
            self._nb_jobs += 1
            extra = extras.get(id(job.extra))
            if extra is None:
                extra = extras[id(job.extra)] = job.extra | {"user": stay.name}
            names[job.name] = names[job.id] = str(self._nb_jobs)
            time = job.submission_time + stay.shift
            jobs.append(replace(job, id=f"{job.workload}!{self._nb_jobs}", submission_time=time, extra=extra))
        if have_dependencies(jobs):
            jobs = with_names(jobs, names.get, f".{first}")
        finishes = part.finishes and [finish + stay.shift for finish in part.finishes]
        self._stays[stay.name] = stay
        self._nb_to_come[stay.name] = len(jobs)
        part = replace(part, name=stay.name, jobs=jobs, finishes=finishes)
        for user in self._behaviour.users(part):
            self._present.add(user, now)

    def _end(self, name: str) -> None:
        """All that somebody had to submit is submitted, whenever it ends, or given up."""
        if self._nb_to_come.pop(name, None) is not None:
            self._turnover.left(self._stays.pop(name), self._next_week - 1)

    def job_started(self, job: Job, now: float) -> None:
        """Tell whose it is."""
        self._present.job_started(job.id, now)

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Tell whose it was."""
        self._present.job_ended(job.id, state, now)


#: What a header says about the jobs of the old log, and not of the new one.
_OUTDATED = ("MaxJobs", "MaxRecords", "EndTime")


def unroll(turnover: Turnover, nb_weeks: int) -> list[Stay]:
    """Who comes during so many weeks, if all submit as recorded."""
    stays: list[Stay] = []
    ends: dict[int, list[Stay]] = {}
    for week in range(nb_weeks):
        for stay in turnover.come(week):
            stays.append(stay)
            ends.setdefault(stay.last_week, []).append(stay)
        for stay in ends.pop(week, ()):
            turnover.left(stay, week)
    return stays


def resampled_log(log: SwfLog, population: Resample) -> SwfLog:
    """A log in which every job is one of an old log, moved by whole weeks or, if jobs are shuffled, anywhere.

    Jobs and users are numbered anew, and so a user who comes twice is two. Jobs without processors or
    without a user are left out, and jobs wait for no others. What is recorded of a job's wait is kept, as it
    tells how the users' think times came about.
    """
    workload = swf_to_workload(log)
    pool = population.pool(workload)
    nb_weeks = population.weeks or pool.nb_weeks
    record_of = {str(number): record for record, number in enumerate(log.job_number.tolist())}
    time_of = {job.name: job.submission_time for job in workload.jobs}
    jobs: list[tuple[int, float, int]] = []
    for number, stay in enumerate(unroll(Turnover(pool, population.rules), nb_weeks), start=1):
        for place in stay.places:
            job = stay.stream.workload.jobs[place]
            if job.submission_time + stay.shift < nb_weeks * WEEK:
                record = record_of[job.name]
                dealt = job.submission_time - time_of[job.name]
                jobs.append((record, float(log.submit[record]) + (dealt + stay.shift), number))
    jobs.sort(key=lambda job: job[1])
    records, times, users = map(list, zip(*jobs, strict=True)) if jobs else ([], [], [])
    new = log.select(np.array(records, dtype=np.intp))
    count = len(new)
    header = {key: value for key, value in log.header.items() if key not in _OUTDATED}
    note = (
        f"resampled from the users of {log.header.get('Computer', 'a log')}: {nb_weeks} weeks, "
        f"seed {population.seed}, load {population.load:g}"
    )
    header |= {"MaxJobs": str(count), "MaxRecords": str(count)}
    header["Note"] = "\n".join(filter(None, (header.get("Note", ""), note)))
    return dataclasses.replace(
        new,
        submit=np.array(times, dtype=np.float64),
        job_number=np.arange(1, count + 1),
        user=np.array(users, dtype=np.int64),
        preceding_job=np.full(count, -1),
        think_time=np.full(count, -1.0),
        header=header,
        path="",
        more={name: column for name, column in new.more.items() if name not in ("after", "array")},
    )
