"""A policy puts a running job back into the queue: it is killed, and registered again under a new name."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import PolicyError
from batsched_py.protocol.events import Message
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing.runs import rows_in, rows_of
from batsched_py.users import Submission, User
from batsched_py.workload.model import Workload


class Impatient(Scheduler):
    """Lets the first job begin again, once, as soon as another one waits."""

    name = "impatient"
    requeues = True

    def begin(self, cluster: Cluster) -> None:
        self.again = ""

    def schedule(self, cluster: Cluster) -> None:
        running = cluster.running.get("w0!1")
        if cluster.queue and running is not None and not self.again:
            self.again = cluster.requeue(running.job)
        for job in cluster.fitting():
            cluster.start(job)


class Two(User):
    """Hands in two jobs, and remembers what it hears of them."""

    name = "two"

    def __init__(self) -> None:
        self.heard: list[tuple[str, JobState, float]] = []
        self._times = [0.0, 30.0]

    def next_time(self) -> float:
        return self._times[0] if self._times else inf

    def submit(self, now: float) -> list[Submission]:
        number = 3 - len(self._times)
        self._times.pop(0)
        return [Submission(Job(f"w0!{number}", now, 1, 500.0, "work"), Delay(100.0))]

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self.heard.append((job.id, state, now))


class ByMessages:
    """A decision process at the other end of a wire."""

    def __init__(self, process: DecisionProcess) -> None:
        self._process = process

    def react(self, request: Message) -> Message:
        return self._process.react(request)


@pytest.mark.parametrize("by_messages", [False, True])
def test_a_job_begins_again_and_its_user_hears_of_the_last_end_only(
    tmp_path: Path, by_messages: bool
) -> None:
    user, policy = Two(), Impatient()
    process = DecisionProcess(policy, [user])
    batsim = Batsim(
        Setup(Platform.homogeneous(1), [], settings=process.needs), Outputs(str(tmp_path / "out"))
    )
    simulate(batsim, ByMessages(process) if by_messages else process)
    rows = {row["job_id"]: row for row in rows_in(tmp_path / "out_jobs.csv")}
    assert policy.again == "w0!1#1"
    assert list(rows) == ["1", "2", "1#1"]
    assert (rows["1"]["final_state"], rows["1"]["metadata"]) == ("COMPLETED_KILLED", "requeued=1")
    assert rows["1#1"]["metadata"] == "restart=1"
    assert float(rows["1#1"]["execution_time"]) == 100
    assert [heard[:2] for heard in user.heard] == [("w0!2", JobState.SUCCESS), ("w0!1", JobState.SUCCESS)]


def test_where_no_user_hands_jobs_in_they_cannot_be_put_back() -> None:
    jobs = [Job("w0!1", 0.0, 1, 500.0, "work"), Job("w0!2", 30.0, 1, 500.0, "work")]
    with pytest.raises(PolicyError, match=r"no user hands it in again, so it cannot be put back"):
        rows_of(Impatient(), Workload("w0", jobs, {"work": Delay(100.0)}, 1), 1)
