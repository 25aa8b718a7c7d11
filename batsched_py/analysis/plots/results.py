"""Tables of results, as figures look at them: which columns are axes, and what is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pandas as pd

from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.plots import style
from batsched_py.errors import InputError

#: Axes along which a run repeats the same experiment.
REPEATED: Final = ("seed", "part")

_UNITS: Final = {metric.name: metric.unit for metric in METRICS}


def check_columns(table: pd.DataFrame, *names: str) -> None:
    """Raise an error for a column that is missing."""
    for name in names:
        if name not in table:
            raise InputError(
                f"the table of results has no column {name!r}; it has {', '.join(table.columns)}"
            )
    if table.empty:
        raise InputError("the table of results is empty, so there is nothing to show")


def by_log(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The part of a table for each log."""
    if "log" not in table:
        return {"": table}
    return {str(log): part for log, part in table.groupby("log", sort=False)}


def configurations(table: pd.DataFrame, *other: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """What is compared, by name: the combinations of all axes on which rows differ, but for some.

    Logs and repetitions are never among these axes.
    """
    common = {"run", "log", *REPEATED, *other, *_UNITS}
    axes = [column for column in table if column not in common and table[column].nunique(dropna=False) > 1]
    if not axes:
        yield str(table["scheduler"].iloc[0]) if "scheduler" in table else "all runs", table
        return
    for values, part in table.groupby(axes, sort=False, dropna=False):
        yield ", ".join(str(value) for value in values if not pd.isna(value)), part


def in_unit(table: pd.DataFrame, metric: str) -> tuple[float, str]:
    """What values of a metric are divided by to be shown, and the label with the unit that they have then."""
    unit, label = _UNITS.get(metric, ""), metric.removeprefix("nb_").replace("_", " ")
    if unit == "s":
        seconds, unit = style.time_unit(float(table[metric].abs().max()))
        return seconds, f"{label} ({unit})"
    return 1.0, f"{label} ({unit})" if unit else label
