"""Slow and obvious models of malleable jobs, from their definition; nothing of the package is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

MICROSECOND = Fraction(1, 10**6)


def speedup(hosts: int, sequential: Fraction) -> Fraction:
    """Amdahl's law: a share of the work is done by one host, the rest by all."""
    return 1 / (sequential + (1 - sequential) / hosts)


def end_by_seconds(
    start: int, work: Fraction, speeds: list[tuple[int, Fraction]], walltime: float, sleeps: bool
) -> tuple[Fraction, bool]:
    """When a job ends, and whether by itself: its work is added up second by second.

    ``speeds`` tells from which whole second on it does how much in a second. If a job that ``sleeps`` has
    done all when its walltime is over, the walltime wins, as in Batsim.
    """
    done, now = Fraction(0), start
    while True:
        speed = [speed for since, speed in speeds if since <= now][-1]
        if done + speed >= work:
            end = now + (work - done) / speed
            in_time = end < start + walltime or (end == start + walltime and not sleeps)
            return (end, True) if in_time else (start + Fraction(walltime), False)
        if now + 1 >= start + walltime:
            return start + Fraction(walltime), False
        done, now = done + speed, now + 1


@dataclass
class RefJob:
    name: str
    submission: int
    size: int
    work: Fraction
    """How many seconds it takes with its size."""
    walltime: int
    least: int = 0
    """0 if it is not malleable."""
    most: int = 0
    sequential: Fraction = Fraction(0)


@dataclass
class Run:
    job: RefJob
    hosts: int
    start: Fraction
    number: int
    left: Fraction = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.job.work

    @property
    def speed(self) -> Fraction:
        if not self.job.least:
            return Fraction(1)
        law = self.job.sequential
        return speedup(self.hosts, law) / speedup(self.job.size, law)

    @property
    def limit(self) -> Fraction:
        return self.start + self.job.walltime


class MalleableEasy:
    """``malleable-easy`` on a number of hosts; ``pieces`` are its outcome.

    Instants are told in whole microseconds, and what is decided takes effect at the time that was told, if
    that is later. Where jobs end as close together as that, it is not clear what happens first.
    """

    def __init__(self, hosts: int, jobs: list[RefJob]) -> None:
        self.free = hosts
        self.queue: list[RefJob] = []
        self.running: list[Run] = []
        self.pieces: dict[str, list[tuple[Fraction, int]]] = {}
        self.ends: dict[str, Fraction] = {}
        self.started = 0
        self.is_clear = True
        self.simulate(sorted(jobs, key=lambda job: (job.submission, job.name)))

    def simulate(self, to_come: list[RefJob]) -> None:
        now = Fraction(0)
        while to_come or self.running:
            ends = [min(now + run.left / run.speed, run.limit) for run in self.running]
            then = min(ends + [Fraction(job.submission) for job in to_come[:1]])
            for run in self.running:
                run.left -= (then - now) * run.speed
            for run, end in zip(list(self.running), ends, strict=True):
                if end == then:
                    self.running.remove(run)
                    self.free += run.hosts
                    self.ends[run.job.name] = then
            while to_come and to_come[0].submission == then:
                self.queue.append(to_come.pop(0))
            told = Fraction(round(then * 10**6), 10**6)
            effect = max(told, then)
            after = [min(then + run.left / run.speed, run.limit) for run in self.running]
            together = ends.count(then) > 1 and told != then
            self.is_clear &= not together and all(end > effect + MICROSECOND for end in after)
            for run in self.running:
                run.left -= (effect - then) * run.speed
            now = effect
            self.decide(now)

    def decide(self, now: Fraction) -> None:
        while self.queue and self.make_room(self.queue[0]):
            self.start(self.queue[0], now)
        if self.queue:
            self.backfill(now)
        while not self.queue and self.free:
            growing = [run for run in self.running if run.hosts < run.job.most]
            if not growing:
                break
            smallest = min(growing, key=lambda run: (run.hosts, run.number))
            self.resize(smallest, 1)
        self.note(now)

    def make_room(self, head: RefJob) -> bool:
        spare = sum(run.hosts - run.job.least for run in self.running if run.job.least)
        if self.free + spare < head.size:
            return False
        while self.free < head.size:
            shrinking = [run for run in self.running if run.job.least and run.hosts > run.job.least]
            self.resize(min(shrinking, key=lambda run: (-run.hosts, run.number)), -1)
        return True

    def resize(self, run: Run, step: int) -> None:
        run.hosts += step
        self.free -= step

    def start(self, job: RefJob, now: Fraction) -> Run:
        self.queue.remove(job)
        self.free -= job.size
        self.started += 1
        run = Run(job, job.size, now, self.started)
        self.running.append(run)
        return run

    def backfill(self, now: Fraction) -> None:
        head, shadow, extra = self.queue[0], inf, 0
        free = self.free
        for run in sorted(self.running, key=lambda run: (run.limit, run.number)):
            free += run.hosts
            if free >= head.size:
                shadow, extra = max(run.limit, now), free - head.size
                break
        for job in self.queue[1:]:
            if job.size <= self.free and (now + job.walltime <= shadow or job.size <= extra):
                self.start(job, now)
                if now + job.walltime > shadow:
                    extra -= job.size

    def note(self, now: Fraction) -> None:
        """Write down who has how many hosts from now on, if that is news."""
        for run in self.running:
            known = self.pieces.setdefault(run.job.name, [])
            if known and known[-1][0] == now:
                known.pop()
            if not known or known[-1][1] != run.hosts:
                known.append((now, run.hosts))
