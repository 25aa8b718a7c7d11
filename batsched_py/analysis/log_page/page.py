"""Putting the page together."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from pathlib import Path

from batsched_py.analysis.log_page.figures import all_figures
from batsched_py.analysis.pages import write_figures_page
from batsched_py.analysis.pages.parts import figure, section, table, tiles
from batsched_py.workload.description import Description


def write_log_page(path: str | Path, known: Description) -> None:
    """Write the page: one file that needs no other and no network."""
    title = known.name or "A log"
    header = f"""<h1>{html.escape(title)}</h1>
<p class="note">{_subtitle(known)}</p>
<div id="tiles">{_tiles(known)}</div>
<p class="note">The first thing to do before simulating it: <code>batsched-py calibrate</code> replays the log
as it was, and tells how far such a simulation may be trusted. Drag across a figure to zoom in, double-click
to see all of it again, hover for values.</p>"""
    parts = (_weeks, _cycles, _distributions, _bags, _bursts, _shapes, _users, _records, _header)
    sections = "\n".join(part(known) for part in parts)
    write_figures_page(path, title, header, sections, all_figures(known))


def _subtitle(known: Description) -> str:
    where = [known.header[key].split("\n")[0] for key in ("Computer", "Installation") if key in known.header]
    if known.load.start is not None:
        first, last = (
            datetime.fromtimestamp(moment, UTC).strftime("%d %B %Y").lstrip("0")
            for moment in (known.load.start, known.load.start + known.load.duration)
        )
        where.append(f"{first} to {last}")
    return html.escape(" · ".join(where))


def _tiles(known: Description) -> str:
    load, bags = known.load, known.bags
    shown = [
        ("jobs", f"{load.jobs:,}", f"{known.characterised:,} completed"),
        ("users", f"{load.users:,}", f"{known.users.half_of_jobs} submit half of the jobs"),
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
        ("utilization", _share(load.utilization), f"load {_share(load.load)}"),
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
    return tiles(shown)


def _weeks(known: Description) -> str:
    return section(
        "Week by week",
        "Jobs submitted in each week from the first submission on; users that stand out or are the busiest "
        "are apart. Below, what was submitted as a share of what the machine can do in a week, and what was "
        "running.",
        figure("Submissions", "weekly_jobs"),
        figure("Load", "weekly_load"),
        layout="wide",
    )


def _cycles(known: Description) -> str:
    clock = "On the wall clock where the machine stood."
    if not known.cycles.known:
        clock = "The log does not say when it began; it is taken to begin on a Monday at midnight."
    return section(
        "Cycles",
        f"{clock} {known.cycles.working_hours:.0%} of the jobs are submitted from Monday to Friday between "
        f"8:00 and 18:00, which is 30 % of a week, and {known.cycles.weekend:.0%} at weekends.",
        figure("By the hour of the week", "cycle"),
        figure("By the hour of the day", "hours"),
    )


def _distributions(known: Description) -> str:
    spread = known.distributions
    shares = f"{spread.serial:.0%} serial; of the others {spread.powers_of_two:.0%} on powers of two"
    return section(
        "Distributions",
        f"Of the {known.characterised:,} jobs that completed, ran for some time and asked for processors, "
        "as are all figures below.",
        figure("Run time", "run_time"),
        figure(f"Size ({shares})", "size"),
        figure("Time between submissions", "interarrival"),
        figure("Accuracy of estimates", "accuracy"),
    )


def _bags(known: Description) -> str:
    bags = known.bags.contiguous
    return section(
        "Bags of tasks",
        "Jobs of the same user, group, queue, executable, requested time and size, each within "
        f"{known.bags.delta:g} s of the one before: {bags.share_of_jobs:.1%} of all jobs are in bags of two "
        f"or more where nobody else's job may come in between, {known.bags.per_key.share_of_jobs:.1%} where "
        f"it may. The sizes of bags fit a Zipf distribution of exponent {bags.zipf_exponent:.2f}.",
        figure("Sizes", "bag_sizes"),
        figure("From the first to the last submission", "bag_durations"),
        table(
            "How much run times vary within a bag",
            ("mean run time of the bag", "bags", "mean deviation"),
            [
                (
                    f"{each.run_time_from:,.0f} to {each.run_time_to:,.0f} s",
                    f"{each.bags:,}",
                    "" if each.variability is None else f"{each.variability:,.0f} s",
                )
                for each in bags.variability
            ],
        ),
        layout="three",
    )


def _bursts(known: Description) -> str:
    return section(
        "Burstiness and memory",
        "Normalised entropy of arrivals over intervals: the lower, the burstier. The Hurst parameter of the "
        "arrivals in quarters of an hour, without the weekly cycle: above 0.5, the effect of a busy "
        "time lasts long.",
        figure("Temporal burstiness", "entropies"),
        figure("Long-range dependence", "memory"),
    )


def _shapes(known: Description) -> str:
    locality = known.locality
    compared = {"run time": locality.run_time, "size": locality.size, "user": locality.user}
    return section(
        "Run time and size",
        f"Correlation {_number(known.correlation.pearson)}, of ranks {_number(known.correlation.spearman)}; "
        f"normalised entropy of run time over sizes {known.burstiness.spatial:.3f}.",
        figure("Run time of jobs by their size", "run_times_by_size"),
        table(
            "Locality: how far a week's distribution is from the whole log's",
            ("of", "distance (0 to 1)", "by chance"),
            [(name, f"{each.distance:.2f}", f"{each.by_chance:.2f}") for name, each in compared.items()],
        ),
    )


def _users(known: Description) -> str:
    found = known.flurries
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
    return section(
        "Users",
        f"{known.users.sessions:,} sessions, where an hour of silence lies between two, of "
        f"{known.users.jobs_per_session.mean:.1f} jobs on average. {_share(known.locality.repetition)} of "
        "the jobs agree with the same user's previous one in all attributes of a bag. A flurry is a week in "
        "which a user submits half of the jobs and three times those of the median week; a dominating user "
        "submits a quarter of all.",
        table("Busiest users", ("user", "jobs", "share of jobs", "share of work"), busiest),
        table("Flurries and dominating users", ("user", "weeks", "jobs", "share of jobs then"), outstanding),
    )


def _records(known: Description) -> str:
    quality = known.quality
    return section(
        "Records",
        "What a reader should not trust. A record may be in several kinds.",
        _counts("Left out or filled in", {**quality.left_out, **quality.guessed}),
        _counts("Suspicious", quality.suspicious),
        _counts("Unknown", quality.unknown),
        layout="three",
    )


def _header(known: Description) -> str:
    lines = [f"{key}: {line}" for key, value in known.header.items() for line in value.split("\n")]
    return section("Header of the log", "", f"<pre>{html.escape(chr(10).join(lines))}</pre>", layout="wide")


def _counts(title: str, counts: dict[str, int]) -> str:
    rows = [
        (html.escape(kind), f"{count:,}") for kind, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    return table(title, ("kind", "records"), rows)


def _bar(share: float) -> str:
    meter = f'<span class="meter"><i style="width:{100 * share:.1f}%"></i></span>'
    return f'{meter}<span class="figure">{share:.1%}</span>'


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3f}"
