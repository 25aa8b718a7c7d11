"""The tables of the findings of "Resampling with Feedback", in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from batsched_py.analysis.runs import Estimate, Paired
from batsched_py.errors import InputError
from examples.experiments.populations import HOUR, Figures, Setting

_THROUGHPUT = ("submitted_per_day", "done_per_day", "utilization", "mean_wait")
_SESSIONS = (
    *("submitted_per_day", "utilization", "jobs_per_session", "sessions_per_day", "session_length"),
    "mean_wait",
)
_WAIT = ("mean_wait", "mean_bounded_slowdown", "submitted_per_day", "utilization")

#: What is compared: a title, two times setting and scheduler, and which figures.
COMPARISONS = (
    ("without feedback, EASY and FCFS", ("open", "easy"), ("open", "fcfs"), _THROUGHPUT),
    ("with feedback, EASY and FCFS", ("feedback", "easy"), ("feedback", "fcfs"), _THROUGHPUT),
    *(
        (f"{setting}, {scheduler} and EASY", (setting, scheduler), (setting, "easy"), _SESSIONS)
        for setting in ("cycle", "no cycle")
        for scheduler in ("user-aware", "user-aware, alpha=1")
    ),
    ("EASY's workload, under FCFS and EASY", ("recorded from easy", "fcfs"), ("feedback", "easy"), _WAIT),
    ("FCFS's workload, under EASY and FCFS", ("recorded from fcfs", "easy"), ("feedback", "fcfs"), _WAIT),
    ("under EASY, FCFS's workload and its own", ("recorded from fcfs", "easy"), ("feedback", "easy"), _WAIT),
)

#: The user-aware scheduler with all weight on responsiveness.
AWARE = "user-aware, alpha=1"

#: Settings in which users differ in one choice that the paper leaves open.
ROOMS = (
    *("open", "open, begin=active", "feedback", "feedback, begin=active"),
    *("feedback, session_end=finish", "feedback, ended_before=start"),
)


def by_seed(figures: Sequence[Figures], setting: str, scheduler: str, load: float) -> dict[int, Figures]:
    """The figures of one setting, scheduler and load."""
    wanted = (setting, scheduler, load)
    return {f.task.seed: f for f in figures if (f.task.setting, f.task.scheduler, f.task.load) == wanted}


def gains(figures: Sequence[Figures], setting: str, load: float) -> list[float]:
    """By how many percent more is submitted under the user-aware scheduler than under EASY, seed by seed."""
    aware, easy = (by_seed(figures, setting, name, load) for name in (AWARE, "easy"))
    return [
        100 * (aware[seed].submitted_per_day / easy[seed].submitted_per_day - 1)
        for seed in sorted(aware.keys() & easy.keys())
    ]


def cycles(figures: Sequence[Figures], settings: Mapping[str, Setting]) -> Iterator[str]:
    """What the user-aware scheduler gains with a daily cycle and without."""
    rows = []
    for name, setting in settings.items():
        for load in setting.loads if AWARE in setting.schedulers else ():
            easy, aware = (by_seed(figures, name, scheduler, load) for scheduler in ("easy", AWARE))
            seeds = sorted(easy.keys() & aware.keys())
            if len(seeds) < 2:
                continue
            users = f"{round(100 * load)}" if setting.behaviour == "site-level" else f"x {load:g}"
            cells = [
                *(f"{fmean(each[seed].submitted_per_day for seed in seeds):.1f}" for each in (easy, aware)),
                shown(Estimate.of(gains(figures, name, load)), 1, " %"),
                *(f"{fmean(each[seed].utilization for seed in seeds):.3f}" for each in (easy, aware)),
                str(easy[seeds[0]].weeks),
                str(len(seeds)),
            ]
            rows.append(f"| {name} | {users} | {' | '.join(cells)} |")
    if rows:
        yield (
            "| setting | users | jobs a day, EASY | user-aware | gain, 95% | utilization, EASY | user-aware "
            "| weeks | seeds |"
        )
        yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
        yield from rows


def rooms(figures: Sequence[Figures]) -> Iterator[str]:
    """Jobs a day and utilization under EASY by what the paper leaves open."""
    rows = []
    for name in ("log", *ROOMS):
        found = list(by_seed(figures, name, "easy", 1.0).values())
        if found:
            cells = [
                shown(Estimate.of([f.submitted_per_day for f in found]), 1, signed=False),
                shown(Estimate.of([f.utilization for f in found]), 3, signed=False),
                shown(Estimate.of([f.mean_wait / HOUR for f in found]), 2, signed=False),
            ]
            rows.append(f"| {name} | {' | '.join(cells)} | {len(found)} |")
    if len(rows) > 1:
        yield "| setting | jobs a day | utilization | mean wait, h | seeds |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        yield from rows


def comparisons(figures: Sequence[Figures], edges: tuple[float, ...]) -> Iterator[str]:
    """Pairs of simulations with the same population."""
    rows = []
    for title, one, two, names in COMPARISONS:
        for load in sorted({f.task.load for f in figures}):
            first, second = by_seed(figures, *one, load), by_seed(figures, *two, load)
            both = [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
            if len(both) < 2:
                continue
            for name in names:
                pairs = [(getattr(a, name), getattr(b, name)) for a, b in both]
                rows.append(_row(title, load, name, pairs))
            if one[1] == AWARE:
                for number, label in enumerate(class_labels(edges)):
                    pairs = [(a.responses(edges)[number], b.responses(edges)[number]) for a, b in both]
                    known = [pair for pair in pairs if pair[0] == pair[0] and pair[1] == pair[1]]
                    if len(known) > 1:
                        rows.append(_row(title, load, f"response of jobs {label}", known))
    if rows:
        yield "| comparison | users | figure | first | second | difference, 95% | confidence | seeds |"
        yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
        yield from rows


def classes(figures: Sequence[Figures], setting: Setting, edges: tuple[float, ...]) -> Iterator[str]:
    """Who pays for what others gain: response times of classes of jobs, with a cycle and the most users."""
    load = max(setting.loads)
    aware, easy = (by_seed(figures, "cycle", name, load) for name in (AWARE, "easy"))
    seeds = sorted(aware.keys() & easy.keys())
    if len(seeds) < 2:
        return
    yield "| jobs that run | users | response under EASY, h | user-aware | difference, 95% | seeds |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for number, label in enumerate(class_labels(edges)):
        first, second = (
            [each[seed].responses(edges)[number] / HOUR for seed in seeds] for each in (aware, easy)
        )
        difference = shown(Estimate.of([a - b for a, b in zip(first, second, strict=True)]), 2)
        cells = f"{fmean(second):.2f} | {fmean(first):.2f} | {difference}"
        yield f"| {label} | x {load:g} | {cells} | {len(seeds)} |"


def class_labels(edges: tuple[float, ...]) -> list[str]:
    """What classes of run times are called.

    >>> class_labels((60.0, 43200.0))
    ['up to 1 min', '1 min to 12 h', 'over 12 h']
    """
    names = [f"{edge / HOUR:g} h" if edge >= HOUR else f"{edge / 60:g} min" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(names)]
    return [f"up to {names[0]}", *between, f"over {names[-1]}"]


def wait_of_the_log(figures: Sequence[Figures]) -> Iterator[str]:
    """Where the log's own simulation lies among those of populations."""
    waits = [f.mean_wait / HOUR for f in by_seed(figures, "feedback", "easy", 1.0).values()]
    for own in (f.mean_wait / HOUR for f in figures if f.task.setting == "log" and waits):
        yield ""
        yield (
            f"Mean wait of the log itself under EASY: {own:.2f} h; of resampled populations with "
            f"feedback: {min(waits):.2f} to {max(waits):.2f} h, {sum(wait < own for wait in waits)} of "
            f"{len(waits)} below."
        )


def _row(title: str, load: float, name: str, pairs: Sequence[tuple[float, float]]) -> str:
    first, second = zip(*pairs, strict=True)
    paired = Paired.of([a - b for a, b in pairs])
    width = paired.difference.half_width
    interval = f"{paired.difference.mean:+.4g}" + ("" if width is None else f" ± {width:.2g}")
    return (
        f"| {title} | x {load:g} | {name} | {fmean(first):.4g} | {fmean(second):.4g} | {interval} "
        f"| {1 - paired.p_value / 2:.1%} | {paired.nb_units} |"
    )


def shown(estimate: Estimate, decimals: int, unit: str = "", signed: bool = True) -> str:
    """An estimate with its interval.

    >>> shown(Estimate(7.23, 6.32, 8.14), 1, " %")
    '+7.2 ± 0.9 %'
    """
    mean = f"{estimate.mean:+.{decimals}f}" if signed else f"{estimate.mean:.{decimals}f}"
    return mean + ("" if estimate.half_width is None else f" ± {estimate.half_width:.{decimals}f}") + unit


def put_into(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put lines between the two marks of a page that have this name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text, count = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}",
        lambda found: "\n".join([begin, "", *lines, "", end]),
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    if not count:
        raise InputError(f"{page}: there is no {begin} before {end}")
    page.write_text(text, encoding="utf-8")
