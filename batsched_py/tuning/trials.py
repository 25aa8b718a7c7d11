"""The parts of a log, by time, and trials: settings that are tried, and what they come to on each part."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.schedule import INSTANT
from batsched_py.analysis.user_metrics import described_submissions, users_of
from batsched_py.analysis.windows import Window
from batsched_py.api.many import LogInPeriods, outcome_of
from batsched_py.campaign.files import read_json
from batsched_py.errors import BatschedError, InputError
from batsched_py.experiment import Experiment
from batsched_py.output_files import write_file
from batsched_py.tuning.space import Objective, Settings
from batsched_py.workload.changes.selecting import span
from batsched_py.workload.description.jobs import CLASSES, class_numbers
from batsched_py.workload.model import Workload


class Division(Struct, frozen=True, kw_only=True):
    """How a log is to be divided."""

    parts: str = "1w"
    """How long each part is."""
    search: int | list[int] | None = None
    """The parts that are searched, or how many of the first; half of them unless it is said."""
    held_out: list[int] | None = None
    """The parts that are held out; all others unless it is said."""
    lead_in: str = "2d"
    """So long before a part its simulation begins."""
    lead_out: str = "2d"
    """For so long after a part jobs are still submitted."""
    continuous: bool = False
    """Whether all parts of a kind are windows of one simulation, which begins with the log."""


class Part(Struct, frozen=True):
    """A period of the log, in seconds since the first submission."""

    number: int
    """Its place in the log, from 1 on."""
    begin: float
    end: float


class Stretch(Struct, frozen=True):
    """What is simulated at once, and the parts of it that are measured."""

    workloads: list[Workload]
    windows: dict[str, Window]
    """The window of each part, by its number."""


class Divided(Struct, frozen=True):
    """The parts of a log, and what is to be simulated to measure them."""

    search: list[Part]
    held_out: list[Part]
    searched: list[Stretch]
    kept: list[Stretch]
    """The stretches of the parts that are held out."""


def divided(log: LogInPeriods, division: Division) -> Divided:
    """The whole parts of a log that have jobs; the first one only leads in."""
    length = span(division.parts)
    whole = [Part(place + 1, place * length, (place + 1) * length) for place in range(int(log.span / length))]
    known = {part.number: part for part in whole[1:] if log.submissions(part.begin, part.end)}
    if len(known) < 2:
        raise InputError(
            f"parts: a log of {log.span / 86400:.3g} d has fewer than three whole parts of {division.parts}"
        )
    search = _chosen(division.search, known)
    others = [number for number in known if number not in search]
    held_out = others if division.held_out is None else division.held_out
    if both := sorted({*search} & {*held_out}):
        raise InputError(f"held_out: part {both[0]} is searched, too")
    if not search or not held_out:
        raise InputError(f"search: of {len(known)} parts, some must be searched and others held out")
    mine, its = ([_part(number, known) for number in numbers] for numbers in (search, held_out))
    return Divided(mine, its, _stretches(log, mine, division), _stretches(log, its, division))


def _chosen(search: int | list[int] | None, known: dict[int, Part]) -> list[int]:
    if isinstance(search, list):
        return search
    return list(known)[: len(known) // 2 if search is None else search]


def _part(number: int, known: dict[int, Part]) -> Part:
    if number not in known:
        raise InputError(
            f"there is no part {number} with jobs: parts are {min(known)} to {max(known)}, the first leads in"
        )
    return known[number]


def _stretches(log: LogInPeriods, parts: Sequence[Part], division: Division) -> list[Stretch]:
    lead_in, lead_out = (_lead(text) for text in (division.lead_in, division.lead_out))
    if division.continuous:
        return [_stretch(log, 0.0, max(part.end for part in parts) + lead_out, parts)]
    return [_stretch(log, max(0.0, each.begin - lead_in), each.end + lead_out, [each]) for each in parts]


def _lead(text: str) -> float:
    return 0.0 if text in ("0", "0d") else span(text)


def _stretch(log: LogInPeriods, begin: float, end: float, parts: Sequence[Part]) -> Stretch:
    """Windows are told from the first submission of the simulation."""
    zero = log.submissions(begin, end)[0]
    windows = {str(part.number): Window(max(0.0, part.begin - zero), part.end - zero) for part in parts}
    return Stretch(log.period(begin, end), windows)


State = Literal["whole", "stopped", "failed"]

#: For each part, by its number, the value of each objective; nothing where it has none.
Values = dict[str, list[float | None]]

#: How many jobs of each group waited for how long in all, by kind of group.
Waits = dict[str, dict[str, tuple[int, float]]]


class Trial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has come of some settings."""

    study: str
    """The digest of all that trials of this search depend on."""
    settings: Settings
    state: State
    values: Values = {}
    waits: dict[str, Waits] = {}
    """Of each part that is held out."""
    error: str = ""

    def means(self, parts: Sequence[str] | None = None) -> list[float]:
        """The mean of each objective over parts, all of them unless they are named."""
        rows = [self.values[part] for part in (self.values if parts is None else parts)]
        return [mean([value for value in column if value is not None]) for column in zip(*rows, strict=True)]


def mean(values: Sequence[float]) -> float:
    """The mean; not a number if there are no values."""
    return fmean(values) if values else nan


class Stop(Struct, frozen=True):
    """After so many stretches a trial that is worse than this is given up."""

    after: int
    worst: float


class Task(Struct, frozen=True, kw_only=True):
    """A trial that is to be done, by any process."""

    file: Path
    """Where the trial is kept."""
    study: str
    settings: Settings
    experiments: list[Experiment]
    """One for each seed."""
    objectives: list[Objective]
    held_out: bool = False
    """Whether it is done on the parts that are held out."""
    stops: list[Stop] = []
    error: str = ""
    """Why it cannot be done."""

    def kept(self) -> Trial | None:
        """What is kept of it, if it was done before."""
        try:
            trial = read_json(self.file, Trial)
        except InputError:
            return None
        return trial if (trial.study, trial.settings) == (self.study, self.settings) else None

    def done(self, stretches: Sequence[Stretch]) -> Trial:
        """Do it, unless that was done before, and keep it."""
        trial = self.kept()
        if trial is None:
            trial = self._simulated(stretches)
            write_file(self.file, msgspec.json.encode(trial))
        return trial

    def _simulated(self, stretches: Sequence[Stretch]) -> Trial:
        values: Values = {}
        waits: dict[str, Waits] = {}
        state: State = "whole"
        error = self.error
        try:
            for number, stretch in enumerate(stretches if not error else (), start=1):
                for part, its, groups in measured(self.experiments, stretch, self.objectives, self.held_out):
                    values[part] = its
                    waits |= {part: groups} if self.held_out else {}
                if any(stop.after == number and self._is_worse(values, stop.worst) for stop in self.stops):
                    state = "stopped"
                    break
        except BatschedError as fault:
            error = str(fault)
        if error:
            return Trial(study=self.study, settings=self.settings, state="failed", error=error)
        return Trial(study=self.study, settings=self.settings, state=state, values=values, waits=waits)

    def _is_worse(self, values: Values, worst: float) -> bool:
        first = [row[0] for row in values.values() if row[0] is not None]
        return bool(first) and self.objectives[0].sign * fmean(first) > self.objectives[0].sign * worst


def measured(
    experiments: Sequence[Experiment], stretch: Stretch, objectives: Sequence[Objective], grouped: bool
) -> Iterator[tuple[str, list[float | None], Waits]]:
    """For each part of a stretch the objectives, in the mean over seeds, and the waits of groups of jobs."""
    wants_users = grouped or any(each.grouping == "user" for each in objectives)
    outcomes = [
        _with_users(outcome_of(each, stretch.workloads), stretch.workloads) if wants_users
        else outcome_of(each, stretch.workloads)
        for each in experiments
    ]  # fmt: skip
    for part, window in stretch.windows.items():
        inside = [outcome.within(window) for outcome in outcomes]
        found = [[objective.value(each) for each in inside] for objective in objectives]
        means = [mean([value for value in values if not isnan(value)]) for values in found]
        yield part, [None if isnan(each) else each for each in means], _waits(inside) if grouped else {}


def _with_users(outcome: Outcome, workloads: Sequence[Workload]) -> Outcome:
    """The outcome with the users of its jobs; they are noted already where users react."""
    if outcome.recorded is not None or len(workloads) > 1:
        return outcome
    known = described_submissions(workloads)
    if known["user"].isna().any() or outcome.schedule["job_id"].duplicated().any():
        return outcome
    known.index = known.index.str.rpartition("!").get_level_values(2)
    return replace(outcome, recorded=known)


def _waits(inside: Sequence[Outcome]) -> Waits:
    found: Waits = {}
    for outcome in inside:
        jobs = outcome.executed
        waited = jobs["waiting_time"]
        ran = jobs["execution_time"].to_numpy()
        classes = np.array(CLASSES, object)[class_numbers(np.where(ran > INSTANT, ran, 0.0), outcome.nb_held)]
        labels = {"class": pd.Series(classes, jobs.index)}
        if outcome.recorded is not None:
            labels["user"] = pd.Series(users_of(jobs, outcome.recorded).to_numpy(), jobs.index)
        for kind, names in labels.items():
            sums = found.setdefault(kind, {})
            for name, its in waited.groupby(names):
                number, total = sums.get(str(name), (0, 0.0))
                sums[str(name)] = (number + len(its), total + float(its.sum()))
    return found
