"""A job whose run time equals its walltime: a real Batsim says now and then that it reached it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.jobs import JobState
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import UsersOf
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.processes import ROOT, call_here
from tests.scheduling import policy
from tests.users.behaviours import NAMES, behaviour

HOSTS = 64
LOG = ROOT / "workloads" / "sample.swf"
ROWS = 150
SUCCESS, REACHED = "1,COMPLETED_SUCCESSFULLY", "0,COMPLETED_WALLTIME_REACHED"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of the sample, in which every third job asks for exactly the time that it runs."""
    lines = LOG.read_text().splitlines()
    jobs = [line.split() for line in lines if not line.startswith(";")][:ROWS]
    for fields in jobs[::3]:
        fields[8] = fields[3]
    path = tmp_path_factory.mktemp("log") / "exact.swf"
    header = [line for line in lines if line.startswith(";")]
    path.write_text("\n".join([*header, *map(" ".join, jobs)]) + "\n")
    return path


class Telling:
    """A simulator's messages as they are, or with the other state for jobs that ran for their walltime."""

    def __init__(self, process: DecisionProcess, reached: bool) -> None:
        self._process = process
        self._reached = reached
        self._limits: dict[str, float] = {}
        self.said: list[bytes] = []
        self.changed = 0

    def react(self, request: ev.Message) -> ev.Message:
        """Tell the process, and note what it decides."""
        events = [self._told(event) for event in request.events]
        reply = self._process.react(ev.Message(request.now, events))
        for event in reply.events:
            if isinstance(event, ev.RegisterJob):
                self._limits[event.job.id] = event.job.walltime
            elif isinstance(event, ev.ExecuteJob):
                self._limits[event.job_id] += event.time
        self.said.append(BATSIM4.codec().encode_reply(reply))
        return reply

    def _told(self, event: ev.Event) -> ev.Event:
        if not (self._reached and isinstance(event, ev.JobCompleted) and event.state == JobState.SUCCESS):
            return event
        if abs(self._limits[event.job_id] - event.time) > 1e-3:
            return event
        self.changed += 1
        return structs.replace(event, state=JobState.WALLTIME_REACHED, return_code=-1)


def decided(workload: Workload, users: str, reached: bool) -> Telling:
    """All that is decided for users of a kind."""
    settings = ev.Settings(dynamic_jobs=True, profile_reuse=True)
    batsim = Batsim(Setup(Platform.homogeneous(HOSTS), [], settings=settings))
    telling = Telling(DecisionProcess(policy("easy"), UsersOf(behaviour(users), [workload])), reached)
    simulate(batsim, telling)
    return telling


@pytest.mark.parametrize("users", NAMES)
def test_users_and_policies_go_on_in_the_same_way(log: Path, users: str) -> None:
    workload = read_workload(log, "dyn")
    usual, other = (decided(workload, users, reached) for reached in (False, True))
    assert other.changed > 0
    assert other.said == usual.said


def test_metrics_differ_in_the_numbers_of_successes_only(log: Path, tmp_path: Path) -> None:
    code, _, err = call_here(["run", "-w", log, "-s", "easy", "--hosts", HOSTS, "-e", tmp_path / "out"])
    assert (code, err) == (0, "")
    usual, other = tmp_path / "out_jobs.csv", tmp_path / "other_jobs.csv"
    header, *rows = usual.read_text().splitlines(keepends=True)
    names = header.split(",")
    limit, ran = names.index("requested_time"), names.index("execution_time")
    exact = [row for row in rows if row.split(",")[limit] == row.split(",")[ran] and SUCCESS in row]
    assert exact
    other.write_text(
        "".join([header, *(row.replace(SUCCESS, REACHED) if row in exact else row for row in rows)])
    )
    assert call_here(["validate", other, "-w", log, "--hosts", HOSTS, "--policy", "easy"])[0] == 0
    first, second = (
        json.loads(call_here(["metrics", file, "--hosts", HOSTS, "--json"])[1])["metrics"]
        for file in (usual, other)
    )
    assert {name for name in first if first[name] != second[name]} == {"nb_jobs_success", "nb_jobs_killed"}
