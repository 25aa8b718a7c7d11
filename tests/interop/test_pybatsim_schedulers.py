"""PyBatsim, an independent decision process for Batsim, driven by the built-in Batsim over ZeroMQ.

Its 3.2.1 is the last that speaks the protocol of Batsim 4; ``make test`` installs it. All schedulers of its
wheel are here: those that complete a workload, and those that cannot, with the reason, which is tried too.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest
import zmq

from tests.processes import PATIENCE, call, start

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
RIGID = ("-p", GOLDEN / "rigid200_fcfs" / "flat16.xml", "-w", GOLDEN / "rigid200_fcfs" / "rigid200.json")
LAUNCHER = [sys.executable, "-c", "import sys; from batsim.cmds.launcher import main; sys.exit(main())"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("batsim") is None, reason="needs pip install --no-deps -r requirements-peers.txt"
)

COMPLETE = [
    "easyBackfill",
    "fillerSched",
    "fillerSchedWithEvents",
    "schedEasySjfBackfill",
    "schedFcfs",
    "schedFiller",
    "schedSendRecv",
]

NO_SCHEDULERS = {"common_pyss_adaptator", "intervalContainer"}


class Broken(NamedTuple):
    """A scheduler that cannot complete a workload with any Batsim 4."""

    reason: str
    words: str
    """What one of the two processes says about it."""
    profile: dict[str, Any] = {"type": "delay", "delay": 12}
    """What the jobs do that it is tried with."""
    settings: dict[str, Any] = {}
    options: Sequence[str] = ()
    """Batsim's."""


DYNAMIC = ("--enable-dynamic-jobs", "--acknowledge-dynamic-jobs", "--forward-profiles-on-submission")

BROKEN = {
    "schedBebida": Broken(
        "without IO it looks up an IO job that it never made; its other variants need a network",
        "KeyError: 'w0!1'",
        profile={"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0},
        settings={"variant": "no-io"},
        options=DYNAMIC,
    ),
    "unMaintained/easyBackfillNotopo": Broken(
        "it never sets the logger that it writes to when there are no more static jobs",
        "'EasyBackfillNotopo' object has no attribute 'logger'",
    ),
    "unMaintained/easySjbfBackfillNotopo": Broken(
        "it imports a module from where it no longer is", "No module named 'schedulers.easyBackfillNotopo'"
    ),
    "unMaintained/schedDelayProfilesAsTasks": Broken(
        "it registers a profile twice",
        "RegisterProfile: profile 'delay_profile_0' already existed in workload 'w0%1'",
        options=DYNAMIC,
    ),
}

NOT_YET = {
    "fcfsSchedSleep": "it switches hosts off, and power states are not simulated yet",
    "randomSched": "it starts jobs on busy hosts, and hosts that are shared are not simulated yet",
    "unMaintained/easyEnergyBudget": "it asks for the consumed energy, which is not simulated yet",
}


def folder() -> Path:
    """Where the schedulers of PyBatsim are."""
    spec = importlib.util.find_spec("schedulers")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def free_endpoint() -> str:
    """An endpoint that nobody listens at."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        return f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"


@contextmanager
def deciding(
    scheduler: str, endpoint: str, log: IO[str], cwd: Path, settings: dict[str, Any]
) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler of PyBatsim as a process of its own."""
    name = str(folder() / f"{scheduler}.py") if "/" in scheduler else scheduler
    patience = ["-t", str(PATIENCE * 1000), "-v", "error"]
    arguments = [*LAUNCHER, name, "-s", endpoint, "-o", json.dumps(settings), *patience]
    with subprocess.Popen(arguments, cwd=cwd, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()


def test_every_scheduler_of_the_wheel_is_here() -> None:
    modules = {
        str(path.relative_to(folder()).with_suffix(""))
        for path in folder().rglob("*.py")
        if path.name != "__init__.py"
    }
    assert modules == {*COMPLETE, *BROKEN, *NOT_YET, *NO_SCHEDULERS}


@pytest.mark.parametrize("scheduler", COMPLETE)
def test_its_schedulers_complete_a_workload(scheduler: str, tmp_path: Path) -> None:
    endpoint = free_endpoint()
    log = tmp_path / "pybatsim.log"
    with log.open("w") as file, deciding(scheduler, endpoint, file, tmp_path, {}) as peer:
        ours = ["-s", endpoint, "-e", tmp_path / "out", "--timeout", str(PATIENCE)]
        assert call(["batsim", *ours, *RIGID]) == (0, "", "")
        assert peer.wait(timeout=PATIENCE) == 0, log.read_text()
    with (tmp_path / "out_jobs.csv").open(newline="") as rows:
        jobs = list(csv.DictReader(rows))
    assert sorted(int(job["job_id"]) for job in jobs) == list(range(1, 201))
    states = [job["final_state"] for job in jobs]
    assert states.count("COMPLETED_SUCCESSFULLY") == 181
    assert states.count("COMPLETED_WALLTIME_REACHED") == 19


@pytest.mark.parametrize("scheduler", BROKEN)
def test_what_is_left_out_fails_for_the_reason_given(scheduler: str, tmp_path: Path) -> None:
    broken = BROKEN[scheduler]
    job = {"subtime": 0, "res": 2, "walltime": 60, "profile": "p"}
    jobs = [{**job, "id": 1}, {**job, "id": 2}]
    workload = tmp_path / "workload.json"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"p": broken.profile}}))
    endpoint = free_endpoint()
    log = tmp_path / "pybatsim.log"
    ours = [
        "-s",
        endpoint,
        "-e",
        tmp_path / "out",
        "--timeout",
        str(PATIENCE),
        "--hosts",
        "4",
        "-w",
        workload,
    ]
    with (
        log.open("w") as file,
        deciding(scheduler, endpoint, file, tmp_path, broken.settings) as peer,
        start(["batsim", *ours, *broken.options]) as batsim,
    ):
        while peer.poll() is None and batsim.poll() is None:
            time.sleep(0.05)
        batsim.kill()
        _, complaint = batsim.communicate(timeout=PATIENCE)
    assert broken.words in complaint + log.read_text(), broken.reason
