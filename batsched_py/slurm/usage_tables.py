"""The use of a cluster as tables, on the terminal and on a page for those who pay for it."""

import html
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.table import Table

from batsched_py.analysis import pages
from batsched_py.analysis.pages import Axis, Bar, Figure, Layer, Point, or_unknown, time_text
from batsched_py.api.console import console_for_tables
from batsched_py.protocol.shown import harmless
from batsched_py.slurm.capacity import Capacity
from batsched_py.slurm.tables import filled
from batsched_py.slurm.usage import Usage, Use

#: So many groups of a kind are printed, those of most core hours; the page and the JSON have all of them.
SHOWN = 12

_CAPACITY = {
    "used": "used",
    "down": "down or drained",
    "reserved": "reserved and idle",
    "idle_while_jobs_waited": "idle while jobs waited",
    "idle": "idle, no job waited",
}


def heads(found: Usage) -> list[str]:
    """The heads of the columns of what jobs had."""
    simulated = ["mean wait, simulated", "median wait, simulated"] if found.simulated else []
    energy = ["energy"] if found.all.energy is not None else []
    carbon = ["CO2"] if energy and found.carbon_intensity is not None else []
    waits = ["mean wait", "median wait", "95 % wait", *simulated]
    asked = ["median slowdown", "95 % slowdown", "time used", "memory used"]
    gpus = ["GPU hours"] if found.gpus else []
    return ["", "jobs", "core hours", *gpus, *waits, *asked, "failed", "lost to nodes", *energy, *carbon]


def cells(use: Use, found: Usage) -> list[str]:
    """The cells of a row behind its name; what is not known is a question mark."""
    hours = use.core_hours
    row = [f"{use.jobs:,}", f"{hours:,.1f}", *([f"{use.gpu_hours:,.1f}"] if found.gpus else [])]
    row += [_time(use.mean_wait), _time(use.median_wait), _time(use.p95_wait)]
    if found.simulated:
        row += [_time(use.simulated_mean_wait), _time(use.simulated_median_wait)]
    row += [or_unknown(use.median_slowdown, ",.2f"), or_unknown(use.p95_slowdown, ",.2f")]
    row += [or_unknown(use.time_used, ".0%"), or_unknown(use.memory_used, ".0%")]
    row += [f"{part / hours:.1%}" if hours else "?" for part in (use.failed_hours, use.lost_hours)]
    if found.all.energy is not None:
        of = "" if use.energy_jobs == use.jobs else f" of {use.energy_jobs:,} jobs"
        row.append("?" if use.energy is None else f"{use.energy:,.1f} kWh{of}")
        if found.carbon_intensity is not None:
            row.append("?" if use.energy is None else f"{use.energy * found.carbon_intensity / 1000:,.1f} kg")
    return row


def _time(seconds: float | None) -> str:
    return "?" if seconds is None else time_text(seconds)


def capacity_heads() -> list[str]:
    """The heads of the columns of what became of the machine."""
    return ["", "core hours", *_CAPACITY.values()]


def capacity_cells(capacity: Capacity) -> list[str]:
    """The cells of a row behind its name."""
    return [
        f"{capacity.core_hours:,.1f}",
        *(or_unknown(getattr(capacity, name), ".1%") for name in _CAPACITY),
    ]


def notes(found: Usage) -> list[str]:
    """What has to be known to read the tables."""
    machine = (
        f"The machine has {found.cores:,} cores, as its slurm.conf says."
        if found.cores_told
        else f"The machine is taken to have {found.cores:,} cores, the most in use at once: --conf tells."
    )
    unknown = [
        text
        for text, capacity in (("--events", found.capacity.down), ("--reservations", found.capacity.reserved))
        if capacity is None
    ]
    idle = f" Without {' and '.join(unknown)}, such hours are among the idle ones." if unknown else ""
    return [
        f"From {found.begin} to {found.end} ({found.zone}). {machine}{idle}",
        "A job waits from when it is eligible. Hours belong to the month in which they were used, waits and "
        "slowdowns to that of the submission. Slowdowns are bounded at 10 s.",
        "Time used is of the core hours that jobs with a time limit asked for; memory used is the peak of "
        "the largest task of jobs on one node, so at least that much.",
        *found.remarks,
    ]


def usage_tables(found: Usage) -> None:
    """Print the use of a cluster."""
    console = console_for_tables()
    for note in notes(found):
        console.print(harmless(note))
    console.print("\nwhat became of the machine")
    spans = {"all": found.capacity, **found.month_capacity}
    console.print(filled(capacity_heads(), {name: capacity_cells(each) for name, each in spans.items()}))
    console.print("\nby month")
    _print(found, {"all": found.all, **found.months}, console.print)
    for grouping, groups in found.groups.items():
        console.print(f"\nby {grouping}, most core hours first")
        _print(found, {name: groups[name] for name in list(groups)[:SHOWN]}, console.print)
        if len(groups) > SHOWN:
            console.print(f"and {len(groups) - SHOWN} more, which --json and --output show")


def _print(found: Usage, uses: Mapping[str, Use], write: Callable[[Table], None]) -> None:
    write(filled(heads(found), {name or "(none)": cells(use, found) for name, use in uses.items()}))


def write_usage_page(path: str | Path, found: Usage) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"Use of a cluster, {found.begin[:10]} to {found.end[:10]}"
    shown = pages.tiles(
        [
            ("jobs", f"{found.all.jobs:,}", ""),
            ("core hours", f"{found.all.core_hours:,.0f}", ""),
            ("of the machine used", f"{found.capacity.used:.1%}", f"{found.cores:,} cores"),
            ("median wait", _time(found.all.median_wait), f"95 %: {_time(found.all.p95_wait)}"),
        ]
    )
    told = "<br>".join(map(html.escape, notes(found)))
    header = f'<h1>{html.escape(title)}</h1>\n<p class="note">{told}</p>\n<div id="tiles">{shown}</div>'
    drawn = pages.figure("What became of the machine", "capacity") + pages.figure("Waits", "waits")
    spans = {"all": found.capacity, **found.month_capacity}
    table = pages.table(
        "", capacity_heads(), [_row(name, capacity_cells(each)) for name, each in spans.items()]
    )
    sections = [
        pages.section("Month by month", "", drawn),
        pages.section("The machine", "Shares of all core hours; they add up to 100 %.", table, layout="wide"),
        _section(found, "Months", {"all": found.all, **found.months}),
        *(_section(found, f"By {grouping}", groups) for grouping, groups in found.groups.items()),
    ]
    figures = {"capacity": _capacities(found), "waits": _waits(found)}
    pages.write_figures_page(path, title, header, "".join(sections), figures)


def _section(found: Usage, title: str, uses: Mapping[str, Use]) -> str:
    rows = [_row(name or "(none)", cells(use, found)) for name, use in uses.items()]
    return pages.section(html.escape(title), "", pages.table("", heads(found), rows), layout="wide")


def _row(name: str, row: list[str]) -> list[str]:
    return [html.escape(cell) for cell in (name, *row)]


def _capacities(found: Usage) -> Figure:
    """A bar for each month, of what became of the machine."""
    names = list(found.month_capacity)
    layers: list[Layer] = []
    base = dict.fromkeys(names, 0.0)
    for place, (field, label) in enumerate(_CAPACITY.items()):
        bars = []
        for month, name in enumerate(names):
            share = getattr(found.month_capacity[name], field) or 0.0
            bars.append(
                Bar(month - 0.4, month + 0.4, base[name], base[name] + share, name, f"{label}: {share:.1%}")
            )
            base[name] += share
        if any(bar.top > bar.base for bar in bars):
            layers.append(Layer("bars", bars, None if field == "idle" else place, label))
    top = max(1.0, *base.values())
    return Figure(
        Axis("month", ends=(-0.5, len(names) - 0.5), ticks=list(enumerate(names)), names=names),
        Axis("share of the core hours", ends=(0.0, top)),
        layers,
    )


def _waits(found: Usage) -> Figure | None:
    """Median and 95th percentile of the waits of the jobs that were submitted in a month."""
    names, layers = list(found.months), []
    fields = [("median_wait", "median"), ("p95_wait", "95 %")]
    if found.simulated:
        fields.append(("simulated_median_wait", "median, simulated"))
    for place, (field, label) in enumerate(fields):
        known = [(month, getattr(found.months[name], field)) for month, name in enumerate(names)]
        points = [
            Point(month, wait, names[month], f"{label}: {time_text(wait)}")
            for month, wait in known
            if wait is not None
        ]
        layers += [Layer("line", points, place, label), Layer("dots", points, place)]
    most = max(
        (point.y for layer in layers for point in layer.marks if isinstance(point, Point)), default=0.0
    )
    if not most:
        return None
    axis = Axis(
        "month of the submission", ends=(-0.5, len(names) - 0.5), ticks=list(enumerate(names)), names=names
    )
    return Figure(axis, Axis("wait", "s", ends=(0.0, most)), layers)
