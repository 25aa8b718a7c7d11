"""Results as tables for people: one for each log, with the best of each column marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, isnan, log10
from statistics import median_high

from msgspec import Struct

from batsched_py.analysis.runs.aggregate import Aggregate, Measured
from batsched_py.analysis.runs.measured import Group, MeasuredRun
from batsched_py.analysis.statistics import CONFIDENCE, Estimate

#: Of these metrics more is better; of these neither is; of all others less is.
HIGHER_IS_BETTER = frozenset(
    {"utilization", "throughput", "nb_jobs_finished", "nb_jobs_success", "jobs_per_session"}
)
NEUTRAL = frozenset(
    {
        "nb_jobs",
        "nb_jobs_put_off",
        "nb_jobs_on_fewer_hosts",
        "nb_jobs_doing_less",
        "nb_sessions",
        "mean_session_length",
    }
)

#: How negative figures begin.
MINUS = "\N{MINUS SIGN}"

#: More than so many decimals are never shown.
MOST_DECIMALS = 4

#: In which units large figures are shown, by the unit in which they are measured.
_UNITS = {
    "s": (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0)),
    "J": (("GJ", 1e9), ("MJ", 1e6), ("kJ", 1e3), ("J", 1.0)),
}


class Cell(Struct, frozen=True):
    """A figure, in the unit of its column."""

    text: str
    best: bool = False


class ColumnFormat(Struct, frozen=True):
    """How the figures of a column are written."""

    unit: str
    scale: float
    """What figures are divided by to be in this unit."""
    decimals: int

    @classmethod
    def of(cls, metric: str, estimates: Sequence[Estimate]) -> ColumnFormat:
        """What suits the estimates of a metric."""
        from batsched_py.analysis.metrics import METRICS

        sizes = [abs(estimate.mean) for estimate in estimates if estimate.mean and not isnan(estimate.mean)]
        unit, scale = next((each.unit for each in METRICS if each.name == metric), ""), 1.0
        if unit in _UNITS and sizes:
            units = _UNITS[unit]
            unit, scale = next((each for each in units if median_high(sizes) >= each[1]), units[-1])
        exact = not any(estimate.half_width for estimate in estimates)
        return cls(unit, scale, _decimals([size / scale for size in sizes], exact))

    def number(self, value: float) -> str:
        """A figure of the column."""
        return f"{value / self.scale:.{self.decimals}f}".replace("-", MINUS)


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

    @property
    def note(self) -> str:
        """How to read it."""
        parts = ["The best of each column is bold."]
        if self.repetitions > 1:
            parts[0] = (
                f"Means over up to {self.repetitions} repetitions, with intervals of {CONFIDENCE:.0%} "
                "confidence (Student's t); the best of each column is bold."
            )
        if self.baseline:
            parts.append(
                f"Differences to {self.baseline} are means over pairs that have all else in common, with "
                "such intervals; * is p < 0.05, ** p < 0.01, *** p < 0.001 in Student's t-test for pairs, "
                "and the effect is Cohen's d of pairs, their mean over their standard deviation."
            )
        return " ".join(parts)


def tables_of(results: Aggregate) -> list[ResultTable]:
    """The tables that show an aggregate: one for each log, if rows are about one."""
    axes = [axis for axis in results.by if axis != "log"] or ["scheduler"]
    columns = [column for metric in results.metrics for column in _columns(metric, results)]
    groups = [group for group, _ in results.rows]
    logs: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        logs.setdefault(_log_of(group), []).append(number)
    return [
        ResultTable(
            log,
            axes,
            [heading for heading, _ in columns],
            [
                (
                    [groups[number].runs[0].axes.get(axis, "") for axis in axes],
                    [cells[number] for _, cells in columns],
                )
                for number in numbers
            ],
            max(len(groups[number].runs) for number in numbers),
            "" if results.baseline is None else results.baseline.name,
        )
        for log, numbers in logs.items()
    ]


def _log_of(group: Group[MeasuredRun]) -> str:
    names = {run.axes["log"] for run in group.runs}
    return names.pop() if len(names) == 1 else ""


def _columns(metric: str, results: Aggregate) -> Iterator[tuple[str, list[Cell]]]:
    """A heading and a cell for each row: of the means, of the differences to the baseline and their size."""
    found = [measured[metric] for _, measured in results.rows]
    form = ColumnFormat.of(metric, [each.estimate for each in found])
    unit = "" if form.unit in ("", "jobs") else f" ({form.unit})"
    best = _best(metric, results, form)
    texts = [_text(each.estimate, form) for each in found]
    yield (
        metric.removeprefix("nb_").replace("_", " ") + unit,
        [Cell(text, number in best) for number, text in enumerate(texts)],
    )
    if results.baseline is not None:
        yield (
            f"difference to {results.baseline.name}{unit}",
            [Cell(_difference(each, form)) for each in found],
        )
        yield "effect", [Cell(_effect(each)) for each in found]


def _best(metric: str, results: Aggregate, form: ColumnFormat) -> set[int]:
    """The numbers of the rows whose mean is shown as the best of those with the same log and load."""
    if metric in NEUTRAL:
        return set()
    groups: dict[tuple[str, str | None], dict[int, float]] = {}
    for number, (group, measured) in enumerate(results.rows):
        mean = measured[metric].estimate.mean
        if not isnan(mean):
            groups.setdefault((_log_of(group), group.axes.get("load")), {})[number] = mean
    choose = max if metric in HIGHER_IS_BETTER else min
    best = set()
    for means in groups.values():
        if len(set(means.values())) > 1:
            shown = form.number(choose(means.values()))
            best |= {number for number, mean in means.items() if form.number(mean) == shown}
    return best


def _decimals(sizes: Sequence[float], exact: bool) -> int:
    """So many that the largest value has four digits and the smallest three, within reason."""
    if not sizes or (exact and all(size.is_integer() for size in sizes)):
        return 0
    largest, smallest = (floor(log10(choose(sizes))) for choose in (max, min))
    return min(max(3 - largest, 2 - smallest, 0), MOST_DECIMALS)


def _text(estimate: Estimate, form: ColumnFormat) -> str:
    if isnan(estimate.mean):
        return "-"
    mean = form.number(estimate.mean)
    return mean if estimate.half_width is None else f"{mean} ± {form.number(estimate.half_width)}"


def _difference(measured: Measured, form: ColumnFormat) -> str:
    paired = measured.paired
    if paired is None or isnan(paired.difference.mean):
        return ""
    stars = "*" * sum(paired.p_value < level for level in (0.05, 0.01, 0.001))
    return f"{_text(paired.difference, form)}{stars}"


def _effect(measured: Measured) -> str:
    size = None if measured.paired is None else measured.paired.effect_size
    return "" if size is None or isnan(size) else f"{size:.2f}".replace("-", MINUS)


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


def latex(tables: Sequence[ResultTable]) -> str:
    """All of it as one table in LaTeX, which needs the package booktabs."""
    if not tables:
        return ""
    first = tables[0]
    named = len(tables) > 1
    headings = [*(["log"] if named else []), *first.axes, *first.headings]
    width = len(headings) - len(first.headings)
    bodies = [
        "".join(f"    {' & '.join(row)} \\\\\n" for row in _latex_rows(table, named)) for table in tables
    ]
    note = max(tables, key=lambda table: table.repetitions).note
    caption = f"{first.log}. {note}" if first.log and not named else note
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_escape(caption)}}}",
            rf"  \begin{{tabular}}{{{'l' * width}{'r' * len(first.headings)}}}",
            r"    \toprule",
            rf"    {' & '.join(map(_escape, headings))} \\",
            r"    \midrule",
            "    \\midrule\n".join(bodies).rstrip("\n"),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_rows(table: ResultTable, named: bool) -> Iterator[list[str]]:
    """The cells of each row; the name of the log stands in the first."""
    for number, (choices, cells) in enumerate(table.rows):
        bold = [rf"\textbf{{{_escape(c.text)}}}" if c.best else _escape(c.text) for c in cells]
        name = [_escape(table.log) if number == 0 else ""] if named else []
        yield [*name, *map(_escape, choices), *bold]


def _escape(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text.replace("±", r"$\pm$").replace("<", "$<$").replace(MINUS, "$-$")
