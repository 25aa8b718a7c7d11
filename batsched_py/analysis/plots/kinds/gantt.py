"""Gantt charts: which job ran where and when, from ten jobs to hundreds of thousands.

As long as the rectangles are few, each is drawn with an outline. Beyond that they are painted into an image
by the share of each pixel that they cover, so that dense parts stay true: a pale spot is idle time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import TELLS_USERS, RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.schedule import started
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

#: The most rectangles that are drawn one by one.
OUTLINED: Final = 3000
#: The most jobs whose names are written on them.
NAMED: Final = 60
#: The most nodes whose names are written beside them, and between which lines are drawn.
NAMED_NODES: Final = 20
LINED_NODES: Final = 200
#: Columns and rows of the image of a dense chart.
SIZE: Final = (1500, 400)
#: So many rectangles are painted at once, so that memory does not grow with their number.
PIECE: Final = 100_000
#: How many users have a colour of their own.
COLOURED_USERS: Final = 7
#: Steps of the utilization strip.
STEPS: Final = 400
#: About how large a chart is, in points.
CHART_WIDTH: Final = 450
CHART_HEIGHT: Final = 145


def rectangles(run: Run) -> pd.DataFrame:
    """What each executed job takes of the plane of time and hosts, a row for each interval of its hosts.

    One that has grown or shrunk has rows for each of its sizes.

    The columns are ``job`` (the label of its row in the schedule), ``begin``, ``end``, ``low`` and ``high``;
    the last two are such that host *h* lies between *h* and *h* + 1.
    """
    if run.intervals is None:
        raise InputError(f"{run.label}: a log does not tell on which hosts its jobs ran")
    row = run.intervals["place"].to_numpy()
    in_pieces = "begin" in run.intervals
    return pd.DataFrame(
        {
            "job": run.jobs.index.to_numpy()[row],
            "begin": run.intervals["begin"] if in_pieces else run.jobs["starting_time"].to_numpy()[row],
            "end": run.intervals["end"] if in_pieces else run.jobs["finish_time"].to_numpy()[row],
            "low": run.intervals["low"].to_numpy(float),
            "high": run.intervals["high"].to_numpy(float) + 1,
        },
        copy=False,
    )


def busiest_users(run: Run) -> list[str]:
    """The users whose jobs took the most host-seconds, busiest first; as many as there are colours for."""
    executed = started(run.replayed)
    work = (executed["execution_time"] * executed["held"]).groupby(executed["user"]).sum()
    return work.sort_values(ascending=False, kind="stable").index[:COLOURED_USERS].to_list()


@dataclass(frozen=True)
class Gantt(RunsKind):
    """A Gantt chart of each run, above the utilization of its hosts, all on the same scale of time.

    Some thousand jobs are drawn one by one. Where there are more, each pixel has the mean colour of the jobs
    in it; the paler it is, the longer its hosts were idle. Hosts that failed or were closed are hatched.
    """

    name = "gantt"
    shows = "Gantt charts: which job ran where and when, from ten jobs to hundreds of thousands."
    use_of_log: ClassVar[str] = TELLS_USERS
    shows_nodes: ClassVar[bool] = True

    colour: Annotated[Literal["job", "user"], Meta(description="What a colour stands for.")] = "job"

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        end = max(run.end for run in runs)
        unit, name = style.time_unit(end)
        users = busiest_users(runs[0]) if self.colour == "user" else []
        palette = sheet.colours(len(users) if users else 6)
        sheet.resize(0.6 + 3.0 * len(runs))
        axes = sheet.subplots(2 * len(runs), 1, sharex=True, height_ratios=[4, 1] * len(runs))
        for run, chart, strip in zip(runs, axes[::2], axes[1::2], strict=True):
            chart.set_title(run.label)
            _draw_jobs(chart, run, _colours(run.jobs, users, palette), end, unit)
            _draw_utilization(strip, run, end, unit)
        axes[-1].set_xlabel(f"time ({name})")
        axes[-1].set_xlim(0, end / unit)
        if users:
            _draw_legend(sheet, users, palette)


def _draw_jobs(chart: Axes, run: Run, of_jobs: Floats, end: float, unit: float) -> None:
    areas = rectangles(run)
    assert run.intervals is not None
    place = run.intervals["place"].to_numpy()
    chart.grid(False)
    chart.set_ylim(0, run.hosts)
    chart.set_ylabel("host")
    if run.nodes:
        _draw_nodes(chart, run)
    _draw_absences(chart, run, unit)
    if len(areas) > OUTLINED:
        extent = (0, end / unit, 0, run.hosts)
        image = gantt_image(areas, of_jobs, place, end, run.hosts)
        chart.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="none")
    else:
        _draw_outlined(chart, areas, of_jobs[place], unit)
    if len(run.jobs) <= NAMED:
        _draw_names(chart, areas, run, end, unit)


def _draw_absences(chart: Axes, run: Run, unit: float) -> None:
    from matplotlib.patches import Rectangle

    for absence in run.absences:
        for low, high in absence.hosts.runs():
            corner, width = (absence.since / unit, low), (absence.until - absence.since) / unit
            area = Rectangle(corner, width, high - low + 1, fill=False, linewidth=0, edgecolor=style.GREY)
            area.set_hatch("////" if absence.state == "closed" else "xxxx")
            chart.add_patch(area)


def _draw_nodes(chart: Axes, run: Run) -> None:
    """Rows of cores, node by node: a line between two nodes, and as many names as there is room for."""
    firsts = [*run.nodes.values(), run.hosts]
    middles = [(first + after) / 2 for first, after in pairwise(firsts)]
    named = range(0, len(middles), ceil(len(middles) / NAMED_NODES))
    chart.set_yticks([middles[place] for place in named], [list(run.nodes)[place] for place in named])
    chart.tick_params(axis="y", length=0, labelsize=6)
    chart.set_ylabel("node, core by core")
    if len(middles) <= LINED_NODES:
        chart.hlines(firsts[1:-1], 0, 1, style.GREY, linewidth=0.4, transform=chart.get_yaxis_transform())


def gantt_image(
    areas: pd.DataFrame,
    colours: Floats,
    colour_of: NDArray[np.integer[Any]],
    end: float,
    hosts: int,
    size: tuple[int, int] = SIZE,
) -> Floats:
    """A dense chart from time 0 to ``end``, host 0 in the first row, as the channels of each pixel.

    Each area has the row of ``colours`` that ``colour_of`` says.
    """
    columns, rows = size[0], min(hosts, size[1])
    x, y = columns / end, rows / hosts
    sides = (areas["begin"] * x, areas["end"] * x, areas["low"] * y, areas["high"] * y)
    left, right, bottom, top = (side.to_numpy() for side in sides)
    return paint(left, right, bottom, top, colours, colour_of, columns, rows)


def _draw_outlined(chart: Axes, areas: pd.DataFrame, colours: Floats, unit: float) -> None:
    from matplotlib.collections import PolyCollection

    x, y = areas[["begin", "end"]].to_numpy() / unit, areas[["low", "high"]].to_numpy()
    corners = np.stack([x[:, [0, 0, 1, 1]], y[:, [0, 1, 1, 0]]], axis=2)
    outlines = PolyCollection(list(corners), facecolors=colours, edgecolors=0.6 * colours, linewidths=0.3)
    chart.add_collection(outlines)


def _draw_names(chart: Axes, areas: pd.DataFrame, run: Run, end: float, unit: float) -> None:
    """Write the name of each job on its largest rectangle, where there is room."""
    order = ((areas["high"] - areas["low"]) * (areas["end"] - areas["begin"])).sort_values(kind="stable")
    for area in areas.loc[order.index].drop_duplicates("job", keep="last").itertuples():
        name = run.jobs.at[area.job, "job_id"]
        points_wide = (area.end - area.begin) / end * CHART_WIDTH
        points_high = (area.high - area.low) / run.hosts * CHART_HEIGHT
        if points_wide > 5 * len(name) and points_high > 6:
            middle = ((area.begin + area.end) / 2 / unit, (area.low + area.high) / 2)
            chart.annotate(name, middle, ha="center", va="center_baseline", fontsize=6)


def _colours(jobs: pd.DataFrame, users: Sequence[str], palette: Sequence[str]) -> Floats:
    """Red, green and blue for each row of a schedule: by its user, or else different from those beside it."""
    from matplotlib.colors import to_rgb

    if users:
        table = np.array([to_rgb(colour) for colour in (*palette, style.LIGHT_GREY)])
        return table[pd.Index(users).get_indexer(jobs["user"])]
    table = 0.45 + 0.55 * np.array([to_rgb(colour) for colour in palette])
    turn = np.empty(len(jobs), dtype=np.int64)
    turn[np.argsort(jobs["starting_time"].to_numpy(), kind="stable")] = np.arange(len(jobs))
    return table[turn % len(table)]


def _draw_utilization(strip: Axes, run: Run, end: float, unit: float) -> None:
    edges = np.linspace(0, end, STEPS + 1)
    busy = run.busy_hosts(edges) / run.hosts
    strip.stairs(100 * busy, edges / unit, fill=True, color=style.GREY, linewidth=0)
    strip.set_ylim(0, 100)
    strip.set_yticks([0, 50, 100])
    strip.set_ylabel("busy (%)")


def _draw_legend(sheet: Sheet, users: Sequence[str], palette: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=f"user {user}") for user, colour in zip(users, palette, strict=True)]
    patches.append(Patch(color=style.LIGHT_GREY, label="others"))
    sheet.legend(handles=patches, loc="outside lower center", ncols=4 if sheet.look.width == "column" else 8)


def paint(
    left: Floats,
    right: Floats,
    bottom: Floats,
    top: Floats,
    colours: Floats,
    colour_of: Integers,
    columns: int,
    rows: int,
) -> Floats:
    """A white image with these rectangles on it, as ``rows`` x ``columns`` x channels, all from 0 to 1.

    Rectangles are given in pixels, must lie inside the image and should not overlap; the bottom row comes
    first. ``colours`` has a row for each colour: red, green and blue, or a single shade of grey.
    ``colour_of`` says which row each rectangle has.
    """
    image = np.empty((rows, columns, colours.shape[1]))
    for channel in range(colours.shape[1]):
        change = np.zeros((rows + 2, columns + 2))
        for x, sign_x in ((left, 1.0), (right, -1.0)):
            for next_column in (0, 1):
                for y, sign_y in ((bottom, 1.0), (top, -1.0)):
                    for next_row in (0, 1):
                        for first in range(0, len(left), PIECE):
                            piece = slice(first, first + PIECE)
                            across, share_x = _edge(x[piece], next_column)
                            along, share_y = _edge(y[piece], next_row)
                            share = sign_x * share_x * sign_y * share_y
                            ink = 1.0 - colours[colour_of[piece], channel]
                            np.add.at(change, (along, across), share * ink)
        cover = change.cumsum(axis=0).cumsum(axis=1)
        image[:, :, channel] = 1.0 - cover[:rows, :columns]
    return image.clip(0.0, 1.0)


def _edge(position: Floats, next_pixel: int) -> tuple[NDArray[np.int64], Floats]:
    """How much coverage grows at the pixel in which something begins (0), or at the next one (1)."""
    pixel = np.floor(position).astype(np.int64)
    fraction = position - pixel
    return pixel + next_pixel, fraction if next_pixel else 1.0 - fraction
