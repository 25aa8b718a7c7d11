"""A run of a campaign: what is to be simulated, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from batsched_py.campaign.manifest import MANIFEST_FILE, Manifest
from batsched_py.campaign.plan import BUILT_IN
from batsched_py.campaign.result_files import METRICS_FILE, PREFIX
from batsched_py.experiment import Experiment

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
