"""The results of a campaign as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from math import isnan
from os.path import isfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pandas as pd

from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.plots.kinds.graphs import graph_statistics
from batsched_py.analysis.plots.kinds.repetitions import Box
from batsched_py.analysis.plots.runs import read_run, recorded_run
from batsched_py.analysis.report import Column, ListedRun, RecordedLog, Report, Row, Subject, write_report
from batsched_py.campaign.aggregate import known_values
from batsched_py.campaign.comparison import compare
from batsched_py.campaign.digest import digest_of_file
from batsched_py.campaign.manifest import MANIFEST_FILE
from batsched_py.campaign.plan import REPETITIONS
from batsched_py.campaign.processes import usable_cores
from batsched_py.campaign.results import METRICS_FILE, PREFIX
from batsched_py.campaign.store import Campaign, FinishedRun
from batsched_py.campaign.tables import HIGHER_IS_BETTER, NEUTRAL, ColumnFormat, estimate
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment
from batsched_py.users import USERS
from batsched_py.users.resample import Resample
from batsched_py.users.think_time import ThinkTime
from batsched_py.workload.model import Workload
from batsched_py.workload.sessions import Delimiter
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload

#: From so many bytes of jobs on it is worth the while to start processes.
WORTH_PROCESSES = 20_000_000


def write_html(
    path: Path,
    campaign: Campaign,
    on_row: Callable[[int, int], None] | None = None,
    trust: bool = False,
) -> None:
    """Write the page; of repetitions, which differ in part or seed only, the first stands in the figures.

    Code that a manifest names is executed only with ``trust``. Without it, no file outside the folder of a
    campaign that was imported is read either.
    """
    finished = campaign.finished()
    if not finished:
        raise InputError(f"{campaign.folder}: no run is finished, so there is nothing to report")
    logs = _recorded_logs(finished) if trust or not campaign.is_imported else {}
    repetitions: dict[tuple[tuple[str, str], ...], list[FinishedRun]] = {}
    for run in finished:
        choices = tuple((axis, choice) for axis, choice in run.axes.items() if axis not in REPETITIONS)
        repetitions.setdefault(choices, []).append(run)
    groups = list(repetitions.values())
    names = [name for name in campaign.wanted.metrics if any(name in run.metrics for run in finished)]
    are_repeated = any(len(runs) > 1 for runs in groups)
    rows = [
        Row(
            runs[0].name,
            dict(choices),
            {name: _cell(name, runs) for name in names},
            partial(_subject, runs[0], logs.get(_files(runs[0])), trust),
            _spreads(names, runs) if are_repeated else {},
        )
        for choices, runs in repetitions.items()
    ]
    report = Report(
        title=campaign.wanted.title or campaign.wanted.name,
        plan=campaign.plan_text,
        columns=[_column(name, groups) for name in names],
        rows=rows,
        recorded=[
            RecordedLog(name, partial(_recorded_subject, logs[file]))
            for name, file in _unchanged(groups).items()
            if file in logs
        ],
        runs=[*(_listed(path, run) for run in finished), *_failed(campaign)],
        note=_note(campaign, finished, logs, trust),
        findings=[str(each) for each in compare(finished, campaign.wanted.metrics, campaign.wanted.baseline)],
    )
    size = sum(runs[0].jobs_file.stat().st_size for runs in groups)
    write_report(path, report, on_row, usable_cores() if size > WORTH_PROCESSES else 1)


class _Recorded:
    """A recorded log, with what all runs that replay it have in common."""

    def __init__(self, log: SwfLog) -> None:
        self.log = log
        self._graphs: dict[str, pd.DataFrame] = {}

    def session_graphs(self, rule: str) -> pd.DataFrame:
        """The session graphs of its users under a rule that delimits sessions."""
        if rule not in self._graphs:
            self._graphs[rule] = graph_statistics(self._workload, [Delimiter.parse(rule)])
        return self._graphs[rule]

    @cached_property
    def _workload(self) -> Workload:
        return swf_to_workload(self.log)


class _LogFile(NamedTuple):
    """Where a recorded log is, and what must be in it."""

    path: Path
    sha256: str


@lru_cache(maxsize=2)
def _recorded(file: _LogFile) -> _Recorded:
    """What was recorded; rows come log by log, so it is mostly the one that was asked for last."""
    return _Recorded(read_swf(file.path))


def _recorded_subject(file: _LogFile) -> Subject:
    return Subject(recorded_run(_recorded(file).log))


def _files(run: FinishedRun) -> tuple[str, ...]:
    """The logs that a run replays."""
    return run.manifest.experiment.scenario.workloads.files


def _recorded_logs(runs: Sequence[FinishedRun]) -> dict[tuple[str, ...], _LogFile]:
    """The logs that runs replay, by their files, as far as they are still what and where they were.

    Where several are played together, none of them is what was recorded.
    """
    logs: dict[tuple[str, ...], _LogFile] = {}
    for files, run in {_files(run): run for run in runs}.items():
        if len(files) != 1:
            continue
        path = Path(files[0])
        digests = {file.path: file.sha256 for file in run.manifest.inputs}
        is_swf = path.name.lower().endswith((".swf", ".swf.gz"))
        if is_swf and isfile(path) and (digest := digest_of_file(path)) == digests.get(str(path)):
            logs[files] = _LogFile(path, digest)
    return logs


def _unchanged(groups: Sequence[Sequence[FinishedRun]]) -> dict[str, tuple[str, ...]]:
    """For each log, by its name, the files of the part that is drawn, with the load that was recorded."""
    drawn = [runs[0] for runs in groups]
    return {run.axes["log"]: _files(run) for run in drawn if run.axes.get("load", "1") == "1"}


def _subject(run: FinishedRun, log: _LogFile | None, trust: bool) -> Subject | None:
    """What is drawn of a run; nothing when all its jobs were rejected."""
    if run.metrics.get("nb_jobs_finished") == 0:
        return None
    schedule = read_run(run.jobs_file, run.name)
    if log is None or _is_population(run.manifest.experiment):
        return Subject(schedule)
    recorded, rule = _recorded(log), _delimiter(run.manifest.experiment, trust)
    graphs = None if rule is None else recorded.session_graphs(rule)
    return Subject(replace(schedule, log=recorded.log), graphs)


def _is_population(experiment: Experiment) -> bool:
    """Whether the jobs of a run are not those of the log, but of users made of the log's."""
    users = experiment.actors.users
    return users is not None and not users.code_files and issubclass(USERS.find(users.name), Resample)


def _delimiter(experiment: Experiment, trust: bool) -> str | None:
    """How the users' sessions are cut, if they have any and may be asked."""
    users = experiment.actors.users
    if users is None or (users.files and not trust):
        return None
    behaviour = USERS.create(users.name, users.options)
    return behaviour.sessions if isinstance(behaviour, ThinkTime) else None


def _column(name: str, groups: Sequence[Sequence[FinishedRun]]) -> Column:
    form = ColumnFormat.of(name, [estimate(name, runs) for runs in groups])
    formula = next((metric.formula for metric in METRICS if metric.name == name), "")
    best = None if name in NEUTRAL else "highest" if name in HIGHER_IS_BETTER else "lowest"
    return Column(name, form.unit, formula, best, form.scale, form.decimals)


def _cell(name: str, runs: Sequence[FinishedRun]) -> tuple[float | None, float | None]:
    found = estimate(name, runs)
    return (None, None) if isnan(found.mean) else (found.mean, found.half_width)


def _spreads(names: Sequence[str], runs: Sequence[FinishedRun]) -> dict[str, Box]:
    boxes = {name: Box.of(known_values(name, runs)) for name in names}
    return {name: box for name, box in boxes.items() if box.count}


def _listed(page: Path, run: FinishedRun) -> ListedRun:
    """A run with its files, as the page reaches them."""
    files = (run.jobs_file, run.schedule_file, run.folder / METRICS_FILE, run.folder / MANIFEST_FILE)
    links = {
        file.name.removeprefix(f"{PREFIX}_"): quote(os.path.relpath(file, page.parent).replace(os.sep, "/"))
        for file in files
    }
    return ListedRun(run.name, links, run.manifest.command)


def _failed(campaign: Campaign) -> list[ListedRun]:
    return [ListedRun(name, {}, f"failed: {each.message}") for name, each in campaign.failures.items()]


def _note(
    campaign: Campaign, finished: Sequence[FinishedRun], known: Collection[tuple[str, ...]], trust: bool
) -> str:
    """What a reader should know first."""
    parts = [f"{len(finished)} of {len(campaign.wanted.runs)} runs are finished."]
    unknown = dict.fromkeys(run.axes["log"] for run in finished if _files(run) not in known)
    if unknown:
        parts.append(
            f"Not drawn, for want of the log {', '.join(unknown)}: what was recorded, submissions by "
            "week and hour, session graphs."
        )
    rules = dict.fromkeys(run.manifest.experiment.scenario.workloads.walltime_rule for run in finished)
    parts.append(f"Walltimes: {'; '.join(rules)}.")
    behaviours = [run.manifest.experiment.actors.users for run in finished]
    untrusted = sorted({file for each in behaviours if each is not None for file in each.files})
    if untrusted and not trust:
        parts.append(f"Session graphs of {', '.join(untrusted)} need --trust, for they use these files.")
    return " ".join(parts)
