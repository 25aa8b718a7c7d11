"""Malleable jobs against slow and obvious models."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest

from batsched_py.analysis.metrics import measure
from batsched_py.analysis.outcome import Outcome, read_summary
from batsched_py.analysis.schedule import host_sets, pieces_of, read_schedule
from batsched_py.analysis.validator import Facts, validate
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.sizes import malleable_of
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from tests.drive import GIGA, computing, platform, workload
from tests.malleable.reference import MalleableEasy, RefJob, end_by_seconds, speedup
from tests.power import run

HOSTS = 8


class Restless(Scheduler):
    """Starts and resizes jobs at random, at whole seconds; knows who had what from when on."""

    name = "restless"

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.had: dict[str, list[tuple[int, HostSet]]] = {}

    def schedule(self, cluster: Cluster) -> None:
        if cluster.now.is_integer():
            for job in list(cluster.queue):
                malleable, free = malleable_of(job), cluster.nb_free
                assert malleable is not None
                if free >= malleable.least:
                    size = self.random.randint(malleable.least, min(free, malleable.most))
                    hosts = HostSet.of(self.random.sample(list(cluster.free), size))
                    self.note(cluster, job.id, cluster.start(job, hosts).hosts)
            for running in cluster.running:
                malleable = malleable_of(running.job)
                assert malleable is not None
                if self.random.random() < 0.5:
                    most = min(running.nb_hosts + cluster.nb_free, malleable.most)
                    size = self.random.randint(malleable.least, most)
                    self.note(cluster, running.job.id, cluster.resize(running.job, size).hosts)
        if cluster.queue or cluster.running:
            cluster.call_at(int(cluster.now) + self.random.randint(1, 9))

    def note(self, cluster: Cluster, job: str, hosts: HostSet) -> None:
        self.had.setdefault(job, []).append((int(cluster.now), hosts))


def uneven() -> Platform:
    """Hosts of different speeds."""
    made = platform(HOSTS)
    for host in made.hosts[::2]:
        host.pstate = 1
    return made


def random_jobs(random: Random, profiles: dict[str, dict[str, Any]]) -> Workload:
    jobs = []
    for number in range(12):
        least = random.randint(1, 3)
        size = least + random.randint(0, 3)
        sequential = random.choice((0, 0, 0.1, 0.25))
        jobs.append(
            {
                "id": f"{number:02}",
                "subtime": random.randint(0, 60),
                "res": size,
                "walltime": random.choice((60, 200, 1000)),
                "profile": random.choice(list(profiles)),
                "malleable": {"min": least, "max": size + random.randint(0, 3), "sequential": sequential},
            }
        )
    made = workload(*jobs, profiles=profiles)
    made.jobs = sorted(made.jobs, key=lambda job: job.submission_time)
    return made


PROFILES = {
    "delay": {"type": "delay", "delay": 37},
    "each": computing(41 * GIGA),
    "total": {"type": "parallel_homogeneous_total", "cpu": 130 * GIGA, "com": 0},
}


def nominal(profile: str, size: int, speed: Fraction) -> Fraction:
    """How long a profile takes with the size that a job asks for."""
    return {"delay": Fraction(37), "each": 41 / speed, "total": Fraction(130) / size / speed}[profile]


SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_end_when_their_work_is_done_second_by_second(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    machine = uneven() if seed % 2 else platform(HOSTS)
    jobs, policy = random_jobs(random, PROFILES), Restless(random)
    run(Setup(machine, [jobs]), policy, tmp_path)
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    speed_of = [Fraction(1, 2) if host.pstate else Fraction(1) for host in machine.hosts]
    for row in schedule.itertuples():
        job = next(job for job in jobs.jobs if job.name == row.job_id)
        had, given = policy.had[job.id], job.extra["malleable"]
        law = Fraction(str(given["sequential"]))
        speeds = [
            (
                since,
                speedup(len(hosts), law)
                / speedup(job.size, law)
                / nominal(job.profile, job.size, min(speed_of[host] for host in hosts)),
            )
            for since, hosts in had
        ]
        end, alone = end_by_seconds(had[0][0], Fraction(1), speeds, job.walltime, job.profile == "delay")
        assert row.finish_time == pytest.approx(float(end), abs=1e-6)
        assert (row.final_state == "COMPLETED_SUCCESSFULLY") == alone
        assert row.allocated_resources == had[-1][1].text()
    assert validate(schedule, HOSTS, [jobs], facts=Facts(speeds=[host.speed for host in machine.hosts])) == []
    outcome = Outcome.of(schedule, read_summary(tmp_path / "out_jobs.csv"))
    table = (tmp_path / "out_schedule.csv").read_text().splitlines()
    computed = float(dict(zip(table[0].split(","), table[1].split(","), strict=True))["time_computing"])
    assert outcome.host_seconds == pytest.approx(computed, abs=1e-3)
    assert measure(outcome)["utilization"] == pytest.approx(computed / HOSTS / outcome.makespan)


def random_mix(random: Random, count: int) -> list[RefJob]:
    """Jobs of which some are malleable."""
    jobs, time = [], 0
    for number in range(count):
        time += random.choice((0, 0, 3, 10, 40))
        size, work = random.randint(1, HOSTS), random.randint(1, 60)
        job = RefJob(f"{number:02}", time, size, Fraction(work), work + random.randint(0, 60))
        if random.random() < 0.6:
            job.least, job.most = random.randint(1, size), random.randint(size, HOSTS)
            job.sequential = random.choice((Fraction(0), Fraction(1, 8)))
            job.walltime = random.choice((work, 10 * work))
        jobs.append(job)
    return jobs


def as_workload(jobs: list[RefJob]) -> Workload:
    described = []
    for job in jobs:
        fields = {"id": job.name, "subtime": job.submission, "res": job.size, "walltime": job.walltime}
        if job.least:
            fields["malleable"] = {"min": job.least, "max": job.most, "sequential": float(job.sequential)}
        described.append(fields | {"profile": f"{job.work}"})
    profiles = {f"{job.work}": computing(float(job.work) * GIGA) for job in jobs}
    return workload(*described, profiles=profiles)


@pytest.mark.parametrize("seed", SEEDS)
def test_malleable_easy_is_what_its_definition_says(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    while not (expected := MalleableEasy(HOSTS, jobs := random_mix(random, 40))).is_clear:
        pass
    run(Setup(platform(HOSTS), [as_workload(jobs)]), "malleable-easy", tmp_path)
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    assert len(schedule) == 40
    for row, hosts in zip(schedule.itertuples(), host_sets(schedule), strict=True):
        pieces = [(row.starting_time, len(hosts))]
        if row.resizes:
            found = pieces_of(row.starting_time, inf, row.resizes)
            pieces = [(piece.start, len(piece.hosts)) for piece in found]
        assert pieces == [(pytest.approx(float(t), abs=2e-6), n) for t, n in expected.pieces[row.job_id]]
        assert row.finish_time == pytest.approx(float(expected.ends[row.job_id]), abs=2e-6)
    assert validate(schedule, HOSTS, [as_workload(jobs)], facts=Facts(speeds=[GIGA] * HOSTS)) == []
