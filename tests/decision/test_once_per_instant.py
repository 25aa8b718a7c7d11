"""A simulator that tells each event of an instant in a message of its own, as Batsim sometimes does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pytest import approx

from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.protocol.events import Message
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.testing.runs import rows_in, rows_of
from batsched_py.wire.sockets import AskingEnd
from batsched_py.workload.model import Workload
from tests.drive import workload
from tests.processes import PATIENCE, ROOT, call, call_here, serving
from tests.scheduling import policy

HOSTS = 8
WHERE = ("here", "there")


class Splitting:
    """Passes each event of a request on in a message of its own, and all replies back as one."""

    def __init__(self, process: RemoteProcess) -> None:
        self._process = process

    def react(self, request: Message) -> Message:
        """Ask once for each event; the instant is the same."""
        replies = [self._process.react(Message(request.now, [event])) for event in request.events]
        decisions = [decision for reply in replies for decision in reply.events]
        return Message(max(reply.now for reply in replies), decisions)


def batches(seed: int) -> Workload:
    """Jobs that come a few at a time; those of a batch run equally long.

    Times are multiples of 1/64 s: both doubles and six decimals hold them exactly.
    """
    dice = random.Random(seed)
    jobs, profiles, now = [], {}, 0.0
    for batch in range(40):
        now += round(64 * dice.expovariate(1 / 30)) / 64
        run_time = dice.randint(320, 12_800) / 64
        profiles[f"p{batch}"] = {"type": "delay", "delay": run_time}
        for _ in range(dice.randint(1, 4)):
            walltime = run_time * dice.uniform(1.01, 4)
            size = dice.randint(1, HOSTS)
            job = {"subtime": now, "res": size, "walltime": walltime, "profile": f"p{batch}"}
            jobs.append({"id": str(len(jobs)), **job})
    return workload(*jobs, profiles=profiles)


def decided(rows: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Which jobs were started where, in the order of starts."""
    rows = sorted(rows, key=lambda row: (round(float(row["starting_time"]), 1), int(row["job_id"])))
    return [(row["job_id"], row["allocated_resources"]) for row in rows]


def decided_behind_a_socket(name: str, seed: int, dialect: Dialect, *options: str) -> list[tuple[str, str]]:
    """The decisions of ``serve`` for a simulator that splits what happens at an instant."""
    with serving("-s", name, *options) as service, AskingEnd(service.endpoint, PATIENCE) as end:
        rows = rows_of(Splitting(RemoteProcess(end, dialect)), batches(seed), HOSTS)
        assert service.end() == (0, [])
    return decided(rows)


@pytest.mark.parametrize("dialect", [BATSIM4, BATSIM5], ids=["4", "5"])
@pytest.mark.parametrize(("name", "seed"), [("easy", 10), ("conservative", 10)])
def test_deciding_once_per_instant_the_decisions_are_those_of_run(
    name: str, seed: int, dialect: Dialect
) -> None:
    here = decided(rows_of(policy(name), batches(seed), HOSTS))
    assert decided_behind_a_socket(name, seed, dialect, "--once-per-instant") == here
    assert decided_behind_a_socket(name, seed, dialect) != here


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["easy", "conservative", "fcfs"])
def test_so_it_is_for_other_seeds(name: str, seed: int) -> None:
    here = decided(rows_of(policy(name), batches(seed), HOSTS))
    assert decided_behind_a_socket(name, seed, BATSIM4, "--once-per-instant") == here


def test_users_act_at_once_while_the_scheduler_waits(tmp_path: Path) -> None:
    log = ROOT / "workloads" / "sample.swf"
    lines = log.read_text().splitlines(keepends=True)
    few = tmp_path / "few.swf"
    few.write_text("".join(lines[: sum(line.startswith(";") for line in lines) + 200]))
    options = ["--users", "think-time", "-w", few]
    code, _, err = call_here(["run", "-s", "easy", *options, "--hosts", "64", "-e", tmp_path / "here"])
    assert (code, err) == (0, "")
    with serving("-s", "easy", *options, "--once-per-instant") as service:
        arguments = ["batsim", "-s", service.endpoint, "--hosts", "64", "--enable-dynamic-jobs"]
        code, _, err = call_here([*arguments, "--enable-profile-reuse", "-e", tmp_path / "there"])
        assert (code, err) == (0, "")
    here, there = ({row["job_id"]: row for row in rows_in(tmp_path / f"{at}_jobs.csv")} for at in WHERE)
    assert here.keys() == there.keys()
    for job_id, row in here.items():
        assert float(there[job_id]["submission_time"]) == approx(float(row["submission_time"]), abs=1e-2)


def test_a_job_starts_ten_microseconds_after_its_submission() -> None:
    alone = workload({"id": "1", "subtime": 5})
    with serving("-s", "easy", "--once-per-instant") as service, AskingEnd(service.endpoint, PATIENCE) as end:
        (row,) = rows_of(RemoteProcess(end), alone, HOSTS)
    assert row["starting_time"] == "5.000010"


def test_schedulers_of_pybatsim_decide_at_each_message() -> None:
    code, _, err = call(["serve", "-s", "pybatsim:easyBackfill", "--once-per-instant"])
    assert (code, err) == (
        1,
        "batsched-py: error: a scheduler of PyBatsim decides at each message; leave out --once-per-instant\n",
    )
