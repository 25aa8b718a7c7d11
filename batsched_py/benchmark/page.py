"""The leaderboard as a page, as Markdown and on the terminal."""

from __future__ import annotations

import html
from collections.abc import Sequence
from math import isnan
from pathlib import Path

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
from batsched_py.analysis.runs import Estimate
from batsched_py.benchmark.table import ALL, COMPARED, REFERENCE, Gain, Row, Table
from batsched_py.errors import InputError
from batsched_py.output_files import write_file

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
    return [_row(row, metric, len(found.logs)) for row in ordered]


def condition_rows(found: Table, metric: str) -> list[list[str]]:
    """The ratios of a metric under each condition; those in brackets are not shown to differ from 1."""
    cells = []
    for row in found.rows:
        its = row.gains[metric]
        cells.append([_name(row), *(_short(its.get(condition)) for condition in found.conditions)])
    return [row for row in cells if row[0] != REFERENCE]


def _row(row: Row, metric: str, nb_logs: int) -> list[str]:
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
