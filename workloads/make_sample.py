"""Make ``sample.swf`` and ``sample.json``: some weeks of an invented machine and its users.

Users work in sessions by day, seldom at weekends. In a session they submit a job, or a few in a row, wait
for it, think, and submit the next. The recorded waits are those of a small scheduler, so that what users do
depends on what the machine did, as it does in a real log.

    python workloads/make_sample.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from heapq import heapreplace
from math import log
from pathlib import Path
from random import Random

import numpy as np

from batsched_py.workload.batsim_json import write_batsim_json
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf.log import COLUMNS, SwfLog, write_swf

SEED = 6
JOBS, USERS, HOSTS = 3000, 50, 64
MINUTE, HOUR, DAY = 60, 3600, 86400
SIZES = {1: 20, 2: 10, 3: 3, 4: 14, 8: 18, 12: 4, 16: 14, 24: 3, 32: 8, 64: 3}  # and how frequent they are
TIME_LIMITS = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE] + [hours * HOUR for hours in (1, 2, 4, 8, 12, 24, 36)]


@dataclass
class Application:
    """A program that a user runs again and again."""

    number: int
    size: int
    median_run_time: float
    overestimation: float


@dataclass
class User:
    """Someone with a few applications, who comes back every ``days_off`` days or so."""

    number: int
    days_off: float
    applications: list[Application]


def make_users(random: Random) -> list[User]:
    """Few users are busy and many are not; most applications are small, and short."""
    users = []
    for number in range(1, USERS + 1):
        applications = [
            Application(
                number=10 * number + i,
                size=random.choices(list(SIZES), list(SIZES.values()))[0],
                median_run_time=random.lognormvariate(log(HOUR), 1.2),
                overestimation=random.uniform(1.2, 5),
            )
            for i in range(random.randint(1, 4))
        ]
        users.append(User(number, days_off=random.uniform(0, 3) ** 2, applications=applications))
    return users


class Machine:
    """Gives each job, when it is submitted, the earliest place in the plan that is free."""

    def __init__(self) -> None:
        self.plan: list[tuple[int, int, int]] = []

    def run(self, submit: int, size: int, run_time: int) -> int:
        """Plan a job, and say when it starts."""
        self.plan = [(start, end, used) for start, end, used in self.plan if end > submit]
        start = next(
            time
            for time in sorted({submit, *(end for _, end, _ in self.plan)})
            if self._peak(time, time + run_time) + size <= HOSTS
        )
        self.plan.append((start, start + run_time, size))
        return start

    def _peak(self, begin: int, finish: int) -> int:
        """The most hosts that are in use at once between two times."""
        overlapping = [job for job in self.plan if job[0] < finish and job[1] > begin]
        moments = [begin, *(start for start, _, _ in overlapping if start > begin)]
        return max(sum(used for start, end, used in overlapping if start <= t < end) for t in moments)


def next_session(random: Random, user: User, now: int) -> int:
    """When a user comes back: in working hours, on a later day."""
    day = now // DAY + 1 + int(random.expovariate(1 / user.days_off))
    while day % 7 >= 5 and random.random() < 0.8:
        day += 1
    return day * DAY + round(min(max(random.gauss(12.5, 2.5), 6), 21) * HOUR)


def make_log() -> SwfLog:
    """Let the users work until there are enough jobs."""
    random = Random(SEED)
    machine = Machine()
    users = make_users(random)
    coming = [(next_session(random, user, -DAY), user.number) for user in users]
    coming.sort()
    records = []
    for number in range(1, JOBS + 1):
        submit, user_number = coming[0]
        user = users[user_number - 1]
        application = random.choice(user.applications)
        wanted = max(1, round(random.lognormvariate(log(application.median_run_time), 0.9)))
        estimate = application.median_run_time * application.overestimation
        limit = next((t for t in TIME_LIMITS if t >= estimate), TIME_LIMITS[-1])
        crashes = random.random() < 0.04
        run_time = random.randint(0, 60) if crashes else min(wanted, limit)
        start = machine.run(submit, application.size, run_time)
        record = dict.fromkeys(COLUMNS, -1) | {
            "job_number": number,
            "submit": submit,
            "wait": start - submit,
            "run_time": run_time,
            "allocated_processors": application.size,
            "requested_processors": application.size,
            "requested_time": limit,
            "status": int(not crashes and wanted <= limit),
            "user": user.number,
            "group": 1 + user.number % 8,
            "executable": application.number,
            "queue": 1 if limit <= 4 * HOUR else 2,
        }
        records.append(record)
        if random.random() < 0.35:
            back = submit + 1 + round(random.expovariate(1 / (2 * MINUTE)))
        else:
            back = start + run_time + 1 + round(random.lognormvariate(log(8 * MINUTE), 1))
        if random.random() < 0.12 or not 7 <= back % DAY / HOUR <= 21:
            back = next_session(random, user, back)
        heapreplace(coming, (back, user.number))
    columns = {name: np.array([record[name] for record in records]) for name in COLUMNS}
    header = {
        "Version": "2.2",
        "Computer": "an invented cluster",
        "Installation": "none: the log is synthetic",
        "Conversion": f"workloads/make_sample.py of batsched_py, seed {SEED}",
        "MaxJobs": str(JOBS),
        "MaxRecords": str(JOBS),
        "Preemption": "No",
        "UnixStartTime": "1704067200",
        "TimeZone": "0",
        "TimeZoneString": "UTC",
        "StartTime": "Mon Jan 01 00:00:00 UTC 2024",
        "MaxNodes": str(HOSTS),
        "MaxProcs": str(HOSTS),
        "MaxQueues": "2",
        "Queue": "1 up to 4 hours\n2 up to 36 hours",
    }
    return SwfLog(**columns, header=header)


def main(directory: Path) -> None:
    """Write both files."""
    swf = directory / "sample.swf"
    write_swf(swf, make_log())
    write_batsim_json(directory / "sample.json", read_workload(swf, "w0", walltime="max"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
