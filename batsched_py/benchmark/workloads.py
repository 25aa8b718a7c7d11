"""From a task to what is simulated: the part of its log, its load, its machine and what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil, fsum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace as changed

from batsched_py.analysis.windows import Window
from batsched_py.api.log import Log, read_log
from batsched_py.api.many import read_for_many
from batsched_py.api.simulate import experiment_of
from batsched_py.benchmark.tasks import ARCHIVE, AROUND, WEEK, Benchmark, Source, Task
from batsched_py.campaign.files import digest_of_file
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.log import SwfLog


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
