"""A scenario that is ready to be simulated several times, with changes of its configuration or other phases.

A real Slurm does not do the same twice. When its loops wake depends on when the controller was started. What
plans are rounded to depends on the minute in which time begins. A recorder runs the script of a scenario up
to a minute before it counts time, so a reservation of ``now+30minutes`` begins earlier or later. A job that
ends half a second earlier may let others start elsewhere. So a recording is one draw out of many, and so is a
simulation: here are several of these.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from math import inf
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.result import Result
from batsched_py.api.simulate import simulate
from batsched_py.api.terminal import shown as progress
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet, expand
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.protocol.shown import shown
from batsched_py.schedulers.base import Scheduler
from batsched_py.simulator.machine_files import read_toml_machine
from batsched_py.slurm.changes import Rule, changed, fitted, with_more_nodes, with_partitions
from batsched_py.slurm.comparison import Compared, compare, simulated_jobs, with_workload
from batsched_py.slurm.jobs import WORKLOAD
from batsched_py.slurm.policy.job import fields_of
from batsched_py.slurm.policy.settings import Configuration, read_configuration
from batsched_py.slurm.reservations import BEFORE
from batsched_py.slurm.scenario import CONFIGURATION, PLATFORM, WORKLOAD_FILE, configuration_text
from batsched_py.workload.batsim_json import RECORDED_FINISH, read_batsim_json, write_batsim_json
from batsched_py.workload.model import CANCELLED_AFTER, Workload


class Prepared(Struct):
    """The files of a scenario; those that differ from the ones of its folder are in a room of their own."""

    platform: Path
    workload: Path
    configuration: Path
    room: Path

    @classmethod
    def of(cls, folder: Path, changes: Sequence[str], room: Path) -> Prepared:
        """The scenario of a folder with changes; the nodes of partitions are those of the configuration."""
        for needed in (PLATFORM, WORKLOAD_FILE, CONFIGURATION):
            if not (folder / needed).is_file():
                raise InputError(
                    f"{folder / needed}: there is no such file; make it by `batsched-py slurm import`"
                )
        room.mkdir()
        prepared = cls(folder / PLATFORM, folder / WORKLOAD_FILE, folder / CONFIGURATION, room)
        as_it_is = configuration = read_configuration(prepared.configuration)
        text = made = prepared.platform.read_text()
        for change in changes:
            if (more := with_more_nodes(made, configuration, change)) is not None:
                made, configuration = more
            else:
                configuration = changed(configuration, change)
        if configuration.partitions:
            made = with_partitions(made, configuration.partitions)
        if tomllib.loads(made) != tomllib.loads(text):
            prepared.platform = room / PLATFORM
            prepared.platform.write_text(made)
        prepared._check_nodes(configuration)
        prepared._check_use(as_it_is, configuration)
        if changes:
            prepared.configure(configuration)
        return prepared

    def _check_nodes(self, configuration: Configuration) -> None:
        """Partitions and reservations must have nodes that are there."""
        known = {host.properties.get("node") for host in read_toml_machine(self.platform).hosts}
        having = [(f"partition {shown(each.name)}", each.nodes) for each in configuration.partitions]
        having += [(f"reservation {shown(each.name)}", each.nodes) for each in configuration.reservations]
        for what, nodes in having:
            for name in [] if nodes.upper() == "ALL" else expand(nodes):
                if name not in known:
                    raise InputError(f"{what} has node {shown(name)}, which {self.platform} does not have")

    def _check_use(self, before: Configuration, after: Configuration) -> None:
        """A QOS and an association that are new must be those of some job."""
        qos = {each.name for each in after.qos} - {each.name for each in before.qos}
        qos -= {"normal", *(each.qos for each in after.partitions)}
        qos -= {each.default_qos for each in after.associations}
        old = {(each.account, each.user) for each in before.associations}
        new = {(each.account, each.user) for each in after.associations} - old
        if not (qos or new):
            return
        for job in read_batsim_json(self.workload, WORKLOAD).jobs:
            fields = fields_of(job)
            qos.discard(fields.qos)
            new -= {(fields.account, ""), (fields.account, job.user or "")}
        names = [*sorted(qos), *("/".join(filter(None, each)) for each in sorted(new))]
        if names:
            raise InputError(f"--set: no job is of {shown(names[0])}, so this would change nothing here")

    def configure(self, configuration: Configuration) -> None:
        """Simulate another configuration than that of the folder."""
        self.configuration = self.room / CONFIGURATION
        self.configuration.write_text(configuration_text(configuration))

    def simulated(
        self,
        users: str,
        options: Mapping[str, str],
        policy: Mapping[str, str] | None = None,
        scheduler: Scheduler | None = None,
    ) -> Result:
        """A simulation with these users, and perhaps with options of the policy, or another policy."""
        given = {"configuration_file": str(self.configuration), **(policy or {})}
        return simulate(
            str(self.workload),
            scheduler or "slurm",
            options=None if scheduler else given,
            users=users,
            user_options=options,
            platform=str(self.platform),
            energy=self._saves_power(),
            progress=False,
        )

    def _saves_power(self) -> bool:
        """Whether nodes sleep: the configuration lets them, and the platform says what they do then."""
        if not read_configuration(self.configuration).power.is_on:
            return False
        return any("sleep_pstates" in host.properties for host in read_toml_machine(self.platform).hosts)

    def finishes(self) -> dict[str, float]:
        """When each job had finished: as recorded, else in a simulation without reactions.

        A job that does not run there finishes when it is submitted.
        """
        workload = read_batsim_json(self.workload, "w0")
        names = [job.name for job in workload.jobs]
        if workload.finishes is not None:
            return dict(zip(names, map(float, workload.finishes), strict=True))
        ends = self.table(self.simulated("rigid", {}))["end"].to_dict()
        return {job.name: float(ends.get(job.name, job.submission_time)) for job in workload.jobs}

    def remember(self, finishes: Mapping[str, float]) -> None:
        """Let the workload tell when its jobs had finished, if it does not."""
        workload = read_batsim_json(self.workload, "w0")
        if workload.finishes is None:
            workload.jobs = [
                replace(job, extra=job.extra | {RECORDED_FINISH: finishes.get(job.name, job.submission_time)})
                for job in workload.jobs
            ]
            self.submit(workload)

    def fit(self, rule: Rule) -> None:
        """Let users do something about jobs that ask for more time than their partitions allow."""
        if rule != "leave":
            workload = read_batsim_json(self.workload, WORKLOAD)
            self.submit(fitted(workload, read_configuration(self.configuration), rule))

    def submit(self, workload: Workload) -> None:
        """Simulate other jobs than those of the folder."""
        self.workload = self.room / WORKLOAD_FILE
        write_batsim_json(self.workload, workload)

    def table(self, result: Result) -> pd.DataFrame:
        """The jobs of a simulation."""
        held: dict[str, float | None] = {}
        with suppress(InputError):  # no job waits for another
            names = [str(name).rpartition("!")[2] for name in result.held["job_id"]]
            held = dict(zip(names, result.held["eligible_time"].tolist(), strict=True))
        table = with_workload(simulated_jobs(result.jobs, held), self.workload)
        whole = self._whole_sizes(result)
        sizes = zip(table.index, table["size"].tolist(), strict=True)
        return table.assign(size=[whole.get(name, size) for name, size in sizes])

    def _whole_sizes(self, result: Result) -> dict[str, int]:
        """How many cores the nodes of each job have that has whole nodes."""
        node_of = [host.properties.get("node") for host in read_toml_machine(self.platform).hosts]
        cores = Counter(node_of)
        workload = read_batsim_json(self.workload, WORKLOAD)
        whole = {job.name for job in workload.jobs if job.extra.get("request", {}).get("exclusive")}
        jobs = result.jobs[result.jobs["job_id"].astype(str).isin(whole)]
        return {
            str(name): sum(cores[node] for node in {node_of[host] for host in HostSet.parse(hosts)})
            for name, hosts in zip(jobs["job_id"], jobs["allocated_resources"].astype(str), strict=True)
            if hosts and hosts != "nan"
        }


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
    """When the script of a scenario is run, in seconds before the first submission; of a log, how much longer
    than usual the controller had run by then."""
    minute: int
    """The minute of the day in which time begins."""
    test_time: float
    """How long a backfill cycle takes for each job, in seconds."""

    @classmethod
    def of(cls, seed: int, configuration: Configuration | None = None) -> Phase:
        """The phases of a seed.

        A recorder starts its controller a minute or two before the first job. That of a log may have been
        started at any time, so all phases of its longest period are drawn: that of priorities.
        """
        chance, longest = Random(seed), 2 * BEFORE
        if configuration is not None and configuration.start and configuration.priority.calc_period < inf:
            longest = max(longest, configuration.priority.calc_period)
        before, minute = chance.uniform(0.0, longest), chance.randrange(24 * 60)
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
    profiles = {job.name: workload.profiles[job.profile] for job in workload.jobs}
    planned = pd.Series({name: each.seconds for name, each in profiles.items() if isinstance(each, Delay)})
    longer = [(table["end"] - table["start"] - planned.reindex(table.index)).dropna() for table in recorded]
    return [float(np.mean([time for time in each if abs(time) < KILLED] or [0.0])) for each in longer]


def launched(workload: Workload, seed: int, longer: float) -> Workload:
    """The same jobs on another machine, which submits them later or earlier and lets them run longer."""
    chance = Random(f"launches {seed}")
    later = chance.uniform(*SUBMITTING)
    profiles: dict[str, Profile] = {}
    jobs = []
    for job in workload.jobs:
        profile, name = workload.profiles[job.profile], job.profile
        if isinstance(profile, Delay):
            seconds = round(max(profile.seconds + chance.gauss(longer, UNEVEN), 0.001), 3)
            profile, name = Delay(seconds=seconds), f"{name} of {job.name}"
        profiles[name] = profile
        at = round(max(job.submission_time + later, 0.0), 3)
        jobs.append(replace(job, profile=name, submission_time=at))
    return replace(workload, jobs=jobs, profiles=profiles)


def within_seconds(workload: Workload, seed: int) -> Workload:
    """The same jobs at other moments within the seconds that a log tells, which are rounded down.

    Those of the same second stay in their order.
    """
    chance = Random(f"seconds {seed}")
    profiles: dict[str, Profile] = dict(workload.profiles)
    jobs, last, part = [], -1.0, 0.0
    for job in workload.jobs:
        part = part + (1.0 - part) * chance.random() if job.submission_time == last else chance.random()
        last = job.submission_time
        longer = chance.random() - chance.random()
        profile, name = workload.profiles[job.profile], job.profile
        if isinstance(profile, Delay) and CANCELLED_AFTER not in job.extra and not fields_of(job).time_limit:
            profile, name = (
                Delay(seconds=round(max(profile.seconds + longer, 0.001), 3)),
                f"{name} of {job.name}",
            )
            profiles[name] = profile
        jobs.append(replace(job, profile=name, submission_time=round(last + part, 3)))
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
        phase = Phase.of(seed, configuration)
        scenario.configure(phase.moved(configuration))
        if configuration.start:
            scenario.submit(within_seconds(workload, seed))
        else:
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
    with TemporaryDirectory(prefix="phases-") as room, progress("simulations", lambda: (len(tables), count)):
        for table in simulations(folder, Path(room), count, recorded):
            tables.append(table)
    return spread(recorded, tables)


def _compared(*tables: pd.DataFrame) -> Compared:
    return compare(tables, ("the recording", "the other schedule")).all
