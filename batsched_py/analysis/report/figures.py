"""The figures of a report: what each shows, along which axes, and the curves of a run in it.

These are thinned out to what a screen can show.
"""

import base64
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, log2, log10
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.explain import in_words as remark_in_words
from batsched_py.analysis.outcome import queue_length
from batsched_py.analysis.pages import Axis
from batsched_py.analysis.plots.kinds import submitters
from batsched_py.analysis.plots.kinds.distributions import Measure, job_classes, measured
from batsched_py.analysis.plots.kinds.gantt import gantt_image, rectangles
from batsched_py.analysis.plots.kinds.over_time import cumulative_jobs, submissions_per_period
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.schedule import INSTANT, full_ids
from batsched_py.errors import InputError
from batsched_py.workload.description.jobs import CLASSES, NARROW, SHORT

Floats = NDArray[np.float64]

#: Points of a curve over time.
POINTS: Final = 240
#: The most periods of a curve that counts what happens in each of them.
PERIODS: Final = 500
DAY: Final = 86400.0


@dataclass(frozen=True, eq=False)
class Subject:
    """What figures show: a run, and the sessions of the log that it replays."""

    run: Run
    graphs: pd.DataFrame | None = None
    """The users' session graphs, as ``graph_statistics`` has them."""

    @cached_property
    def users(self) -> pd.DataFrame | None:
        """How late each user is; None if no user is late or if that is unknown."""
        return submitters.user_lateness(self.run) if _is_late(self.run) else None

    @cached_property
    def measured(self) -> dict[Measure, Floats]:
        """For each measure that figures show, its value for each executed job."""
        return {measure: measured(self.run, measure).to_numpy() for measure in ("wait", "slowdown")}

    @cached_property
    def of_class(self) -> dict[str, NDArray[np.bool_]]:
        """Which of the executed jobs are of each class."""
        classes = job_classes(self.run)
        return {name: (classes == name).to_numpy() for name in CLASSES}


@dataclass(frozen=True, eq=False)
class Curve:
    """The points of a subject in a figure."""

    x: Floats
    """Of each point; or only of the first and the last one, when all are at equal distances."""
    y: Floats


def end_of(run: Run) -> float:
    """When the last job has been submitted and the last one has finished, after a second at least."""
    return max(1.0, run.end, float(run.jobs["submission_time"].max()))


def cumulative(column: str, subject: Subject) -> Curve:
    """How many jobs have been submitted or have finished, as the column says, by each time."""
    times = np.linspace(0.0, end_of(subject.run), POINTS)
    counts = cumulative_jobs([subject.run], column, times)[subject.run.label]
    return Curve(times[[0, -1]], counts.to_numpy(float))


def _periods(run: Run) -> Floats:
    """The edges of periods of equal length that cover a run.

    A period is a day, halved or doubled as often as it takes. So those of different runs fit into each
    other, and the page can join them until they are wide enough to see.
    """
    period = DAY * 2.0 ** ceil(log2(end_of(run) / PERIODS / DAY))
    return period * np.arange(1.0 + ceil(end_of(run) / period))


def _means(edges: Floats, means: Floats) -> Curve:
    """A curve through the middles of the periods between these edges."""
    return Curve((edges[:-1] + edges[1:])[[0, -1]] / 2, means)


def submissions(subject: Subject) -> Curve:
    """Submissions per second, in each period."""
    period = float(_periods(subject.run)[1])
    counts = submissions_per_period([subject.run], period)[subject.run.label].to_numpy(float)
    return _means(period * np.arange(1.0 + len(counts)), counts / period)


def throughput(subject: Subject) -> Curve:
    """Jobs that finish per second, in each period."""
    edges = _periods(subject.run)
    finished = cumulative_jobs([subject.run], "finish_time", edges)[subject.run.label]
    return _means(edges, np.diff(finished) / edges[1])


def utilization(subject: Subject) -> Curve:
    """The busy hosts in each period, in percent."""
    edges = _periods(subject.run)
    return _means(edges, 100 * subject.run.busy_hosts(edges) / subject.run.hosts)


def queue(subject: Subject) -> Curve:
    """The length of the queue."""
    queue = queue_length(subject.run.jobs)
    times = np.linspace(0.0, end_of(subject.run), POINTS)
    place = np.searchsorted(queue.index, times, side="right") - 1
    return Curve(times[[0, -1]], np.where(place >= 0, queue.to_numpy()[place], 0).astype(float))


def arrivals(subject: Subject) -> Curve | None:
    """How many users have submitted a job by each time."""
    if "user" not in subject.run.jobs:
        return None
    times = submitters.user_arrivals(subject.run).to_numpy(float)
    return Curve(times, np.arange(1.0, len(times) + 1))


def _quantiles(values: Floats) -> Curve:
    return Curve(np.array([0.0, 100.0]), np.percentile(values, np.arange(101)))


def quantiles(measure: Measure, subject: Subject) -> Curve:
    """The quantiles of a measure over the jobs."""
    return _quantiles(subject.measured[measure])


def power(subject: Subject) -> Curve | None:
    """The power that all hosts draw, in each period."""
    if subject.run.energy is None:
        return None
    edges = _periods(subject.run)
    return _means(edges, subject.run.mean_power(edges))


def link_load(subject: Subject) -> Curve | None:
    """The load of the most loaded link in each period, in percent."""
    carried = subject.run.carried
    most = None if carried is None else carried.most_loaded("link", 1)
    if carried is None or most is None or most.empty:
        return None
    edges = _periods(subject.run)
    flow = carried.mean_flow("link", most["name"].iloc[0], edges)
    return _means(edges, 100 * flow / most["capacity"].iloc[0])


def outside(name: str, subject: Subject) -> Curve | None:
    """A price, a carbon intensity or a temperature."""
    known = subject.run.outside.get(name)
    if known is None:
        return None
    times = np.linspace(0.0, end_of(subject.run), POINTS)
    place = np.maximum(np.searchsorted(known.index, times, side="right") - 1, 0)
    return Curve(times[[0, -1]], known.to_numpy(float)[place])


def _is_late(run: Run) -> bool:
    """Whether some job is not submitted when it was recorded, by more than the digits of a schedule tell."""
    return "lateness" in run.jobs and bool((run.jobs["lateness"].abs() > INSTANT).any())


def differences(subject: Subject) -> Curve | None:
    """The quantiles of how much later than recorded jobs are submitted."""
    return _quantiles(subject.run.jobs["lateness"].to_numpy()) if _is_late(subject.run) else None


def hours_of_week(subject: Subject) -> Curve | None:
    """Submissions in each hour of the week."""
    if subject.run.log is None:
        return None
    try:
        counts = submitters.submissions_by_hour_of_week([subject.run])[subject.run.label]
    except InputError:  # the log does not say on which day it began
        return None
    return Curve(np.array([0.5, len(counts) - 0.5]), counts.to_numpy(float))


def lateness_of_users(column: str, subject: Subject) -> Curve | None:
    """A kind of lateness of each user, by how many jobs the user has."""
    if subject.users is None:
        return None
    users = subject.users.dropna(subset=column)
    return Curve(users["jobs"].to_numpy(float), users[column].to_numpy())


def lateness_by_size(subject: Subject) -> Curve | None:
    """The additional lateness of the run, by its number of jobs."""
    if not _is_late(subject.run):
        return None
    table = submitters.additional_lateness_by_size([subject.run])
    return Curve(table["jobs"].to_numpy(float), table["additional_lateness"].to_numpy())


def share_of_users(column: str, subject: Subject) -> Curve | None:
    """How a figure of session graphs is distributed over the users."""
    return None if subject.graphs is None else _shares(subject.graphs[column].to_numpy(float))


def share_of_class(job_class: str, measure: Measure, subject: Subject) -> Curve | None:
    """How a measure is distributed over the jobs of a class."""
    return _shares(subject.measured[measure][subject.of_class[job_class]])


def _shares(values: Floats) -> Curve | None:
    """At each value, the share of those that are not larger; a percent further at each point, or more."""
    if not len(values):
        return None
    distinct, counts = np.unique(values, return_counts=True)
    share = 100 * counts.cumsum() / len(values)
    shown = np.unique(np.searchsorted(share, np.arange(101.0)))
    return Curve(distinct[shown], share[shown])


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
    Figure("Submissions", "when jobs are submitted", _TIME, Axis("jobs", "/s"), submissions, "means"),
    *(
        Figure(
            f"Cumulative {what}",
            f"jobs {done} up to a time",
            _TIME,
            Axis("jobs"),
            partial(cumulative, column),
        )
        for what, done, column in (
            ("submissions", "submitted", "submission_time"),
            ("terminations", "finished", "finish_time"),
        )
    ),
    Figure("Throughput", "when jobs finish", _TIME, Axis("jobs", "/s"), throughput, "means"),
    Figure(
        "Utilization",
        "share of the hosts that are busy",
        _TIME,
        Axis("hosts", "%"),
        utilization,
        "means",
    ),
    Figure("Queue", "jobs that are submitted and not started", _TIME, Axis("jobs"), queue),
    Figure(
        "Waiting times",
        "a share of the jobs waits at most so long",
        _JOBS,
        _WAIT,
        partial(quantiles, "wait"),
    ),
    Figure(
        "Bounded slowdowns",
        "a share of the jobs is slowed down at most so much",
        _JOBS,
        _SLOWDOWN,
        partial(quantiles, "slowdown"),
    ),
    Figure(
        "Load of a link",
        "share of its bandwidth that the most loaded link of a run carries",
        _TIME,
        Axis("load", "%"),
        link_load,
        "means",
    ),
    Figure("Power", "what all hosts draw", _TIME, Axis("power", "W"), power, "means"),
    Figure("Price", "of a kWh", _TIME, Axis("price"), partial(outside, "price")),
    Figure("Carbon intensity", "of a kWh", _TIME, Axis("CO2 (g)"), partial(outside, "carbon")),
    Figure("Power cap", "of all hosts", _TIME, Axis("power (W)"), partial(outside, "power_cap")),
    Figure("Temperature", "outside", _TIME, Axis("temperature (°C)"), partial(outside, "temperature")),
    Figure(
        "Submissions by week and hour",
        "jobs in each hour, all weeks taken together",
        Axis("hour of the week", "week"),
        Axis("jobs"),
        hours_of_week,
    ),
    Figure("User arrivals", "users who have submitted up to a time", _TIME, Axis("users"), arrivals, "steps"),
    Figure(
        "Differences of submission times",
        "a share of the jobs is submitted at most so late",
        _JOBS,
        Axis("later than recorded", "s", "symlog"),
        differences,
    ),
    *(
        Figure(
            f"{kind.capitalize()} lateness of users",
            "a dot for each user",
            _OF_USER,
            Axis(f"{kind} lateness", "s", "symlog"),
            partial(lateness_of_users, f"{kind}_lateness"),
            "dots",
        )
        for kind in ("mean", "additional")
    ),
    Figure(
        "Additional lateness by size",
        "a dot for each run",
        Axis("jobs of the run"),
        Axis("additional lateness", "s"),
        lateness_by_size,
        "dots",
    ),
    Figure(
        "Longest paths",
        "users whose session graph has no longer path",
        Axis("sessions on the longest path", scale="log"),
        _USERS,
        partial(share_of_users, "longest_path"),
        "steps",
    ),
    Figure(
        "Arities",
        "users whose session graph has no larger arity",
        Axis("arity"),
        _USERS,
        partial(share_of_users, "arity"),
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
        curve = partial(share_of_class, name, measure)
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
