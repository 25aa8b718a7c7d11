"""The runs of a campaign taken apart by groups of jobs, so that a table can have a row for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.analysis.runs.columns import GROUPINGS, Column, Grouping
from batsched_py.campaign.digest import digest_of_file
from batsched_py.campaign.run import RunResult
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment

if TYPE_CHECKING:
    from batsched_py.analysis.outcome import Outcome
    from batsched_py.workload.swf.log import SwfLog


class PartOfRun(Struct, frozen=True):
    """The jobs of one group in a finished run, with the group on an axis of its own."""

    name: str
    axes: dict[str, str]
    metrics: dict[str, float | None]
    files: dict[str, Path]
    remark: str


def split_runs(
    runs: Sequence[RunResult],
    by: Sequence[Grouping],
    metrics: Sequence[str],
    own: Mapping[str, Column],
    is_imported: bool,
    moved: Callable[[int, int], None],
) -> list[PartOfRun]:
    """The groups of jobs of all runs, measured anew; ``moved`` is told how many runs are done.

    No code of an imported campaign is executed, and no log outside of it is read.
    """
    if len(by) > 1:
        raise InputError(f"rows are about the jobs of one {by[0]} or of one {by[1]}, not of both")
    (grouping,) = by
    if is_imported and not own.keys().isdisjoint(metrics):
        raise InputError(f"metrics of others' code are not measured by {grouping} in an imported campaign")
    parts = []
    for number, run in enumerate(runs):
        moved(number, len(runs))
        parts += _parts(run, grouping, metrics, own, is_imported)
    return parts


def groupings_in(axes: Sequence[str]) -> list[Grouping]:
    """Those of some axes that are about jobs, not about runs."""
    return [grouping for grouping in GROUPINGS if grouping in axes]


def _parts(
    run: RunResult, by: Grouping, metrics: Sequence[str], own: Mapping[str, Column], is_imported: bool
) -> list[PartOfRun]:
    from batsched_py.analysis.job_groups import groups_of
    from batsched_py.analysis.metrics import measure_parts
    from batsched_py.analysis.outcome import Outcome
    from batsched_py.analysis.own_metrics import OWN_METRICS, measured
    from batsched_py.analysis.user_metrics import recorded_submissions

    file = run.jobs_file
    outcome = Outcome.read(file)
    log = None
    if by != "class" and not (by == "user" and outcome.recorded is not None):
        log = _log_of(run, by, is_imported)
        if outcome.recorded is None:
            outcome = replace(outcome, recorded=recorded_submissions(log))
    groups: dict[str, Outcome] = groups_of(outcome, by, log)
    measures = {name: OWN_METRICS.create(own[name].source, {}) for name in metrics if name in own}
    return [
        PartOfRun(
            f"{run.name}/{group}",
            run.axes | {by: group},
            {**ours, **{name: measured(metric, groups[group]) for name, metric in measures.items()}},
            run.files,
            run.remark,
        )
        for group, ours in measure_parts(groups, metrics).items()
    ]


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
