"""What nobody can know of a recorded cluster, drawn at random several times.

A real Slurm does not do the same twice. When its loops wake depends on when the controller was started. What
plans are rounded to depends on the minute in which time begins. A recorder runs the script of a scenario up
to a minute before it counts time, so a reservation of ``now+30minutes`` begins earlier or later. A job that
ends half a second earlier may let others start elsewhere. So a recording is one draw out of many, and so is a
simulation: here are several of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.terminal import shown
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.slurm.comparison import Compared, compare
from batsched_py.slurm.jobs import WORKLOAD
from batsched_py.slurm.policy.settings import Configuration, read_configuration
from batsched_py.slurm.prepared import Prepared
from batsched_py.slurm.reservations import BEFORE
from batsched_py.workload.batsim_json import read_batsim_json
from batsched_py.workload.model import Workload

STARTING = 32.0
"""So long a recorder takes from the start of the controller to the script of a scenario."""

SUBMITTING = (-0.15, 0.05)
"""How much later than usual a job is submitted, at least and at most: machines differ in that."""

UNEVEN = 0.1
"""The standard deviation of the time that it takes to launch a job, in seconds."""

KILLED = 5.0
"""A job that ran longer than it was to by so much was killed, or has failed if that is shorter."""

TESTING = (0.0003, 0.006)
"""How long a backfill cycle takes for each job, at least and at most: machines differ in that, too."""


class Phase(Struct, frozen=True):
    """One draw."""

    before: float
    """When the script of a scenario is run, in seconds before the first submission."""
    minute: int
    """The minute of the day in which time begins."""
    test_time: float
    """How long a backfill cycle takes for each job, in seconds."""

    @classmethod
    def of(cls, seed: int) -> Phase:
        """The phases of a seed."""
        chance = Random(seed)
        before, minute = chance.uniform(0.0, 2 * BEFORE), chance.randrange(24 * 60)
        least, most = TESTING
        return cls(before, minute, round(least * (most / least) ** chance.random(), 6))

    @property
    def options(self) -> dict[str, str]:
        """As options of the policy."""
        return {"started": f"{STARTING + self.before:.3f}", "test_time": str(self.test_time)}

    def moved(self, configuration: Configuration) -> Configuration:
        """A configuration with its moments moved; what a log tells stays as it is."""
        if configuration.start:
            return configuration
        later = round(BEFORE - self.before)
        reservations = [
            replace(each, start=each.start + later, end=each.end + later, created=each.created + later)
            if each.created == -BEFORE
            else each
            for each in configuration.reservations
        ]
        date = f"1970-01-01T{self.minute // 60:02}:{self.minute % 60:02}:00Z"
        return replace(configuration, start=date, reservations=tuple(reservations))


def overruns(recorded: Sequence[pd.DataFrame], workload: Workload) -> list[float]:
    """How much longer jobs ran in each recording than the workload says, in the mean.

    That is how long it takes to launch a job, which the workload only guesses.
    """
    planned = {
        job.name: profile.seconds
        for job in workload.jobs
        if isinstance(profile := workload.profiles[job.profile], Delay)
    }
    found = []
    for table in recorded:
        ran = table["end"] - table["start"]
        longer = [ran[name] - planned[name] for name in table.index if name in planned]
        found.append(float(np.mean([each for each in longer if abs(each) < KILLED] or [0.0])))
    return found


def launched(workload: Workload, seed: int, longer: float) -> Workload:
    """The same jobs on another machine, which submits them later or earlier and lets them run longer."""
    chance = Random(f"launches {seed}")
    later = chance.uniform(*SUBMITTING)
    profiles: dict[str, Profile] = {}
    jobs = []
    for job in workload.jobs:
        profile = workload.profiles[job.profile]
        if isinstance(profile, Delay):
            seconds = round(max(profile.seconds + chance.gauss(longer, UNEVEN), 0.001), 3)
            profile, job = Delay(seconds=seconds), replace(job, profile=f"{job.profile} of {job.name}")
        profiles[job.profile] = profile
        jobs.append(replace(job, submission_time=round(max(job.submission_time + later, 0.0), 3)))
    return replace(workload, jobs=jobs, profiles=profiles)


def simulations(
    folder: Path, room: Path, count: int, recorded: Sequence[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    """The jobs of a scenario, simulated with one seed after another; the room is for files.

    Jobs run as much longer than planned as they did in one of the recordings.
    """
    scenario = Prepared.of(folder, (), room / "scenario")
    configuration = read_configuration(scenario.configuration)
    workload = read_batsim_json(scenario.workload, WORKLOAD)
    longer = overruns(recorded, workload)
    for seed in range(count):
        phase = Phase.of(seed)
        scenario.configure(phase.moved(configuration))
        if not configuration.start:
            scenario.submit(launched(workload, seed, longer[seed % len(longer)]))
        yield scenario.table(scenario.simulated("rigid", {}, phase.options))


class Range(Struct, frozen=True):
    """The mean of some figures, and the least and the largest of them."""

    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Range:
        """That of one figure or more."""
        return cls(fmean(figures), min(figures), max(figures))


class Spread(Struct, frozen=True, kw_only=True):
    """How far simulations are from recordings, and recordings from each other; times are in seconds."""

    recordings: int
    simulations: int
    recorded_wait: Range
    """Of the mean waits of the recordings."""
    wait: Range
    """Of the mean waits of the simulations."""
    deviation: float | None
    """By how much the mean wait of the simulations differs from that of the recordings, as a share of it."""
    recordings_apart: Range | None
    """Of how far apart the starts of a job are in two recordings, in the mean over jobs."""
    starts_apart: Range
    """Of how far apart they are in a simulation and the recordings, in the mean over jobs and recordings."""


def spread(recorded: Sequence[pd.DataFrame], simulated: Sequence[pd.DataFrame]) -> Spread:
    """Compare each recording with each simulation and with each other recording."""
    runs = [[_compared(each, table) for each in recorded] for table in simulated]
    recorded_wait = Range.of([run.waits.mean_recorded for run in runs[0]])
    wait = Range.of([run[0].waits.mean_simulated for run in runs])
    apart = [_compared(one, other).start_difference for one, other in combinations(recorded, 2)]
    return Spread(
        recordings=len(recorded),
        simulations=len(simulated),
        recorded_wait=recorded_wait,
        wait=wait,
        deviation=wait.mean / recorded_wait.mean - 1 if recorded_wait.mean > 0 else None,
        recordings_apart=Range.of(apart) if apart else None,
        starts_apart=Range.of([fmean(each.start_difference for each in run) for run in runs]),
    )


def spread_of_phases(recorded: Sequence[pd.DataFrame], folder: Path, count: int) -> Spread:
    """Compare recordings with so many simulations of an imported scenario."""
    tables: list[pd.DataFrame] = []
    with TemporaryDirectory(prefix="phases-") as room, shown("simulations", lambda: (len(tables), count)):
        for table in simulations(folder, Path(room), count, recorded):
            tables.append(table)
    return spread(recorded, tables)


def _compared(recorded: pd.DataFrame, other: pd.DataFrame) -> Compared:
    return compare([recorded, other], ("the recording", "the other schedule")).all
