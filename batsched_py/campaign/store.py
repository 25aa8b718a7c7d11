"""The folder of a campaign: the plan, the runs, the failures, and all metrics as one table.

::

    DIR/plan.toml            the plan as it was when the campaign last ran
    DIR/campaign.json        the runs it asks for, each with its identity
    DIR/inputs/              copies of the files that the plan names besides its logs: code, platforms, ...
    DIR/made/                the logs that the plan describes by recipes, and parts of logs
    DIR/runs/NAME/           a finished run: manifest.json, metrics.json, windows.json, Batsim's out_*.csv
    DIR/failures/NAME.json   why a run failed when it was last tried
    DIR/metrics.csv          a row for each window of each finished run
    DIR/imported.json        where the campaign came from, if others made it
    DIR/work/                what is under way; nothing there matters to a reader

Conducting a campaign means to find out which runs of a plan are not done yet, to do them, and to record what
failed.
"""

from __future__ import annotations

import dataclasses
import fcntl
import io
import logging
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Protocol, Self

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from batsched_py.analysis.groupings import GROUPINGS, Grouping
from batsched_py.analysis.runs import aggregate
from batsched_py.analysis.runs.columns import OF_CONTROL, Column
from batsched_py.analysis.windows import Window
from batsched_py.campaign.controls import Controls
from batsched_py.campaign.executors import run_identity
from batsched_py.campaign.files import digest_of_file, read_json
from batsched_py.campaign.finished import is_finished
from batsched_py.campaign.plan import AXES, BUILT_IN, CAMPAIGN_FILE, NAME, NUMBERED, PLAN_FILE, is_name
from batsched_py.campaign.prepare import INPUTS, PlanInput
from batsched_py.campaign.results import METRICS_FILE, WINDOWS_FILE, Measurement
from batsched_py.campaign.run import RUNS, WORK, Run, RunResult, RunWindow, State
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment
from batsched_py.experiment.run import run_command
from batsched_py.output_files import write_file
from batsched_py.trust import code_named_in, is_distrusted

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.outcome import Outcome
    from batsched_py.campaign.plan_file import Plan
    from batsched_py.workload.swf.log import SwfLog


def split_runs(
    runs: Sequence[RunResult],
    by: Sequence[Grouping],
    metrics: Sequence[str],
    own: Mapping[str, Column],
    is_imported: bool,
    moved: Callable[[int, int], None],
) -> list[RunWindow]:
    """The groups of jobs of all runs, measured anew; ``moved`` is told how many runs are done.

    No code of an imported campaign is executed, and no log outside of it is read.
    """
    if len(by) > 1:
        raise InputError(f"rows are about the jobs of one {by[0]} or of one {by[1]}, not of both")
    (grouping,) = by
    if is_imported and not own.keys().isdisjoint(metrics):
        raise InputError(f"metrics of others' code are not measured by {grouping} in an imported campaign")
    parts: list[RunWindow] = []
    for number, run in enumerate(runs):
        moved(number, len(runs))
        parts += _groups(run, grouping, metrics, own, is_imported)
    return parts


def _groups(
    run: RunResult,
    by: Grouping,
    metrics: Sequence[str],
    own: Mapping[str, Column],
    is_imported: bool,
) -> Iterator[RunWindow]:
    from batsched_py.analysis.metrics import measure_parts
    from batsched_py.analysis.outcome import Outcome, groups_of
    from batsched_py.analysis.own_metrics import OWN_METRICS, measured
    from batsched_py.analysis.user_metrics import recorded_submissions

    whole = Outcome.read(run.jobs_file)
    log = None
    if by != "class" and not (by == "user" and whole.recorded is not None):
        log = _log_of(run, by, is_imported)
        if whole.recorded is None:
            whole = dataclasses.replace(whole, recorded=recorded_submissions(log))
    measures = {name: OWN_METRICS.create(own[name].source, {}) for name in metrics if name in own}
    for part, window in (run.measurement.windows or {"": Window()}).items():
        outcome = whole if window.is_whole else whole.within(window)
        groups: dict[str, Outcome] = groups_of(outcome, by, log)
        for group, ours in measure_parts(groups, metrics).items():
            theirs = {name: measured(metric, groups[group]) for name, metric in measures.items()}
            yield RunWindow(run=run, part=part, metrics={**ours, **theirs}, group={by: group})


def _log_of(run: RunResult, by: Grouping, is_imported: bool) -> SwfLog:
    """The log that a run replayed, which tells what jobs belong together."""
    files = run.manifest.experiment.scenario.workloads.files
    if is_imported:
        raise InputError(f"the {by} of jobs stands in the log, which is not part of an imported campaign")
    if len(files) != 1 or not files[0].lower().endswith((".swf", ".swf.gz")):
        raise InputError(f"{run.name}: the {by} of jobs is known where one log in SWF is replayed")
    if is_population(run.manifest.experiment):
        raise InputError(f"{run.name}: its jobs are not those of the log, so their {by} is unknown")
    if not run.manifest.still_has(files):
        raise InputError(f"{run.name}: the {by} of jobs stands in {files[0]}, which is not what it was")
    return _read(files[0], digest_of_file(files[0]))


def is_population(experiment: Experiment) -> bool:
    """Whether the jobs of a run are not those of the log, but of users made of the log's."""
    from batsched_py.users import USERS
    from batsched_py.users.resample import Resample

    users = experiment.actors.users
    return users is not None and not users.code_files and issubclass(USERS.find(users.name), Resample)


@lru_cache(maxsize=2)
def _read(file: str, digest: str) -> SwfLog:
    from batsched_py.workload.swf.reader import read_swf

    return read_swf(file)


TABLE_FILE = "metrics.csv"
FAILURES = "failures"


class Wanted(Struct, frozen=True):
    """What the plan asks for, in the order of the plan."""

    name: str
    title: str = ""
    metrics: list[str] = field(default_factory=list)
    """What the columns of tables show."""
    simulator: str = BUILT_IN
    runs: list[Run] = field(default_factory=list)
    baseline: str = ""
    """The scheduler, or ``AXIS=NAME``, that others are compared with."""
    own: dict[str, Column] = field(default_factory=dict)
    """What is known of metrics that are not ours, by their names."""
    remarks: list[str] = field(default_factory=list)
    """What a reader of the results must know."""
    inputs: list[PlanInput] = field(default_factory=list)
    """The files that the plan names besides its logs."""
    figures: list[str] = field(default_factory=list)
    """The figures that the page shows besides its own, as the plan names them."""
    window: str = ""
    """What is measured of each run, in words."""
    units: str = ""
    """The axis whose values are independent of each other, if the plan names it."""


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
            _check_run(folder / CAMPAIGN_FILE, run)
        for name, column in wanted.own.items():
            if not (name.isidentifier() and column.unit.isprintable()):
                raise InputError(f"{folder / CAMPAIGN_FILE}: no campaign has such a metric: {name!r}")
        return cls(folder, replace(wanted, runs=[run.listed() for run in wanted.runs]), plan)

    @property
    def is_distrusted(self) -> bool:
        """Whether others made it: then nothing that it names is read or executed unless it is trusted."""
        return is_distrusted(self.folder)

    def kept_copy(self, sha256: str) -> Path | None:
        """The copy of a file that the plan names, by the checksum of its content."""
        for each in self.wanted.inputs:
            if each.sha256 == sha256 and each.is_kept(self.folder):
                return self.folder / INPUTS / each.copy
        return None

    def located(self, name: str) -> str:
        """A name of code in the plan, with the copy of its file that the campaign keeps."""
        copies = {each.name: str(self.folder / INPUTS / each.copy) for each in self.wanted.inputs}
        return Choice(name).renamed(lambda file: copies.get(file, file)).name

    def write(self) -> None:
        """Put down what the campaign is to become."""
        write_file(self.folder / PLAN_FILE, self.plan_text.encode())
        for each in self.wanted.inputs:
            each.keep(self.folder)
        wanted = replace(
            self.wanted,
            runs=[run.listed() for run in self.wanted.runs],
            inputs=[each.listed() for each in self.wanted.inputs],
        )
        write_file(self.folder / CAMPAIGN_FILE, msgspec.json.format(msgspec.json.encode(wanted)))

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

    def result(self, run: Run) -> RunResult:
        """What has come of a run so far."""
        folder = self.folder / RUNS / run.name
        if is_finished(folder, run):
            metrics = _metrics(folder / METRICS_FILE)
            found = _measurement(folder / WINDOWS_FILE)
            return RunResult(run=run, state=State.DONE, folder=folder, metrics=metrics, measurement=found)
        if (error := self._error(run)) is not None:
            return RunResult(run=run, state=State.FAILED, folder=folder, error=error)
        state = State.STALE if os.path.exists(folder) else State.MISSING
        return RunResult(run=run, state=state, folder=folder)

    def results(self) -> list[RunResult]:
        """What has come of all runs, in the order of the plan."""
        return [self.result(run) for run in self.wanted.runs]

    def finished(self) -> list[RunResult]:
        """The runs that are done, in the order of the plan."""
        return [result for result in self.results() if result.state is State.DONE]

    def nothing_finished(self, purpose: str) -> InputError:
        """What is said where results are needed for this purpose, and there are none."""
        return InputError(
            f"{self.folder}: no run is finished, so there is nothing to {purpose}; `batsched-py campaign "
            f"status {self.folder}` says why, `campaign run` with the plan does what is missing or stale"
        )

    def measured(self) -> list[RunWindow]:
        """What is measured of the runs that are done: each window that the plan wants, or all of each."""
        return self._windows(self.finished())

    def _windows(self, finished: Sequence[RunResult]) -> list[RunWindow]:
        """The windows of runs, with what their controls say about them."""
        controls = Controls.read(self.folder)
        return [controls.beside(window) for run in finished for window in run.windows]

    @property
    def columns(self) -> list[str]:
        """What the columns of tables show: the metrics of the plan, and what controls say."""
        controls = Controls.read(self.folder)
        return [*self.wanted.metrics, *(OF_CONTROL if controls.runs else ())]

    @property
    def remarks(self) -> list[str]:
        """What a reader of the results must know."""
        return [*self.wanted.remarks, *Controls.read(self.folder).remarks]

    def record(self, result: RunResult) -> None:
        """Keep why a run failed until it succeeds; a disk that is full must not stop the others."""
        file = self._failure_file(result.run)
        if result.error is None:
            file.unlink(missing_ok=True)
            return
        with suppress(InputError):
            failure = {"run": result.name, "identity": result.run.identity, "message": result.error}
            write_file(file, msgspec.json.format(msgspec.json.encode(failure)))

    def _error(self, run: Run) -> str | None:
        """Why a run failed, if it did as it is wanted now."""
        try:
            failure = read_json(self._failure_file(run), dict[str, str])
        except InputError:
            return None
        return failure.get("message") if failure.get("identity") == run.identity else None

    def _failure_file(self, run: Run) -> Path:
        return self.folder / FAILURES / f"{run.name}.json"

    # --- tables ----------------------------------------------------------------------------------

    def table(self) -> pd.DataFrame:
        """A row for each finished run or window: its name, the choice on each axis, and its metrics."""
        return aggregate.frame_of([window for run in self.finished() for window in run.windows])

    def aggregated(
        self,
        by: Sequence[str] = (),
        baseline: aggregate.Baseline | None = None,
        metrics: Sequence[str] = (),
        moved: Callable[[int, int], None] = lambda done, total: None,
    ) -> aggregate.Aggregate:
        """The results over their repetitions, as the plan wants them unless told otherwise.

        If rows are to be told apart by a group of jobs, such as their class, the runs are measured anew, and
        ``moved`` is told how many of them are done.
        """
        finished = self.finished()
        if not finished:
            raise self.nothing_finished("show")
        runs: Sequence[aggregate.MeasuredRun] = self._windows(finished)
        planned = aggregate.Baseline.parse(self.wanted.baseline)
        if groupings := [grouping for grouping in GROUPINGS if grouping in by]:
            shown = metrics or self.wanted.metrics
            runs = split_runs(finished, groupings, shown, self.wanted.own, self.is_distrusted, moved)
        if baseline is None and planned is not None and any(planned.is_of(run) for run in runs):
            baseline = planned if not by or planned.axis in by else None
        for name in metrics:
            if not any(name in run.metrics for run in runs):
                known = dict.fromkeys(name for run in runs for name in run.metrics)
                raise InputError(f"no run has the metric {name!r}; they have {', '.join(known)}")
        return aggregate.aggregate(
            runs,
            metrics or self.columns,
            by,
            baseline,
            self.wanted.own,
            window=self.wanted.window,
            unit=self.wanted.units,
        )

    def axes_by(self, rows: Sequence[str], columns: str) -> list[str]:
        """The axes of a table: of its rows, those on which runs differ unless they are named, and columns."""
        if not columns or rows:
            return [*rows, *([columns] if columns and columns not in rows else [])]
        runs = self.measured()
        repeated = aggregate.repeated_axes(aggregate.unit_of(runs, self.wanted.units))
        return [*(axis for axis in aggregate.varying_axes(runs) if axis not in (*repeated, columns)), columns]

    def write_table(self, path: Path) -> None:
        """Write the table as Parquet or CSV, by the ending of the file."""
        write_frame(path, self.table())


def _check_run(file: Path, run: Run) -> None:
    """Raise an error if no plan can have this run: its names become paths, columns and cells of tables."""
    names = [name.removeprefix("-") if axis in NUMBERED else name for axis, name in run.axes.items()]
    if not (
        NAME.match(run.name) and is_name(run.name) and "log" in run.axes and all(map(NAME.fullmatch, names))
    ):
        raise InputError(f"{file}: no campaign has such a run: {run.name!r}")
    for axis in sorted(run.axes.keys() - {*AXES}):
        raise InputError(f"{file}: run {run.name}: no plan has an axis {axis!r}")


#: Those that are larger make the sums of squares infinite that intervals need.
LARGEST_METRIC = 1e120


def _metrics(file: Path) -> dict[str, float | None]:
    """The metrics of a run, which are columns of tables beside the axes."""
    metrics = read_json(file, dict[str, float | None])
    _check_metrics(file, metrics)
    return metrics


def _measurement(file: Path) -> Measurement:
    """What is known of a run besides; nothing if a former version made it."""
    if not os.path.isfile(file):
        return Measurement()
    found = read_json(file, Measurement)
    for part, metrics in found.metrics.items():
        if part and not (part.isdecimal() and part.isascii()):
            raise InputError(f"{file}: no log has a part {part!r}")
        _check_metrics(file, metrics)
    return found


def _check_metrics(file: Path, metrics: Mapping[str, float | None]) -> None:
    """Raise an error if a metric has a name that no column can have."""
    for name in metrics:
        if name in ("run", *AXES) or name.startswith(("=", "+", "-", "@")) or not name.isprintable():
            raise InputError(f"{file}: no metric can be called {name!r}")
    for name, value in metrics.items():
        if value is not None and abs(value) > LARGEST_METRIC:
            raise InputError(f"{file}: {name} is {value:g}, which no run gives")


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


_log = logging.getLogger(__name__)


class Executor(Protocol):
    """Where runs are executed."""

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        """Do all runs; tell of each as soon as it is done."""


def planned_campaign(
    plan: Plan, folder: Path, simulator: str = BUILT_IN, time_limit: float | None = None
) -> Campaign:
    """The campaign in a folder as the plan wants it now: inputs are read and digested."""
    runs = []
    with code_named_in(plan.file, plan.trusted):
        for run in plan.runs:
            assert run.experiment is not None
            runs.append(
                replace(
                    run,
                    identity=run_identity(run, simulator),
                    campaign=str(folder.resolve()),
                    command=_command(plan, run.name, run.experiment, simulator),
                    simulator=simulator,
                    time_limit=time_limit,
                    trusted=plan.trusted,
                )
            )
    known = {name: getattr(plan, name) for name in Wanted.__struct_fields__}
    wanted = Wanted(**(known | {"simulator": simulator, "runs": runs}))
    return Campaign(folder, wanted, plan.text)


def runs_to_do(plan: Plan, campaign: Campaign, only: Sequence[str] = ()) -> list[Run]:
    """All runs of the planned campaign that are not done, or ``only`` those of them that are named."""
    names = {run.name for run in plan.runs}
    for name in only:
        if name not in names:
            raise InputError(f"{plan.file}: there is no run {name!r}; see `batsched-py campaign plan`")
    return [
        result.run
        for result in campaign.results()
        if result.state is not State.DONE and (not only or result.name in only)
    ]


def conduct(campaign: Campaign, runs: Sequence[Run], executor: Executor) -> Iterator[RunResult]:
    """Have runs executed; tell of each as soon as it is done and a failure is recorded."""
    warned: set[str] = set()
    with campaign.lock():
        campaign.write()
        try:
            for result in executor.run(runs) if runs else ():
                for warning in result.warnings:
                    if warning not in warned:
                        _log.warning(warning)
                warned.update(result.warnings)
                campaign.record(result)
                yield result
        finally:
            campaign.write_table(campaign.folder / TABLE_FILE)


def _command(plan: Plan, name: str, experiment: Experiment, simulator: str) -> str:
    """What makes a run again, alone, from the present directory; files below it have relative names."""
    here = f"{os.getcwd()}{os.sep}"
    if simulator == BUILT_IN:
        return run_command(experiment.renamed(lambda file: file.removeprefix(here)), name)
    file = str(plan.file.resolve()).removeprefix(here)
    arguments = ["campaign", "run", file, "--simulator", simulator, "--only", name, "-d", name]
    return shlex.join(["batsched-py", *arguments])
