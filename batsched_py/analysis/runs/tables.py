"""Results as tables for people, one for each log, with the best of each column marked; also in LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isnan
from statistics import fmean
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.runs import CONFIDENCE, FEWEST, SIGNIFICANT, Estimate, aggregate
from batsched_py.analysis.runs.columns import MINUS, ColumnFormat, column_of
from batsched_py.analysis.runs.comparisons import best_rows

#: Stands at the means of what has no steady state.
UNSTABLE = "†"

#: What a table is about, by the axis of what is independent.
_ABOUT = {
    "part": "Means over up to {} parts of one log, within which seeds are averaged: they tell of other times "
    "on this machine, not of other machines.",
    "seed": "Means over up to {} seeds on one workload: they tell of chance in policy and users (where users "
    "are resampled, of other populations like this one), not of other workloads.",
    "log": "Means over up to {} logs, within which parts and seeds are averaged.",
}


class Cell(Struct, frozen=True):
    """A figure, in the unit of its column."""

    text: str
    best: bool = False


class ResultTable(Struct, frozen=True):
    """A table with a row for each combination of choices, over all its repetitions."""

    log: str
    """Which one its rows are about; empty if about several."""
    axes: list[str]
    """The headings of the first columns, those that tell rows apart."""
    headings: list[str]
    """The headings of the others, with units."""
    rows: list[tuple[list[str], list[Cell]]]
    repetitions: int
    """The most that a row has."""
    baseline: str = ""
    """What rows are compared with, if they are."""
    pooled: Mapping[str, Sequence[str]] = {}
    """The axes on which runs of one row differ although they are no repetitions, with the choices there."""
    has_differences: bool = False
    """Whether some row is compared with the baseline."""
    lacks_pairs: bool = False
    """Whether some row has too few pairs for that."""
    window: str = ""
    """What is measured of each run."""
    unit: str = "part"
    """The axis whose values are independent of each other."""
    units: int = 1
    """The most of them that a row has."""
    tests: int = 0
    """How many differences are tested on the page."""
    dependence: str = ""
    """How much successive parts depend on each other, and what was made of it."""
    unstable: Sequence[str] = ()
    """Which rows have no steady state, and why."""
    reached: Mapping[str, str] = {}
    """The offered load of runs under each load of the plan, in words."""

    @property
    def parts(self) -> Sequence[str]:
        """The mean alone, or also the difference to the baseline, and its effect unless runs are pooled."""
        return _PARTS[: 1 if not self.baseline else 2 if self.pooled else 3]

    @property
    def fits_one_page(self) -> bool:
        """Whether letters are made smaller before it is split, and tables stand below each other in one."""
        return False

    def heading_of(self, place: int) -> str:
        """What stands above the columns of a metric, by the first of them."""
        return self.headings[place]

    @property
    def note(self) -> str:
        """How to read it."""
        return " ".join(self._remarks())

    def _remarks(self) -> Iterator[str]:
        if self.window:
            yield f"Measured: {self.window}."
        if self.pooled:
            what = "; ".join(f"{axis}: {', '.join(choices)}" for axis, choices in self.pooled.items())
            yield (
                f"Means over up to {self.repetitions} runs of different experiments ({what}), which are no "
                "repetitions of one: so there are no intervals and no tests."
            )
        elif self.units > 1:
            yield _ABOUT[self.unit].format(self.units)
        if self.reached:
            words = ", ".join(f"{text} at load {load}" for load, text in self.reached.items())
            yield f"The work that is submitted is {words}, of what the machine could do meanwhile."
        yield self._of_best()
        yield from self._of_differences()
        if self.dependence:
            yield self.dependence
        if self.unstable:
            yield (
                f"{UNSTABLE} has no steady state: one backlog makes most of its means, so they are not "
                f"compared ({'; '.join(self.unstable)})."
            )

    def _of_best(self) -> str:
        if self.pooled:
            return "The best of each column is bold."
        if self.units >= FEWEST:
            return (
                f"Intervals have {CONFIDENCE:.0%} confidence (Student's t, within the possible values); bold "
                "is the best of each column, and what cannot be told from it (t-test of pairs, Holm)."
            )
        if self.units > 1:
            return "These are too few for intervals and tests; the best of each column is bold."
        return "The best of each column is bold, which one run cannot tell from chance."

    def _of_differences(self) -> Iterator[str]:
        if self.has_differences:
            yield f"Differences to {self.baseline} are means over pairs that have all else in common."
        if self.tests:
            yield (
                "* is p < 0.05, ** p < 0.01, *** p < 0.001 in Student's two-sided t-test for pairs, by "
                f"Holm's method over the {self.tests} tests of the page; (s) stands where the sign test does "
                "not agree (p >= 0.05); the effect is Cohen's d of pairs."
            )
        if self.lacks_pairs:
            yield (
                f"A difference to {self.baseline} needs two pairs or more, which are made by parts of a log "
                f"or by seeds, and a test needs {FEWEST}; where there are fewer, its place says so."
            )


def tables_of(results: aggregate.Aggregate) -> list[ResultTable]:
    """The tables that show an aggregate: one for each log, if rows are about one."""
    axes = [axis for axis in results.by if axis != "log"] or ["scheduler"]
    columns = [column for metric in results.metrics for column in _columns(metric, results)]
    groups = [group for group, _ in results.rows]
    logs: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        logs.setdefault(_log_of(group), []).append(number)
    tables = []
    for log, numbers in logs.items():
        compared = [
            each.difference is not None
            for number in numbers
            if _is_compared(results, number) and not groups[number].unstable
            for each in results.rows[number][1].values()
        ]
        rows = []
        for number in numbers:
            choices = [groups[number].runs[0].axes.get(axis, "") for axis in axes]
            rows.append((choices, [cells[number] for _, cells in columns]))
        table = ResultTable(
            log,
            axes,
            [heading for heading, _ in columns],
            rows,
            **said_of(results, numbers),
            has_differences=any(compared),
            lacks_pairs=not all(compared),
            unstable=[_why(groups[number]) for number in numbers if groups[number].unstable],
            reached=reached_loads([groups[number] for number in numbers]),
        )
        tables.append(table)
    return tables


def said_of(results: aggregate.Aggregate, numbers: Sequence[int]) -> dict[str, Any]:
    """What a table says of some rows of the results, whatever is in its columns."""
    measured = [each for number in numbers for each in results.rows[number][1].values()]
    return {
        "repetitions": max(len(results.rows[number][0].runs) for number in numbers),
        "baseline": "" if results.baseline is None else results.baseline.name,
        "pooled": results.pooled,
        "window": results.window,
        "unit": results.unit,
        "units": max((each.units for each in measured), default=1),
        "tests": results.nb_tests,
        "dependence": dependence_of(measured),
    }


def dependence_of(measured: Sequence[aggregate.Measured]) -> str:
    """How much successive parts depend on each other, in a sentence; nothing where that is not known."""
    lags = [each.lag_1 for each in measured if each.lag_1 is not None]
    if not lags:
        return ""
    most = f"at most {max(lags):.2f} (of one row, uncorrected)"
    said = f"The lag-1 autocorrelation between successive parts is {most}"
    units = max(each.units for each in measured)
    means = min(each.counted for each in measured if each.units == units)
    tested = [each.paired for each in measured if each.paired is not None]
    parts = []
    if means < units:
        parts.append(f"intervals of means count {units} parts as {means:.1f}")
    if fewer := [each for each in tested if each.counted < each.nb_units]:
        least = min(fewer, key=lambda each: each.counted)
        parts.append(f"tests and intervals of differences count {least.nb_units} as {least.counted:.1f}")
    why = "; corrected for few parts, over the rows of a metric, it is such that at the least "
    return f"{said}{why}{', and '.join(parts)}." if parts else f"{said}."


def reached_loads(groups: Sequence[aggregate.Group[aggregate.MeasuredRun]]) -> dict[str, str]:
    """The mean offered load of rows under each load of the plan: one, or from the least to the most."""
    found: dict[str, list[float]] = {}
    for group in groups:
        loads = {run.axes.get("load", "") for run in group.runs}
        offered = group.values("offered_load")
        if len(loads) == 1 and offered:
            found.setdefault(loads.pop(), []).append(fmean(offered))
    ends = {load: (f"{min(means):.0%}", f"{max(means):.0%}") for load, means in found.items() if load}
    return {load: low if low == high else f"{low} to {high}" for load, (low, high) in ends.items()}


def _why(group: aggregate.Group[aggregate.MeasuredRun]) -> str:
    """Which row has no steady state, and what shows it."""
    return f"{', '.join(group.axes.values())}: {group.unstable}"


def _is_compared(results: aggregate.Aggregate, number: int) -> bool:
    """Whether a row is another choice than the baseline, with which it is to be compared."""
    group, _ = results.rows[number]
    return results.baseline is not None and not results.baseline.is_of(group.runs[0])


def _log_of(group: aggregate.Group[aggregate.MeasuredRun]) -> str:
    names = {run.axes.get("log", "") for run in group.runs}
    return names.pop() if len(names) == 1 else ""


def _columns(metric: str, results: aggregate.Aggregate) -> Iterator[tuple[str, list[Cell]]]:
    """A heading and a cell for each row: of the means, of the differences to the baseline and their size."""
    found = [measured[metric] for _, measured in results.rows]
    form = ColumnFormat.of(column_of(metric, results.own).unit, [each.estimate for each in found])
    best = best_rows(metric, results)
    marks = [UNSTABLE if group.unstable else "" for group, _ in results.rows]
    means = [
        Cell(cell_text(each.estimate, form) + mark, number in best)
        for number, (each, mark) in enumerate(zip(found, marks, strict=True))
    ]
    yield title_of(metric, form), means
    if results.baseline is not None:
        differences = [
            Cell(_difference(each, form) if _is_compared(results, number) else "")
            for number, each in enumerate(found)
        ]
        yield f"difference to {results.baseline.name}{_unit(form)}", differences
        if not results.pooled:
            yield "effect", [Cell(_effect(each)) for each in found]


def title_of(metric: str, form: ColumnFormat) -> str:
    """A metric in words, with the unit in which it is shown."""
    return metric.removeprefix("nb_").replace("_", " ") + _unit(form)


def _unit(form: ColumnFormat) -> str:
    return "" if form.unit in ("", "jobs") else f" ({form.unit})"


def cell_text(estimate: Estimate, form: ColumnFormat) -> str:
    """A mean with its interval; a dash where there is none."""
    return "-" if isnan(estimate.mean) else form.text(estimate)


def _difference(measured: aggregate.Measured, form: ColumnFormat) -> str:
    """The difference to the baseline with its stars, or why there is none."""
    difference = measured.difference
    if difference is None:
        return ("no pair", "one pair")[measured.nb_pairs] if measured.nb_pairs < 2 else "not compared"
    if isnan(difference.mean):
        return ""
    return cell_text(difference, form) + stars_of(measured)


def stars_of(measured: aggregate.Measured) -> str:
    """How sure a difference to the baseline is, and whether the sign test does not agree."""
    paired = measured.paired
    if paired is None or measured.p_value is None:
        return ""
    stars = sum(measured.p_value < level for level in (SIGNIFICANT, 0.01, 0.001))
    return "*" * stars + (" (s)" if stars and paired.sign_p_value >= SIGNIFICANT else "")


def _effect(measured: aggregate.Measured) -> str:
    size = None if measured.paired is None else measured.paired.effect_size
    return "" if size is None or isnan(size) else ColumnFormat("", 1.0, 2).number(size)


def markdown(tables: Sequence[ResultTable]) -> str:
    """The tables in Markdown."""
    parts = []
    for table in tables:
        lines = [f"### {table.log}", ""] if table.log else []
        lines.append(_markdown_row([*table.axes, *table.headings]))
        lines.append(_markdown_row(["---"] * len(table.axes) + ["---:"] * len(table.headings)))
        for choices, cells in table.rows:
            texts = [cell.text.replace("*", "\\*") for cell in cells]
            bold = [f"**{text}**" if cell.best else text for text, cell in zip(texts, cells, strict=True)]
            lines.append(_markdown_row([*choices, *bold]))
        parts.append("\n".join([*lines, "", table.note.replace("*", "\\*")]))
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


#: The width of the text of an ``article`` in points, and the rows that fit below each other.
TEXT_WIDTH = 345.0
MOST_ROWS = 40

#: The space between two columns, and how much wider bold letters are.
_BETWEEN = 12.0
_BOLD = 1.16

#: Sizes of letters, the largest first, with their commands.
_SIZES = ((1.0, ""), (0.9, r"\small"), (0.8, r"\footnotesize"), (0.7, r"\scriptsize"))

#: Upper bounds of the widths of letters in points, but for usual ones.
_WIDTHS = (
    dict.fromkeys(" !'(),-.:;I[]`fijlrt", 4.0)
    | dict.fromkeys("%MWmw", 10.3)
    | dict.fromkeys("#&+<=>@±" + MINUS, 8.4)
)

#: What the columns of a metric show.
_PARTS = ("mean", "difference", "effect")


def width_of(text: str) -> float:
    """An upper bound of the width of a text in points."""
    return sum(_WIDTHS.get(each, 8.4 if each.isupper() else 5.6) for each in text)


class _Metric(Struct, frozen=True):
    """The columns of a metric, for all rows of all tables."""

    heading: str
    parts: Sequence[str]
    rows: list[list[Cell]]
    stacked: bool = False
    """Whether intervals stand below their means."""

    def lines(self, cell: Cell) -> list[str]:
        """The text of a cell, which has two lines if it is stacked: the mean with its stars, the interval."""
        mean, bracket, rest = cell.text.partition(" [")
        if not self.stacked or not bracket:
            return [cell.text]
        interval, _, mark = rest.partition("]")
        return [mean + mark, f"[{interval}]"]

    def latex(self, cell: Cell) -> str:
        """A cell in LaTeX."""
        escaped = map(latex_text, self.lines(cell))
        lines = [rf"\textbf{{{line}}}" if cell.best else line for line in escaped]
        return lines[0] if len(lines) == 1 else rf"\shortstack[r]{{{lines[0]}\\{{}}{lines[1]}}}"

    @property
    def widths(self) -> list[float]:
        """How wide each of its columns is without its heading."""
        cells = [
            [max(map(width_of, self.lines(cell))) * (_BOLD if cell.best else 1) for cell in row]
            for row in self.rows
        ]
        columns = [max(column) for column in zip(*cells, strict=True)]
        if len(columns) == 1:
            return [max(columns[0], *map(width_of, self.heading.split()))]
        return [max(width, width_of(part)) for width, part in zip(columns, self.parts, strict=True)]

    @property
    def width(self) -> float:
        """How wide all its columns are."""
        columns = sum(self.widths) + _BETWEEN * len(self.widths)
        return columns if len(self.widths) == 1 else max(columns, width_of(self.heading) + _BETWEEN)

    def cut(self, room: float) -> list[_Metric]:
        """It in as many pieces as it takes for each to be no wider than this."""
        if len(self.parts) == 1:
            return [_Metric(f"{self.heading} {self.parts[0]}", self.parts, self.rows, self.stacked)]
        if self.width <= room:
            return [self]
        half = len(self.parts) // 2
        first = _Metric(self.heading, self.parts[:half], [row[:half] for row in self.rows], self.stacked)
        second = _Metric(self.heading, self.parts[half:], [row[half:] for row in self.rows], self.stacked)
        return [*first.cut(room), *second.cut(room)]


def latex(tables: Sequence[ResultTable]) -> str:
    """All of it in LaTeX, which needs the package booktabs: one table, or several if one were too large."""
    if not tables:
        return ""
    first = tables[0]
    named = len(tables) > 1 and not first.fits_one_page
    headings = [*(["log"] if named else []), *first.axes]
    names = [
        [*([table.log if number == 0 else ""] if named else []), *choices]
        for table in tables
        for number, (choices, _) in enumerate(table.rows)
    ]
    blocks = {sum(len(each.rows) for each in tables[:place]): table.log for place, table in enumerate(tables)}
    if not first.fits_one_page:
        blocks = dict.fromkeys(blocks, "")
    left = sum(max(map(width_of, column)) + _BETWEEN for column in zip(headings, *names, strict=True))
    parts = _parts_of(tables, len(names), left)
    note = max(tables, key=lambda table: table.repetitions).note
    caption = f"{first.log}. {note}" if first.log and len(tables) == 1 and not first.fits_one_page else note
    texts = []
    for number, (chosen, span) in enumerate(parts, start=1):
        shown = caption if number == 1 else "The table before, continued"
        title = shown if len(parts) == 1 else f"{shown.removesuffix('.')} ({number} of {len(parts)})."
        texts.append(_table(title, headings, names, blocks, chosen, range(*span), left))
    return "\n".join(texts)


def _parts_of(
    tables: Sequence[ResultTable], nb_rows: int, left: float
) -> list[tuple[Sequence[_Metric], tuple[int, int]]]:
    """Which metrics and which rows each table of a page has, beside first columns of some width."""
    metrics = list(_metrics(tables))
    room = TEXT_WIDTH - left
    if tables[0].fits_one_page:
        room = TEXT_WIDTH / _SIZES[-1][0] - left
        is_wide = sum(metric.width for metric in metrics) > room
        metrics = [part for metric in metrics for part in replace(metric, stacked=is_wide).cut(room)]
    most = MOST_ROWS // (2 if metrics[0].stacked else 1)
    spans = list(pairwise([*range(0, nb_rows, most), nb_rows]))
    return [(chosen, span) for chosen in _fitting(metrics, room) for span in spans]


def _metrics(tables: Sequence[ResultTable]) -> Iterator[_Metric]:
    step = len(tables[0].parts)
    for place in range(0, len(tables[0].headings), step):
        rows = [cells[place : place + step] for table in tables for _, cells in table.rows]
        yield _Metric(tables[0].heading_of(place), tables[0].parts, rows)


def _fitting(metrics: Sequence[_Metric], room: float) -> list[list[_Metric]]:
    """The metrics, as many together as there is room for."""
    tables: list[list[_Metric]] = [[]]
    for metric in metrics:
        if tables[-1] and sum(each.width for each in (*tables[-1], metric)) > room:
            tables.append([])
        tables[-1].append(metric)
    return tables


def _table(
    caption: str,
    headings: Sequence[str],
    names: Sequence[Sequence[str]],
    blocks: Mapping[int, str],
    metrics: Sequence[_Metric],
    rows: range,
    left: float,
) -> str:
    width = left + sum(metric.width for metric in metrics)
    size = next((command for scale, command in _SIZES if width * scale <= TEXT_WIDTH), _SIZES[-1][1])
    columns = "l" * len(headings) + "r" * sum(len(metric.widths) for metric in metrics)
    lines = []
    for number in rows:
        texts = [metric.latex(cell) for metric in metrics for cell in metric.rows[number]]
        if number in blocks and number != rows[0]:
            lines.append(r"    \midrule")
        if blocks.get(number):
            lines.append(
                _row([rf"\multicolumn{{{len(columns)}}}{{l}}{{\emph{{{latex_text(blocks[number])}}}}}"])
            )
        lines.append(_row([*map(latex_text, names[number]), *texts]))
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{latex_text(caption)}}}",
            *([f"  {size}"] if size else []),
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            *_heads(headings, metrics),
            r"    \midrule",
            *lines,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _heads(headings: Sequence[str], metrics: Sequence[_Metric]) -> Iterator[str]:
    """The headings: the name of a metric above its columns, or in several lines above its only column."""
    if all(len(metric.parts) == 1 for metric in metrics):
        yield _row([*map(latex_text, headings), *map(_stacked, metrics)])
        return
    names, rules, column = [], [], len(headings) + 1
    for metric in metrics:
        width = len(metric.parts)
        names.append(rf"\multicolumn{{{width}}}{{c}}{{{latex_text(metric.heading)}}}" if width > 1 else "")
        rules += [rf"\cmidrule(lr){{{column}-{column + width - 1}}}"] * (width > 1)
        column += width
    yield _row([*[""] * len(headings), *names])
    yield "    " + " ".join(rules)
    parts = [
        _stacked(metric) if len(metric.parts) == 1 else latex_text(part)
        for metric in metrics
        for part in metric.parts
    ]
    yield _row([*map(latex_text, headings), *parts])


def _stacked(metric: _Metric) -> str:
    """A heading in as many lines as it takes to be no wider than its column."""
    (width,) = metric.widths
    lines: list[str] = []
    for word in metric.heading.split():
        if lines and width_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    text = r"\\".join(map(latex_text, lines))
    return text if len(lines) == 1 else rf"\shortstack[r]{{{text}}}"


def _row(cells: Sequence[str]) -> str:
    return rf"    {' & '.join(cells)} \\"


def latex_text(text: str) -> str:
    """A text as LaTeX writes it."""
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text.replace("±", r"$\pm$").replace("<", "$<$").replace(MINUS, "$-$")
