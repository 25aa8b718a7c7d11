"""The charts of the page, each of one part of a description."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from math import log2

from batsched_py.analysis.log_page.svg import Chart, Scale, linear, logarithmic, times
from batsched_py.workload.description import Description
from batsched_py.workload.description.bags import BagStatistics
from batsched_py.workload.description.burstiness import SCALES
from batsched_py.workload.description.distributions import Distribution

WIDE = 1180
SMALL = 400
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEK = 7 * 86400


def weekly_jobs(known: Description) -> str:
    """Jobs in each week, those of the users that stand out apart."""
    weekly = known.flurries.weekly
    totals = [sum(counts) for counts in zip(*weekly.values(), strict=True)]
    chart = Chart(_weeks(known), linear(0, max(totals), "jobs in the week"), WIDE, 270)
    base = [0] * len(totals)
    for place, (user, counts) in enumerate(reversed(weekly.items())):
        number = len(weekly) - 1 - place
        kind = "others" if user == "others" else f"c{number}"
        who = "all others" if user == "others" else f"user {user}"
        for week, count in enumerate(counts):
            if count:
                tip = f"{_date(known, week)}: {who}, {count:,} of {totals[week]:,} jobs"
                chart.bar(week, week + 1, base[week], base[week] + count, kind, tip)
                base[week] += count
    return str(chart)


def weekly_load(known: Description) -> str:
    """What was submitted and what was running, week by week."""
    weeks = known.load.weeks
    values = [value for week in weeks for value in (week.load, week.utilization) if value is not None]
    if not values:
        return ""
    chart = Chart(
        _weeks(known), linear(0, max(1.0, *values), "share of the machine", percent=True), WIDE, 220
    )
    running = [(week + 0.5, each.utilization or 0.0) for week, each in enumerate(weeks)]
    chart.area(running, "c0")
    chart.line(running, "c0")
    chart.line([(week + 0.5, each.load or 0.0) for week, each in enumerate(weeks)], "c1 thin")
    for week, each in enumerate(weeks):
        shares = f"{each.utilization or 0:.0%} busy, {each.load or 0:.0%} submitted"
        tip = f"{_date(known, week)}: {shares}, {each.users} users"
        chart.bar(week, week + 1, 0, chart.up.high, "ghost", tip)
    return str(chart)


def cycle(known: Description) -> str:
    """Submissions by the hour of the week, as a map: a row a day."""
    counts = known.cycles.by_hour_of_week
    most = max(counts)
    chart = Chart(
        Scale(0, 24, [(hour, f"{hour}:00") for hour in range(0, 25, 6)], label="hour of the day"),
        Scale(0, 7, [(6.5 - day, name) for day, name in enumerate(DAYS)]),
        560,
        250,
    )
    for hour, count in enumerate(counts):
        day, place = divmod(hour, 24)
        tip = f"{DAYS[day]} {place}:00: {count:,} jobs ({count / sum(counts):.2%})"
        chart.bar(place, place + 1, 6.06 - day, 6.94 - day, f"heat h{round(9 * count / most)}", tip)
    return str(chart)


def hours(known: Description) -> str:
    """Submissions by the hour of the day, on working days and at weekends."""
    counts = known.cycles.by_hour_of_week
    working = [sum(counts[24 * day + hour] for day in range(5)) / 5 for hour in range(24)]
    rest = [sum(counts[24 * day + hour] for day in (5, 6)) / 2 for hour in range(24)]
    weeks = max(len(known.load.weeks), 1)
    chart = Chart(
        Scale(0, 24, [(hour, f"{hour}:00") for hour in range(0, 25, 6)], label="hour of the day"),
        linear(0, max(*working, *rest) / weeks, "jobs in the hour"),
        560,
        250,
    )
    for hour, count in enumerate(working):
        chart.bar(
            hour, hour + 1, 0, count / weeks, "c0", f"{hour}:00: {count / weeks:.2f} jobs on a working day"
        )
    chart.line([(hour + 0.5, count / weeks) for hour, count in enumerate(rest)], "c1")
    return str(chart)


def times_of(known: Distribution | None, label: str, width: int = 560) -> str:
    """The cumulative distribution of times."""
    if known is None:
        return ""
    across = times(max(known.percentiles[1], 1), known.percentiles[-1], label)
    return _cumulative(known, across, _time, width)


def sizes(known: Distribution) -> str:
    """The cumulative distribution of sizes."""
    high = known.percentiles[-1]
    powers = [2**power for power in range(int(log2(max(high, 2))) + 1)]
    stride = max(1, len(powers) // 6)
    marks = [(float(power), f"{power:,}") for power in powers[::stride]]
    return _cumulative(known, Scale(1, max(high, 2), marks, True, "processors"), lambda size: f"{size:,.0f}")


def accuracy(known: Distribution | None) -> str:
    """The cumulative distribution of run time over requested time, up to 1.2."""
    if known is None:
        return ""
    across = linear(0, 1.2, "run time over requested time", count=6)
    points = [(min(value, 1.2), place / 100) for place, value in enumerate(known.percentiles)]
    chart = Chart(across, linear(0, 1, percent=True))
    chart.steps([(0, 0), *points], "c0")
    for (left, low), (right, _) in pairwise(points):
        chart.bar(left, right, 0, 1, "ghost", f"{low:.0%} used at most {left:.2f} of the time they asked for")
    return str(chart)


def bag_sizes(known: BagStatistics) -> str:
    """How many bags have how many jobs; a Zipf distribution is a straight line here."""
    counts = known.size_classes
    across = Scale(
        1,
        2.0 ** len(counts),
        [(2.0**power, f"{2**power:,}") for power in range(0, len(counts), 2)],
        True,
        "jobs of a bag",
    )
    chart = Chart(across, logarithmic(0.5, max(counts) * 1.5, "bags"), SMALL)
    for power, count in enumerate(counts):
        if count:
            low, high = 2**power, 2 ** (power + 1) - 1
            what = f"{low}" if low == high else f"{low} to {high}"
            chart.bar(2.0**power, 2.0 ** (power + 1), 0.5, count, "c0", f"{count:,} bags of {what} jobs")
    return str(chart)


def entropies(known: Description) -> str:
    """Temporal burstiness over scales; arrivals that are spread evenly have 1."""
    found = known.burstiness.temporal
    across = Scale(
        45,
        115_000,
        [(SCALES[name], name) for name in found if name not in ("30 min", "12 h")],
        True,
        "length of the intervals",
    )
    low = min(0.7, *found.values()) - 0.02
    chart = Chart(across, linear(low, 1.03, "normalised entropy"))
    chart.rule(1.0, "an even spread, as of Poisson arrivals")
    points = [(SCALES[name], value) for name, value in found.items()]
    chart.line(points, "c0")
    for name, value in found.items():
        chart.dot(SCALES[name], value, "c0", f"{name}: {value:.3f}")
    return str(chart)


def memory(known: Description) -> str:
    """The estimates of the Hurst parameter beside each other."""
    if known.memory is None:
        return ""
    estimates = {
        "variance": known.memory.aggregated_variance,
        "fluctuation": known.memory.detrended_fluctuation,
        "Whittle": known.memory.local_whittle,
        "wavelets": known.memory.wavelet,
    }
    marks = [(place + 0.5, name) for place, name in enumerate(estimates)]
    across = Scale(0, len(estimates) + 0.8, marks, label="estimator")
    chart = Chart(
        across, linear(min(0.45, *estimates.values()), max(1.02, *estimates.values()), "Hurst parameter")
    )
    chart.rule(0.5, "no memory")
    chart.rule(known.memory.median, f"median {known.memory.median:.3f}")
    for place, (name, value) in enumerate(estimates.items()):
        chart.dot(place + 0.5, value, "c0", f"{name}: {value:.3f}")
    return str(chart)


def run_times_by_size(known: Description) -> str:
    """Mean and median run time of jobs by size."""
    classes = known.correlation.by_size
    values = [value for each in classes for value in (each.mean_run_time, each.median_run_time)]
    high = 2.0 * classes[-1].size_from
    marks = [(float(each.size_from), f"{each.size_from:,}") for each in classes[:: max(1, len(classes) // 6)]]
    chart = Chart(Scale(1, high, marks, True, "processors"), times(min(values) / 2, max(values) * 1.5))
    for each in classes:
        tip = (
            f"{each.size_from} to {each.size_to} processors: {each.share_of_jobs:.1%} of the jobs, "
            f"mean {_time(each.mean_run_time)}, median {_time(each.median_run_time)}"
        )
        chart.bar(each.size_from, 2 * each.size_from, chart.up.low, each.mean_run_time, "c0", tip)
        middle = each.size_from * 2**0.5
        chart.dot(middle, each.median_run_time, "c1", tip)
    return str(chart)


def _cumulative(known: Distribution, across: Scale, tell: Callable[[float], str], width: int = 560) -> str:
    chart = Chart(across, linear(0, 1, percent=True), width)
    points = [(value, place / 100) for place, value in enumerate(known.percentiles)]
    chart.steps([(across.low, sum(value < across.low for value, _ in points) / 101), *[
        point for point in points if point[0] >= across.low
    ]], "c0")  # fmt: skip
    for (left, low), (right, _) in pairwise(points):
        if right > max(left, across.low):
            chart.bar(max(left, across.low), right, 0, 1, "ghost", f"{low:.0%} are at most {tell(left)}")
    return str(chart)


def _weeks(known: Description) -> Scale:
    """The weeks of the log, marked by their dates where these are known."""
    count = len(known.load.weeks)
    stride = max(1, count // 9)
    marks = [(week + 0.5, _date(known, week)) for week in range(stride // 2, count, stride)]
    return Scale(0, count, marks, label="week")


def _date(known: Description, week: int) -> str:
    if known.load.start is None:
        return f"week {week}"
    return datetime.fromtimestamp(known.load.start + week * _WEEK, UTC).strftime("%d %b %Y").lstrip("0")


def _time(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
