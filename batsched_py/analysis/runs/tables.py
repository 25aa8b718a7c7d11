"""Results as tables for people: one for each log, with the best of each column marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan

from msgspec import Struct

from batsched_py.analysis.runs.aggregate import Aggregate, Measured
from batsched_py.analysis.runs.columns import ColumnFormat, column_of
from batsched_py.analysis.runs.measured import GROUPINGS, Group, MeasuredRun
from batsched_py.analysis.statistics import CONFIDENCE, Estimate


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

    @property
    def columns_of_a_metric(self) -> int:
        """The mean alone, or also the difference to the baseline, and its effect unless runs are pooled."""
        return 1 if not self.baseline else 2 if self.pooled else 3

    @property
    def note(self) -> str:
        """How to read it."""
        return " ".join(self._remarks())

    def _remarks(self) -> Iterator[str]:
        if self.pooled:
            what = "; ".join(f"{axis}: {', '.join(choices)}" for axis, choices in self.pooled.items())
            yield (
                f"Means over up to {self.repetitions} runs of different experiments ({what}), which are no "
                "repetitions of one: so there are no intervals and no tests. The best of each column is bold."
            )
        elif self.repetitions > 1:
            yield (
                f"Means over up to {self.repetitions} repetitions, with intervals of {CONFIDENCE:.0%} "
                "confidence (Student's t); the best of each column is bold."
            )
        else:
            yield "The best of each column is bold."
        if self.has_differences and self.pooled:
            yield f"Differences to {self.baseline} are means over pairs that have all else in common."
        elif self.has_differences:
            yield (
                f"Differences to {self.baseline} are means over pairs that have all else in common, with "
                "such intervals; * is p < 0.05, ** p < 0.01, *** p < 0.001 in Student's t-test for pairs, "
                "and the effect is Cohen's d of pairs, their mean over their standard deviation."
            )
        if self.lacks_pairs:
            yield (
                f"A difference to {self.baseline} needs two pairs or more, which are made by parts of a log "
                "or by seeds; where there are fewer, its place says so."
            )


def tables_of(results: Aggregate) -> list[ResultTable]:
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
            if _is_compared(results, number)
            for each in results.rows[number][1].values()
        ]
        rows = [
            (
                [groups[number].runs[0].axes.get(axis, "") for axis in axes],
                [cells[number] for _, cells in columns],
            )
            for number in numbers
        ]
        tables.append(
            ResultTable(
                log,
                axes,
                [heading for heading, _ in columns],
                rows,
                max(len(groups[number].runs) for number in numbers),
                "" if results.baseline is None else results.baseline.name,
                results.pooled,
                any(compared),
                not all(compared),
            )
        )
    return tables


def _is_compared(results: Aggregate, number: int) -> bool:
    """Whether a row is another choice than the baseline, with which it is to be compared."""
    group, _ = results.rows[number]
    return results.baseline is not None and not results.baseline.is_of(group.runs[0])


def _log_of(group: Group[MeasuredRun]) -> str:
    names = {run.axes["log"] for run in group.runs}
    return names.pop() if len(names) == 1 else ""


def _columns(metric: str, results: Aggregate) -> Iterator[tuple[str, list[Cell]]]:
    """A heading and a cell for each row: of the means, of the differences to the baseline and their size."""
    found = [measured[metric] for _, measured in results.rows]
    form = ColumnFormat.of(column_of(metric, results.own).unit, [each.estimate for each in found])
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
            [
                Cell(_difference(each, form) if _is_compared(results, number) else "")
                for number, each in enumerate(found)
            ],
        )
        if not results.pooled:
            yield "effect", [Cell(_effect(each)) for each in found]


def _best(metric: str, results: Aggregate, form: ColumnFormat) -> set[int]:
    """The numbers of the rows whose mean is the best of those with the same log, load and group of jobs."""
    better = column_of(metric, results.own).better
    if better == "neither":
        return set()
    groups: dict[tuple[str | None, ...], dict[int, float]] = {}
    for number, (group, measured) in enumerate(results.rows):
        mean = measured[metric].estimate.mean
        if not isnan(mean):
            place = (_log_of(group), *(group.axes.get(axis) for axis in ("load", *GROUPINGS)))
            groups.setdefault(place, {})[number] = mean
    choose = max if better == "higher" else min
    best = set()
    for means in groups.values():
        if len(set(means.values())) > 1:
            shown = form.number(choose(means.values()))
            best |= {number for number, mean in means.items() if form.number(mean) == shown}
    return best


def _text(estimate: Estimate, form: ColumnFormat) -> str:
    if isnan(estimate.mean):
        return "-"
    mean = form.number(estimate.mean)
    return mean if estimate.half_width is None else f"{mean} ± {form.number(estimate.half_width)}"


def _difference(measured: Measured, form: ColumnFormat) -> str:
    """The difference to the baseline with its stars, or why there is none."""
    difference, paired = measured.difference, measured.paired
    if difference is None:
        return "one pair" if measured.nb_pairs else "no pair"
    if isnan(difference.mean):
        return ""
    stars = 0 if paired is None else sum(paired.p_value < level for level in (0.05, 0.01, 0.001))
    return f"{_text(difference, form)}{'*' * stars}"


def _effect(measured: Measured) -> str:
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
