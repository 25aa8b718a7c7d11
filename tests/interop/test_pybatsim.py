"""PyBatsim, an independent decision process for Batsim, driven by the built-in Batsim over ZeroMQ.

Its 3.2.1 is the last that speaks the protocol of Batsim 4; ``make test`` installs it.
"""

from __future__ import annotations

import csv
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import zmq

from tests.processes import PATIENCE, call

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "rigid200_fcfs"

#: Its schedulers that need neither options nor power states nor hosts that are shared.
SCHEDULERS = [
    "easyBackfill",
    "fillerSched",
    "fillerSchedWithEvents",
    "schedEasySjfBackfill",
    "schedFcfs",
    "schedFiller",
    "schedSendRecv",
]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("batsim") is None, reason="needs pip install --no-deps -r requirements-peers.txt"
)


def free_endpoint() -> str:
    """An endpoint that nobody listens at."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        return f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_its_schedulers_complete_a_workload(scheduler: str, tmp_path: Path) -> None:
    endpoint = free_endpoint()
    launcher = [sys.executable, "-c", "from batsim.cmds.launcher import main; main()"]
    log = tmp_path / "pybatsim.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*launcher, scheduler, "-s", endpoint, "-t", str(PATIENCE * 1000), "-v", "error"],
            cwd=tmp_path,
            stdout=output,
            stderr=output,
        ) as peer,
    ):
        try:
            ours = ["-s", endpoint, "-e", tmp_path / "out", "--timeout", str(PATIENCE)]
            inputs = ["-p", GOLDEN / "flat16.xml", "-w", GOLDEN / "rigid200.json"]
            assert call(["batsim", *ours, *inputs]) == (0, "", "")
            assert peer.wait(timeout=PATIENCE) == 0, log.read_text()
        finally:
            peer.kill()
    with (tmp_path / "out_jobs.csv").open(newline="") as file:
        jobs = list(csv.DictReader(file))
    assert sorted(int(job["job_id"]) for job in jobs) == list(range(1, 201))
    states = [job["final_state"] for job in jobs]
    assert states.count("COMPLETED_SUCCESSFULLY") == 181
    assert states.count("COMPLETED_WALLTIME_REACHED") == 19
