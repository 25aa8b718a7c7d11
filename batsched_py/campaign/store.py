"""The folder of a campaign: the plan, the runs, the failures, and all metrics as one table.

::

    DIR/plan.toml            the plan as it was when the campaign last ran
    DIR/campaign.json        the runs it asks for, each with its identity
    DIR/runs/NAME/           a finished run: manifest.json, metrics.json and Batsim's files out_*.csv
    DIR/failures/NAME.json   why a run failed when it was last tried
    DIR/metrics.csv          a row for each finished run
    DIR/imported.json        where the campaign came from, if others made it
    DIR/work/                what is under way; nothing there matters to a reader
"""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Struct, field

from batsched_py.campaign.folders import is_name, read_json, write_file
from batsched_py.campaign.manifest import Manifest
from batsched_py.campaign.plan import BUILT_IN, IMPORTED_FILE
from batsched_py.campaign.results import METRICS_FILE, PREFIX
from batsched_py.campaign.run import RUNS, WORK, is_finished
from batsched_py.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

CAMPAIGN_FILE = "campaign.json"
PLAN_FILE = "plan.toml"
TABLE_FILE = "metrics.csv"
FAILURES = "failures"


class State(StrEnum):
    """How far a run of the plan has come."""

    DONE = "done"
    STALE = "stale"
    """Finished, but with other inputs, options or code than it would have now."""
    FAILED = "failed"
    MISSING = "missing"


class WantedRun(Struct, frozen=True):
    """A run that the plan asks for."""

    name: str
    identity: str
    axes: dict[str, str]


class Wanted(Struct, frozen=True):
    """What the plan asks for, in the order of the plan."""

    name: str
    title: str = ""
    metrics: list[str] = field(default_factory=list)
    """What the columns of tables show."""
    simulator: str = BUILT_IN
    runs: list[WantedRun] = field(default_factory=list)
    baseline: str = ""
    """The scheduler that the others are compared with."""


class Failure(Struct, frozen=True):
    """Why a run failed."""

    run: str
    identity: str
    message: str


class FinishedRun(Struct, frozen=True):
    """A run with its results."""

    name: str
    axes: dict[str, str]
    folder: Path
    manifest: Manifest
    metrics: dict[str, float | None]
    """By name; none where a metric makes no sense."""

    @property
    def jobs_file(self) -> Path:
        """Batsim's ``jobs.csv``."""
        return self.folder / f"{PREFIX}_jobs.csv"

    @property
    def schedule_file(self) -> Path:
        """Batsim's ``schedule.csv``, or the ``schedule.json`` of Batsim 5."""
        table = self.folder / f"{PREFIX}_schedule.csv"
        return table if table.is_file() else table.with_suffix(".json")


class Campaign:
    """What is in the folder of a campaign."""

    def __init__(self, folder: Path, wanted: Wanted, plan_text: str) -> None:
        self.folder = folder
        self.wanted = wanted
        self.plan_text = plan_text

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """The campaign that was last run in a folder."""
        folder = Path(folder)
        try:
            wanted = read_json(folder / CAMPAIGN_FILE, Wanted)
            plan = (folder / PLAN_FILE).read_text(encoding="utf-8")
        except (InputError, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{folder}: there is no campaign in this folder: {error}") from None
        for run in wanted.runs:
            if not (is_name(run.name) and "log" in run.axes and all(map(str.isprintable, run.axes.values()))):
                raise InputError(f"{folder / CAMPAIGN_FILE}: no campaign has such a run: {run.name!r}")
        return cls(folder, wanted, plan)

    @property
    def is_imported(self) -> bool:
        """Whether others made it: then nothing that it names is read or executed unless it is trusted."""
        return (self.folder / IMPORTED_FILE).exists()

    def write(self) -> None:
        """Put down what the campaign is to become."""
        write_file(self.folder / PLAN_FILE, self.plan_text.encode())
        wanted = msgspec.json.encode(self.wanted)
        write_file(self.folder / CAMPAIGN_FILE, msgspec.json.format(wanted))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others from running a campaign in this folder; what a killed one left behind is removed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be written: {error.strerror}") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{self.folder}: another campaign is running in this folder") from None
            rmtree(self.folder / WORK, ignore_errors=True)
            yield
        finally:
            os.close(descriptor)

    # --- runs ------------------------------------------------------------------------------------

    def state(self, run: WantedRun) -> State:
        """How far a run has come."""
        folder = self.folder / RUNS / run.name
        if is_finished(folder, run.identity):
            return State.DONE
        if run.name in self.failures:
            return State.FAILED
        return State.STALE if os.path.exists(folder) else State.MISSING

    @cached_property
    def failures(self) -> dict[str, Failure]:
        """The failures of the runs as they are wanted, by name."""
        found = {}
        for run in self.wanted.runs:
            with suppress(InputError):
                failure = read_json(self._failure_file(run.name), Failure)
                if failure.identity == run.identity:
                    found[run.name] = failure
        return found

    def record_failure(self, failure: Failure) -> None:
        """Keep why a run failed; a disk that is full must not stop the others."""
        with suppress(InputError):
            write_file(self._failure_file(failure.run), msgspec.json.format(msgspec.json.encode(failure)))

    def forget_failure(self, run: str) -> None:
        """A run has succeeded after all."""
        self._failure_file(run).unlink(missing_ok=True)

    def _failure_file(self, run: str) -> Path:
        return self.folder / FAILURES / f"{run}.json"

    def finished(self) -> list[FinishedRun]:
        """The runs that are done, in the order of the plan."""
        runs = []
        for run in self.wanted.runs:
            folder = self.folder / RUNS / run.name
            if is_finished(folder, run.identity):
                metrics = read_json(folder / METRICS_FILE, dict[str, float | None])
                runs.append(FinishedRun(run.name, run.axes, folder, Manifest.read(folder), metrics))
        return runs

    # --- the table -------------------------------------------------------------------------------

    def table(self) -> pd.DataFrame:
        """A row for each finished run: its name, the choice on each axis, and its metrics."""
        import pandas as pd

        runs = self.finished()
        axes = _union(run.axes for run in runs)
        metrics = _union(run.metrics for run in runs)
        rows = [
            [run.name, *(run.axes.get(axis) for axis in axes), *(run.metrics.get(name) for name in metrics)]
            for run in runs
        ]
        table = pd.DataFrame(rows, columns=["run", *axes, *metrics])
        return table.astype(dict.fromkeys(metrics, float))

    def write_table(self, path: Path) -> None:
        """Write the table as Parquet or CSV, by the ending of the file."""
        write_frame(path, self.table())


def write_frame(path: Path, table: pd.DataFrame) -> None:
    """Write a table as Parquet or CSV, by the ending of the file."""
    buffer = io.BytesIO()
    match path.suffix:
        case ".csv":
            table.to_csv(buffer, index=False, lineterminator="\n")
        case ".parquet":
            try:
                table.to_parquet(buffer, index=False)
            except ImportError:
                raise InputError(
                    f"{path}: Parquet needs pyarrow: pip install batsched-py[campaign]"
                ) from None
        case _:
            raise InputError(f"{path}: a table is written as .csv or .parquet")
    write_file(path, buffer.getvalue())


def _union(dictionaries: Iterable[Mapping[str, object]]) -> list[str]:
    """All keys, in the order in which they come first."""
    return list(dict.fromkeys(key for dictionary in dictionaries for key in dictionary))
