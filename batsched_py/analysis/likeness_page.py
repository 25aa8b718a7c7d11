"""A log beside logs of models on one page: what `batsched-py compare --output` writes."""

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis.pages import Axis, Figure, Layer, Point, figure, section, table, write_figures_page
from batsched_py.workload.description.jobs import contiguous_bags, jobs_that_ran, repeat_gaps, requested
from batsched_py.workload.description.over_time import SCALES, temporal_entropy
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
    jobs = {name: jobs_that_ran(log) for name, log in logs.items()}
    sizes, durations, run_times = {}, {}, {}
    for name, log in jobs.items():
        bags = contiguous_bags(log)
        several = bags.sizes > 1
        sizes[name] = bags.sizes
        durations[name] = (bags.last(log.submit) - bags.first(log.submit))[several]
        run_times[name] = bags.means(log.run_time)[several]
    time, mean = (Axis(label, scale="log", ticks=TIMES) for label in ("time", "mean run time"))
    size = Axis("jobs of a bag", scale="log", ticks=POWERS)
    return {
        **{f"shapes_{place}": _shapes(log, place) for place, log in enumerate(jobs.values())},
        "gaps": _distributions({name: repeat_gaps(log) for name, log in jobs.items()}, time),
        "durations": _distributions(durations, time),
        "bag_sizes": _distributions(sizes, size, above=True),
        "bag_run_times": _distributions(run_times, mean, above=True),
        "entropies": _entropies(jobs),
        "run_times": _distributions(
            {name: log.run_time for name, log in jobs.items()}, Axis("run time", scale="log", ticks=TIMES)
        ),
        "sizes": _distributions(
            {name: requested(log) for name, log in jobs.items()},
            Axis("processors", scale="log", ticks=POWERS),
        ),
    }


def _shapes(jobs: SwfLog, colour: int) -> Figure:
    """Sizes and run times of some of the jobs, evenly spaced."""
    some = jobs.select(np.unique(np.linspace(0, len(jobs) - 1, _JOBS).astype(np.int64)))
    pairs = zip(requested(some).tolist(), np.maximum(some.run_time, 1).tolist(), strict=True)
    dots = [Point(size, run_time) for size, run_time in pairs]
    return Figure(
        Axis("processors", scale="log", ends=(1, max(2.0, *(dot.x for dot in dots))), ticks=POWERS),
        Axis("run time", scale="log", ends=(1, max(10.0, *(dot.y for dot in dots))), ticks=TIMES),
        [Layer("dots", dots, colour)],
    )


def _entropies(jobs: Mapping[str, SwfLog]) -> Figure:
    """Temporal burstiness over scales; arrivals that are spread evenly have 1."""
    layers = []
    for colour, (name, log) in enumerate(jobs.items()):
        found = {scale: temporal_entropy(log.submit, length) for scale, length in SCALES.items()}
        points = [Point(SCALES[scale], value, scale, f"{value:.3f}") for scale, value in found.items()]
        layers += [Layer("line", points, colour, name), Layer("dots", points, colour)]
    least = min(mark.y for layer in layers for mark in layer.marks if isinstance(mark, Point))
    return Figure(
        Axis("interval", scale="log", ends=(45, 115_000), ticks=[(x, name) for name, x in SCALES.items()]),
        Axis("normalised entropy", ends=(min(0.7, least) - 0.02, 1.03)),
        layers,
    )


def _distributions(samples: Mapping[str, NDArray[Any]], x: Axis, above: bool = False) -> Figure:
    """What share of the values is at most so large, or at least, on scales that show rare ones."""
    layers, largest, least = [], 10.0, 0.5
    for colour, (name, values) in enumerate(samples.items()):
        if len(values):
            points = list(_tail(values) if above else _cumulated(values))
            layers.append(Layer("line", points, colour, name))
            largest, least = max(largest, points[-1].x), min(least, points[-1].y)
    share = Axis("share", scale="log", ends=(least, 1)) if above else Axis("share", "%", ends=(0, 100))
    return Figure(Axis(x.label, x.unit, x.scale, (1, largest), x.ticks), share, layers)


def _cumulated(values: NDArray[Any]) -> Iterator[Point]:
    ranks = np.linspace(0, 100, _POINTS)
    for x, y in zip(np.maximum(np.percentile(values, ranks), 1).tolist(), ranks.tolist(), strict=True):
        yield Point(x, y, f"{y:.0f} %", f"at most {x:,.0f}")


def _tail(values: NDArray[Any]) -> Iterator[Point]:
    found = np.sort(np.maximum(values, 1))
    shares = 1 - np.arange(len(found)) / len(found)
    places = np.unique((len(found) - np.geomspace(len(found), 1, _POINTS)).astype(np.int64))
    for x, y in zip(found[places].astype(float).tolist(), shares[places].tolist(), strict=True):
        yield Point(x, y, f"{y:.2%}", f"at least {x:,.0f}")


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table(title, heads, [[html.escape(cell) for cell in row] for row in rows])


def write_likeness_page(
    path: str | Path, tables: Mapping[str, Sequence[Sequence[str]]], logs: Mapping[str, SwfLog]
) -> None:
    """Write the page: tables, and figures of the log beside one log of each model.

    The ``tables`` have a row of heads each. The first is that of all checks, and its title that of the page;
    the others tell how policies rank.
    """
    (title, (heads, *rows)), *rankings = tables.items()
    sections = [
        section(
            "Checks",
            "The mean over all seeds and, in brackets, the largest distance to the log. A cross says that "
            "some seed is farther away than is tolerated. KS is the Kolmogorov-Smirnov distance.",
            _table("", heads, rows),
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
        section(
            "Burstiness",
            "Normalised entropy of arrivals over intervals (figure 6): the lower, the burstier. Poisson "
            "arrivals have 1.",
            figure("Temporal burstiness", "entropies"),
        ),
        section(
            "Distributions",
            "Run times, and processors that jobs ask for (figure 7): the share that is at most so large.",
            figure("Run time", "run_times"),
            figure("Processors", "sizes"),
        ),
    ]
    if rankings:
        ranks = section(
            "Rankings",
            "What six policies reach on the log and on the logs of each model, in the mean over all "
            "seeds, and their ranks. Kendall's tau is 1 where they rank as on the log; in brackets, "
            "the least of any seed.",
            *(_table(name, heads, rows) for name, (heads, *rows) in rankings),
            layout="wide",
        )
        sections.insert(1, ranks)
    header = f"<h1>{html.escape(title)}</h1>"
    write_figures_page(path, title, header, "".join(sections), all_figures(logs))
