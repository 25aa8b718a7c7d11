"""Small recorded logs and their replay with users, for tests of what users do."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.events import Message, Settings
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import User
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import LOG_SPEED


class Record(NamedTuple):
    """A job of a log."""

    user: int
    submit: float
    run_time: float
    size: int = 1
    wait: float = 0.0


def workload_of(records: Sequence[Record], name: str = "w0") -> Workload:
    """The jobs of a log, numbered from 1 in the order given; each may run for ever."""
    jobs: list[Job] = []
    profiles: dict[str, Profile] = {}
    for number, record in enumerate(records, start=1):
        profile, extra = f"run_{record.run_time}", {"user": record.user}
        profiles[profile] = compute(record.run_time)
        jobs.append(Job(f"{name}!{number}", float(record.submit), record.size, inf, profile, extra))
    finishes = [float(record.submit + record.wait + record.run_time) for record in records]
    return Workload(name, jobs, profiles, finishes=finishes)


def compute(seconds: float) -> Profile:
    """A profile that runs so long on the machine of the log."""
    return Homogeneous(seconds * LOG_SPEED)


def records(sizes: st.SearchStrategy[int], waits: st.SearchStrategy[int]) -> st.SearchStrategy[list[Record]]:
    """Logs of up to three users, dense enough for sessions to overlap, meet and follow each other."""
    seconds = st.integers(0, 40)
    return st.lists(
        st.builds(Record, st.integers(1, 3), seconds, seconds, sizes, waits), min_size=1, max_size=15
    ).map(lambda found: sorted(found, key=lambda record: record.submit))


class Arbitrary(Scheduler):
    """Rejects, kills and starts by the numbers of the jobs, so that every kind of end happens."""

    name = "arbitrary"

    def schedule(self, cluster: Cluster) -> None:
        """Reject each fifth job, kill each third one at the next opportunity, start what fits."""
        for running in list(cluster.running):
            if int(running.job.name) % 3 == 0 and running.start < cluster.now:
                cluster.kill(running.job)
        for job in list(cluster.queue):
            if int(job.name) % 5 == 0:
                cluster.reject(job)
            elif cluster.fits(job):
                cluster.start(job)


class Wired:
    """A decision process behind the texts of the wire, without a socket."""

    def __init__(self, process: DecisionProcess) -> None:
        self._process = process

    def react(self, request: Message) -> Message:
        """Answer a request that was written and read, with a reply that was."""
        codec = BATSIM4.codec()
        heard = codec.decode_request(codec.encode_request(request))
        return codec.decode_reply(codec.encode_reply(self._process.react(heard)))


def replay(
    users: Sequence[User],
    hosts: int,
    scheduler: Scheduler | str = "fcfs",
    speed: float = 1.0,
    wired: bool = False,
    acknowledge: bool = False,
    reuse: bool = True,
    delay: float = 0.0,
) -> str:
    """The ``jobs.csv`` of a simulation in which users submit all jobs."""
    policy = SCHEDULERS.create(scheduler, {}) if isinstance(scheduler, str) else scheduler
    process = DecisionProcess(policy, users, delay)
    settings = Settings(dynamic_jobs=True, acknowledge_dynamic_jobs=acknowledge, profile_reuse=reuse)
    return _simulate(Platform.homogeneous(hosts, speed), [], settings, Wired(process) if wired else process)


def static_replay(workload: Workload, hosts: int, scheduler: str) -> str:
    """The ``jobs.csv`` of a simulation in which the simulator submits all jobs."""
    process = DecisionProcess(SCHEDULERS.create(scheduler, {}))
    return _simulate(Platform.homogeneous(hosts), [workload], Settings(), process)


def _simulate(platform: Platform, workloads: list[Workload], settings: Settings, process: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        simulate(Batsim(Setup(platform, workloads, settings), Outputs(f"{folder}/out")), process)
        return Path(folder, "out_jobs.csv").read_text()


def rows(jobs_csv: str) -> dict[str, dict[str, str]]:
    """The rows by job number; a job with two rows is an error."""
    found = list(csv.DictReader(jobs_csv.splitlines()))
    by_number = {row["job_id"]: row for row in found}
    assert len(by_number) == len(found)
    return by_number


def submissions(jobs_csv: str) -> dict[str, float]:
    """When each job was submitted."""
    return {number: float(row["submission_time"]) for number, row in rows(jobs_csv).items()}
