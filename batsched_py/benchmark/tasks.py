"""The tasks of the benchmark, weeks of five logs under several conditions, and what is simulated for each.

Whatever changes a schedule or a figure is another version: results of two versions are never compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil, fsum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace as changed

from batsched_py.analysis.windows import Window
from batsched_py.api.log import Log, read_log
from batsched_py.api.many import read_for_many
from batsched_py.api.simulate import experiment_of
from batsched_py.campaign.files import digest_of_file, digest_of_value
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.log import SwfLog

VERSION = "1"

#: Where all logs are.
ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload/"

DAY = 86400.0
WEEK = 7 * DAY

#: Jobs of so long before and after a week are simulated with it, and not measured.
AROUND = 2 * DAY

#: The loads that are offered, as shares of the machine, and the one for what is not crossed with all of them.
LOADS, USUAL_LOAD = (0.7, 0.9, 1.05), 0.9


class Source(Struct, frozen=True):
    """A log, its machine, and the weeks of it."""

    name: str
    file: str
    sha256: str
    hosts: int
    """The processors of its machine."""
    cores: int
    """Of each node, where the tasks have nodes."""
    weeks: tuple[int, ...]
    """Counted from 1, from the first submission on."""
    has_estimates: bool = True


#: The weeks lie evenly among the whole ones of each log but the first: those that ``benchmarks/tuning.py``
#: searches. SDSC-DS had nodes of several sizes; KTH-SP2 had one processor in each, and NASA-iPSC no nodes
#: that could be shared, so their nodes are made up.
LOGS = (
    Source(
        "kth-sp2",
        "KTH-SP2-1996-2.1-cln.swf.gz",
        "aef8b1a9bfb8144eacae4a48f67b3bbe12b57126bb827b6ff4fa4ed9593146eb",
        hosts=100,
        cores=4,
        weeks=(7, 19, 30, 42),
    ),
    Source(
        "hpc2n",
        "HPC2N-2002-2.2-cln.swf.gz",
        "754b5a04a48b99a1f590a6702e167ee3d5f0b5e0fcb0de89f9123b2060ef14dc",
        hosts=240,
        cores=2,
        weeks=(24, 69, 113, 158),
    ),
    Source(
        "sdsc-ds",
        "SDSC-DS-2004-2.1-cln.swf.gz",
        "57cd76c28e1e74e620abc1e76fe949b22c344899b25f8c1a2c7c650d89ab4e6f",
        hosts=1664,
        cores=8,
        weeks=(8, 21, 33, 46),
    ),
    Source(
        "llnl-thunder",
        "LLNL-Thunder-2007-1.1-cln.swf.gz",
        "1578243865be06e9936b1d66e8ce8365e2126547960bec9ac009b5951383fea0",
        hosts=4008,
        cores=4,
        weeks=(4, 9, 14, 19),
    ),
    Source(
        "nasa-ipsc",
        "NASA-iPSC-1993-3.1-cln.swf.gz",
        "85ddc36346f88c4ea428d85d4ff955201c8ddd736f74ade05fd0c5a2c88fe9cd",
        hosts=128,
        cores=8,
        weeks=(3, 6, 9, 12),
        has_estimates=False,
    ),
)


class Task(Struct, frozen=True):
    """A week of a log under one condition."""

    log: str
    week: int
    load: float | None
    """The offered load, made by other times between arrivals; none for the recorded arrivals."""
    users: Literal["rigid", "think-time"] = "rigid"
    machine: Literal["plain", "nodes"] = "plain"
    estimates: Literal["recorded", "exact"] = "recorded"

    @property
    def name(self) -> str:
        """What tells it from all others.

        >>> Task("kth-sp2", 19, 0.9).name
        'kth-sp2-w19-load0.9-rigid-plain-recorded'
        """
        load = "as-recorded" if self.load is None else f"load{self.load:g}"
        return f"{self.log}-w{self.week}-{load}-{self.users}-{self.machine}-{self.estimates}"

    @property
    def condition(self) -> str:
        """What it has in common with the tasks of other weeks and logs.

        >>> Task("kth-sp2", 19, 0.9, machine="nodes").condition, Task("kth-sp2", 19, 1.05).condition
        ('nodes, load 0.9', 'load 1.05, overloaded')
        """
        parts = ["users who react"] if self.users == "think-time" else []
        parts += ["nodes"] if self.machine == "nodes" else []
        parts += ["exact estimates"] if self.estimates == "exact" else []
        parts += [] if self.load is None else [f"load {self.load:g}"]
        return ", ".join(parts) + (", overloaded" if self.load is not None and self.load > 1 else "")

    @property
    def unit(self) -> tuple[str, int]:
        """The week that it is made of: tasks of one week are no independent observations."""
        return self.log, self.week


class Benchmark(Struct, frozen=True):
    """All that results have to have in common to be compared."""

    version: str
    logs: tuple[Source, ...]
    tasks: tuple[Task, ...]

    @property
    def digest(self) -> str:
        """Of all tasks, with the content of their logs."""
        return digest_of_value(self)


def tasks_of(logs: tuple[Source, ...]) -> Iterator[Task]:
    """Each week at three loads; at the middle one with nodes and exact estimates, too; and as it was recorded
    with users who react, for these go by the times between arrivals, which other loads change."""
    for log in logs:
        for week in log.weeks:
            for load in LOADS:
                yield Task(log.name, week, load)
            yield Task(log.name, week, None, users="think-time")
            yield Task(log.name, week, USUAL_LOAD, machine="nodes")
            if log.has_estimates:
                yield Task(log.name, week, USUAL_LOAD, estimates="exact")


def standard() -> Benchmark:
    """The benchmark of this version."""
    return Benchmark(VERSION, LOGS, tuple(tasks_of(LOGS)))


class Made(Struct, frozen=True):
    """What is simulated of a task, for any policy."""

    experiment: Experiment
    """With a policy in its place that is to be another one."""
    workloads: list[Workload]
    window: Window
    """The week without what is around it."""

    def under(self, scheduler: Choice) -> Experiment:
        """The experiment with this policy."""
        return changed(self.experiment, actors=changed(self.experiment.actors, scheduler=scheduler))


class Logs:
    """The logs of a benchmark in some folders, each read once, and the tasks that are made of them."""

    def __init__(self, benchmark: Benchmark, folders: Sequence[Path]) -> None:
        self._sources = {source.name: source for source in benchmark.logs}
        self._folders = folders
        self._machines = TemporaryDirectory(prefix="batsched-benchmark-")
        self._read = lru_cache(maxsize=None)(self._log)
        self.made = lru_cache(maxsize=None)(self._made)
        """What is simulated of a task; made once."""

    def missing(self) -> list[Source]:
        """The logs that are in no folder."""
        return [source for source in self._sources.values() if self._path(source) is None]

    def check(self) -> None:
        """Refuse to begin without all logs, or with others of their names."""
        for name in self._sources:
            self._checked(name)

    def _path(self, source: Source) -> Path | None:
        paths = (folder / source.file for folder in self._folders)
        return next((path for path in paths if path.is_file()), None)

    def _checked(self, name: str) -> Path:
        source = self._sources[name]
        path = self._path(source)
        if path is None:
            raise InputError(
                f"{source.file} is not here; get it from {ARCHIVE} and say where it is: --logs DIR"
            )
        if digest_of_file(path) != source.sha256:
            raise InputError(f"{path}: is not the log of the benchmark, whose SHA-256 is {source.sha256}")
        return path

    def _log(self, name: str) -> SwfLog:
        """The jobs of a log that ran on processors; others are left out, as in every simulation."""
        columns = read_log(self._checked(name)).columns
        return columns.select((columns.processors > 0) & (columns.run_time >= 0) & ~columns.never_started)

    def _made(self, task: Task) -> Made:
        source, columns = self._sources[task.log], self._read(task.log)
        measured = float(columns.submit.min()) + (task.week - 1) * WEEK
        begin, end = measured - AROUND, measured + WEEK + AROUND
        part = columns.select((columns.submit >= begin) & (columns.submit < end))
        log, factor = Log(part), 1.0
        if task.load is not None:
            work = fsum((part.run_time * part.processors).tolist())
            factor = task.load * source.hosts * (end - begin) / work
            log = log.load(factor)
        if task.estimates == "exact":
            log = log.estimates("exact")
        settings: dict[str, Any] = {"reject_larger": True}
        if task.machine == "nodes":
            log = Log(replace(log.columns, more={"request": requests(part, source.cores)}))
            settings["platform"] = self._machine(source)
        else:
            settings["hosts"] = source.hosts
        users = None if task.users == "rigid" else task.users
        experiment, logs, _ = experiment_of([log], "easy", {}, users, {}, settings)
        first = float(part.submit.min())
        window = Window(max(0.0, measured - first) / factor, (measured + WEEK - first) / factor)
        return Made(experiment, read_for_many(experiment, logs), window)

    def _machine(self, source: Source) -> str:
        """The file of the machine of nodes."""
        path = Path(self._machines.name) / f"{source.name}.toml"
        path.write_text(f"[[nodes]]\ncount = {source.hosts // source.cores}\ncores = {source.cores}\n")
        return str(path)


def requests(log: SwfLog, cores: int) -> np.ndarray[Any, np.dtype[np.object_]]:
    """What jobs ask for on nodes: a job that fits on one shares it, a larger one has whole nodes alone."""
    made = {
        size: msgspec.json.encode(_request(size, cores)).decode() for size in set(log.processors.tolist())
    }
    return np.array([made[size] for size in log.processors.tolist()], object)


def _request(size: int, cores: int) -> dict[str, Any]:
    """The request of a job.

    >>> _request(3, 4), _request(9, 4)
    ({'tasks': 1, 'cores': 3}, {'nodes': [3, 3], 'exclusive': True})
    """
    if size <= cores:
        return {"tasks": 1, "cores": size}
    nodes = ceil(size / cores)
    return {"nodes": [nodes, nodes], "exclusive": True}
