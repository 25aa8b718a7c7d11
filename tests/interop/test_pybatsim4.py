"""PyBatsim 4, an independent decision process for Batsim 5: driven over ZeroMQ, and inside our process.

It needs Python >= 3.12 and has the name of PyBatsim 3, so it lives in an environment of its own, which
``make test`` makes where there is such a Python.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.processes import PATIENCE, PROGRESS, call_here, environment

PEERS = ROOT / ".venv5" / "bin"
GOLDEN = ROOT / "tests" / "data" / "golden"
RIGID = ("-p", GOLDEN / "rigid200_fcfs" / "flat16.xml", "-w", GOLDEN / "rigid200_fcfs" / "rigid200.json")
SAMPLE = ("-w", ROOT / "workloads" / "sample.swf", "--hosts", "64")
KINDS = (
    "-p",
    next((GOLDEN / "kinds120_fcfs").glob("*.xml")),
    "-w",
    GOLDEN / "kinds120_fcfs" / "kinds120.json",
)

pytestmark = pytest.mark.skipif(
    not (PEERS / "pybatsim").exists(),
    reason="needs PyBatsim 4 in .venv5, which `make test` installs where there is a Python >= 3.12",
)

OWN = """
from procset import ProcSet
from pybatsim.batsim import CallMeLaterEvent, EDCHelloEvent, ExecuteJobEvent, Scheduler


class Punctual(Scheduler):
    '''One job after another, each at a call that it has asked for.'''

    def __init__(self, batsim, options=None):
        super().__init__(batsim, options)
        self.waiting, self.names, self.options = [], [], options
        batsim.append_event(EDCHelloEvent(batsim.time, batsim.simulation_metadata, "punctual", "1", ""))

    def handle_simulation_begins(self, event):
        pass

    def handle_simulation_ends(self, event):
        assert self.names == sorted(self.names)

    def handle_submitted_job(self, event):
        self.waiting.append(event.job)
        if len(self.waiting) == 1:
            self.ask()

    def handle_completed_job(self, event):
        self.waiting.pop(0)
        if self.waiting:
            self.ask()

    def ask(self):
        time = int(self.batsim.time) + self.options["pause"]
        kind = CallMeLaterEvent.TemporalTriggerType.OneShot
        when = {"time": time, "time_unit": "Second"}
        self.batsim.append_event(CallMeLaterEvent(self.batsim.time, f"{time:09}", kind, when))

    def handle_requested_call(self, event):
        self.names.append(event.call_id)
        assert int(event.call_id) == self.batsim.time
        job = self.waiting[0]
        job.allocation = ProcSet((0, job.resource_request - 1))
        self.batsim.append_event(ExecuteJobEvent(self.batsim.time, job))
"""


def ours(prefix: Path, *arguments: str | Path) -> bytes:
    """The ``jobs.csv`` of our FCFS."""
    code, _, err = call_here(["run", "-s", "fcfs", "-e", prefix, *arguments])
    assert code == 0, err
    return Path(f"{prefix}_jobs.csv").read_bytes()


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(RIGID, id="rigid"),
        pytest.param(KINDS, id="kinds"),
        pytest.param(SAMPLE, id="sample", marks=pytest.mark.slow),
    ],
)
def test_its_fcfs_completes_workloads_as_ours_does(inputs: tuple[str | Path, ...], tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/wire"
    with (tmp_path / "log").open("wb") as log:
        peer = subprocess.Popen(
            [PEERS / "pybatsim", "fcfs", "-s", endpoint, "-t", str(1000 * PATIENCE)],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        try:
            options = ["batsim", "--protocol", "5", "-s", endpoint, "", "-e", f"{tmp_path}/theirs/"]
            assert call_here([*options, "--timeout", str(PATIENCE), *inputs]) == (0, "", "")
            assert peer.wait(timeout=PATIENCE) == 0, (tmp_path / "log").read_text()
        finally:
            peer.kill()
    assert (tmp_path / "theirs" / "jobs.csv").read_bytes() == ours(tmp_path / "ours", *inputs)


def run_there(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """``batsched-py`` with the Python of that environment."""
    done = subprocess.run(
        [PEERS / "python", "-m", "batsched_py", *map(str, arguments)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    done.stderr = PROGRESS.sub("", done.stderr)
    return done


def test_its_fcfs_does_the_same_inside_our_process(tmp_path: Path) -> None:
    done = run_there(tmp_path, "run", "-s", "pybatsim:fcfs", "-e", "theirs", *RIGID)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "theirs_jobs.csv").read_bytes() == ours(tmp_path / "ours", *RIGID)


def test_a_component_in_a_file_of_ones_own_runs_gets_its_options_and_its_calls(tmp_path: Path) -> None:
    (tmp_path / "punctual.py").write_text(OWN)
    done = run_there(tmp_path, "run", "-s", "pybatsim:punctual.py", "-o", "pause=5", "-e", "theirs", *RIGID)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row.split(",") for row in (tmp_path / "theirs_jobs.csv").read_text().splitlines()[1:]]
    assert len(rows) == 200
    assert all(float(row[8]).is_integer() for row in rows)


def test_a_plan_names_a_component(tmp_path: Path) -> None:
    plan, log = tmp_path / "plan.toml", ROOT / "workloads" / "sample.swf"
    plan.write_text(
        f'[logs]\nsample = {{ file = "{log}" }}\n[platforms]\nfull = {{ hosts = 64 }}\n'
        '[schedulers]\ntheirs = { name = "pybatsim:fcfs" }\nours = { name = "fcfs" }\n'
    )
    done = run_there(tmp_path, "campaign", "run", plan, "-d", "out", "-j", "1")
    assert done.returncode == 0, done.stderr + done.stdout
    files = sorted((tmp_path / "out").rglob("out_jobs.csv"))
    assert len(files) == 2
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("scheduler", "complaint"),
    [("nobody", "No such scheduler"), ("nowhere.py", "there is no file nowhere.py")],
)
def test_a_component_that_is_not_there_is_named(scheduler: str, complaint: str, tmp_path: Path) -> None:
    done = run_there(tmp_path, "run", "-s", f"pybatsim:{scheduler}", *RIGID)
    assert done.returncode == 1
    assert complaint in done.stderr and "Traceback" not in done.stderr
