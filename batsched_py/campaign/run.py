"""A run of a campaign: what is to be simulated, what came of it, and its manifest, to make it again."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from importlib import metadata
from os.path import isfile
from pathlib import Path

import msgspec
from msgspec import Struct, field

import batsched_py
from batsched_py import native
from batsched_py.analysis.windows import Window
from batsched_py.campaign.files import code_of, digest_of_code, digest_of_file, read_json
from batsched_py.campaign.plan import BUILT_IN
from batsched_py.campaign.results import METRICS_FILE, PREFIX, Measurement, is_result
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment
from batsched_py.output_files import write_file

MANIFEST_FILE = "manifest.json"

#: Has the checksum of the manifest, in the format of ``sha256sum``; runs of former versions have none.
SEAL_FILE = "manifest.sha256"

_LIBRARIES = ("msgspec", "networkx", "numpy", "pandas", "pyzmq")


class FileDigest(Struct, frozen=True):
    """A file that was read or written."""

    path: str
    """As it was given; of a result, its name in the run's folder."""
    sha256: str
    size: int

    @classmethod
    def of(cls, path: Path, name: str) -> FileDigest:
        """That of a file as it is now, under a name."""
        return cls(name, digest_of_file(path), path.stat().st_size)


class Manifest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known about a finished run."""

    run: str
    identity: str
    """The digest of what the results depend on; a run of another identity has other results."""
    axes: dict[str, str]
    """The choices of the plan that make this run; a random one has its ``seed`` here."""
    experiment: Experiment
    command: str
    """What makes this run again, alone."""
    simulator: str
    engine: str = ""
    """``native`` or ``python``; empty if another simulator ran, and in manifests of former versions."""
    engine_sources: str = ""
    """The digest of the sources of the native engine, if that ran."""
    code: str
    """The digest of the code that made it."""
    inputs: list[FileDigest]
    results: list[FileDigest]
    versions: dict[str, str]
    host: dict[str, str]
    started: str
    """Date and time, UTC."""
    seconds: dict[str, float]
    """How long each step took."""

    @classmethod
    def of(
        cls, run: Run, folder: Path, simulator: str, engine: str, started: datetime, seconds: dict[str, float]
    ) -> Manifest:
        """That of a run whose results are in a folder."""
        experiment = run.experiment
        assert experiment is not None
        inputs = (*experiment.files, *code_of(run.measures))
        results = [file for file in sorted(folder.iterdir()) if is_result(file.name)]
        return cls(
            run=run.name,
            identity=run.identity,
            axes=run.axes,
            experiment=experiment,
            command=run.command,
            simulator=simulator,
            engine=engine,
            engine_sources=native.sources() if engine == "native" else "",
            code=digest_of_code(experiment),
            inputs=[FileDigest.of(Path(file), file) for file in inputs],
            results=[FileDigest.of(file, file.name) for file in results],
            versions=versions(),
            host=host_facts(),
            started=started.isoformat(timespec="seconds"),
            seconds={step: round(duration, 3) for step, duration in seconds.items()},
        )

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in the folder of a run."""
        return read_json(folder / MANIFEST_FILE, cls)

    def still_has(self, files: Iterable[str]) -> bool:
        """Whether some of its input files are still what they were."""
        digests = {file.path: file.sha256 for file in self.inputs}
        return all(isfile(file) and digest_of_file(file) == digests.get(file) for file in files)

    @property
    def files(self) -> list[str]:
        """The names of all files in the folder of the run."""
        return [MANIFEST_FILE, SEAL_FILE, *(result.path for result in self.results)]

    def write(self, folder: Path) -> None:
        """Put it into the folder of the run, with its checksum."""
        write_file(folder / MANIFEST_FILE, msgspec.json.format(msgspec.json.encode(self)))
        write_file(folder / SEAL_FILE, _seal(folder))


def _seal(folder: Path) -> str:
    return f"{digest_of_file(folder / MANIFEST_FILE)}  {MANIFEST_FILE}\n"


def has_its_seal(folder: Path) -> bool:
    """Whether the manifest is as it was written; nobody knows for one of a former version."""
    try:
        return (folder / SEAL_FILE).read_bytes() == _seal(folder).encode()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{folder / SEAL_FILE}: cannot be read: {error.strerror}") from None


def versions() -> dict[str, str]:
    """What software runs here."""
    return {
        "batsched-py": batsched_py.__version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _LIBRARIES},
    }


def host_facts() -> dict[str, str]:
    """What machine this is; of the processor, the model where Linux tells it."""
    processor = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        processor = next(models, "")
    return {
        "name": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": processor,
        "cores": str(os.cpu_count()),
        "python": sys.implementation.name,
    }


#: Where a campaign keeps its finished runs, and those that are under way.
RUNS = "runs"
WORK = "work"


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A simulation of a campaign, for a worker in any process on any machine that shares the files."""

    name: str
    identity: str = ""
    """The digest of what the results depend on; empty as long as its logs may be missing."""
    axes: dict[str, str]
    """The choice on each axis that the plan has; part, load and seed too, where there are some."""
    experiment: Experiment | None = None
    """With absolute paths. None in the list of a campaign's folder: there the manifest has it."""
    campaign: str = ""
    """The campaign's folder."""
    command: str = ""
    """What makes this run alone, for its manifest."""
    simulator: str = BUILT_IN
    """The command of a Batsim, or the one that is built in."""
    time_limit: float | None = None
    """In seconds."""
    windows: dict[str, Window] = field(default_factory=dict)
    """Over what it is measured, by the number of the part of the log; one without a number stands alone."""
    measures: tuple[str, ...] = ()
    """The metrics that are not ours and are measured too, each as ``path/to/file.py:ClassName``."""
    trusted: bool = False
    """Whether its code is executed even if others made it."""

    @property
    def folder(self) -> Path:
        """Where its results go."""
        return Path(self.campaign) / RUNS / self.name

    def listed(self) -> Run:
        """What the list in a campaign's folder has of it."""
        return Run(name=self.name, identity=self.identity, axes=self.axes)


class State(StrEnum):
    """How far a run of the plan has come."""

    DONE = "done"
    STALE = "stale"
    """Finished, but with other inputs, options or code than it would have now."""
    FAILED = "failed"
    MISSING = "missing"


class RunResult(Struct, frozen=True, kw_only=True, dict=True):
    """What came of a run."""

    run: Run
    state: State
    folder: Path
    """Where its files are if it is done."""
    metrics: dict[str, float | None] = field(default_factory=dict)
    """By name, as a campaign reads them; none where a metric makes no sense."""
    measurement: Measurement = Measurement()
    """Whether it is steady, and what is measured over windows of it."""
    seconds: float = 0.0
    """How long it took to execute it, if that was now."""
    error: str | None = None
    """What went wrong, in one line."""
    warnings: list[str] = field(default_factory=list)
    """What was remarkable, such as bad lines in a log that was read."""

    @classmethod
    def failed(cls, run: Run, error: str) -> RunResult:
        """A run that nothing came of."""
        return cls(run=run, state=State.FAILED, folder=run.folder, error=error)

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.run.name

    @property
    def axes(self) -> dict[str, str]:
        """The choice on each axis that the plan has."""
        return self.run.axes

    @property
    def unstable(self) -> str:
        """Why its means say little, if it is known not to be steady."""
        found = self.measurement.steadiness
        return "" if found is None or found.is_steady else str(found)

    @property
    def windows(self) -> list[RunWindow]:
        """What is measured of it: over each window of a part, over one window, or over all of it."""
        found = self.measurement.metrics or {"": self.metrics}
        return [RunWindow(run=self, part=part, metrics=metrics) for part, metrics in found.items()]

    @cached_property
    def manifest(self) -> Manifest:
        """What a finished run was made of."""
        return Manifest.read(self.folder)

    @property
    def jobs_file(self) -> Path:
        """Batsim's ``jobs.csv``."""
        return self.folder / f"{PREFIX}_jobs.csv"

    @property
    def schedule_file(self) -> Path:
        """Batsim's ``schedule.csv``, or the ``schedule.json`` of Batsim 5."""
        table = self.folder / f"{PREFIX}_schedule.csv"
        return table if table.is_file() else table.with_suffix(".json")

    @property
    def files(self) -> dict[str, Path]:
        """The files that a reader may want to see, by their names; none if it has failed."""
        if self.state is not State.DONE:
            return {}
        files = (self.jobs_file, self.schedule_file, self.folder / METRICS_FILE, self.folder / MANIFEST_FILE)
        return {file.name.removeprefix(f"{PREFIX}_"): file for file in files}

    @property
    def remark(self) -> str:
        """How to make it again, or why it failed."""
        return self.manifest.command if self.error is None else f"failed: {self.error}"


class RunWindow(Struct, frozen=True, kw_only=True):
    """What is measured over a window of a finished run, or over all of it."""

    run: RunResult
    part: str
    """The number of the part of the log that the window is; empty if there are no parts."""
    metrics: dict[str, float | None]
    group: dict[str, str] = {}
    """The group of jobs that is measured, with the axis that tells them apart, if it is not all."""

    @property
    def name(self) -> str:
        """What it is called."""
        return "/".join(filter(None, [self.run.name, self.part, *self.group.values()]))

    @property
    def axes(self) -> dict[str, str]:
        """The choices of the run, and its own."""
        log = {"log": self.run.axes["log"]} | ({"part": self.part} if self.part else {})
        return log | self.run.axes | self.group

    @property
    def files(self) -> dict[str, Path]:
        """Those of the run."""
        return self.run.files

    @property
    def remark(self) -> str:
        """That of the run."""
        return self.run.remark

    @property
    def unstable(self) -> str:
        """Why means of the run say little, if it is known not to be steady."""
        return self.run.unstable
