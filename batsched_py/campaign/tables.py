"""The results of a campaign as tables for people: one for each log, with the best of each column marked."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isnan, log10

from msgspec import Struct

from batsched_py.analysis.statistics import CONFIDENCE, Estimate
from batsched_py.campaign.store import Campaign, FinishedRun

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
            unit, scale = next((each for each in units if max(sizes) >= each[1]), units[-1])
        exact = not any(estimate.half_width for estimate in estimates)
        return cls(unit, scale, _decimals([size / scale for size in sizes], exact))


class ResultTable(Struct, frozen=True):
    """A table with a row for each combination of choices, over all its repetitions."""

    log: str
    axes: list[str]
    """The headings of the first columns, those that tell rows apart."""
    headings: list[str]
    """The headings of the others, with units."""
    rows: list[tuple[list[str], list[Cell]]]
    repetitions: int
    """The most that a row has."""

    @property
    def note(self) -> str:
        """How to read it."""
        if self.repetitions < 2:
            return "The best of each column is bold."
        return (
            f"Means over up to {self.repetitions} repetitions, with intervals of {CONFIDENCE:.0%} confidence "
            "(Student's t); the best of each column is bold."
        )


def result_tables(campaign: Campaign) -> list[ResultTable]:
    """A table for each log, in the order of the plan."""
    logs: dict[str, list[FinishedRun]] = {}
    for run in campaign.finished():
        logs.setdefault(run.axes["log"], []).append(run)
    return [_table(log, runs, campaign.wanted.metrics) for log, runs in logs.items()]


def _table(log: str, runs: Sequence[FinishedRun], metrics: Sequence[str]) -> ResultTable:
    groups: dict[tuple[str, ...], list[FinishedRun]] = {}
    axes = list(dict.fromkeys(axis for run in runs for axis in run.axes if axis not in ("log", "seed")))
    axes = [axis for axis in axes if len({run.axes.get(axis) for run in runs}) > 1] or ["scheduler"]
    for run in runs:
        groups.setdefault(tuple(run.axes.get(axis, "") for axis in axes), []).append(run)
    shown = [name for name in metrics if any(name in run.metrics for run in runs)]
    columns = [_column(name, list(groups.values())) for name in shown]
    return ResultTable(
        log,
        axes,
        [heading for heading, _ in columns],
        [(list(choices), [cells[place] for _, cells in columns]) for place, choices in enumerate(groups)],
        max(map(len, groups.values())),
    )


def _column(name: str, groups: Sequence[Sequence[FinishedRun]]) -> tuple[str, list[Cell]]:
    """A heading, and a cell for each group of repetitions."""
    estimates = [estimate(name, group) for group in groups]
    form = ColumnFormat.of(name, estimates)
    means = [f"{estimate.mean / form.scale:.{form.decimals}f}" for estimate in estimates]
    best = _best(name, estimates)
    cells = [
        Cell(_text(estimate, form), best is not None and mean == means[best])
        for estimate, mean in zip(estimates, means, strict=True)
    ]
    unit = "" if form.unit in ("", "jobs") else f" ({form.unit})"
    return name.removeprefix("nb_").replace("_", " ") + unit, cells


def estimate(metric: str, repetitions: Sequence[FinishedRun]) -> Estimate:
    """The mean of a metric over the runs that have it."""
    return Estimate.of([value for run in repetitions if (value := run.metrics.get(metric)) is not None])


def _decimals(sizes: Sequence[float], exact: bool) -> int:
    """So many that the largest value has four digits and the smallest three, within reason."""
    if not sizes or (exact and all(size.is_integer() for size in sizes)):
        return 0
    largest, smallest = (floor(log10(choose(sizes))) for choose in (max, min))
    return min(max(3 - largest, 2 - smallest, 0), MOST_DECIMALS)


def _text(estimate: Estimate, form: ColumnFormat) -> str:
    if isnan(estimate.mean):
        return "-"
    mean = f"{estimate.mean / form.scale:.{form.decimals}f}"
    if estimate.half_width is None:
        return mean
    return f"{mean} ± {estimate.half_width / form.scale:.{form.decimals}f}"


def _best(name: str, estimates: Sequence[Estimate]) -> int | None:
    """The place of the best, where there is something to compare."""
    places = [place for place, estimate in enumerate(estimates) if not isnan(estimate.mean)]
    if name in NEUTRAL or len(places) < 2:
        return None
    choose = max if name in HIGHER_IS_BETTER else min
    best = choose(places, key=lambda place: estimates[place].mean)
    return None if all(estimates[place].mean == estimates[best].mean for place in places) else best


def markdown(tables: Sequence[ResultTable]) -> str:
    """The tables in Markdown."""
    parts = []
    for table in tables:
        lines = [f"### {table.log}", "", _markdown_row([*table.axes, *table.headings])]
        lines.append(_markdown_row(["---"] * len(table.axes) + ["---:"] * len(table.headings)))
        for choices, cells in table.rows:
            lines.append(_markdown_row([*choices, *(f"**{c.text}**" if c.best else c.text for c in cells)]))
        parts.append("\n".join([*lines, "", table.note]))
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def latex(tables: Sequence[ResultTable]) -> str:
    """The tables in LaTeX; they need the package booktabs."""
    return "\n".join(_latex_table(table) for table in tables)


def _latex_table(table: ResultTable) -> str:
    rows = [
        [
            *map(_escape, choices),
            *(rf"\textbf{{{_escape(c.text)}}}" if c.best else _escape(c.text) for c in cells),
        ]
        for choices, cells in table.rows
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_escape(table.log)}. {_escape(table.note)}}}",
            rf"  \begin{{tabular}}{{{'l' * len(table.axes)}{'r' * len(table.headings)}}}",
            r"    \toprule",
            rf"    {' & '.join(map(_escape, [*table.axes, *table.headings]))} \\",
            r"    \midrule",
            *(rf"    {' & '.join(row)} \\" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _escape(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text.replace("±", r"$\pm$")
