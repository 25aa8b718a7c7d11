"""A recorded schedule beside a simulated one, job by job, and the page that shows it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis.calibration import Waits, cells_of, percentiles_of
from batsched_py.analysis.calibration_page import distribution, map_of_waits
from batsched_py.analysis.job_groups import CLASSES, class_numbers
from batsched_py.analysis.pages import (
    Axis,
    Figure,
    Layer,
    Point,
    figure,
    section,
    table,
    tiles,
    time_text,
    write_figures_page,
)
from batsched_py.analysis.schedule import mean_level
from batsched_py.errors import InputError
from batsched_py.workload.swf.log import Floats

Each = TypeVar("Each")

#: The ways in which jobs are grouped.
GROUPINGS = ("class", "partition", "account", "user")

#: So many values of the utilization are computed.
STEPS = 96


class Compared(Struct, frozen=True, kw_only=True):
    """What is compared of some jobs; times are in seconds.

    A job waits from when it is eligible: not held, not before its ``--begin``, with its dependencies
    fulfilled.
    """

    waits: Waits
    deviation: float | None
    """By how much the simulated mean wait differs from the recorded one, as a share of that."""
    start_difference: float
    """The mean of how far apart the two starts of a job are."""
    median_start_difference: float
    largest_start_difference: float

    @classmethod
    def of(cls, recorded: pd.DataFrame, simulated: pd.DataFrame) -> Compared:
        """The comparison of the same jobs in two tables."""
        waits = Waits.of(*(_waits(table) for table in (recorded, simulated)))
        mean = waits.mean_recorded
        apart = np.abs(recorded["start"].to_numpy() - simulated["start"].to_numpy())
        return cls(
            waits=waits,
            deviation=(waits.mean_simulated - mean) / mean if mean > 0 else None,
            start_difference=float(apart.mean()),
            median_start_difference=float(np.median(apart)),
            largest_start_difference=float(apart.max()),
        )


class Utilization(Struct, frozen=True, kw_only=True):
    """How many cores (or nodes, where only these are known) jobs have, in equal steps of time."""

    edges: list[float]
    recorded: list[float]
    simulated: list[float]


class Comparison(Struct, frozen=True, kw_only=True):
    """A recorded schedule beside a simulated one."""

    recorded: str
    simulated: str
    only_recorded: int
    """Jobs that ran in the recording only."""
    only_simulated: int
    all: Compared
    groups: dict[str, dict[str, Compared]]
    """By class, partition, account and user, the busiest first."""
    utilization: Utilization
    percentiles: list[tuple[float, float]]
    cells: list[tuple[int, int, int]]


def compare(tables: Sequence[pd.DataFrame], names: tuple[str, str]) -> Comparison:
    """Compare the jobs that ran in both tables, the recorded one first; ``names`` tells what they are."""
    recorded, simulated = tables
    simulated = _arrays_by_last_task(simulated, recorded.index)
    both = recorded.index[recorded.index.isin(simulated.index)]
    if not len(both):
        raise InputError(f"no job ran both in {names[0]} and in {names[1]}")
    one, other = recorded.loc[both], simulated.loc[both]
    waits = _waits(one), _waits(other)
    return Comparison(
        recorded=names[0],
        simulated=names[1],
        only_recorded=len(recorded) - len(both),
        only_simulated=len(simulated) - len(both),
        all=Compared.of(one, other),
        groups={grouping: _grouped(one, other, grouping) for grouping in GROUPINGS},
        utilization=_utilization(one, other),
        percentiles=percentiles_of(*waits),
        cells=cells_of(*waits),
    )


def _arrays_by_last_task(simulated: pd.DataFrame, recorded: pd.Index) -> pd.DataFrame:
    """A recording has one line for an array, which is its last task: let that be called like the array."""
    last = {str(name).rpartition("_")[0]: name for name in simulated.index}
    return simulated.rename(index={name: array for array, name in last.items() if array in recorded})


def labels(jobs: pd.DataFrame, grouping: str) -> pd.Series:
    """The group of each job."""
    if grouping == "class":
        numbers = class_numbers((jobs["end"] - jobs["start"]).to_numpy(), jobs["size"].to_numpy())
        return pd.Series(np.array(CLASSES)[numbers], index=jobs.index)
    return jobs[grouping].astype(str)


def _grouped(recorded: pd.DataFrame, simulated: pd.DataFrame, grouping: str) -> dict[str, Compared]:
    found = {
        str(name): Compared.of(recorded.loc[jobs], simulated.loc[jobs])
        for name, jobs in recorded.groupby(labels(recorded, grouping)).groups.items()
        if name
    }
    return dict(sorted(found.items(), key=lambda item: (-item[1].waits.jobs, item[0])))


def _utilization(recorded: pd.DataFrame, simulated: pd.DataFrame) -> Utilization:
    begin = min(table["submit"].min() for table in (recorded, simulated))
    end = max(table["end"].max() for table in (recorded, simulated))
    edges = np.linspace(begin, max(end, begin + 1.0), STEPS + 1)
    sizes = recorded["size"].to_numpy(dtype=np.float64)
    levels = [
        mean_level(table["start"], table["end"], sizes, edges).tolist() for table in (recorded, simulated)
    ]
    return Utilization(edges=edges.tolist(), recorded=levels[0], simulated=levels[1])


def _waits(jobs: pd.DataFrame) -> Floats:
    waits: Floats = (jobs["start"] - jobs["eligible"]).to_numpy(dtype=np.float64)
    return np.maximum(waits, 0.0)


def usage_figure(edges: Sequence[float], levels: Mapping[str, Sequence[float]]) -> Figure:
    """How much jobs have between each two edges, for schedules by their names."""
    middles = [(begin + end) / 2 for begin, end in pairwise(edges)]
    layers = []
    for place, (name, heights) in enumerate(levels.items()):
        points = [
            Point(time, height, time_text(time), f"{name}: {height:.1f}")
            for time, height in zip(middles, heights, strict=True)
        ]
        layers.append(Layer("line", points, place, name))
    highest = max(*map(max, levels.values()), 1.0)
    return Figure(Axis("time", "s", ends=(edges[0], edges[-1])), Axis("in use", ends=(0, highest)), layers)


HEADS: Final = (
    "", "jobs", "mean wait, recorded", "simulated", "deviation", "median wait, recorded", "simulated",
    "starts apart, mean", "median", "at most",
)  # fmt: skip


def by_group(
    groups: Mapping[str, Mapping[str, Each]], heads: Sequence[str], cells: Callable[[Each], list[str]]
) -> Iterator[str]:
    """A section for each way in which jobs are grouped, with a row for each group."""
    for grouping, found in groups.items():
        note = "Jobs are short up to an hour and narrow up to eight hosts." if grouping == "class" else ""
        rows = [[html.escape(name), *cells(each)] for name, each in found.items()]
        if rows:
            yield section(f"By {grouping}", note, table("", heads, rows), layout="wide")


def write_comparison_page(path: str | Path, found: Comparison) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"{found.simulated}, simulated, beside {found.recorded}, recorded"
    header = f'<h1>{html.escape(title)}</h1>\n<div id="tiles">{_tiles(found)}</div>'
    sections = [
        section(
            "Waits",
            "If both waits were the same, all jobs would lie on the diagonal of the map. Drag across a "
            "figure to zoom in, double-click to see all of it again, hover for values.",
            figure("Share of jobs that wait no longer", "distribution"),
            figure("Jobs by both waits", "map"),
        ),
        section("Utilization", "", figure("What jobs have, over time", "utilization"), layout="wide"),
        *by_group(found.groups, HEADS, cells),
    ]
    used = found.utilization
    drawn = {
        "distribution": distribution(found.percentiles),
        "map": map_of_waits(found.cells),
        "utilization": usage_figure(used.edges, {"recorded": used.recorded, "simulated": used.simulated}),
    }
    write_figures_page(path, title, header, "".join(sections), drawn)


def cells(each: Compared) -> list[str]:
    """The cells of a row behind its name."""
    waits = each.waits
    return [
        f"{waits.jobs:,}",
        time_text(waits.mean_recorded),
        time_text(waits.mean_simulated),
        "-" if each.deviation is None else f"{each.deviation:+.1%}",
        time_text(waits.median_recorded),
        time_text(waits.median_simulated),
        time_text(each.start_difference),
        time_text(each.median_start_difference),
        time_text(each.largest_start_difference),
    ]


def _tiles(found: Comparison) -> str:
    shown = cells(found.all)
    return tiles(
        [
            ("jobs compared", shown[0], f"{found.only_recorded} and {found.only_simulated} ran in one only"),
            ("mean wait, simulated", shown[2], f"{shown[1]} recorded"),
            ("deviation of the mean wait", shown[3], ""),
            ("median wait, simulated", shown[5], f"{shown[4]} recorded"),
            ("starts apart in the mean", shown[6], f"median {shown[7]}, at most {shown[8]}"),
        ]
    )
