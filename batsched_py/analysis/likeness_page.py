"""A log beside logs of models on one page: what `batsched-py compare -o` writes."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis.pages import Axis, Figure, Layer, Point, figure, section, table, write_figures_page
from batsched_py.workload.description.jobs import characterised, contiguous_bags, repeat_gaps, requested
from batsched_py.workload.swf.log import SwfLog

TIMES: Final = (
    (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (86400, "1 d"), (604800, "1 w"),
)  # fmt: skip
POWERS: Final = tuple((2**power, f"{2**power:,}") for power in range(0, 20, 2))
#: So many points of a distribution, and so many jobs of a scatter plot, are drawn.
_POINTS: Final = 200
_JOBS: Final = 2000


def all_figures(logs: Mapping[str, SwfLog]) -> dict[str, Figure]:
    """The figures by their names; ``logs`` has the log first, then one of each model."""
    jobs = {name: characterised(log) for name, log in logs.items()}
    bags = {name: contiguous_bags(log) for name, log in jobs.items()}
    several = {name: each.sizes > 1 for name, each in bags.items()}
    durations = {
        name: (each.last(jobs[name].submit) - each.first(jobs[name].submit))[several[name]]
        for name, each in bags.items()
    }
    run_times = {name: each.means(jobs[name].run_time)[several[name]] for name, each in bags.items()}
    time = Axis("time", scale="log", ticks=TIMES)
    return {
        **{f"shapes_{place}": _shapes(log, place) for place, log in enumerate(jobs.values())},
        "gaps": _distributions({name: repeat_gaps(log) for name, log in jobs.items()}, time),
        "durations": _distributions(durations, time),
        "bag_sizes": _distributions(
            {name: each.sizes for name, each in bags.items()},
            Axis("jobs of a bag", scale="log", ticks=POWERS),
            above=True,
        ),
        "bag_run_times": _distributions(
            run_times, Axis("mean run time", scale="log", ticks=TIMES), above=True
        ),
    }


def _shapes(jobs: SwfLog, colour: int) -> Figure:
    """Sizes and run times of some of the jobs, evenly spaced."""
    some = jobs.select(np.unique(np.linspace(0, len(jobs) - 1, _JOBS).astype(np.int64)))
    pairs = zip(requested(some).tolist(), some.run_time.tolist(), strict=True)
    dots = [Point(size, run_time) for size, run_time in pairs]
    return Figure(
        Axis("processors", scale="log", ends=(1, max(2.0, *(dot.x for dot in dots))), ticks=POWERS),
        Axis("run time", scale="log", ends=(1, max(10.0, *(dot.y for dot in dots))), ticks=TIMES),
        [Layer("dots", dots, colour)],
    )


def _distributions(samples: Mapping[str, NDArray[Any]], x: Axis, above: bool = False) -> Figure:
    """What share of the values is at most so large, or at least, on scales that show rare ones."""
    layers, largest, least = [], 10.0, 0.5
    for colour, (name, values) in enumerate(samples.items()):
        if len(values):
            points = _tail(values) if above else _cumulated(values)
            layers.append(Layer("line", points, colour, name))
            largest, least = max(largest, points[-1].x), min(least, points[-1].y)
    share = Axis("share", scale="log", ends=(least, 1)) if above else Axis("share", "%", ends=(0, 100))
    return Figure(Axis(x.label, x.unit, x.scale, (1, largest), x.ticks), share, layers)


def _cumulated(values: NDArray[Any]) -> list[Point]:
    ranks = np.linspace(0, 100, _POINTS)
    found = np.maximum(np.percentile(values, ranks), 1)
    return [
        Point(float(x), float(y), f"{y:.0f} %", f"at most {x:,.0f}")
        for x, y in zip(found, ranks, strict=True)
    ]


def _tail(values: NDArray[Any]) -> list[Point]:
    found = np.sort(np.maximum(values, 1))
    shares = 1 - np.arange(len(found)) / len(found)
    places = np.unique((len(found) - np.geomspace(len(found), 1, _POINTS)).astype(np.int64))
    return [
        Point(
            float(found[place]), float(shares[place]), f"{shares[place]:.2%}", f"at least {found[place]:,.0f}"
        )
        for place in places.tolist()
    ]


def write_likeness_page(
    path: str | Path,
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    logs: Mapping[str, SwfLog],
) -> None:
    """Write the page: the table of all checks, and figures of the log beside one log of each model."""
    sections = [
        section(
            "Checks",
            "The mean over all seeds and, in brackets, the largest distance to the log. A cross says that "
            "some seed is farther away than is tolerated. KS is the Kolmogorov-Smirnov distance.",
            table("", heads, [[html.escape(cell) for cell in row] for row in rows]),
            layout="wide",
        ),
        section(
            "Sizes and run times",
            "Up to 2,000 jobs of the log, and of the first log of each model (figure 1 of Minh and Wolters).",
            *(figure(name, f"shapes_{place}") for place, name in enumerate(logs)),
        ),
        section(
            "Bags of tasks",
            "Times between successive similar jobs, and how long it takes to submit a bag (figures 2 and 3): "
            "the share that is at most so long. Jobs of a bag and its mean run time (figure 5): the share "
            "that is at least so large. All but the sizes are of bags of two jobs or more.",
            figure("Times between similar jobs", "gaps"),
            figure("Submitting a bag", "durations"),
            figure("Jobs of a bag", "bag_sizes"),
            figure("Mean run time of a bag", "bag_run_times"),
        ),
    ]
    header = f"<h1>{html.escape(title)}</h1>"
    write_figures_page(path, title, header, "".join(sections), all_figures(logs))
