"""Means of a campaign as figures for a paper: a panel for each experiment, a row for each scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.sheet import Sheet
from batsched_py.analysis.plots.style import BLACK, PALETTE
from batsched_py.analysis.runs import CONFIDENCE, FEWEST
from batsched_py.analysis.runs.aggregate import Aggregate, Group, Measured, MeasuredRun
from batsched_py.analysis.runs.columns import ColumnFormat, column_of
from batsched_py.analysis.runs.tables import dependence_of, latex_text, stars_of, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What tells rows apart; the other axes tell panels apart.
_ROW_AXES: Final = ("scheduler", "allocator")

_MARKERS: Final = ("o", "s", "^", "D")

_CAPTION = r"""\begin{{figure*}}
  \centering
  \includegraphics{{{file}}}
  \caption{{{caption}}}
\end{{figure*}}
"""


class Row(NamedTuple):
    """A mean in a panel."""

    name: str
    measured: Measured
    is_unstable: bool


class MeanFigures:
    """A figure for each metric of an aggregate, in which a scheduler has the same colour everywhere."""

    def __init__(self, results: Aggregate) -> None:
        self._results = results
        names = dict.fromkeys(_name(group) for group, _ in results.rows)
        self._looks = {
            name: {"color": PALETTE[n % len(PALETTE)], "marker": _MARKERS[n // len(PALETTE) % len(_MARKERS)]}
            for n, name in enumerate(names)
        }

    def draw(self, metric: str) -> Sheet:
        """The means of a metric with their intervals; stars tell what differs from the baseline."""
        panels, form = self._panels(metric), self._form(metric)
        shown = {row.name for rows in panels.values() for row in rows}
        names = [name for name in self._looks if name in shown]
        sheet = Sheet(style.PAGE)
        with sheet.styled():
            axes = sheet.panels(list(panels), columns=3, height=0.6 + 0.2 * len(names))
            for panel, rows in zip(axes, panels.values(), strict=True):
                for row in rows:
                    _draw_row(panel, names.index(row.name), row, self._looks[row.name], form.scale)
                style.plain_numbers(panel.xaxis)
            axes[0].set_yticks(range(len(names)), names)
            axes[0].set_ylim(len(names) - 0.4, -0.6)
            if all(row.measured.estimate.mean >= 0 for rows in panels.values() for row in rows):
                axes[0].set_xlim(left=0)
            sheet.supxlabel(title_of(metric, form))
        return sheet

    def captions(self, metrics: Sequence[str]) -> str:
        """LaTeX that shows the figures, each above what tells how to read it."""
        return "\n".join(
            _CAPTION.format(file=f"{metric}.pdf", caption=latex_text(self.caption(metric)))
            for metric in metrics
        )

    def caption(self, metric: str) -> str:
        """How to read the figure of a metric: over how many means are, the interval, the correction."""
        results, rows = self._results, [row for rows in self._panels(metric).values() for row in rows]
        units = sorted({row.measured.units for row in rows})
        title = title_of(metric, self._form(metric)).capitalize()
        if results.pooled:
            said = [f"{title}: means over different experiments, so without intervals and tests."]
        elif units[-1] < FEWEST:
            said = [f"{title}: over fewer than {FEWEST} {results.unit}s, so no interval is given."]
        else:
            counts = f"{units[0]} to {units[-1]}" if len(units) > 1 else f"{units[0]}"
            said = [
                f"{title}: means over n = {counts} {results.unit}s, with {CONFIDENCE:.0%} confidence "
                "intervals (Student's t, within the possible values)."
            ]
        if about := dependence_of([row.measured for row in rows]):
            said.append(about)
        if results.baseline is not None and results.nb_tests:
            said.append(
                f"Stars mark differences to {results.baseline.name}: * p < 0.05, ** p < 0.01, *** p < 0.001 "
                f"in the t-test for pairs, corrected by Holm's method over {results.nb_tests} tests."
            )
        if any(row.is_unstable for row in rows):
            said.append("A cross marks what has no steady state.")
        return " ".join([*said, *([f"Measured: {results.window}."] if results.window else [])])

    def _panels(self, metric: str) -> dict[str, list[Row]]:
        panels: dict[str, list[Row]] = {}
        for group, measured in self._results.rows:
            if metric in measured and not isnan(measured[metric].estimate.mean):
                row = Row(_name(group), measured[metric], bool(group.unstable))
                panels.setdefault(self._title(group), []).append(row)
        return panels

    def _title(self, group: Group[MeasuredRun]) -> str:
        axes = group.runs[0].axes
        shown = [axis for axis in self._results.by if axis not in _ROW_AXES and axis in axes]
        return ", ".join(f"load {axes[axis]}" if axis == "load" else axes[axis] for axis in shown)

    def _form(self, metric: str) -> ColumnFormat:
        estimates = [row.measured.estimate for rows in self._panels(metric).values() for row in rows]
        return ColumnFormat.of(column_of(metric, self._results.own).unit, estimates)


def _name(group: Group[MeasuredRun]) -> str:
    axes = group.runs[0].axes
    return " ".join(axes[axis] for axis in _ROW_AXES if axis in axes)


def _draw_row(panel: Axes, place: int, row: Row, look: Mapping[str, Any], scale: float) -> None:
    """A mean with its interval, and its stars above the point."""
    mean, low, high = (
        None if each is None else each / scale
        for each in (row.measured.estimate.mean, row.measured.estimate.low, row.measured.estimate.high)
    )
    assert mean is not None
    if low is not None and high is not None:
        panel.plot([low, high], [place, place], color=look["color"], linewidth=1.6)
    panel.plot([mean], [place], linestyle="", markersize=4.5, **look)
    if row.is_unstable:
        panel.plot([mean], [place], "x", color=BLACK, markersize=8)
    if stars := stars_of(row.measured):
        panel.annotate(stars, (mean, place), (0, 3), textcoords="offset points", ha="center", fontsize=7)
