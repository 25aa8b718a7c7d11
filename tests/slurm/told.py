"""What the log of a recording tells of its phases, and the twin with just these.

A recording tells whole seconds. The log of its controller tells more: when it was started and when the script
of the scenario created a reservation, and to the millisecond when each job was submitted and how long it ran.
With that, nothing is left that nobody can know, but for some tenths of a second.

``python -m tests.slurm.told LOG RECORDED.csv`` prints what is kept of a log: a ``told-x.json`` beside a
``recorded-x.csv``.
"""

from __future__ import annotations

import csv
import re
import sys
from datetime import UTC, datetime
from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.slurm.jobs import WORKLOAD
from batsched_py.slurm.policy.settings import read_configuration
from batsched_py.slurm.reservations import BEFORE
from batsched_py.workload.batsim_json import read_batsim_json
from tests.slurm.scenario import prepared

_LINE = re.compile(r"\[([^\]]+)\] (.*)")
_STARTED = "Running as primary controller"
_RESERVED = "sched: Created reservation"
_SUBMITTED = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) ")
_BEGUN = re.compile(r"(?:sched: Allocate|sched/backfill: _start_job: Started) JobId=(\d+) ")
_DONE = re.compile(r"_job_complete: JobId=(\d+) done")

LONGER = 5.0
"""A job that ran so much longer than it was to was killed; the twin does that by itself."""


class Told(Struct, frozen=True, omit_defaults=True):
    """The phases of a recording; times are in seconds from where it counts them."""

    date: str
    started: float
    """When the controller was started, before time 0."""
    submitted: dict[str, float]
    """When each job was submitted, by its number."""
    ran: dict[str, float]
    """How long each job ran the last time, if it ended by itself."""
    reserved: float | None = None
    """When the script of the scenario was run, if it makes reservations."""


def told_by(log: Path, recorded: Path) -> Told:
    """What a log tells of a recording."""
    with recorded.open(encoding="utf-8", newline="") as rows:
        jobs = {row["slurm_id"]: row for row in csv.DictReader(rows)}
    zero: float | None = None
    started = 0.0
    reserved: float | None = None
    submitted, ran, begun = dict[str, float](), dict[str, float](), dict[str, float]()
    for line in log.read_text(encoding="utf-8").splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        time, text = datetime.fromisoformat(match[1]).timestamp(), match[2]
        if text.startswith(_STARTED):
            started = time
        elif text.startswith(_RESERVED):
            reserved = reserved or time
        elif found := _SUBMITTED.match(text):
            if zero is None:
                zero = int(time) - int(jobs[found[1]]["submit"])
            submitted[jobs[found[1]]["number"]] = round(time - zero, 3)
        elif found := _BEGUN.match(text):
            begun[found[1]] = time
        elif (found := _DONE.match(text)) and found[1] in jobs and found[1] in begun:
            ran[jobs[found[1]]["number"]] = round(time - begun[found[1]], 3)
    assert zero is not None
    return Told(
        date=datetime.fromtimestamp(zero, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        started=round(zero - started, 3),
        submitted=submitted,
        ran=ran,
        reserved=None if reserved is None else round(reserved - zero, 3),
    )


def read_told(path: Path) -> Told:
    """What was kept of a log."""
    return msgspec.json.decode(path.read_bytes(), type=Told)


def simulated_as_told(folder: Path, told: Told, test_time: float = 0.001) -> pd.DataFrame:
    """What the twin does with a scenario in the phases of a recording.

    A cycle took about a millisecond a job on the machine of these logs.
    """
    with TemporaryDirectory() as room:
        scenario = prepared(folder, Path(room), told.date)
        configuration = read_configuration(scenario.configuration)
        later = 0 if told.reserved is None else floor(told.reserved) + BEFORE
        reservations = tuple(
            replace(each, start=each.start + later, end=each.end + later, created=each.created + later)
            for each in configuration.reservations
        )
        scenario.configure(replace(configuration, reservations=reservations))
        workload = read_batsim_json(scenario.workload, WORKLOAD)
        profiles: dict[str, Profile] = {}
        jobs = []
        for job in workload.jobs:
            profile = workload.profiles[job.profile]
            ran = told.ran.get(job.name)
            if isinstance(profile, Delay) and ran is not None and ran < profile.seconds + LONGER:
                profile, job = Delay(seconds=ran), replace(job, profile=f"{job.profile} of {job.name}")
            profiles[job.profile] = profile
            jobs.append(replace(job, submission_time=told.submitted.get(job.name, job.submission_time)))
        scenario.submit(replace(workload, jobs=jobs, profiles=profiles))
        options = {"started": str(told.started), "test_time": str(test_time)}
        return scenario.table(scenario.simulated("rigid", {}, options))


if __name__ == "__main__":
    print(msgspec.json.encode(told_by(*map(Path, sys.argv[1:3]))).decode())
