"""Jobs that communicate take as long as they did in the real Batsim, to the sixth decimal."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.experiment.choice import Choice
from batsched_py.experiment.value import Actors, Machine, Workloads
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.outputs import End, Outputs
from batsched_py.simulator.platform import read_platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.read import read_workload
from tests.cli.test_batsim5 import in_process, over_the_wire
from tests.conftest import SHARED
from tests.scheduling import policy

HERE = Path(__file__).parents[2] / "data" / "network"
SAMPLES = sorted(folder for folder in HERE.iterdir() if folder.is_dir())
#: Half of the last decimal, and what two ways of adding up may differ by where a time lies just between two.
HALF = 0.5e-6 + 1e-9
#: Ratios to run times that may be some microseconds, as printed.
RATIOS = {"stretch"}


class ExactOutputs(Outputs):
    """Remembers the times of jobs before they are rounded, in the order of the rows."""

    def __init__(self) -> None:
        super().__init__(None)
        self.rows: list[dict[str, Any]] = []

    def finished(self, ended: End) -> None:
        job, state, hosts, start, end, *_ = ended
        self.rows.append(
            {
                "job_id": job.id.partition("!")[2],
                "final_state": state.value,
                "allocated_resources": str(hosts),
                "starting_time": start,
                "execution_time": end - start,
                "finish_time": end,
                "waiting_time": start - job.submission_time,
                "turnaround_time": end - job.submission_time,
            }
        )
        super().finished(ended)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def exact_run(folder: Path, scheduler: Scheduler) -> list[dict[str, Any]]:
    outputs = ExactOutputs()
    workloads = [read_workload(folder / "workload.json", "w0")]
    simulate(
        Batsim(Setup(read_platform(folder / "platform.xml"), workloads), outputs), DecisionProcess(scheduler)
    )
    return outputs.rows


def check(rows: list[dict[str, Any]], folder: Path) -> None:
    """The same jobs in the same order, with the same times."""
    expected = read(folder / "jobs.csv")
    assert [row["job_id"] for row in rows] == [row["job_id"] for row in expected]
    for ours, theirs in zip(rows, expected, strict=True):
        for column, value in ours.items():
            if isinstance(value, float):
                assert abs(value - float(theirs[column])) <= HALF, (ours["job_id"], column)
            else:
                assert value == theirs[column], (ours["job_id"], column)


class AsRecorded(Scheduler):
    """Starts each job when it was started, on the hosts that it got then."""

    name = "as-recorded"

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self._starts = {
            f"w0!{row['job_id']}": (float(row["starting_time"]), HostSet.parse(row["allocated_resources"]))
            for row in rows
        }

    def schedule(self, cluster: Cluster) -> None:
        for job in list(cluster.queue):
            start, hosts = self._starts[job.id]
            if start <= cluster.now + 1.5e-6 and not hosts - cluster.free:
                cluster.start(job, hosts)


def setting(folder: Path) -> tuple[Actors, Workloads, Machine]:
    return (
        Actors(scheduler=Choice(folder.name.split("_")[1])),
        Workloads(files=(str(folder / "workload.json"),)),
        Machine(file=str(folder / "platform.xml")),
    )


def check_every_way(folder: Path, tmp_path: Path) -> None:
    """In process, over ZeroMQ in both protocols, and told the recorded decisions."""
    check(exact_run(folder, policy(folder.name.split("_")[1])), folder)
    check(exact_run(folder, AsRecorded(read(folder / "jobs.csv"))), folder)
    written = in_process(tmp_path / "one", *setting(folder))
    check_file(tmp_path / "one_jobs.csv", folder)
    for version in ("4", "5"):
        assert over_the_wire(version, tmp_path / version, *setting(folder)) == written


def check_file(path: Path, folder: Path) -> None:
    """The rows of a file are the recorded ones, but for times that lie just between two decimals."""
    ours, theirs = read(path), read(folder / "jobs.csv")
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        for column in other.keys() - RATIOS:
            if mine[column] != other[column]:
                assert abs(float(mine[column]) - float(other[column])) <= 1.001e-6, (mine["job_id"], column)
        assert float(mine["stretch"]) == pytest.approx(float(other["stretch"]), rel=1e-6)


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_a_recording_happens_again(folder: Path, tmp_path: Path) -> None:
    check_every_way(folder, tmp_path)


@pytest.mark.slow
def test_all_recordings_happen_again(shared: Path, tmp_path: Path) -> None:
    folders = sorted((shared / "golden" / "network").iterdir())
    assert len(folders) == 48
    for folder in folders:
        check_every_way(folder, tmp_path)


def test_the_samples_are_those_that_are_shared() -> None:
    if not SHARED.is_dir():
        pytest.skip("needs the recordings of ../shared, which is absent")
    for folder in SAMPLES:
        for name in ("platform.xml", "workload.json", "jobs.csv"):
            assert (folder / name).read_bytes() == (
                SHARED / "golden" / "network" / folder.name / name
            ).read_bytes()
