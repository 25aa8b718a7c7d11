"""Recorded scenarios: what was submitted, what the real Slurm did with it, and what the twin does."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.hostlist import expand
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers.slurm import Slurm
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.simulator.machine_files.nodes import platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.slurm.comparison.comparison import Compared, compare
from batsched_py.slurm.comparison.phases import simulations
from batsched_py.slurm.comparison.schedules import read_jobs
from batsched_py.slurm.scenario import Sources, write_scenario
from batsched_py.slurm.scenario import read_scenario as imported
from batsched_py.slurm.what_if.prepared import Prepared
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
        scenario = imported(Sources.of_folder(folder))
        scenario.cluster.configuration = replace(scenario.configuration, start=start)
        write_scenario(scenario, Path(room, "twin"))
        prepared = Prepared.of(Path(room, "twin"), (), Path(room, "files"))
        return prepared.table(prepared.simulated("rigid", {}, options))


def simulated_often(folder: Path, count: int) -> list[pd.DataFrame]:
    """What the twin does with a scenario, with other phases of Slurm's clocks each time."""
    with TemporaryDirectory() as room:
        write_scenario(imported(Sources.of_folder(folder)), Path(room, "twin"))
        return list(simulations(Path(room, "twin"), Path(room), count))


def assert_same_places(folder: Path) -> None:
    """The twin starts all jobs of a short scenario when the real Slurm does, and on the same nodes."""
    with (folder / "recorded-a.csv").open(encoding="utf-8", newline="") as lines:
        recorded = {
            row["number"]: (float(row["start"]), set(expand(row["nodes"]))) for row in csv.DictReader(lines)
        }
    configuration, platform, workload = read_scenario(folder)
    rows = rows_of(DecisionProcess(Twin(configuration)), workload, platform)
    assert {row["job_id"] for row in rows} == recorded.keys()
    for row in rows:
        start, nodes = recorded[row["job_id"]]
        assert abs(float(row["starting_time"]) - start) <= 2, row
        hosts = HostSet.parse(row["allocated_resources"])
        assert {platform.hosts[host].properties["node"] for host in hosts} == nodes, row


@cache
def recordings(folder: Path) -> list[pd.DataFrame]:
    """All recordings of a scenario."""
    return [read_jobs(file, "UTC") for file in sorted(folder.glob("recorded-*.csv"))]


def compared(recorded: pd.DataFrame, other: pd.DataFrame) -> Compared:
    """A recording beside another schedule."""
    return compare([recorded, other], ("recorded", "simulated")).all


class Fidelity(Struct, frozen=True):
    """How close the twin comes to the recordings of a scenario."""

    wait: float
    """The mean wait in the simulation, in seconds."""
    recorded_wait: float
    """The mean wait over all recordings."""
    difference: float
    """The mean difference of starts to a recording, over all recordings."""
    noise: float
    """The mean difference of starts between two recordings, over all pairs."""

    @property
    def deviation(self) -> float:
        """Of the mean wait, as a part of the recorded one."""
        return self.wait / self.recorded_wait - 1

    @property
    def most_difference(self) -> float:
        """How far starts may be from those recorded: half as far again as recordings are from one another."""
        return max(1.5 * self.noise, 30.0)

    @property
    def holds(self) -> bool:
        """Whether it is as near as is asked for."""
        return abs(self.deviation) <= 0.03 and self.difference <= self.most_difference


def fidelity(twin: pd.DataFrame, real: Sequence[pd.DataFrame]) -> Fidelity:
    """Compare a simulation with recordings."""
    found = [compared(each, twin) for each in real]
    pairs = [
        compared(some, other).start_difference for place, some in enumerate(real) for other in real[:place]
    ]
    return Fidelity(
        found[0].waits.mean_simulated,
        fmean(each.waits.mean_recorded for each in found),
        fmean(each.start_difference for each in found),
        fmean(pairs) if pairs else 0.0,
    )
