"""Slow, obvious simulation of jobs that wait for others: second by second, from the definitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.testing import JobSpec
from batsched_py.workload.model import Workload
from tests.reference_schedulers import POLICIES, Running

#: (kind, names of jobs or of one array, seconds); a singleton has no names.
Condition = tuple[str, tuple[str, ...], int]


@dataclass
class RefJob:
    """A job, and what became of it."""

    spec: JobSpec
    conditions: list[Condition] = field(default_factory=list)
    any: bool = False
    array: str = ""
    limit: int = 0
    name: str = ""
    joined: bool = False
    start: float | None = None
    over: float | None = None
    success: bool = False

    @property
    def after(self) -> str:
        return ("?" if self.any else ",").join(
            ":".join([kind, *(f"{name}+{seconds}s" if seconds else name for name in names)])
            for kind, names, seconds in self.conditions
        )

    @property
    def fields(self) -> dict[str, str]:
        array = f"{self.array}%{self.limit}" if self.limit else self.array
        fields = {"user": self.spec.user, "name": self.name, "after": self.after, "array": array}
        return {key: value for key, value in fields.items() if value}


class Reference:
    """All jobs, in the order of their submission."""

    def __init__(self, jobs: list[RefJob], policy: str, hosts: int) -> None:
        self.jobs = jobs
        self.policy = POLICIES[policy](hosts)
        self.queue: list[RefJob] = []

    def run(self) -> dict[str, tuple[float | None, float | None]]:
        """For each job when it joined the queue and when it started; nothing if it was rejected."""
        eligible: dict[str, float] = {}
        now = 0
        while any(job.over is None for job in self.jobs):
            assert now < 3_000, "the jobs wait for ever"
            for job in self.jobs:
                if job.start is not None and job.over is None and job.start + job.spec.duration == now:
                    job.over, job.success = now, job.spec.run_time < job.spec.walltime
            joined = self.join(now)
            self.choose(now)
            while more := self.join(now):
                joined += more
                self.choose(now)
            eligible |= dict.fromkeys(joined, now)
            now += 1
        return {job.spec.id: (eligible.get(job.spec.id), job.start) for job in self.jobs}

    def join(self, now: float) -> list[str]:
        """Reject those who wait for what never happens, and let those join the queue who wait for nothing."""
        while hopeless := [job for job in self.held(now) if self.state(job, now) is False]:
            hopeless[0].over = now
        joined = []
        for job in self.held(now):
            if self.state(job, now) and self.has_turn(job):
                job.joined = True
                joined.append(job.spec.id)
                self.queue.append(job)
        return joined

    def choose(self, now: int) -> None:
        """Let the policy start jobs."""
        running = [
            Running(job.spec, job.start) for job in self.jobs if job.start is not None and job.over is None
        ]
        chosen = self.policy.choose(now, [job.spec for job in self.queue], running, True)
        for job in [job for job in self.queue if job.spec in chosen]:
            job.start = now
            self.queue.remove(job)

    def held(self, now: float) -> list[RefJob]:
        """Plain jobs, which wait for nothing, come first."""
        found = [
            job for job in self.jobs if job.spec.submission <= now and not job.joined and job.over is None
        ]
        return sorted(found, key=lambda job: bool(job.after or job.limit))

    def state(self, job: RefJob, now: float) -> bool | None:
        """Whether what a job waits for has happened; False if it never will."""
        states = [
            state for condition in job.conditions for state in self.condition_states(job, condition, now)
        ]
        if job.any:
            return True if True in states else False if all(s is False for s in states) else None
        return False if False in states else None if None in states else True

    def condition_states(self, job: RefJob, condition: Condition, now: float) -> list[bool | None]:
        kind, names, seconds = condition
        if kind == "singleton":
            before = self.jobs[: self.jobs.index(job)]
            mine = [other for other in before if (other.spec.user, other.name) == (job.spec.user, job.name)]
            return [all(other.over is not None for other in mine) or None]
        states: list[bool | None] = []
        for name in names:
            others = [other for other in self.jobs if name in (other.spec.id, other.array)]
            if kind == "after":
                starts = [other.over if other.start is None else other.start for other in others]
                states.append(None if None in starts else max(starts) + seconds <= now or None)
                continue
            if any(other.over is None for other in others):
                states.append(None)
                continue
            success = all(other.success for other in others)
            if kind != "afterany" and success != (kind == "afterok"):
                states.append(False)
            else:
                states.append(max(other.over for other in others) + seconds <= now or None)
        return states

    def has_turn(self, job: RefJob) -> bool:
        going = [o for o in self.jobs if o.array == job.array and o.joined and o.over is None]
        return not job.limit or len(going) < job.limit


def random_jobs(random: Random, count: int, hosts: int) -> list[RefJob]:
    """Jobs of which many wait for others, before or after them, but never in a circle."""
    submissions = sorted(random.choice((0, 0, 5, 10, 11, 30)) + random.randint(0, 3) for _ in range(count))
    arrays = {name: random.choice((0, 1, 2)) for name in "ab"}
    array_submission = {name: random.choice(submissions) for name in arrays}
    jobs = []
    for number, submission in enumerate(submissions):
        run_time = random.randint(2, 12)
        walltime = run_time + random.choice((-1, 1, 5))
        user = random.choice("uv")
        spec = JobSpec(f"{number:02}", submission, random.randint(1, hosts), run_time, walltime, user)
        job = RefJob(spec, name=random.choice("xy"))
        for name, limit in arrays.items():
            if submission == array_submission[name] and not job.array:
                job.array, job.limit = name, limit
        jobs.append(job)
    rank = list(range(count))
    random.shuffle(rank)
    for place, job in enumerate(jobs):
        before = [other for other in range(count) if rank[other] < rank[place]]
        if before and random.random() < 0.5:
            job.conditions = [_condition(random, before) for _ in range(random.randint(1, 2))]
            job.any = random.random() < 0.3 and len(job.conditions) > 1
    known = {job.array for job in jobs if job.array}
    for job in jobs:
        if not job.conditions and not job.array and random.random() < 0.2:
            job.conditions = [("singleton", (), 0)] if not _waits_by_name(jobs, job) else []
        elif not job.conditions and not job.array and known and random.random() < 0.4:
            array = random.choice(sorted(known))
            if not any(task.conditions for task in jobs if task.array == array):
                job.conditions = [(random.choice(("afterok", "afterany", "after")), (array,), 0)]
    return jobs


def _waits_by_name(jobs: list[RefJob], job: RefJob) -> bool:
    """Whether anybody of the same user and name waits for others, which could close a circle."""
    return any(o.conditions for o in jobs if (o.spec.user, o.name) == (job.spec.user, job.name))


def _condition(random: Random, before: list[int]) -> Condition:
    names = tuple(f"{number:02}" for number in random.sample(before, min(len(before), random.randint(1, 2))))
    return random.choice(("afterok", "afterany", "afternotok", "after")), names, random.choice((0, 0, 0, 4))


def workload_of(jobs: list[RefJob], hosts: int) -> Workload:
    return Workload(
        "w0",
        [
            Job(
                f"w0!{job.spec.id}",
                float(job.spec.submission),
                job.spec.size,
                float(job.spec.walltime),
                f"{job.spec.run_time}",
                job.fields,
            )
            for job in jobs
        ],
        {f"{job.spec.run_time}": Delay(float(job.spec.run_time)) for job in jobs},
        hosts,
    )
