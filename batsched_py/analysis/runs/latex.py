"""Tables of results in LaTeX that fit a page: wide ones are split by metrics, long ones by rows.

The widths are those of Computer Modern at 10 pt, rounded up, because LaTeX itself may not be installed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from batsched_py.analysis.runs.columns import MINUS
from batsched_py.analysis.runs.tables import Cell, ResultTable

#: The width of the text of an ``article`` in points, and the rows that fit below each other.
TEXT_WIDTH = 345.0
MOST_ROWS = 40

#: The space between two columns, and how much wider bold letters are.
_BETWEEN = 12.0
_BOLD = 1.16

#: Sizes of letters, the largest first, with their commands.
_SIZES = ((1.0, ""), (0.9, r"\small"), (0.8, r"\footnotesize"), (0.7, r"\scriptsize"))

_NARROW, _WIDE = frozenset(" !'(),-.:;I[]`fijlrt"), frozenset("%MWmw")
_RELATIONS = frozenset("#&+<=>@±" + MINUS)

#: What the columns of a metric show.
_PARTS = ("mean", "difference", "effect")


def width_of(text: str) -> float:
    """An upper bound of the width of a text in points."""
    return sum(
        4.0
        if each in _NARROW
        else 10.3
        if each in _WIDE
        else 8.4
        if each.isupper() or each in _RELATIONS
        else 5.6
        for each in text
    )


class _Metric(Struct, frozen=True):
    """The columns of a metric, for all rows of all tables."""

    heading: str
    rows: list[list[Cell]]

    @property
    def widths(self) -> list[float]:
        """How wide each of its columns is without its heading."""
        cells = [[width_of(cell.text) * (_BOLD if cell.best else 1) for cell in row] for row in self.rows]
        columns = [max(column) for column in zip(*cells, strict=True)]
        if len(columns) == 1:
            return [max(columns[0], *map(width_of, self.heading.split()))]
        return [max(width, width_of(part)) for width, part in zip(columns, _PARTS, strict=False)]

    @property
    def width(self) -> float:
        """How wide all its columns are."""
        columns = sum(self.widths) + _BETWEEN * len(self.widths)
        return columns if len(self.widths) == 1 else max(columns, width_of(self.heading) + _BETWEEN)


def latex(tables: Sequence[ResultTable]) -> str:
    """All of it in LaTeX, which needs the package booktabs: one table, or several if one were too large."""
    if not tables:
        return ""
    first, named = tables[0], len(tables) > 1
    headings = [*(["log"] if named else []), *first.axes]
    names = [
        [*([table.log if number == 0 else ""] if named else []), *choices]
        for table in tables
        for number, (choices, _) in enumerate(table.rows)
    ]
    ends = {sum(len(each.rows) for each in tables[: place + 1]) for place in range(len(tables))}
    left = sum(max(map(width_of, column)) + _BETWEEN for column in zip(headings, *names, strict=True))
    metrics = list(_metrics(tables))
    parts = [
        (chosen, span)
        for chosen in _fitting(metrics, TEXT_WIDTH - left)
        for span in pairwise([*range(0, len(names), MOST_ROWS), len(names)])
    ]
    note = max(tables, key=lambda table: table.repetitions).note
    caption = f"{first.log}. {note}" if first.log and not named else note
    texts = []
    for number, (chosen, span) in enumerate(parts, start=1):
        shown = caption if number == 1 else "The table before, continued"
        title = shown if len(parts) == 1 else f"{shown.removesuffix('.')} ({number} of {len(parts)})."
        texts.append(_table(title, headings, names, ends, chosen, range(*span), left))
    return "\n".join(texts)


def _metrics(tables: Sequence[ResultTable]) -> Iterator[_Metric]:
    step = tables[0].columns_of_a_metric
    for place in range(0, len(tables[0].headings), step):
        rows = [cells[place : place + step] for table in tables for _, cells in table.rows]
        yield _Metric(tables[0].headings[place], rows)


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
    ends: set[int],
    metrics: Sequence[_Metric],
    rows: range,
    left: float,
) -> str:
    width = left + sum(metric.width for metric in metrics)
    size = next((command for scale, command in _SIZES if width * scale <= TEXT_WIDTH), _SIZES[-1][1])
    columns = "l" * len(headings) + "r" * sum(len(metric.widths) for metric in metrics)
    lines = []
    for number in rows:
        cells = [_cell(cell) for metric in metrics for cell in metric.rows[number]]
        lines.append(_row([*map(_escape, names[number]), *cells]))
        if number + 1 in ends and number != rows[-1]:
            lines.append(r"    \midrule")
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_escape(caption)}}}",
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
    width = len(metrics[0].widths) if metrics else 1
    if width == 1:
        yield _row([*map(_escape, headings), *map(_stacked, metrics)])
        return
    begins = [len(headings) + 1 + width * place for place in range(len(metrics))]
    names = [rf"\multicolumn{{{width}}}{{c}}{{{_escape(metric.heading)}}}" for metric in metrics]
    yield _row([*[""] * len(headings), *names])
    yield "    " + " ".join(rf"\cmidrule(lr){{{begin}-{begin + width - 1}}}" for begin in begins)
    yield _row([*map(_escape, headings), *_PARTS[:width] * len(metrics)])


def _stacked(metric: _Metric) -> str:
    """A heading in as many lines as it takes to be no wider than its column."""
    (width,) = metric.widths
    lines: list[str] = []
    for word in metric.heading.split():
        if lines and width_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    text = r"\\".join(map(_escape, lines))
    return text if len(lines) == 1 else rf"\shortstack[r]{{{text}}}"


def _row(cells: Sequence[str]) -> str:
    return rf"    {' & '.join(cells)} \\"


def _cell(cell: Cell) -> str:
    return rf"\textbf{{{_escape(cell.text)}}}" if cell.best else _escape(cell.text)


def _escape(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text.replace("±", r"$\pm$").replace("<", "$<$").replace(MINUS, "$-$")
