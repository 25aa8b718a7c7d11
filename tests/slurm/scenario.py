"""Recorded scenarios: what was submitted, what the real Slurm did with it, and what the twin does."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

from msgspec import Struct

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.dependencies import dependency_of
from batsched_py.schedulers.slurm import Slurm
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.job_fields import fields_of
from batsched_py.simulator.machine_files.nodes import platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.slurm.scenario import Sources
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


class Schedule(Struct, frozen=True):
    """When each job could start at the earliest, and when it did."""

    ready: Mapping[str, float]
    starts: Mapping[str, float]

    @property
    def mean_wait(self) -> float:
        """How long jobs waited once they could start, in the mean."""
        return fmean(self.starts[name] - self.ready[name] for name in self.starts)

    def difference(self, other: Schedule) -> float:
        """How far apart jobs start, in the mean."""
        return fmean(abs(start - other.starts[name]) for name, start in self.starts.items())


@cache
def simulated(folder: Path) -> Schedule:
    """What the twin does with a scenario."""
    return simulated_anew(folder)


def simulated_anew(folder: Path) -> Schedule:
    """The same, for a twin that a test has changed."""
    configuration, platform, workload = read_scenario(folder)
    rows = rows_of(DecisionProcess(Twin(configuration)), workload, platform)
    ends = {row["job_id"]: float(row["finish_time"]) for row in rows}
    ready = {}
    for job in workload.jobs:
        depends = dependency_of(job)
        others = [ends[end.target] for end in depends.ends] if depends else []
        ready[job.name] = max(job.submission_time + fields_of(job).begin, *others, 0.0)
    return Schedule(ready, {row["job_id"]: float(row["starting_time"]) for row in rows})


@cache
def recorded(file: Path) -> Schedule:
    """What the real Slurm did."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return Schedule(
        {row["number"]: float(row["eligible"]) for row in rows},
        {row["number"]: float(row["start"]) for row in rows},
    )


def recordings(folder: Path) -> list[Schedule]:
    """All recordings of a scenario."""
    return [recorded(file) for file in sorted(folder.glob("recorded-*.csv"))]


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


def fidelity(twin: Schedule, real: Sequence[Schedule]) -> Fidelity:
    """Compare a simulation with recordings."""
    pairs = [some.difference(other) for place, some in enumerate(real) for other in real[:place]]
    return Fidelity(
        twin.mean_wait,
        fmean(each.mean_wait for each in real),
        fmean(each.difference(twin) for each in real),
        fmean(pairs) if pairs else 0.0,
    )
