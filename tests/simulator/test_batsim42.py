"""Runs of the real Batsim 4.2.1 and 5.0.0-rc2 happen again, with the same starts, ends and hosts.

Where our own policies decided, ``run`` is given the same workload. What C++ batsched decided is given to the
built-in Batsim as it was recorded.
"""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from tests.conftest import SHARED

HERE = Path(__file__).parents[1] / "data" / "batsim42"
SAMPLES = sorted(folder.name for folder in HERE.iterdir() if folder.is_dir())
COLUMNS = ("final_state", "starting_time", "execution_time", "finish_time", "allocated_resources")

TIE = (
    "a run time of 22.8259965 s lies between two printed numbers, and the last bit of SimGrid's clock decides"
)
ROUNDED = "ends of one microsecond were told in two messages: times below it are lost in those that users get"
DIFFERING = {"net_dijkstra_b-0k": (1, TIE), "users5_1-site-level": (7, ROUNDED)}
"""The runs of which some jobs differ, with how many of them, and why. The file of one more is missing."""
MISSING_FILE = "odd_linkprofile"


class AsRecorded(Scheduler):
    """Starts, kills and rejects each job when that was done, on the hosts that it got then."""

    name = "as-recorded"

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self._rows = {f"{row['workload_name']}!{row['job_id']}": row for row in rows}
        self._asked: set[float] = set()

    def schedule(self, cluster: Cluster) -> None:
        for running in list(cluster.running):
            row = self._rows[running.job.id]
            if row["final_state"] == "COMPLETED_KILLED" and self._has_come(cluster, row["finish_time"]):
                cluster.kill(running.job)
        for job in list(cluster.queue):
            row = self._rows[job.id]
            if row["final_state"] == "REJECTED":
                cluster.reject(job)
            elif self._has_come(cluster, row["starting_time"]):
                hosts = HostSet.parse(row["allocated_resources"])
                if not hosts - cluster.free:
                    cluster.start(job, hosts)
                    if row["final_state"] == "COMPLETED_KILLED":
                        self._has_come(cluster, row["finish_time"])

    def _has_come(self, cluster: Cluster, text: str) -> bool:
        """Whether a printed time has come, which may be rounded; otherwise ask to be called then."""
        time = float(text)
        if time <= cluster.now + 1.5e-6:
            return True
        if time not in self._asked:
            self._asked.add(time)
            cluster.call_at(time)
        return False


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(folder: Path, prefix: Path) -> None:
    """Do again what was recorded in a folder."""
    command = (folder / "command.txt").read_text()
    settings: dict[str, Any] = {"platform": folder / "platform.xml", "energy": "energy" in folder.name}
    if master := re.search(r"; -m (\w+)", command):
        settings["master_host"] = master[1]
    workload = folder / "workload.json"
    if folder.name.startswith("users"):
        workload = folder / "log.swf"
        users, *options = folder.name.partition("-")[2].split("_-u_")
        settings["users"] = users
        given = (re.fullmatch(r"(withdraw|long_term|margin)(\w+)", option) for option in options)
        settings["user_options"] = {option[1]: option[2] for option in given if option is not None}
    scheduler: str | Scheduler = AsRecorded(rows_of(folder / "jobs.csv"))
    if policy := re.search(r"serve -s (\w+)", command):
        scheduler = "filler" if policy[1] == "mapped" else policy[1]
    bp.simulate(workload, scheduler, export=prefix, progress=False, **settings)


def differing(folder: Path, prefix: Path) -> list[str]:
    """The jobs that differ. ``run`` needs no mapping of storages to the hosts of the same names."""
    run(folder, prefix)
    ours = {row["job_id"]: row for row in rows_of(prefix.with_name(f"{prefix.name}_jobs.csv"))}
    recorded = {row["job_id"]: row for row in rows_of(folder / "jobs.csv")}
    assert ours.keys() == recorded.keys()
    return [job for job, row in recorded.items() if any(row[name] != ours[job][name] for name in COLUMNS)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_run_happens_again(name: str, tmp_path: Path) -> None:
    assert differing(HERE / name, tmp_path / "run") == []


@pytest.mark.slow
def test_all_runs_happen_again_but_for_three_whose_causes_are_known(shared: Path, tmp_path: Path) -> None:
    folders = sorted((shared / "golden" / "batsim42").iterdir())
    assert len(folders) == 137
    found = {
        folder.name: len(jobs)
        for folder in folders
        if folder.name != MISSING_FILE and (jobs := differing(folder, tmp_path / folder.name))
    }
    assert found == {name: count for name, (count, _) in DIFFERING.items()}


def test_a_link_whose_bandwidth_changes_is_refused_and_its_file_was_not_recorded(shared: Path) -> None:
    folder = shared / "golden" / "batsim42" / MISSING_FILE
    assert not (folder / "bw.txt").exists()
    with pytest.raises(InputError, match="link 'out': bandwidth_file would change it with time"):
        run(folder, folder)


def test_without_its_missing_file_that_link_gives_all_that_was_recorded(shared: Path, tmp_path: Path) -> None:
    """So whatever the file said did not change any of the 60 jobs."""
    folder = tmp_path / MISSING_FILE
    shutil.copytree(shared / "golden" / "batsim42" / MISSING_FILE, folder)
    platform = (folder / "platform.xml").read_text()
    (folder / "platform.xml").write_text(platform.replace(' bandwidth_file="bw.txt"', ""))
    assert len(rows_of(folder / "jobs.csv")) == 60
    assert differing(folder, tmp_path / "run") == []


def test_the_samples_are_those_that_are_shared() -> None:
    if not SHARED.is_dir():
        pytest.skip("needs the recordings of ../shared, which is absent")
    for name in SAMPLES:
        for file in (HERE / name).iterdir():
            assert file.read_bytes() == (SHARED / "golden" / "batsim42" / name / file.name).read_bytes()
