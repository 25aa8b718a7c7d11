"""Results as one compact table for a paper: the choices on one axis, such as loads or users, in columns.

A cell has a mean with its interval, and stars where it differs from the baseline.
"""

from collections.abc import Iterator

from batsched_py.analysis.runs import CONFIDENCE, FEWEST, SIGNIFICANT
from batsched_py.analysis.runs.aggregate import Aggregate
from batsched_py.analysis.runs.columns import ColumnFormat, column_of
from batsched_py.analysis.runs.comparisons import best_rows
from batsched_py.analysis.runs.tables import (
    UNSTABLE,
    Cell,
    ResultTable,
    cell_text,
    reached_loads,
    said_of,
    stars_of,
    title_of,
)
from batsched_py.errors import InputError


class PivotTable(ResultTable, frozen=True):
    """A table of one metric, which is its name, whose columns are the choices on an axis."""

    column_axis: str = ""
    baseline_axis: str = ""

    @property
    def parts(self) -> list[str]:
        """What its columns show: each choice."""
        return [heading.removeprefix(f"{self.column_axis} ") for heading in self.headings]

    @property
    def fits_one_page(self) -> bool:
        """It is one table if smaller letters allow it."""
        return True

    def heading_of(self, place: int) -> str:
        """What stands above all columns."""
        return self.column_axis

    def _of_best(self) -> str:
        if self.units >= FEWEST and not self.pooled:
            return (
                f"Intervals have {CONFIDENCE:.0%} confidence (Student's t, within the possible values). Bold "
                "is the best of the policies under the same conditions, and what cannot be told from it "
                "(t-test of pairs, Holm)."
            )
        return "Bold is the best mean of the policies under the same conditions; it is not tested."

    def _of_differences(self) -> Iterator[str]:
        if self.tests:
            yield (
                f"Stars mark differences to the {self.baseline_axis} {self.baseline}, over pairs that have "
                f"all else in common: * is p < {SIGNIFICANT:g}, ** p < 0.01, *** p < 0.001 in Student's "
                f"two-sided t-test for pairs, by Holm's method over the {self.tests} tests of the table; (s) "
                "stands where the sign test does not agree (p >= 0.05)."
            )
        elif self.baseline:
            yield f"Differences to the {self.baseline_axis} {self.baseline} are not tested."


def pivoted(results: Aggregate, axis: str) -> list[PivotTable]:
    """A table for each metric, with the choices on one of the axes of the results in columns."""
    groups = [group for group, _ in results.rows]
    rows = [each for each in results.by if each != axis]
    if not rows:
        raise InputError(f"nothing but the {axis} tells results apart, so there is nothing for rows to show")
    choices = list(dict.fromkeys(group.axes[axis] for group in groups))
    places: dict[tuple[str, ...], dict[str, int]] = {}
    for number, group in enumerate(groups):
        places.setdefault(tuple(group.axes[each] for each in rows), {})[group.axes[axis]] = number
    said = said_of(results, range(len(groups)))
    is_of_one_log = len({group.axes.get("log") for group in groups}) == 1
    unstable = [f"{', '.join(group.axes.values())}: {group.unstable}" for group in groups if group.unstable]
    tables = []
    for metric in results.metrics:
        estimates = [found[metric].estimate for _, found in results.rows]
        form = ColumnFormat.of(column_of(metric, results.own).unit, estimates)
        cells = _cells(metric, results, form)
        shown = [
            (list(row), [cells[numbers[each]] if each in numbers else Cell("") for each in choices])
            for row, numbers in places.items()
        ]
        table = PivotTable(
            title_of(metric, form),
            rows,
            [f"{axis} {each or 'none'}" for each in choices],
            shown,
            **said,
            unstable=unstable,
            reached=reached_loads(groups) if is_of_one_log else {},
            column_axis=axis,
            baseline_axis="" if results.baseline is None else results.baseline.axis,
        )
        tables.append(table)
    return tables


def _cells(metric: str, results: Aggregate, form: ColumnFormat) -> list[Cell]:
    """The cell of each row of the results."""
    best = best_rows(metric, results)
    cells = []
    for number, (group, measured) in enumerate(results.rows):
        mark = UNSTABLE if group.unstable else stars_of(measured[metric])
        cells.append(Cell(cell_text(measured[metric].estimate, form) + mark, number in best))
    return cells
