"""The leaderboard: how much better policies are than EASY, whether that is chance, and how it is shown.

The unit is a week of a log: what a policy does on the tasks of one week is averaged before anything is
tested. Weeks of one log are alike, so what the logs alone say stands beside it.
"""

import html
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, isnan, log, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.pages import (
    Axis,
    Bar,
    Figure,
    Layer,
    Point,
    figure,
    section,
    table,
    tiles,
    write_figures_page,
)
from batsched_py.analysis.runs import CONFIDENCE, FEWEST, SIGNIFICANT, Estimate, Paired, holm
from batsched_py.benchmark.results import Result
from batsched_py.benchmark.tasks import Benchmark, Task
from batsched_py.errors import InputError
from batsched_py.output_files import write_file

#: The two metrics that are compared, and what columns call them.
COMPARED = {"mean_bounded_slowdown": "slowdown", "area_weighted_turnaround_time": "turnaround"}

#: What all others are compared with.
REFERENCE = "easy"

#: All conditions together.
ALL = "all tasks"

#: How often weeks are drawn again for the interval of a rank, and where the random numbers begin.
DRAWS, SEED = 2000, 1


class Gain(Struct, frozen=True):
    """By which factor a policy is above another one in a metric: less than 1 is better."""

    ratio: Estimate
    """The geometric mean over weeks, with its interval."""
    by_log: Estimate
    """The same over logs, of which there are few."""
    logs_better: int
    """On how many logs it is better in the mean."""
    p_value: float
    """Of the t-test of pairs over weeks, raised for all comparisons of the page by Holm's method."""

    @property
    def is_shown(self) -> bool:
        """Whether there is a difference, as far as the weeks tell."""
        return self.p_value < SIGNIFICANT


class Row(Struct, frozen=True):
    """A policy; what is said of each metric is in dictionaries."""

    name: str
    gains: dict[str, dict[str, Gain]]
    """Against the reference, by condition; none where there are too few weeks."""
    ranks: dict[str, Estimate]
    """The mean over weeks of the mean rank on their tasks, with a bootstrap interval."""
    is_best: dict[str, bool]
    """Whether it is the best over all tasks, or cannot be told from it."""
    states: dict[str, int]
    """How many tasks are ok, failed, not applicable or missing."""

    @property
    def is_whole(self) -> bool:
        """Whether it has a schedule of every task."""
        return self.states.keys() <= {"ok"}


class Table(Struct, frozen=True):
    """The leaderboard."""

    version: str
    nb_tasks: int
    nb_units: int
    logs: list[str]
    nb_tests: int
    conditions: list[str]
    rows: list[Row]
    """In the order of their mean ranks in the first metric."""


#: For each task the value of a metric under a policy.
Values = Mapping[Task, float]


class _Compared(Struct):
    """What is compared in a metric; the p-values are not raised yet."""

    best: str
    """The policy with the best mean over all tasks, among those that have them all."""
    ranks: dict[str, Estimate]
    gains: dict[tuple[str, str], Gain]
    """Against the reference, by policy and condition."""
    rivals: dict[str, Gain]
    """Against the best."""


def leaderboard(results: Sequence[Result], benchmark: Benchmark) -> Table:
    """The table of some results."""
    names = [result.name for result in results]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two results are called {twice!r}; give one of them another --name")
    if REFERENCE not in names:
        raise InputError(f"policies are compared with {REFERENCE}, whose result is not among these files")
    states = {result.name: _states(result, benchmark) for result in results}
    whole = [name for name in names if states[name].keys() == {"ok"}]
    conditions = list(dict.fromkeys(task.condition for task in benchmark.tasks))
    found = {
        metric: _compared(
            {result.name: _values(result, metric, benchmark) for result in results},
            whole or [REFERENCE],
            [ALL, *conditions],
        )
        for metric in COMPARED
    }
    nb_tests = _raise(found.values())
    rows = [_row(name, found, states[name]) for name in names]
    return Table(
        version=benchmark.version,
        nb_tasks=len(benchmark.tasks),
        nb_units=len({task.unit for task in benchmark.tasks}),
        logs=[source.name for source in benchmark.logs],
        nb_tests=nb_tests,
        conditions=conditions,
        rows=sorted(rows, key=lambda row: (row.ranks[next(iter(COMPARED))].mean, row.name)),
    )


def _row(name: str, found: Mapping[str, _Compared], states: dict[str, int]) -> Row:
    return Row(
        name=name,
        gains={
            metric: {condition: gain for (its, condition), gain in each.gains.items() if its == name}
            for metric, each in found.items()
        },
        ranks={metric: each.ranks[name] for metric, each in found.items()},
        is_best={
            metric: name == each.best or (name in each.rivals and not each.rivals[name].is_shown)
            for metric, each in found.items()
        },
        states=states,
    )


def _compared(values: Mapping[str, Values], whole: Sequence[str], conditions: Sequence[str]) -> _Compared:
    found = _Compared(min(whole, key=lambda name: _mean_log(values[name])), _ranks(values), {}, {})
    for name, its in values.items():
        for condition in conditions if name != REFERENCE else ():
            if (gain := _gain(its, values[REFERENCE], condition)) is not None:
                found.gains[name, condition] = gain
        if name != found.best and (gain := _gain(its, values[found.best], ALL)) is not None:
            found.rivals[name] = gain
    return found


def _raise(found: Iterable[_Compared]) -> int:
    """Raise the p-values of all comparisons together, by Holm's method; how many they are."""
    tables: list[dict[Any, Gain]] = [table for each in found for table in (each.gains, each.rivals)]
    places = [(gains, key) for gains in tables for key in gains]
    raised = holm([gains[key].p_value for gains, key in places])
    for (gains, key), p_value in zip(places, raised, strict=True):
        gains[key] = replace(gains[key], p_value=p_value)
    return len(places)


def _states(result: Result, benchmark: Benchmark) -> dict[str, int]:
    done = [result.tasks.get(task.name) for task in benchmark.tasks]
    return dict(sorted(Counter("missing" if each is None else each.state for each in done).items()))


def _values(result: Result, metric: str, benchmark: Benchmark) -> Values:
    """What a metric is on the tasks that have a schedule with jobs that ran."""
    known = {task: result.tasks.get(task.name) for task in benchmark.tasks}
    found = {task: each.metrics.get(metric) for task, each in known.items() if each is not None}
    return {task: value for task, value in found.items() if value is not None and value > 0}


def _mean_log(values: Values) -> float:
    return fmean(_by(lambda task: task.unit, {task: log(value) for task, value in values.items()}).values())


def _by(key: Callable[[Task], Any], values: Values) -> dict[Any, float]:
    """The means of values over the tasks that have a key in common."""
    found: dict[Any, list[float]] = {}
    for task, value in values.items():
        found.setdefault(key(task), []).append(value)
    return {each: fmean(its) for each, its in found.items()}


def _gain(mine: Values, its: Values, condition: str) -> Gain | None:
    """One policy against another on the tasks that both have; none if these are of too few weeks."""
    logs = {
        task: log(mine[task] / its[task])
        for task in mine
        if task in its and condition in (ALL, task.condition)
    }
    weeks = _by(lambda task: task.unit, logs)
    if len(weeks) < FEWEST:
        return None
    of_logs: dict[str, list[float]] = {}
    for (name, _), value in weeks.items():
        of_logs.setdefault(name, []).append(value)
    by_log = [fmean(each) for each in of_logs.values()]
    paired = Paired.of([*weeks.values()])
    better = sum(value < 0 for value in by_log)
    return Gain(_factor(paired.difference), _factor(Estimate.of(by_log)), better, paired.p_value)


def _factor(logs: Estimate) -> Estimate:
    """The factor whose logarithm is estimated."""
    low, high = (None if end is None else exp(end) for end in (logs.low, logs.high))
    return Estimate(exp(logs.mean), low, high)


def _ranks(values: Mapping[str, Values]) -> dict[str, Estimate]:
    """For each policy its mean rank; weeks are drawn again and again for its interval."""
    ranked: dict[str, dict[Task, float]] = {name: {} for name in values}
    for task in dict.fromkeys(task for its in values.values() for task in its):
        rivals = {name: its[task] for name, its in values.items() if task in its}
        for name, value in rivals.items():
            same = sum(each == value for each in rivals.values())
            ranked[name][task] = 1 + sum(each < value for each in rivals.values()) + (same - 1) / 2
    return {name: _mean_rank([*_by(lambda task: task.unit, its).values()]) for name, its in ranked.items()}


def _mean_rank(weeks: Sequence[float]) -> Estimate:
    """The mean over weeks, with the interval of the means of as many weeks that are drawn of them."""
    if len(weeks) < FEWEST:
        return Estimate(fmean(weeks) if weeks else nan)
    drawn = np.random.default_rng(SEED).integers(len(weeks), size=(DRAWS, len(weeks)))
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.array(weeks)[drawn].mean(axis=1), [tail, 100 - tail]).tolist()
    return Estimate(fmean(weeks), low, high)


#: What the columns mean, beside every table.
_NOTES = (
    "Each figure is the geometric mean, over weeks, of the ratio to EASY: 0.8 is a fifth less, 2 is twice as "
    "much, and less is better. Its 95 % interval is by Student's t over {weeks} weeks; p is by the t-test of "
    "pairs, corrected by Holm's method over all {tests} comparisons of the page.",
    "Weeks of one log are alike, and there are only {logs} logs. So the same is told with logs as the units: "
    "a cautious reader goes by that interval, and by on how many logs a policy is better.",
    "The rank is the mean over weeks, 1 being the best, with a bootstrap interval over weeks. Bold policies "
    "are the best, or cannot be told from the best, over all tasks.",
    "Policies with a star have no schedule for some tasks (which they cannot do, or where they failed), and "
    "are ranked and compared within the others only.",
)


def notes(found: Table) -> list[str]:
    """What one has to know to read the tables."""
    counts = {"weeks": found.nb_units, "tests": found.nb_tests, "logs": len(found.logs)}
    return [note.format(**counts) for note in _NOTES]


def heads(metric: str) -> list[str]:
    """Of the table of a metric."""
    return ["policy", "rank", f"{COMPARED[metric]} / EASY's", "p (Holm)", "by logs", "better on", "tasks"]


def rows(found: Table, metric: str) -> list[list[str]]:
    """The table of a metric over all tasks, in the order of its ranks."""
    ordered = sorted(found.rows, key=lambda row: (row.ranks[metric].mean, row.name))
    return [_cells_of(row, metric, len(found.logs)) for row in ordered]


def condition_rows(found: Table, metric: str) -> list[list[str]]:
    """The ratios of a metric under each condition; those in brackets are not shown to differ from 1."""
    cells = []
    for row in found.rows:
        its = row.gains[metric]
        cells.append([_name(row), *(_short(its.get(condition)) for condition in found.conditions)])
    return [row for row in cells if row[0] != REFERENCE]


def _cells_of(row: Row, metric: str, nb_logs: int) -> list[str]:
    gain = row.gains[metric].get(ALL)
    states = ", ".join(f"{count} {state.replace('-', ' ')}" for state, count in row.states.items())
    shown = [_name(row), _estimate(row.ranks[metric], ".1f")]
    if gain is None:
        return [*shown, "1" if row.name == REFERENCE else "?", "", "", "", states]
    by_log = _estimate(gain.by_log)
    return [
        *shown,
        _estimate(gain.ratio),
        f"{gain.p_value:.1g}",
        by_log,
        f"{gain.logs_better} of {nb_logs}",
        states,
    ]


def _name(row: Row) -> str:
    return row.name if row.is_whole else f"{row.name} *"


def _short(gain: Gain | None) -> str:
    if gain is None:
        return ""
    return f"{gain.ratio.mean:.3g}" if gain.is_shown else f"({gain.ratio.mean:.3g})"


def _estimate(each: Estimate, form: str = ".3g") -> str:
    """A figure with its interval."""
    ends = "" if each.low is None or each.high is None else f" [{each.low:{form}}, {each.high:{form}}]"
    return "?" if isnan(each.mean) else f"{each.mean:{form}}{ends}"


def markdown(found: Table) -> str:
    """The tables in Markdown, and how to read them."""
    lines = [line for note in notes(found) for line in (note, "")]
    for metric, word in COMPARED.items():
        best = {_name(row) for row in found.rows if row.is_best[metric]}
        cells = [[f"**{row[0]}**" if row[0] in best else row[0], *row[1:]] for row in rows(found, metric)]
        lines += [f"### By {word} (`{metric}`)", "", *_table(heads(metric), cells), ""]
    for metric, word in COMPARED.items():
        lines += [f"### Under each condition: {word} / EASY's", ""]
        lines += [*_table(["policy", *found.conditions], condition_rows(found, metric)), ""]
    return "\n".join(lines)


def _table(names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    ruler = ["---", *("---:" for _ in names[1:])]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (names, ruler, *cells)]
    return [f"| {' | '.join(row)} |" for row in escaped]


def write_leaderboard(file: Path, found: Table) -> None:
    """Write a page or Markdown, as the name of the file says."""
    title = f"Leaderboard, version {found.version} of the benchmark"
    if file.suffix == ".md":
        return write_file(file, f"# {title}\n\n{markdown(found)}")
    if file.suffix != ".html":
        raise InputError(f"{file}: a leaderboard is written as .html or .md")
    told = "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes(found))
    counts = [
        ("policies", str(len(found.rows)), ""),
        ("tasks", str(found.nb_tasks), f"{len(found.conditions)} conditions"),
        ("weeks", str(found.nb_units), f"of {len(found.logs)} logs: {', '.join(found.logs)}"),
    ]
    header = f'<h1>{html.escape(title)}</h1>\n{told}<div id="tiles">{tiles(counts)}</div>'
    sections = []
    for metric, word in COMPARED.items():
        best = {_name(row) for row in found.rows if row.is_best[metric]}
        cells = [
            [
                f"<b>{html.escape(row[0])}</b>" if row[0] in best else html.escape(row[0]),
                *map(html.escape, row[1:]),
            ]
            for row in rows(found, metric)
        ]
        content = [figure(f"Ratio to EASY, all tasks: {word}", metric), table(word, heads(metric), cells)]
        escaped = [[html.escape(cell) for cell in row] for row in condition_rows(found, metric)]
        brackets = f"{word} / EASY's under each condition; in brackets where no difference is shown"
        content.append(table(brackets, ["policy", *found.conditions], escaped))
        sections.append(section(f"By {word}", f"The metric {metric}.", *content, layout="wide tall"))
    figures = {metric: drawn(found, metric) for metric in COMPARED}
    write_figures_page(file, title, header, "".join(sections), figures)


def drawn(found: Table, metric: str) -> Figure | None:
    """A dot with its interval for each policy, the best rank on top."""
    ordered = [row for row in found.rows if ALL in row.gains[metric]]
    ordered.sort(key=lambda row: row.ranks[metric].mean, reverse=True)
    if not ordered:
        return None
    dots, bars = [], []
    for place, row in enumerate(ordered):
        gain = row.gains[metric][ALL]
        text = f"{_estimate(gain.ratio)} times EASY's, p = {gain.p_value:.1g}"
        dots.append(Point(gain.ratio.mean, place, row.name, text))
        if gain.ratio.low is not None and gain.ratio.high is not None:
            bars.append(Bar(gain.ratio.low, gain.ratio.high, place - 0.15, place + 0.15, row.name, text))
    ends = [*(dot.x for dot in dots), *(end for bar in bars for end in (bar.left, bar.right)), 1.0]
    return Figure(
        Axis(f"{COMPARED[metric]} / EASY's", scale="log", ends=(min(ends) * 0.95, max(ends) * 1.05)),
        Axis("policy", names=[row.name for row in ordered]),
        [
            Layer("bars", bars, None, "95 % interval"),
            Layer("line", [Point(1.0, -0.5), Point(1.0, len(ordered) - 0.5)], 2, "EASY"),
            Layer("dots", dots, 0, "mean over weeks"),
        ],
    )
