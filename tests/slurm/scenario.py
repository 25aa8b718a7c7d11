"""Recorded scenarios: what was submitted, what the real Slurm did with it, and what the twin does."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from msgspec.structs import replace

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.hosts import HostSet, expand
from batsched_py.simulator.machine_files import platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.slurm.comparison import Compared, compare, read_jobs
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.policy.slurm import Slurm
from batsched_py.slurm.prepared import Prepared, simulations
from batsched_py.slurm.scenario import Sources, write_scenario
from batsched_py.slurm.scenario import read_scenario as imported
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload

#: The recordings that come with the project's material; each scenario is a folder of its own.
SHARED = Path(__file__).parents[3] / "shared" / "slurm"


#: Recordings that were made for these tests.
RECORDED = Path(__file__).parent / "recorded"


class Twin(Slurm):
    """The policy with a configuration that is in no file."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self._given = configuration

    def configuration(self) -> Configuration:
        return self._given


def read_scenario(folder: Path) -> tuple[Configuration, Platform, Workload]:
    """A scenario as ``batsched-py slurm import`` makes it."""
    scenario = imported(Sources.of_folder(folder))
    platform = platform_of(scenario.cluster.machine, scenario.cluster.licences, str(folder))
    workload = Workload("w0", scenario.jobs, scenario.profiles, len(platform.hosts))
    return scenario.configuration, platform, workload


@cache
def simulated(folder: Path) -> pd.DataFrame:
    """When the twin starts the jobs of a scenario, as a table that can be compared."""
    return simulated_anew(folder)


def simulated_anew(folder: Path, start: str = "", **options: str) -> pd.DataFrame:
    """The same, for a twin that a test has changed, from a date on, or with options of the policy."""
    with TemporaryDirectory() as room:
        scenario = prepared(folder, Path(room), start)
        return scenario.table(scenario.simulated("rigid", {}, options))


def exact_starts(folder: Path) -> dict[str, float]:
    """When the twin starts each job, to the millisecond."""
    with TemporaryDirectory() as room:
        jobs = prepared(folder, Path(room)).simulated("rigid", {}).jobs
    return dict(zip(jobs["job_id"].astype(str), jobs["starting_time"], strict=True))


def prepared(folder: Path, room: Path, start: str = "") -> Prepared:
    """A scenario in files of its own."""
    scenario = imported(Sources.of_folder(folder))
    scenario.cluster.configuration = replace(scenario.configuration, start=start)
    write_scenario(scenario, room / "twin")
    return Prepared.of(room / "twin", (), room / "files")


def simulated_often(folder: Path, count: int) -> list[pd.DataFrame]:
    """What the twin does with a scenario, with other phases of Slurm's clocks each time."""
    with TemporaryDirectory() as room:
        write_scenario(imported(Sources.of_folder(folder)), Path(room, "twin"))
        return list(simulations(Path(room, "twin"), Path(room), count, recordings(folder)))


def assert_same_places(folder: Path, started: float | None = None) -> None:
    """The twin starts all jobs of a short scenario when the real Slurm does, and on the same nodes.

    The phase in which it does may be given: when the controller was started.
    """
    with (folder / "recorded-a.csv").open(encoding="utf-8", newline="") as lines:
        recorded = {
            row["number"]: (float(row["start"]), set(expand(row["nodes"]))) for row in csv.DictReader(lines)
        }
    configuration, platform, workload = read_scenario(folder)
    twin = Twin(configuration)
    twin.started = twin.started if started is None else started
    rows = rows_of(DecisionProcess(twin), workload, platform)
    assert {row["job_id"] for row in rows} == recorded.keys()
    for row in rows:
        start, nodes = recorded[row["job_id"]]
        assert abs(float(row["starting_time"]) - start) <= 2, row
        hosts = HostSet.parse(row["allocated_resources"])
        assert {platform.hosts[host].properties["node"] for host in hosts} == nodes, row


@cache
def recordings(folder: Path) -> list[pd.DataFrame]:
    """All recordings of a scenario: those beside its files, and those that were made for these tests."""
    folders = dict.fromkeys((folder, RECORDED / folder.name))
    return [read_jobs(file, "UTC") for each in folders for file in sorted(each.glob("recorded-*.csv"))]


def compared(recorded: pd.DataFrame, other: pd.DataFrame) -> Compared:
    """A recording beside another schedule."""
    return compare([recorded, other], ("recorded", "simulated")).all
