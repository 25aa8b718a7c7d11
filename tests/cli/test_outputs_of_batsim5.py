"""The results of a real Batsim 5, read by the commands that measure and check a schedule.

Its ``jobs.csv`` has the workload in front of each profile and nothing in ``metadata``; its ``schedule.json``
has neither ``scheduling_time`` nor ``simulation_time``.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.processes import call_here

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "rigid200_fcfs"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results of a Batsim 4 as a Batsim 5 writes them."""
    with (GOLDEN / "jobs.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    workload, profile, metadata = map(header.index, ("workload_name", "profile", "metadata"))
    for row in rows:
        row[profile], row[metadata] = f"{row[workload]}!{row[profile]}", ""
    (tmp_path / "jobs.csv").write_text("".join(f"{','.join(row)}\n" for row in (header, *rows)))
    with (GOLDEN / "schedule.csv").open(newline="") as file:
        (summary,) = csv.DictReader(file)
    del summary["scheduling_time"], summary["simulation_time"]
    numbers = {name: json.loads(value) for name, value in summary.items() if name != "batsim_version"}
    (tmp_path / "schedule.json").write_text(json.dumps({"batsim_version": "5.0.0-rc2", **numbers}, indent=2))
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["metrics", "--json"],
        ["validate", "-w", GOLDEN / "rigid200.json", "-p", GOLDEN / "flat16.xml", "--policy", "fcfs"],
        ["explain", "40"],
    ],
    ids=lambda command: command[0],
)
def test_a_schedule_of_batsim_5_is_read_as_that_of_batsim_4(command: list[str | Path], results: Path) -> None:
    name, *options = command
    old = call_here([name, GOLDEN / "jobs.csv", *options])
    new = call_here([name, results / "jobs.csv", *options])
    assert old[0] == 0
    assert old[1].replace(str(GOLDEN), "") == new[1].replace(str(results), "")
    assert (new[0], new[2]) == (old[0], old[2])


def test_our_batsim_5_writes_the_same_summary(tmp_path: Path) -> None:
    """With the members of the real one, and no other."""
    from tests.cli.test_batsim5 import batsim5
    from tests.cli.test_serve_and_batsim import scenario
    from tests.processes import serving

    with serving("-s", "fcfs") as service:
        batsim5(service.endpoint, *scenario("rigid200_fcfs"), "-e", f"{tmp_path}/")
    summary = json.loads((tmp_path / "schedule.json").read_text())
    with (GOLDEN / "schedule.csv").open(newline="") as file:
        (old,) = csv.DictReader(file)
    assert set(summary) == set(old) - {"scheduling_time", "simulation_time"}
