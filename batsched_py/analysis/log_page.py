"""A log on one page: what `batsched-py describe --output` writes."""

import html
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Final

from batsched_py.analysis import pages
from batsched_py.analysis.pages import Axis, Bar, Figure, Layer, Point, time_text
from batsched_py.workload.description import Description
from batsched_py.workload.description.jobs import Distribution
from batsched_py.workload.description.over_time import SCALES
from batsched_py.workload.swf.log import WEEK

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

#: Ticks of an axis of times, in seconds.
TIMES: Final = (
    (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (21600, "6 h"), (86400, "1 d"),
    (604800, "1 w"), (2592000, "30 d"), (31536000, "1 y"),
)  # fmt: skip
POWERS_OF_TWO: Final = tuple((2**power, f"{2**power:,}") for power in range(31))
HOURS: Final = tuple((hour, f"{hour}:00") for hour in range(0, 24, 6))


def all_figures(known: Description) -> dict[str, Figure | None]:
    """The figures by their names; None where the log does not tell enough."""
    spread = known.distributions
    sizes = Axis(
        "processors", scale="log", ends=(1, max(spread.size.percentiles[-1], 2)), ticks=POWERS_OF_TWO
    )
    accuracy = Axis("run time over requested time", ends=(0, 1.2))
    return {
        "weekly_jobs": _weekly_jobs(known),
        "weekly_load": _weekly_load(known),
        "cycle": _cycle(known),
        "hours": _hours(known),
        "run_time": _times(spread.run_time, "run time"),
        "size": _cumulative(spread.size, sizes, lambda size: f"{size:,.0f}"),
        "interarrival": _times(spread.interarrival, "time"),
        "accuracy": _cumulative(spread.accuracy, accuracy, lambda share: f"{share:.2f}"),
        "bag_sizes": _bag_sizes(known),
        "bag_durations": _times(known.bags.contiguous.submission_durations, "duration"),
        "entropies": _entropies(known),
        "memory": _memory(known),
        "run_times_by_size": _run_times_by_size(known),
    }


def _weekly_jobs(known: Description) -> Figure:
    """Jobs in each week, with a layer for each user that stands out."""
    weekly = known.flurries.weekly
    totals = [sum(counts) for counts in zip(*weekly.values(), strict=True)]
    below = [0] * len(totals)
    layers = []
    for place, (user, counts) in reversed([*enumerate(weekly.items())]):
        name = "all others" if user == "others" else f"user {user}"
        bars = []
        for week, count in enumerate(counts):
            if count:
                text = f"{name}: {count:,} of {totals[week]:,} jobs"
                bars.append(Bar(week, week + 1, below[week], below[week] + count, _date(known, week), text))
                below[week] += count
        layers.append(Layer("bars", bars, None if user == "others" else place, name))
    return Figure(_week_axis(known), Axis("jobs in the week", ends=(0, max(totals))), layers[::-1])


def _weekly_load(known: Description) -> Figure | None:
    """What was submitted and what was running, week by week."""
    weeks = known.load.weeks
    if all(week.load is None and week.utilization is None for week in weeks):
        return None
    running, submitted = [], []
    for week, each in enumerate(weeks):
        busy, new = 100 * (each.utilization or 0.0), 100 * (each.load or 0.0)
        who = "" if each.users is None else f", {each.users} users"
        text = f"{busy:.0f} % busy, {new:.0f} % submitted{who}"
        running.append(Point(week + 0.5, busy, _date(known, week), text))
        submitted.append(Point(week + 0.5, new, _date(known, week), text))
    return Figure(
        _week_axis(known),
        Axis("share of the machine", "%", ends=(0, max(100, *(point.y for point in (*running, *submitted))))),
        [
            Layer("area", running),
            Layer("line", running, 0, "running"),
            Layer("line", submitted, 1, "submitted"),
        ],
    )


def _cycle(known: Description) -> Figure:
    """Submissions by the hour of the week, as a map with a row for each day."""
    counts = known.cycles.by_hour_of_week
    days = DAYS if known.cycles.known else [f"day {number}" for number in range(1, 8)]
    cells = []
    for place, count in enumerate(counts):
        day, hour = divmod(place, 24)
        text = f"{count:,} jobs ({count / sum(counts):.2%})"
        shade = 0.06 + 0.94 * count / max(counts)
        cells.append(Bar(hour, hour + 1, 5.55 - day, 6.45 - day, f"{days[day]} {hour}:00", text, shade))
    return Figure(
        Axis("hour of the day", ends=(0, 24), ticks=HOURS), Axis("", names=days[::-1]), [Layer("bars", cells)]
    )


def _hours(known: Description) -> Figure | None:
    """Submissions by the hour of the day, on working days and at weekends, if these are known."""
    if not known.cycles.known:
        return None
    weeks = max(len(known.load.weeks), 1)
    by_day = [known.cycles.by_hour_of_week[24 * day : 24 * day + 24] for day in range(7)]
    working = [sum(counts) / 5 / weeks for counts in zip(*by_day[:5], strict=True)]
    rest = [sum(counts) / 2 / weeks for counts in zip(*by_day[5:], strict=True)]
    bars = [
        Bar(hour, hour + 1, 0, count, f"{hour}:00", f"{count:.2f} jobs on a working day")
        for hour, count in enumerate(working)
    ]
    points = [
        Point(hour + 0.5, count, f"{hour}:00", f"{count:.2f} jobs on a day of the weekend")
        for hour, count in enumerate(rest)
    ]
    return Figure(
        Axis("hour of the day", ends=(0, 24), ticks=HOURS),
        Axis("jobs in the hour", ends=(0, max(*working, *rest))),
        [Layer("bars", bars, 0, "working days"), Layer("line", points, 1, "weekends")],
    )


def _times(known: Distribution | None, label: str) -> Figure | None:
    """The cumulative distribution of times."""
    if known is None:
        return None
    low = max(known.percentiles[1], 1.0)
    axis = Axis(label, scale="log", ends=(low, max(known.percentiles[-1], 10 * low)), ticks=TIMES)
    return _cumulative(known, axis, time_text)


def _cumulative(known: Distribution | None, axis: Axis, tell: Callable[[float], str]) -> Figure | None:
    """The cumulative distribution of something on an axis, as far as that reaches."""
    if known is None:
        return None
    low, high = axis.ends or (-inf, inf)
    points = [
        Point(min(max(value, low), high), percent, f"{percent} %", f"at most {tell(value)}")
        for percent, value in enumerate(known.percentiles)
    ]
    return Figure(axis, Axis("share", "%", ends=(0, 100)), [Layer("steps", points)])


def _bag_sizes(known: Description) -> Figure:
    """How many bags have how many jobs; a Zipf distribution is a straight line here."""
    counts = known.bags.contiguous.size_classes
    bars = []
    for power, count in enumerate(counts):
        low = 2**power
        if count:
            jobs = "1 job" if low == 1 else f"{low} to {2 * low - 1} jobs"
            bars.append(Bar(low, 2 * low, 0.5, count, jobs, f"{count:,} bags"))
    return Figure(
        Axis("jobs of a bag", scale="log", ends=(1, 2.0 ** len(counts)), ticks=POWERS_OF_TWO),
        Axis("bags", scale="log", ends=(0.5, 1.5 * max(counts))),
        [Layer("bars", bars)],
    )


def _entropies(known: Description) -> Figure:
    """Temporal burstiness over scales; arrivals that are spread evenly have 1."""
    found = known.burstiness.temporal
    points = [Point(SCALES[name], value, name, f"{value:.3f}") for name, value in found.items()]
    ticks = [(point.x, point.heading) for point in points]
    return Figure(
        Axis("length of the intervals", scale="log", ends=(45, 115_000), ticks=ticks),
        Axis("normalised entropy", ends=(min(0.7, *found.values()) - 0.02, 1.03)),
        [_rule(1.0, "an even spread, as of Poisson arrivals"), Layer("line", points), Layer("dots", points)],
    )


def _memory(known: Description) -> Figure | None:
    """The estimates of the Hurst parameter beside each other."""
    if known.memory is None:
        return None
    estimates = {
        "variance": known.memory.aggregated_variance,
        "fluctuation": known.memory.detrended_fluctuation,
        "Whittle": known.memory.local_whittle,
        "wavelets": known.memory.wavelet,
    }
    median = known.memory.median
    points = [
        Point(place, value, name, f"{value:.3f}") for place, (name, value) in enumerate(estimates.items())
    ]
    return Figure(
        Axis("estimator", names=[*estimates]),
        Axis("Hurst parameter", ends=(min(0.45, *estimates.values()), max(1.02, *estimates.values()))),
        [_rule(0.5, "no memory"), _rule(median, f"median {median:.3f}"), Layer("dots", points)],
    )


def _run_times_by_size(known: Description) -> Figure:
    """Mean and median run time of jobs by size."""
    classes = known.correlation.by_size
    times = [time for each in classes for time in (each.mean_run_time, each.median_run_time)]
    low = max(min(times) / 2, 1.0)
    bars, dots = [], []
    for each in classes:
        left, mean, median = each.size_from, each.mean_run_time, each.median_run_time
        heading = f"{left} to {each.size_to} processors"
        text = f"{each.share_of_jobs:.1%} of the jobs, mean {time_text(mean)}, median {time_text(median)}"
        bars.append(Bar(left, 2 * left, low, max(mean, low), heading, text))
        dots.append(Point(left * 2**0.5, max(median, low), heading, text))
    return Figure(
        Axis("processors", scale="log", ends=(1, 2 * classes[-1].size_from), ticks=POWERS_OF_TWO),
        Axis("run time", scale="log", ends=(low, max(1.5 * max(times), 10 * low)), ticks=TIMES),
        [Layer("bars", bars, 0, "mean"), Layer("dots", dots, 1, "median")],
    )


def _rule(height: float, text: str) -> Layer:
    return Layer("rule", [Point(0, height)], None, text)


def _week_axis(known: Description) -> Axis:
    count = len(known.load.weeks)
    return Axis("week", ends=(0, count), ticks=[(week + 0.5, _date(known, week)) for week in range(count)])


def _date(known: Description, week: int) -> str:
    """When a week began, or its number if the log does not tell."""
    if known.load.start is None:
        return f"week {week}"
    return datetime.fromtimestamp(known.load.start + week * WEEK, UTC).strftime("%d %b %Y").lstrip("0")


def write_log_page(path: str | Path, known: Description) -> None:
    """Write the page: one file that needs no other and no network."""
    title = known.name or "A log"
    header = f"""<h1>{html.escape(title)}</h1>
<p class="note">{_subtitle(known)}</p>
<div id="tiles">{_tiles(known)}</div>
<p class="note">The first thing to do before simulating it: <code>batsched-py calibrate</code> replays the log
as it was, and tells how far such a simulation may be trusted. Drag across a figure to zoom in, double-click
to see all of it again, hover for values.</p>"""
    sections = "\n".join(
        [*_over_time(known), *_of_jobs(known), *_of_weeks(known), *_of_users(known), *_records(known)]
    )
    pages.write_figures_page(path, title, header, sections, all_figures(known))


def _subtitle(known: Description) -> str:
    where = [known.header[key].split("\n")[0] for key in ("Computer", "Installation") if key in known.header]
    if known.load.start is not None:
        first, last = (
            datetime.fromtimestamp(moment, UTC).strftime("%d %B %Y").lstrip("0")
            for moment in (known.load.start, known.load.start + known.load.duration)
        )
        where.append(f"{first} to {last}")
    return html.escape(" · ".join(where))


def _did(known: Description) -> str:
    return "completed" if known.tells_completed else "ran"


def _tiles(known: Description) -> str:
    load, bags = known.load, known.bags
    shown = [
        ("jobs", f"{load.jobs:,}", f"{known.characterised:,} {_did(known)}"),
        (
            "users",
            pages.or_unknown(load.users, ","),
            f"{known.users.half_of_jobs} submit half of the jobs"
            if known.users
            else "no job says whose it is",
        ),
        (
            "processors",
            f"{load.machine:,}" if load.machine else "?",
            f"mean job: {known.distributions.size.mean:.1f}",
        ),
        (
            "days",
            f"{load.duration / 86400:,.0f}",
            f"{load.jobs / max(load.duration / 86400, 1):,.0f} jobs a day",
        ),
        (
            "utilization",
            pages.or_unknown(load.utilization, ".0%"),
            f"load {pages.or_unknown(load.load, '.0%')}",
        ),
        (
            "jobs in bags of tasks",
            f"{bags.contiguous.share_of_jobs:.0%}",
            f"per key {bags.per_key.share_of_jobs:.0%}",
        ),
        (
            "Hurst parameter",
            f"{known.memory.median:.2f}" if known.memory else "?",
            f"estimates differ by {known.memory.spread:.2f}" if known.memory else "the log is too short",
        ),
        ("spatial entropy", f"{known.burstiness.spatial:.3f}", "1 would be an even spread"),
    ]
    return pages.tiles(shown)


def _over_time(known: Description) -> Iterator[str]:
    """The sections of when jobs are submitted."""
    yield pages.section(
        "Week by week",
        "Jobs submitted in each week from the first submission on; users that stand out or are the busiest "
        "are apart. Below, what was submitted as a share of what the machine can do in a week, and what was "
        "running.",
        pages.figure("Submissions", "weekly_jobs"),
        pages.figure("Load", "weekly_load"),
        layout="wide",
    )
    if known.cycles.working_hours is None:
        when = "The log does not say when it began, so days and hours are counted from its beginning."
    else:
        when = (
            f"On the wall clock where the machine stood. {known.cycles.working_hours:.0%} of the jobs are "
            "submitted from Monday to Friday between 8:00 and 18:00, which is 30 % of a week, and "
            f"{known.cycles.weekend:.0%} at weekends."
        )
    yield pages.section(
        "Cycles",
        when,
        pages.figure("By the hour of the week", "cycle"),
        pages.figure("By the hour of the day", "hours"),
    )


def _of_jobs(known: Description) -> Iterator[str]:
    """The sections of what jobs are like."""
    spread, bags = known.distributions, known.bags.contiguous
    shares = f"{spread.serial:.0%} serial; of the others {spread.powers_of_two:.0%} on powers of two"
    yield pages.section(
        "Distributions",
        f"Of the {known.characterised:,} jobs that {_did(known)} and asked for processors, "
        "as are all figures below.",
        pages.figure("Run time", "run_time"),
        pages.figure(f"Size ({shares})", "size"),
        pages.figure("Time between submissions", "interarrival"),
        pages.figure("Accuracy of estimates", "accuracy"),
    )
    deviations = [
        (
            f"{each.run_time_from:,.0f} to {each.run_time_to:,.0f} s",
            f"{each.bags:,}",
            "" if each.variability is None else f"{each.variability:,.0f} s",
        )
        for each in bags.variability
    ]
    heads = ("mean run time of the bag", "bags", "mean deviation")
    yield pages.section(
        "Bags of tasks",
        "Jobs of the same user, group, queue, executable, requested time and size, each within "
        f"{known.bags.delta:g} s of the one before: {bags.share_of_jobs:.1%} of all jobs are in bags of two "
        f"or more where nobody else's job may come in between, {known.bags.per_key.share_of_jobs:.1%} where "
        f"it may. The sizes of bags fit a Zipf distribution of exponent {bags.zipf_exponent:.2f}.",
        pages.figure("Sizes", "bag_sizes"),
        pages.figure("From the first to the last submission", "bag_durations"),
        pages.table("How much run times vary within a bag", heads, deviations),
        layout="three",
    )


def _of_weeks(known: Description) -> Iterator[str]:
    """The sections of what changes from week to week, and how run times and sizes go together."""
    yield pages.section(
        "Burstiness and memory",
        "Normalised entropy of arrivals over intervals: the lower, the burstier. The Hurst parameter of the "
        "arrivals in quarters of an hour, without the weekly cycle: above 0.5, the effect of a busy "
        "time lasts long.",
        pages.figure("Temporal burstiness", "entropies"),
        pages.figure("Long-range dependence", "memory"),
    )
    locality = known.locality
    pearson, spearman = known.correlation.pearson, known.correlation.spearman
    compared = {"run time": locality.run_time, "size": locality.size, "user": locality.user}
    yield pages.section(
        "Run time and size",
        f"Correlation {pages.or_unknown(pearson, '.3f')}, of ranks {pages.or_unknown(spearman, '.3f')}; "
        f"normalised entropy of run time over sizes {known.burstiness.spatial:.3f}.",
        pages.figure("Run time of jobs by their size", "run_times_by_size"),
        pages.table(
            "Locality: how far a week's distribution is from the whole log's",
            ("of", "distance (0 to 1)", "by chance"),
            [(name, f"{it.distance:.2f}", f"{it.by_chance:.2f}") for name, it in compared.items() if it],
        ),
    )


def _of_users(known: Description) -> Iterator[str]:
    """The section of users, and of those that stand out, if jobs say whose they are."""
    if known.users is None:
        return
    found, repetition = known.flurries, pages.or_unknown(known.locality.repetition, ".0%")
    busiest = [
        (f"{user.user}", f"{user.jobs:,}", _bar(user.share_of_jobs), _bar(user.share_of_work))
        for user in known.users.busiest
    ]
    outstanding = [
        (f"{each.user}", f"{each.first_week} to {each.last_week}", f"{each.jobs:,}", _bar(each.share_of_jobs))
        for each in found.flurries
    ]
    outstanding += [
        (f"{each.user}", "all", f"{each.jobs:,}", _bar(each.share_of_jobs)) for each in found.dominating
    ]
    left_out = (
        f" {known.users.unknown:,} jobs of unknown users are left out here." if known.users.unknown else ""
    )
    yield pages.section(
        "Users",
        f"{known.users.sessions:,} sessions, where an hour of silence lies between two, of "
        f"{known.users.jobs_per_session.mean:.1f} jobs on average. {repetition} of the jobs agree with the "
        "same user's previous one in all attributes of a bag. A flurry is a week in which a user submits "
        "half of the jobs and three times those of the median week; a dominating user submits a quarter of "
        f"all.{left_out}",
        pages.table("Busiest users", ("user", "jobs", "share of jobs", "share of work"), busiest),
        pages.table(
            "Flurries and dominating users", ("user", "weeks", "jobs", "share of jobs then"), outstanding
        ),
    )


def _bar(share: float) -> str:
    meter = f'<span class="meter"><i style="width:{100 * share:.1f}%"></i></span>'
    return f'{meter}<span class="figure">{share:.1%}</span>'


def _records(known: Description) -> Iterator[str]:
    """The sections of what a reader should not trust, and of what the log says of itself."""
    quality = known.quality
    kinds = {
        "Left out or filled in": {**quality.left_out, **quality.guessed},
        "Suspicious": quality.suspicious,
        "Unknown": quality.unknown,
    }
    tables = []
    for title, counts in kinds.items():
        most_first = sorted(counts.items(), key=lambda item: -item[1])
        rows = [(html.escape(kind), f"{count:,}") for kind, count in most_first]
        tables.append(pages.table(title, ("kind", "records"), rows))
    note = "What a reader should not trust. A record may be in several kinds."
    yield pages.section("Records", note, *tables, layout="three")
    lines = [f"{key}: {line}" for key, value in known.header.items() for line in value.split("\n")]
    header = f"<pre>{html.escape(chr(10).join(lines))}</pre>"
    yield pages.section("Header of the log", "", header, layout="wide")
