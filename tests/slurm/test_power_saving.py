"""Nodes that sleep when they are idle, and wake up for jobs."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from batsched_py.errors import PolicyError
from batsched_py.protocol.hosts import HostSet, expand
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.slurm.comparison import read_jobs
from batsched_py.slurm.policy.power_saving import Rate
from batsched_py.slurm.policy.settings import Configuration, NodeSettings, PowerSaving, Selection
from batsched_py.slurm.prepared import Prepared
from batsched_py.slurm.scenario import Sources, configuration_text, read_scenario, write_scenario
from batsched_py.workload.batsim_json import write_batsim_json
from batsched_py.workload.model import Workload
from tests.slurm.scenario import RECORDED

#: Nodes sleep after 100 s, and wake up within 40 s.
POWER = PowerSaving(suspend_time=100.0, suspend_program="/off", resume_program="/on")

MACHINE = """
[[nodes]]
names = "n[1-4]"
cores = 2
idle_watts = 100
full_watts = 300
sleep_watts = 10
switch_on_seconds = 40
switch_off_seconds = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "platform.toml").write_text(MACHINE)
    return tmp_path


def told(folder: Path, *jobs: tuple[float, int, float], **settings: Any) -> list[tuple[float, str]]:
    """When and where jobs run, in their order, that are told by submission, cores and run time."""
    made = [
        Job(f"w0!{number}", at, cores, 900.0, str(length))
        for number, (at, cores, length) in enumerate(jobs, start=1)
    ]
    profiles = {str(length): Delay(length) for _, _, length in jobs}
    selection = Selection(type="cons_tres", consumed="cpu")
    configuration = Configuration(**{"power": POWER, "selection": selection, **settings})
    (folder / "slurm.toml").write_text(configuration_text(configuration))
    write_batsim_json(folder / "workload.json", Workload("w0", made, profiles, 8))
    rows = Prepared.of(folder, (), Path(mkdtemp(dir=folder), "room")).simulated("rigid", {}).jobs
    rows = rows.sort_values("job_id", key=lambda names: names.astype(int))
    return list(zip(rows["starting_time"], rows["allocated_resources"].astype(str), strict=True))


def test_a_job_waits_until_its_nodes_are_awake_and_the_controller_has_looked(folder: Path) -> None:
    """The controller was started 64.5 s before, and looks each 30 s: at 296 s after the nodes are awake."""
    (start, hosts), = told(folder, (250.0, 8, 20.0))  # fmt: skip
    assert 295 < start < 297 and hosts == "0-7"
    (awake, _), = told(folder, (250.0, 8, 20.0), power=PowerSaving())  # fmt: skip
    assert awake < 252


def test_nodes_that_are_awake_come_first_whatever_their_weights(folder: Path) -> None:
    """The first job keeps the lightest node awake; no weight counts among those that sleep."""
    nodes = tuple(NodeSettings(f"n{number}", weight=5 - number) for number in range(1, 5))
    first, second, third = told(
        folder, (0.0, 1, 300.0), (250.0, 1, 20.0), (260.0, 2, 20.0), nodes=nodes[:3] + nodes[3:]
    )
    assert first[1] == "6" and second[1] == "7" and second[0] < 252
    assert third[1] == "0-1" and third[0] > 299


def test_no_job_gets_a_node_that_falls_asleep(folder: Path) -> None:
    """All four nodes are suspended between 58 and 70 s, and for 300 s nobody has them."""
    power = PowerSaving(
        suspend_time=100.0, suspend_timeout=300.0, suspend_program="/off", resume_program="/on"
    )
    (start, _), = told(folder, (100.0, 8, 20.0), power=power)  # fmt: skip
    assert 58 + 300 + 40 < start < 70 + 300 + 45 + 31


def test_so_many_nodes_a_minute_wake_up(folder: Path) -> None:
    slow = PowerSaving(suspend_time=100.0, resume_rate=1, suspend_program="/off", resume_program="/on")
    (start, _), = told(folder, (250.0, 8, 20.0), power=slow)  # fmt: skip
    assert 451 < start < 483, "nodes are resumed at 250, 291, 351 and 411 s"


def test_the_rate_is_counted_as_slurm_counts_it() -> None:
    """A recorded controller with ResumeRate=2 woke nodes at 200.6, 205.7 and 221.8 s, not at 211.6 s."""
    rate = Rate(2)
    rate.count()
    rate.pass_time(5.1)
    assert rate.is_left
    rate.count()
    rate.pass_time(5.9)
    assert not rate.is_left
    rate.pass_time(10.2)
    assert rate.is_left


def test_nodes_and_partitions_may_stay_awake(folder: Path) -> None:
    power = PowerSaving(
        suspend_time=100.0, suspend_exc_nodes="n[2-3]", suspend_program="/off", resume_program="/on"
    )
    (start, hosts), = told(folder, (250.0, 4, 20.0), power=power)  # fmt: skip
    assert start < 252 and hosts == "2-5"


def test_time_limits_begin_when_the_job_does(folder: Path) -> None:
    """A job of 15 minutes runs for all of them after its nodes have woken up."""
    (_, _), (start, _) = told(folder, (250.0, 8, 890.0), (260.0, 8, 20.0))
    assert start > 295 + 890


def test_a_node_that_takes_longer_than_slurm_would_wait_is_an_error(folder: Path) -> None:
    power = PowerSaving(suspend_time=100.0, resume_timeout=20.0, suspend_program="/off", resume_program="/on")
    with pytest.raises(PolicyError, match="takes longer to resume than ResumeTimeout"):
        told(folder, (250.0, 8, 20.0), power=power)


def test_without_watts_nodes_stay_awake_and_that_is_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "platform.toml").write_text('[[nodes]]\nnames = "n[1-4]"\ncores = 2\n')
    (start, _), = told(folder, (250.0, 8, 20.0))  # fmt: skip
    assert start < 252
    assert "SuspendTime has no effect" in caplog.text


def test_a_recorded_controller_let_nodes_sleep_and_wake_up(tmp_path: Path) -> None:
    """All jobs of power-1 run where they did; the twin is given when the controller was started.

    Nodes were started 45 s after they were resumed. What they drew is made up.
    """
    place = RECORDED / "power-1"
    imported = read_scenario(Sources.of_folder(place))
    assert ["sleep_watts" in each.what for each in imported.findings.unmodelled] == [True]
    write_scenario(imported, tmp_path / "twin")
    platform = tmp_path / "twin" / "platform.toml"
    platform.write_text(
        platform.read_text().rstrip() + MACHINE[MACHINE.index("\nidle") :].replace("40", "45.5")
    )
    scenario = Prepared.of(tmp_path / "twin", (), tmp_path / "room")
    result = scenario.simulated("rigid", {}, {"started": "45.3"})
    recorded = read_jobs(place / "recorded-a.csv", "UTC")
    apart = (scenario.table(result)["start"] - recorded["start"]).abs()
    assert len(apart) == 17 and apart.max() <= 5, apart
    nodes = {number: set(range(4 * number - 4, 4 * number)) for number in range(1, 9)}
    with (place / "recorded-a.csv").open() as lines:
        where = {row["number"]: set(expand(row["nodes"])) for row in csv.DictReader(lines)}
    for job_id, hosts in zip(result.jobs["job_id"], result.jobs["allocated_resources"], strict=True):
        of_job = set(HostSet.parse(str(hosts)))
        assert {f"n{number}" for number, hosts in nodes.items() if hosts & of_job} == where[str(job_id)]
