"""The figures of a report: what each shows, and along which axes."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil, log10
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.explain import in_words as remark_in_words
from batsched_py.analysis.job_groups import CLASSES, NARROW, SHORT
from batsched_py.analysis.pages import Axis
from batsched_py.analysis.plots.kinds.ecdf import Measure
from batsched_py.analysis.plots.kinds.gantt import gantt_image, rectangles
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.report import series
from batsched_py.analysis.report.series import Curve, Floats, Subject, end_of
from batsched_py.analysis.schedule import full_ids

#: The size of an image; if there are more hosts than rows, neighbouring hosts share one.
COLUMNS: Final = 900
ROWS: Final = 100
#: The most remarks on a job; the last ones are shown.
MOST_REMARKS: Final = 3
#: Shades of grey, so that two pixels fit into a byte.
SHADES: Final = 16


def gantt(run: Run, most: int) -> dict[str, Any]:
    """The chart of a run from time 0 to its end; its jobs if they make at ``most`` so many rectangles."""
    areas = rectangles(run)
    chart: dict[str, Any] = {"hosts": run.hosts, "end": float(f"{end_of(run):.6g}")}
    if run.nodes:
        chart["nodes"] = {"names": list(run.nodes), "firsts": list(run.nodes.values())}
    if len(areas) <= most:
        return chart | _outlines(run, areas)
    return chart | {"image": base64.b64encode(_png(_shades(run, areas))).decode()}


def _outlines(run: Run, areas: pd.DataFrame) -> dict[str, Any]:
    """The jobs in the order of their starts; for each rectangle the place of its job, and its sides.

    ``remarks`` has what the policy remarked, by the places of the jobs.
    """
    jobs = run.executed.sort_values("starting_time", kind="stable")
    decimals = max(0, 6 - ceil(log10(end_of(run))))
    times = {side: areas[side].round(decimals).to_list() for side in ("begin", "end")}
    remarks = {place: run.remarks[job] for place, job in enumerate(full_ids(jobs)) if job in run.remarks}
    told = {
        place: [remark_in_words(remark) for remark in each[-MOST_REMARKS:]] for place, each in remarks.items()
    }
    return ({"remarks": told} if told else {}) | {
        "jobs": jobs["job_id"].to_list(),
        "job": jobs.index.get_indexer(areas["job"]).tolist(),
        "from": [int(time) if time.is_integer() else time for time in times["begin"]],
        "to": [int(time) if time.is_integer() else time for time in times["end"]],
        "low": areas["low"].astype(int).to_list(),
        "high": areas["high"].astype(int).to_list(),
    }


def _shades(run: Run, areas: pd.DataFrame) -> NDArray[np.uint8]:
    """Host 0 in the last row, the busier the darker."""
    black, all_of_it = np.zeros((1, 1)), np.zeros(len(areas), np.int8)
    image = gantt_image(areas, black, all_of_it, end_of(run), run.hosts, (COLUMNS, ROWS))
    return np.round((SHADES - 1) * image[::-1, :, 0]).astype(np.uint8)


def _png(shades: NDArray[np.uint8]) -> bytes:
    """A PNG file of an image in 16 shades of grey, whose rows have an even number of pixels."""
    height, width = shades.shape
    rows = np.zeros((height, 1 + width // 2), dtype=np.uint8)  # each begins with its filter, which is none
    rows[:, 1:] = shades[:, ::2] << 4 | shades[:, 1::2]
    header = struct.pack(">IIBBBBB", width, height, 4, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


@dataclass(frozen=True)
class Figure:
    """A chart of the report."""

    title: str
    about: str
    x: Axis
    y: Axis
    curve: Callable[[Subject], Curve | None]
    """None if the subject lacks what the figure shows."""
    style: Literal["line", "means", "steps", "dots"] = "line"
    """``means`` are of periods of equal length, and may be averaged further; ``steps`` rise from 0."""
    section: Literal["figures", "classes"] = "figures"
    """Where on the page it is."""


_TIME: Final = Axis("time", "s")
_JOBS: Final = Axis("share of the jobs", "%")
_USERS: Final = Axis("share of the users", "%")
_WAIT: Final = Axis("wait", "s", "symlog")
_SLOWDOWN: Final = Axis("bounded slowdown", scale="log")
_OF_USER: Final = Axis("jobs of the user", scale="log")

_OF_RUNS: Final = (
    Figure("Submissions", "when jobs are submitted", _TIME, Axis("jobs", "/s"), series.submissions, "means"),
    Figure(
        "Cumulative submissions",
        "jobs submitted up to a time",
        _TIME,
        Axis("jobs"),
        partial(series.cumulative, "submission_time"),
    ),
    Figure(
        "Cumulative terminations",
        "jobs finished up to a time",
        _TIME,
        Axis("jobs"),
        partial(series.cumulative, "finish_time"),
    ),
    Figure("Throughput", "when jobs finish", _TIME, Axis("jobs", "/s"), series.throughput, "means"),
    Figure(
        "Utilization",
        "share of the hosts that are busy",
        _TIME,
        Axis("hosts", "%"),
        series.utilization,
        "means",
    ),
    Figure("Queue", "jobs that are submitted and not started", _TIME, Axis("jobs"), series.queue),
    Figure(
        "Waiting times",
        "a share of the jobs waits at most so long",
        _JOBS,
        _WAIT,
        partial(series.quantiles, "wait"),
    ),
    Figure(
        "Bounded slowdowns",
        "a share of the jobs is slowed down at most so much",
        _JOBS,
        _SLOWDOWN,
        partial(series.quantiles, "slowdown"),
    ),
    Figure(
        "Load of a link",
        "share of its bandwidth that the most loaded link of a run carries",
        _TIME,
        Axis("load", "%"),
        series.link_load,
        "means",
    ),
    Figure("Power", "what all hosts draw", _TIME, Axis("power", "W"), series.power, "means"),
    Figure("Price", "of a kWh", _TIME, Axis("price"), partial(series.outside, "price")),
    Figure("Carbon intensity", "of a kWh", _TIME, Axis("CO2 (g)"), partial(series.outside, "carbon")),
    Figure("Power cap", "of all hosts", _TIME, Axis("power (W)"), partial(series.outside, "power_cap")),
    Figure("Temperature", "outside", _TIME, Axis("temperature (°C)"), partial(series.outside, "temperature")),
    Figure(
        "Submissions by week and hour",
        "jobs in each hour, all weeks taken together",
        Axis("hour of the week", "week"),
        Axis("jobs"),
        series.hours_of_week,
    ),
    Figure(
        "User arrivals",
        "users who have submitted up to a time",
        _TIME,
        Axis("users"),
        series.arrivals,
        "steps",
    ),
    Figure(
        "Differences of submission times",
        "a share of the jobs is submitted at most so late",
        _JOBS,
        Axis("later than recorded", "s", "symlog"),
        series.differences,
    ),
    Figure(
        "Mean lateness of users",
        "a dot for each user",
        _OF_USER,
        Axis("mean lateness", "s", "symlog"),
        partial(series.lateness_of_users, "mean_lateness"),
        "dots",
    ),
    Figure(
        "Additional lateness of users",
        "a dot for each user",
        _OF_USER,
        Axis("additional lateness", "s", "symlog"),
        partial(series.lateness_of_users, "additional_lateness"),
        "dots",
    ),
    Figure(
        "Additional lateness by size",
        "a dot for each run",
        Axis("jobs of the run"),
        Axis("additional lateness", "s"),
        series.lateness_by_size,
        "dots",
    ),
    Figure(
        "Longest paths",
        "users whose session graph has no longer path",
        Axis("sessions on the longest path", scale="log"),
        _USERS,
        partial(series.share_of_users, "longest_path"),
        "steps",
    ),
    Figure(
        "Arities",
        "users whose session graph has no larger arity",
        Axis("arity"),
        _USERS,
        partial(series.share_of_users, "arity"),
        "steps",
    ),
)

_LIMITS: Final = {
    "short": f"run time up to {SHORT / 3600:g} h",
    "long": f"run time above {SHORT / 3600:g} h",
    "narrow": f"up to {NARROW} hosts",
    "wide": f"more than {NARROW} hosts",
}


def _by_class(title: str, x: Axis, measure: Measure) -> Iterator[Figure]:
    """How something is distributed over the jobs of each class."""
    for name in CLASSES:
        about = ", ".join(_LIMITS[word] for word in name.split(", "))
        curve = partial(series.share_of_class, name, measure)
        yield Figure(f"{title}: {name}", about, x, _JOBS, curve, "steps", "classes")


FIGURES: Final = (
    *_OF_RUNS,
    *_by_class("Waiting times", _WAIT, "wait"),
    *_by_class("Bounded slowdowns", _SLOWDOWN, "slowdown"),
)


def descriptions() -> list[dict[str, Any]]:
    """All that the page needs to know of the figures, besides their curves."""
    shown = ("title", "about", "x", "y", "style", "section")
    return [{name: msgspec.to_builtins(getattr(figure, name)) for name in shown} for figure in FIGURES]


def curves(subject: Subject) -> dict[str, list[list[float]]]:
    """The points of a subject, by the title of each figure that it can be in, as short as JSON allows."""
    drawn = ((figure.title, figure.curve(subject)) for figure in FIGURES)
    return {title: [_short(curve.x), _short(curve.y)] for title, curve in drawn if curve is not None}


def _short(values: Floats) -> list[float]:
    """The values to six digits, whole ones without a point."""
    rounded = (float(f"{value:.6g}") for value in values.tolist())
    return [int(value) if value.is_integer() else value for value in rounded]
