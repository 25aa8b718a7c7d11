"""PyBatsim's own schedulers, unchanged, in our process and under our Batsim over ZeroMQ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PATIENCE

pytest.importorskip("batsim", reason="PyBatsim is not installed (see tests/interop/requirements.txt)")

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden" / "rigid200_fcfs"
BATSCHED = [sys.executable, "-m", "batsched_py"]
NB_JOBS = 60

OWN = """
from batsim.batsim import BatsimScheduler


class OneByOne(BatsimScheduler):
    def onSimulationBegins(self):
        self.waiting, self.busy = [], False

    def onJobSubmission(self, job):
        self.waiting.append(job)
        self.start_next()

    def onJobCompletion(self, job):
        self.busy = False
        self.start_next()

    def start_next(self):
        if self.waiting and not self.busy:
            job = self.waiting.pop(0)
            self.busy = not self.options.get("twice")
            job.allocation = self.hosts(job.requested_resources)
            self.bs.execute_jobs([job])

    def hosts(self, count):
        from procset import ProcSet

        return ProcSet((0, count - 1))
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """The first jobs of a recording, and its machine."""
    recorded = json.loads((GOLDEN / "rigid200.json").read_text())
    workload = tmp_path_factory.mktemp("rigid") / "rigid.json"
    workload.write_text(json.dumps(recorded | {"jobs": recorded["jobs"][:NB_JOBS]}))
    return ["-p", GOLDEN / "flat16.xml", "-w", workload]


def run(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BATSCHED, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize("scheduler", ["schedFcfs", "easyBackfill", "schedEasySjfBackfill"])
def test_a_scheduler_of_pybatsim_does_the_same_in_process_and_over_the_wire(
    scheduler: str, inputs: list[str | Path], tmp_path: Path
) -> None:
    done = run(tmp_path, "run", *inputs, "-s", f"pybatsim:{scheduler}", "-e", "inside")
    assert (done.returncode, done.stderr) == (0, "")
    endpoint = f"ipc://{tmp_path}/wire"
    peer = subprocess.Popen(
        [sys.executable, "-m", "batsim.cmds.launcher", scheduler, "-s", endpoint, "-t", "0"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        done = run(
            tmp_path, "batsim", *inputs, "-s", endpoint, "-e", "wire", "--timeout", str(PATIENCE), "-q"
        )
        assert done.returncode == 0, done.stderr
        assert peer.wait(timeout=PATIENCE) == 0
    finally:
        peer.kill()
    assert (tmp_path / "inside_jobs.csv").read_bytes() == (tmp_path / "wire_jobs.csv").read_bytes()


def test_what_a_scheduler_prints_is_shown_where_everything_is_logged(
    inputs: list[str | Path], tmp_path: Path
) -> None:
    command = ["run", *inputs, "-s", "pybatsim:fillerSched", "--json"]
    assert run(tmp_path, *command).stderr == ""
    verbose = run(tmp_path, "-v", *command)
    assert "openJobs = " in verbose.stderr
    assert json.loads(verbose.stdout)["jobs"] == NB_JOBS


def test_a_scheduler_in_a_file_of_ones_own_runs_and_gets_its_options(
    inputs: list[str | Path], tmp_path: Path
) -> None:
    (tmp_path / "oneByOne.py").write_text(OWN)
    done = run(tmp_path, "run", *inputs, "-s", "pybatsim:oneByOne.py", "--json")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, "run", *inputs, "-s", "pybatsim:oneByOne.py", "-o", "twice=true", "--json")
    assert done.returncode == 1
    assert "broke a rule" in done.stderr and "are busy and may not be shared" in done.stderr


@pytest.mark.parametrize(
    ("scheduler", "complaint"),
    [("nobody", "No such scheduler"), ("nowhere.py", "there is no file nowhere.py")],
)
def test_a_scheduler_that_is_not_there_is_named(
    scheduler: str, complaint: str, inputs: list[str | Path], tmp_path: Path
) -> None:
    done = run(tmp_path, "run", *inputs, "-s", f"pybatsim:{scheduler}")
    assert done.returncode == 1
    assert complaint in done.stderr and "Traceback" not in done.stderr


def test_without_pybatsim_the_error_says_how_to_install_it(inputs: list[str | Path], tmp_path: Path) -> None:
    (tmp_path / "batsim").mkdir()
    (tmp_path / "batsim" / "__init__.py").write_text("raise ImportError('not here')")
    done = run(tmp_path, "run", *inputs, "-s", "pybatsim:schedFcfs")
    assert done.returncode == 1
    assert "pip install --no-deps pybatsim==3.2.1" in done.stderr
