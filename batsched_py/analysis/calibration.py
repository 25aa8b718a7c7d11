"""How far a simulation may be trusted for a log: simulated beside recorded waits, and a verdict."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.analysis import pages
from batsched_py.analysis.schedule import started
from batsched_py.workload.columns import group
from batsched_py.workload.description.jobs import CLASSES, class_numbers, spearman
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.swf.log import DAY, Floats, Integers, SwfLog, local_time, start_of

#: Two waits are near each other if they differ by no more than this many seconds,
NEAR_SECONDS = 600.0

#: or if the longer one is at most so many times the shorter one.
NEAR_FACTOR = 2.0


class Waits(Struct, frozen=True, kw_only=True):
    """What is compared of some jobs; times are in seconds."""

    jobs: int
    mean_recorded: float
    mean_simulated: float
    median_recorded: float
    median_simulated: float
    rank_correlation: float | None
    """Spearman's: 1 if jobs are in the same order by both waits; none where one of them does not vary."""
    near: float
    """The share of jobs whose two waits are near each other."""
    only_recorded: float
    """The share of jobs that waited for long in the log and hardly in the simulation."""
    only_simulated: float
    """The share of jobs for which it was the other way round."""

    @classmethod
    def of(cls, recorded: Floats, simulated: Floats) -> Waits:
        """The comparison of some waits, job by job; there must be one job at least."""
        short, long = np.minimum(recorded, simulated), np.maximum(recorded, simulated)
        near = (long - short <= NEAR_SECONDS) | (long <= NEAR_FACTOR * short)
        hardly = short <= long / 10
        return cls(
            jobs=len(recorded),
            mean_recorded=float(recorded.mean()),
            mean_simulated=float(simulated.mean()),
            median_recorded=float(np.median(recorded)),
            median_simulated=float(np.median(simulated)),
            rank_correlation=spearman(recorded, simulated),
            near=float(near.mean()),
            only_recorded=float((~near & hardly & (recorded > simulated)).mean()),
            only_simulated=float((~near & hardly & (recorded < simulated)).mean()),
        )

    @property
    def factor(self) -> float:
        """How many times the smaller of the two means the larger one is; 1 where both are hardly anything."""
        low, high = sorted((self.mean_recorded, self.mean_simulated))
        return 1.0 if high <= NEAR_SECONDS / 10 else high / low if low else float("inf")


def causes(log: SwfLog, hosts: int) -> dict[str, int]:
    """How many jobs each cause concerns; those that concern none are left out."""
    executed = ~log.never_started & (log.processors > 0)
    estimated = log.requested_time > 0
    found = {
        _machine(log, hosts): np.ones(len(log), dtype=bool),
        "larger than the machine, so they are rejected": executed & (log.processors > hosts),
        "started when more processors were in use than the machine has": executed & _above(log, hosts),
        "cancelled while they waited": log.never_started,
        "without a recorded wait": executed & (log.wait < 0),
        "without a requested time": executed & ~estimated,
        "ran for longer than they had requested": executed & estimated & (log.run_time > log.requested_time),
        "name a preceding job, for which a simulation does not wait": executed & (log.preceding_job > 0),
        "in one of several partitions, which are simulated as one machine": executed
        & _in_several(log.partition),
        "in one of several queues, whose priorities and limits are not simulated": executed
        & _in_several(log.queue),
    }
    found.pop("", None)
    return {kind: int(jobs.sum()) for kind, jobs in found.items() if jobs.any()}


def _machine(log: SwfLog, hosts: int) -> str:
    """What is uncertain about the size of the machine, if anything is."""
    if log.machine_size is None:
        return "recorded on a machine of unknown size"
    if any(kind.startswith("size of the machine") for kind in log.guessed):
        return "recorded on a machine whose size was guessed from its use"
    if log.machine_size != hosts:
        return f"recorded on a machine of {log.machine_size:,} processors, not {hosts:,}"
    return ""


def _in_several(numbers: Integers) -> NDArray[np.bool_]:
    """The jobs that are in any of the parts with a number, if there are several."""
    known = numbers >= 0
    return known & (len(np.unique(numbers[known])) > 1)


def _above(log: SwfLog, hosts: int) -> NDArray[np.bool_]:
    """The jobs with which the use of the machine is above its size."""
    sizes = np.where(log.never_started, 0, np.maximum(log.processors, 0))
    starts = log.submit + np.maximum(log.wait, 0)
    times = np.concatenate([starts, starts + log.run_time])
    order = np.lexsort((np.repeat([1, 0], len(log)), times))
    in_use = np.empty(len(times), dtype=np.int64)
    in_use[order] = np.cumsum(np.concatenate([sizes, -sizes])[order])
    return in_use[: len(log)] > hosts


Trust = Literal["good", "fair", "poor", "unknown"]

#: The largest factor between the means, the least rank correlation and the least share of near waits.
GOOD = (1.25, 0.7, 0.6)
FAIR = (2.0, 0.5, 0.4)

#: With fewer jobs nothing can be said.
FEWEST_JOBS = 100

WORDS: dict[Trust, str] = {
    "good": "The simulation is close to what happened. Its waits may be read as those of this machine, for "
    "groups of jobs as shown here, and so may differences between schedulers.",
    "fair": "The simulation resembles what happened. Compare schedulers and settings with it, but do not "
    "read its waits as those of this machine.",
    "poor": "The simulation does not show what happened on this machine. Take the log as a workload: what is "
    "found with it is about the simulated machine and scheduler, not about the recorded ones.",
    "unknown": "Nothing can be said: the log does not tell how long enough of its jobs waited.",
}


class Verdict(Struct, frozen=True, kw_only=True):
    """How far to trust, in one word and in several, and why."""

    trust: Trust
    words: str
    reasons: list[str]


def verdict(waits: Waits | None) -> Verdict:
    """The verdict on the waits of all jobs that can be compared."""
    if waits is None or waits.jobs < FEWEST_JOBS:
        count = 0 if waits is None else waits.jobs
        reasons = [f"{count:,} jobs can be compared; {FEWEST_JOBS} are needed"]
        return Verdict(trust="unknown", words=WORDS["unknown"], reasons=reasons)
    correlation = waits.rank_correlation or 0.0
    trust: Trust = "poor"
    limits: tuple[tuple[Trust, tuple[float, float, float]], ...] = (("fair", FAIR), ("good", GOOD))
    for word, (factor, least_correlation, least_near) in limits:
        if waits.factor <= factor and correlation >= least_correlation and waits.near >= least_near:
            trust = word
    reasons = [
        f"mean waits differ by a factor of {waits.factor:.2f} (good: at most {GOOD[0]:g}, fair: {FAIR[0]:g})",
        f"the rank correlation of waits is {correlation:.2f} (good: at least {GOOD[1]:g}, fair: {FAIR[1]:g})",
        f"{waits.near:.0%} of the jobs have a wait near the recorded one (good: at least {GOOD[2]:.0%}, "
        f"fair: {FAIR[2]:.0%})",
    ]
    return Verdict(trust=trust, words=WORDS[trust], reasons=reasons)


#: The ways in which jobs are grouped.
GROUPINGS = ("partition", "class", "month", "user")


class Calibration(Struct, frozen=True, kw_only=True):
    """Simulated beside recorded waits of a log's jobs."""

    log: str
    """The name of its file."""
    scheduler: str
    hosts: int
    jobs: int
    """In the log."""
    waits: Waits | None
    """Of all jobs that can be compared; none if there is none."""
    groups: dict[str, dict[str, Waits]]
    """The same by partition, class, month and user; the busiest partitions and users first."""
    utilization_recorded: float | None
    """The share of the machine that these jobs used, from the first submission to the last finish."""
    utilization_simulated: float | None
    causes: dict[str, int]
    """What may explain differences: how many jobs each concerns."""
    verdict: Verdict
    percentiles: list[tuple[float, float]]
    """Recorded and simulated waits, each in growing order, at every percent."""
    cells: list[tuple[int, int, int]]
    """How many jobs there are by recorded and simulated wait, each as a power of two of minutes."""

    def save(self, path: str | Path) -> None:
        """Write it as a page."""
        write_calibration_page(path, self)


def calibration(log: SwfLog, schedule: pd.DataFrame, hosts: int, scheduler: str) -> Calibration:
    """Compare a log with the schedule of its replay on so many hosts.

    Compared are the jobs that were executed in both, and whose recorded wait is known.
    """
    ran = started(schedule)
    simulated_waits = pd.Series(ran["waiting_time"].to_numpy(), index=ran["job_id"])
    waits = simulated_waits.reindex(log.job_number.astype(str)).to_numpy()
    compared = (log.wait >= 0) & ~np.isnan(waits) & ~log.never_started
    part, simulated = log.select(compared), waits[compared]
    overall = Waits.of(part.wait, simulated) if len(part) else None
    return Calibration(
        log=Path(log.path).name or "a log",
        scheduler=scheduler,
        hosts=hosts,
        jobs=len(log),
        waits=overall,
        groups={name: _grouped(part, simulated, name) for name in GROUPINGS},
        utilization_recorded=_utilization(part, part.wait, hosts) if overall else None,
        utilization_simulated=_utilization(part, simulated, hosts) if overall else None,
        causes=causes(log, hosts),
        verdict=verdict(overall),
        percentiles=percentiles_of(part.wait, simulated) if overall else [],
        cells=cells_of(part.wait, simulated),
    )


def nearest(fits: Sequence[Calibration]) -> Calibration:
    """The policy whose mean wait is nearest to the recorded one; EASY where no waits are known."""

    def far(fit: Calibration) -> tuple[float, bool]:
        return float("inf") if fit.waits is None else fit.waits.factor, fit.scheduler != "easy"

    return min(fits, key=far)


def _grouped(log: SwfLog, simulated: Floats, grouping: str) -> dict[str, Waits]:
    """The waits of the jobs of each group."""
    names, codes = np.unique(_labels(log, grouping), return_inverse=True)
    places = group(codes, len(names)) if len(names) else []
    found = {
        str(name): Waits.of(log.wait[chosen], simulated[chosen])
        for name, chosen in zip(names.tolist(), places, strict=True)
    }
    if grouping in ("class", "month"):
        return found
    return dict(sorted(found.items(), key=lambda item: -item[1].jobs))


def _labels(log: SwfLog, grouping: str) -> NDArray[Any]:
    if grouping == "class":
        return np.array(CLASSES)[class_numbers(log.run_time, log.processors)]
    if grouping == "month":
        if start_of(log) is None:
            numbers = ((log.submit - log.submit.min(initial=np.inf)) // (30 * DAY)).astype(np.int64) + 1
            return np.array([f"30 days, {number:02}" for number in numbers.tolist()], dtype=object)
        return local_time(log, log.submit).astype("datetime64[M]").astype(str)
    names = names_of(log, grouping).astype(object)
    return np.where(names == "", "unknown", names)


def _utilization(log: SwfLog, waits: Floats, hosts: int) -> float | None:
    starts = log.submit + waits
    length = float((starts + log.run_time).max() - log.submit.min())
    work = float(log.run_time @ np.maximum(log.processors, 0))
    return work / (hosts * length) if length > 0 else None


def percentiles_of(recorded: Floats, simulated: Floats) -> list[tuple[float, float]]:
    """Recorded and simulated waits, each in growing order, at every percent."""
    points = np.arange(101)
    both = (np.percentile(waits, points).tolist() for waits in (recorded, simulated))
    return list(zip(*both, strict=True))


def cells_of(recorded: Floats, simulated: Floats) -> list[tuple[int, int, int]]:
    """How many jobs there are by recorded and simulated wait, each as a power of two of minutes."""
    powers = [np.floor(np.log2(np.maximum(waits / 60, 0.5))).astype(int) for waits in (recorded, simulated)]
    cells, counts = np.unique(np.stack(powers), axis=1, return_counts=True)
    return [(one, two, count) for (one, two), count in zip(cells.T.tolist(), counts.tolist(), strict=True)]


#: Ticks of an axis of waits, in minutes.
_MINUTES: Final = (
    (0.5, "< 1 min"), (3, "3 min"), (10, "10 min"), (60, "1 h"), (360, "6 h"), (1440, "1 d"), (10080, "1 w"),
    (43200, "30 d"),
)  # fmt: skip


def all_figures(found: Calibration) -> dict[str, pages.Figure | None]:
    """The figures by their names; None where nothing can be compared."""
    if found.waits is None:
        return dict.fromkeys(("distribution", "map", "months"))
    return {
        "distribution": distribution(found.percentiles),
        "map": map_of_waits(found.cells),
        "months": _months(found),
    }


def distribution(percentiles: Sequence[tuple[float, float]]) -> pages.Figure:
    """The share of jobs that wait no longer than so long."""
    highest = max(max(percentiles[-1]) / 60, 1.0)
    layers = []
    for place, name in enumerate(("recorded", "simulated")):
        points = []
        for percent, waits in enumerate(percentiles):
            text = f"{name}: at most {pages.time_text(waits[place])}"
            points.append(pages.Point(max(waits[place] / 60, 0.5), percent, f"{percent} %", text))
        layers.append(pages.Layer("steps", points, place, name))
    return pages.Figure(
        pages.Axis("wait", scale="log", ends=(0.5, highest), ticks=_MINUTES),
        pages.Axis("share of jobs", "%", ends=(0, 100)),
        layers,
    )


def map_of_waits(cells: Sequence[tuple[int, int, int]]) -> pages.Figure:
    """A cell for each pair of powers of two, the darker the more jobs it has."""
    total, most = sum(count for *_, count in cells), max(count for *_, count in cells)
    bars = [
        pages.Bar(
            2.0**one,
            2.0 ** (one + 1),
            2.0**two,
            2.0 ** (two + 1),
            f"{count:,} jobs ({count / total:.1%})",
            f"recorded from {_from(one)}, simulated from {_from(two)}",
            0.06 + 0.94 * (count / most) ** 0.5,
        )
        for one, two, count in cells
    ]
    highest = 2.0 ** (1 + max(max(one, two) for one, two, _ in cells))
    diagonal = [pages.Point(0.5, 0.5), pages.Point(highest, highest)]
    return pages.Figure(
        pages.Axis("recorded wait", scale="log", ends=(0.5, highest), ticks=_MINUTES),
        pages.Axis("simulated wait", scale="log", ends=(0.5, highest), ticks=_MINUTES),
        [pages.Layer("bars", bars), pages.Layer("line", diagonal, None)],
    )


def _from(power: int) -> str:
    return "0 s" if power < 0 else pages.time_text(60 * 2.0**power)


def _months(found: Calibration) -> pages.Figure | None:
    """The mean waits of each month, if there are several."""
    months = found.groups["month"]
    if len(months) < 2:
        return None
    layers = []
    for place, name in enumerate(("recorded", "simulated")):
        means = {month: getattr(waits, f"mean_{name}") for month, waits in months.items()}
        points = [
            pages.Point(number, mean, month, f"{name}: {pages.time_text(mean)}")
            for number, (month, mean) in enumerate(means.items())
        ]
        layers += [pages.Layer("line", points, place, name), pages.Layer("dots", points, place)]
    highest = max(max(waits.mean_recorded, waits.mean_simulated) for waits in months.values())
    ticks = list(enumerate(months))
    return pages.Figure(
        pages.Axis("month", ends=(-0.5, len(ticks) - 0.5), ticks=ticks),
        pages.Axis("mean wait", "s", ends=(0, max(highest, 1.0))),
        layers,
    )


_HEADS: Final = (
    "", "jobs", "mean, recorded", "mean, simulated", "median, recorded", "median, simulated",
    "rank correlation", "near",
)  # fmt: skip


def write_calibration_page(path: str | Path, found: Calibration) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"{found.log}, simulated and recorded"
    header = f"""<h1>{html.escape(title)}</h1>
<p class="note">Replayed as it was under {html.escape(found.scheduler)} on {found.hosts:,} hosts.</p>
<div id="tiles">{_tiles(found)}</div>"""
    sections = "\n".join(_sections(found))
    pages.write_figures_page(path, title, header, sections, all_figures(found))


def _tiles(found: Calibration) -> str:
    waits = found.waits
    shown = [("trust", str(found.verdict.trust), "how far a simulation may be trusted")]
    if waits is not None:
        mean, simulated_mean, median, simulated_median, correlation, near = _texts(waits)
        used, simulated_use = found.utilization_recorded, found.utilization_simulated
        shown += [
            ("jobs compared", f"{waits.jobs:,}", f"of {found.jobs:,}"),
            ("mean wait, simulated", simulated_mean, f"{mean} recorded"),
            ("median wait, simulated", simulated_median, f"{median} recorded"),
            ("rank correlation", correlation, "1 is the same order of jobs"),
            ("near", near, "within ten minutes or a factor of two"),
            (
                "utilization, simulated",
                pages.or_unknown(simulated_use, ".1%"),
                f"{pages.or_unknown(used, '.1%')} recorded",
            ),
        ]
    return pages.tiles(shown)


def _sections(found: Calibration) -> Iterator[str]:
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in found.verdict.reasons)
    title = f"Verdict: {found.verdict.trust}"
    yield pages.section(title, found.verdict.words, f"<ul>{reasons}</ul>", layout="wide")
    causes = [(html.escape(cause), f"{count:,}") for cause, count in found.causes.items()]
    yield pages.section(
        "What may explain differences",
        "What the log does not tell, and what is not simulated. Most logs say nothing of outages, "
        "reservations, dependencies, holds, limits and priorities either.",
        pages.table("", ("jobs that are or were", "jobs"), causes),
        layout="wide",
    )
    note = "There is no job whose recorded wait can be compared."
    if found.waits is not None:
        note = (
            f"{found.waits.only_recorded:.1%} of the jobs waited for long in the log and hardly in the "
            f"simulation; {found.waits.only_simulated:.1%} the other way round. If both waits were the same, "
            "all jobs would lie on the diagonal of the map. Drag across a figure to zoom in, double-click to "
            "see all of it again, hover for values."
        )
    share = pages.figure("Share of jobs that wait no longer", "distribution")
    yield pages.section("Waits", note, share, pages.figure("Jobs by both waits", "map"))
    for grouping, groups in found.groups.items():
        rows = [[html.escape(name), f"{waits.jobs:,}", *_texts(waits)] for name, waits in groups.items()]
        if len(rows) > 1:
            yield pages.section(
                f"By {grouping}",
                "Jobs are short up to an hour and narrow up to eight hosts." if grouping == "class" else "",
                pages.figure("Mean wait", "months") if grouping == "month" else "",
                pages.table("", _HEADS, rows),
                layout="wide",
            )


def _texts(waits: Waits) -> list[str]:
    """Means and medians, recorded and simulated, the rank correlation, and the share of near waits."""
    times = (waits.mean_recorded, waits.mean_simulated, waits.median_recorded, waits.median_simulated)
    correlation = pages.or_unknown(waits.rank_correlation, ".2f")
    return [*map(pages.time_text, times), correlation, f"{waits.near:.0%}"]
