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

from tests.processes import PATIENCE, call_here, start

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
RIGID_FOLDER = GOLDEN / "rigid200_fcfs"
NB_JOBS = 60
LAUNCHER = [sys.executable, "-c", "import sys; from batsim.cmds.launcher import main; sys.exit(main())"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("batsim") is None,
    reason="needs pip install --no-deps -r tests/interop/requirements.txt",
)

#: Those that complete a workload, with the options of Batsim that they are made for.
COMPLETE: dict[str, list[str | Path]] = {
    "easyBackfill": [],
    "fillerSched": [],
    "fillerSchedWithEvents": ["--events", GOLDEN / "outage_filler" / "outage.txt"],
    "randomSched": ["--enable-compute-sharing"],
    "schedEasySjfBackfill": [],
    "schedFcfs": [],
    "schedFiller": [],
    "schedSendRecv": [],
}

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
    energy: bool = False
    """Whether hosts have power states, 3 to sleep in."""


DYNAMIC = ("--enable-dynamic-jobs", "--acknowledge-dynamic-jobs", "--forward-profiles-on-submission")

BUDGET = {
    "allow_FCFS_jobs_to_use_budget_saved_measured": True,
    "budget_end": 1000,
    "budget_start": 0,
    "budget_total": 1e6,
    "monitoring_period": 5,
    "opportunist_shutdown": False,
    "power_compute": 190,
    "power_idle": 95,
    "pstate_switchoff": 3,
    "pstate_switchon": 0,
    "reduce_powercap_to_save_energy": False,
    "timeto_switchoff": 10,
    "timeto_switchon": 20,
}

BROKEN = {
    "fcfsSchedSleep": Broken(
        "it looks for the number of a power state, which Batsim sends as a text",
        "Switched to an unhandled pstate: 3",
        energy=True,
    ),
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
    "unMaintained/easyEnergyBudget": Broken(
        "it asks to be called but does not know how Batsim calls",
        "in onRequestedCall\n    raise NotImplementedError",
        settings=BUDGET,
        energy=True,
    ),
    "unMaintained/easySjbfBackfillNotopo": Broken(
        "it imports a module from where it no longer is", "No module named 'schedulers.easyBackfillNotopo'"
    ),
    "unMaintained/schedDelayProfilesAsTasks": Broken(
        "it registers a profile twice, and would go on to change the states of jobs by hand",
        "profile 'delay_profile_0' exists already in workload 'w0%1'",
        options=DYNAMIC,
    ),
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


def column(jobs_csv: Path, name: str) -> dict[str, str]:
    """What a column says about each job."""
    with jobs_csv.open(newline="") as file:
        return {job["job_id"]: job[name] for job in csv.DictReader(file)}


def machine(tmp_path: Path, energy: bool) -> list[str | Path]:
    """What Batsim is told of the hosts."""
    if not energy:
        return ["--hosts", "4"]
    platform = tmp_path / "platform.xml"
    two_speeds = (GOLDEN / "power60_sleeper" / "power8.xml").read_text()
    three_speeds = (
        two_speeds.replace("0.5Gf, ", "0.5Gf, 0.2Gf, ")
        .replace("93.0:100.0:150.0, ", "93.0:100.0:150.0, 91.0:95.0:120.0, ")
        .replace('"2:3:4"', '"3:4:5"')
    )
    platform.write_text(three_speeds)
    return ["-p", platform, "--energy"]


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
    assert modules == {*COMPLETE, *BROKEN, *NO_SCHEDULERS}


@pytest.fixture(scope="module")
def rigid(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """The first jobs of a recording, of which even PyBatsim's slowest scheduler is soon through."""
    recorded = json.loads((RIGID_FOLDER / "rigid200.json").read_text())
    workload = tmp_path_factory.mktemp("rigid") / "rigid.json"
    workload.write_text(json.dumps(recorded | {"jobs": recorded["jobs"][:NB_JOBS]}))
    return ["-p", RIGID_FOLDER / "flat16.xml", "-w", workload]


@pytest.mark.parametrize("scheduler", COMPLETE)
def test_its_schedulers_complete_a_workload(scheduler: str, rigid: list[str | Path], tmp_path: Path) -> None:
    endpoint = free_endpoint()
    log = tmp_path / "pybatsim.log"
    with log.open("w") as file, deciding(scheduler, endpoint, file, tmp_path, {}) as peer:
        ours = ["-s", endpoint, "-e", tmp_path / "out", "--timeout", str(PATIENCE)]
        assert call_here(["batsim", *ours, *rigid, *COMPLETE[scheduler]]) == (0, "", "")
        assert peer.wait(timeout=PATIENCE) == 0, log.read_text()
    ended = column(tmp_path / "out_jobs.csv", "final_state")
    usual = column(RIGID_FOLDER / "jobs.csv", "final_state")
    assert len(ended) == NB_JOBS
    assert ended.keys() <= usual.keys()
    if "--enable-compute-sharing" not in COMPLETE[scheduler]:
        assert ended.items() <= usual.items()


def test_its_answers_decide_what_a_job_does(tmp_path: Path) -> None:
    asks = {"id": 1, "subtime": 1, "res": 2, "walltime": 60, "profile": "asks"}
    insists = {"id": 2, "subtime": 1, "res": 2, "walltime": 60, "profile": "insists"}
    profiles = {
        "asks": {"type": "composed", "seq": ["please", "hear"]},
        "insists": {"type": "composed", "seq": ["now!", "hear"]},
        "please": {"type": "send", "msg": {"type": "accept"}, "sleeptime": 2},
        "now!": {"type": "send", "msg": {"type": "now"}, "sleeptime": 2},
        "hear": {
            "type": "recv",
            "regex": "accepted",
            "success": "short",
            "failure": "long",
            "timeout": "long",
        },
        "short": {"type": "delay", "delay": 10},
        "long": {"type": "delay", "delay": 20},
    }
    workload = tmp_path / "workload.json"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": [asks, insists], "profiles": profiles}))
    endpoint = free_endpoint()
    with (
        (tmp_path / "pybatsim.log").open("w") as log,
        deciding("schedSendRecv", endpoint, log, tmp_path, {}),
    ):
        ours = ["-s", endpoint, "-e", tmp_path / "out", "--timeout", str(PATIENCE)]
        assert call_here(["batsim", *ours, "--hosts", "4", "-w", workload]) == (0, "", "")
    assert column(tmp_path / "out_jobs.csv", "execution_time") == {"1": "12.000000", "2": "22.000000"}


@pytest.mark.parametrize("scheduler", BROKEN)
def test_what_is_left_out_fails_for_the_reason_given(scheduler: str, tmp_path: Path) -> None:
    broken = BROKEN[scheduler]
    job = {"subtime": 0, "res": 2, "walltime": 60, "profile": "p"}
    jobs = [{**job, "id": 1}, {**job, "id": 2}]
    workload = tmp_path / "workload.json"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"p": broken.profile}}))
    endpoint = free_endpoint()
    log = tmp_path / "pybatsim.log"
    ours = ["-s", endpoint, "-e", tmp_path / "out", "--timeout", str(PATIENCE), "-w", workload]
    with (
        log.open("w") as file,
        deciding(scheduler, endpoint, file, tmp_path, broken.settings) as peer,
        start(["batsim", *ours, *machine(tmp_path, broken.energy), *broken.options]) as batsim,
    ):
        while peer.poll() is None and batsim.poll() is None:
            time.sleep(0.05)
        batsim.kill()
        _, complaint = batsim.communicate(timeout=PATIENCE)
    assert broken.words in complaint + log.read_text(), broken.reason
