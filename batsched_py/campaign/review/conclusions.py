"""Checks of what is concluded: dominance of few jobs, statistics, baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Final

from batsched_py.analysis.runs import FEWEST, lag_1
from batsched_py.analysis.runs.aggregate import (
    Baseline,
    Group,
    MeasuredRun,
    grouped,
    means_by_unit,
    pairs_of,
    partners_of,
    place_without,
    repeated_axes,
    unit_of,
)
from batsched_py.analysis.runs.comparisons import Comparison, compare
from batsched_py.campaign.review import Check, Looks, StudiedRun, Study

if TYPE_CHECKING:
    import pandas as pd

#: The jobs that may dominate a mean: those of its highest percent.
TOP: Final = 0.01

#: From this share of a mean on, these jobs are worth a word.
LARGE: Final = 0.25

#: With fewer units than this a test hardly ever shows anything.
ENOUGH: Final = 5

#: What a mean of each metric goes over; of others, single jobs are not known.
OF_JOBS: Final = ("mean_waiting_time", "mean_turnaround_time", "mean_bounded_slowdown", "mean_slowdown")


def _values(run: StudiedRun, metric: str) -> pd.DataFrame:
    """The value of each executed job, and its user where that is known."""
    import pandas as pd

    assert run.outcome is not None
    outcome = run.outcome()
    jobs = outcome.executed
    match metric:
        case "mean_waiting_time":
            values = jobs["waiting_time"]
        case "mean_turnaround_time":
            values = jobs["turnaround_time"]
        case "mean_slowdown":
            values = jobs["turnaround_time"] / jobs["execution_time"]
        case _:
            values = (jobs["turnaround_time"] / jobs["execution_time"].clip(lower=10.0)).clip(lower=1.0)
    return pd.DataFrame({"value": values.to_numpy(), "job": jobs["job_id"].to_numpy()})


def dominance(study: Study) -> Iterator[Check]:
    """Whether few jobs make the means, and conclusions hold without them, and for the median job."""
    metrics = [metric for metric in study.metrics if metric in OF_JOBS] or ["mean_waiting_time"]
    known = [run for run in study.runs if run.outcome is not None]
    if not known:
        return
    shares = {}
    for run in known:
        values = _values(run, metrics[0])["value"].sort_values(ascending=False)
        total = float(values.sum())
        shares[run.name] = (
            float(values.iloc[: max(1, int(TOP * len(values)))].sum()) / total if total > 0 else 0.0
        )
    name, share = max(shares.items(), key=lambda each: each[1])
    about = f"1% of the jobs carry up to {share:.0%} of {metrics[0]} ({name})"
    remedy = "show medians and p95 beside means, and the result without these jobs"
    fallen = list(_fallen(study, metrics)) if study.is_campaign else []
    if fallen:
        yield Check("dominance", "fail", f"{about}; {fallen[0]}", remedy)
    else:
        yield Check("dominance", "warn" if share > LARGE else "ok", about, remedy)


def _fallen(study: Study, metrics: Sequence[str]) -> Iterator[str]:
    """The differences that are shown and turn round without the top jobs of both."""
    by_place = {tuple(sorted(place_without(run_of(run), "seed"))): run for run in study.runs if run.outcome}
    for each in _conclusions(study):
        if each.metric not in metrics:
            continue
        axis = (Baseline.parse(study.baseline) or Baseline("")).axis
        pair = [
            next((run for run in by_place.values() if _is_at(run, each.where | {axis: name})), None)
            for name in (each.better, each.worse)
        ]
        if pair[0] is None or pair[1] is None:
            continue
        better, worse = (_values(run, each.metric) for run in pair if run is not None)
        top = set(better.nlargest(max(1, int(TOP * len(better))), "value")["job"])
        top |= set(worse.nlargest(max(1, int(TOP * len(worse))), "value")["job"])
        means = [float(table.loc[~table["job"].isin(top), "value"].mean()) for table in (better, worse)]
        if means[0] > means[1]:
            yield (
                f"without these, {each.worse} is better than {each.better} in {each.metric}, and not the "
                "other way round"
            )


def run_of(run: StudiedRun) -> MeasuredRun:
    """What is measured first of a run."""
    return run.measured[0]


def _is_at(run: StudiedRun, place: dict[str, str]) -> bool:
    return all(run.axes.get(axis) == name for axis, name in place.items())


def _conclusions(study: Study) -> list[Comparison]:
    """The differences that the tests of the tables show."""
    measured = [each for run in study.runs for each in run.measured]
    found = compare(measured, list(study.metrics), study.baseline, study.own, study.unit)
    return [each for each in found if each.is_shown]


def statistics(study: Study) -> Iterator[Check]:
    """Whether there are enough units, independent of each other, to tell a difference from chance."""
    if not study.is_campaign:
        return
    measured: list[MeasuredRun] = [each for run in study.runs for each in run.measured]
    planned = [run.axes | {"part": part} for run in study.runs for part in [*run.windows] or [""]]
    axes = [dict(each.axes) for each in measured] or planned
    unit = study.unit or next(
        (axis for axis in ("part", "seed") if len({each.get(axis, "") for each in axes} - {""}) > 1), ""
    )
    remedy = "measure at least five parts of each log (`parts`), or name other `units`"
    if not unit:
        yield Check(
            "statistics", "fail", "there is one run of each kind: nothing can be told from chance", remedy
        )
        return
    count = (
        min(
            len({each.get(unit, "") for each in axes if each.get("log") == log} - {""})
            for log in {each.get("log") for each in axes}
        )
        if unit != "log"
        else len({each.get("log") for each in axes})
    )
    if unit == "seed":
        text = f"{count} seeds on one workload are about chance in the policy, not about workloads"
        yield Check("statistics", "fail", text, remedy)
    elif count < FEWEST:
        yield Check("statistics", "fail", f"{count} {unit}s are too few for any test", remedy)
    else:
        verdict, text = ("ok", f"{count} {unit}s") if count >= ENOUGH else ("warn", f"only {count} {unit}s")
        seeds = len({each.get("seed") for each in axes})
        within = f", {seeds} seeds averaged within each" if seeds > 1 else ""
        yield Check("statistics", "warn" if verdict == "warn" else "ok", f"{text}{within}", remedy)
    if unit == "part" and measured and count >= FEWEST:
        yield from _clustering(study, measured)


def _clustering(study: Study, measured: Sequence[MeasuredRun]) -> Iterator[Check]:
    """Whether successive parts depend on each other."""
    worst, where, count = 0.0, "", 0
    baseline = Baseline.parse(study.baseline)
    unit = unit_of(measured, "part")
    partners = partners_of(measured, baseline) if baseline else {}
    groups: list[Group[MeasuredRun]] = grouped(measured, lambda run: place_without(run, *repeated_axes(unit)))
    for group in groups:
        if group.unstable or (baseline and baseline.is_of(group.runs[0])):
            continue
        for metric in study.metrics:
            if baseline:
                pairs = pairs_of(metric, group.runs, partners)
                values = [*means_by_unit(((run, mine - its) for run, mine, its in pairs), unit).values()]
            else:
                values = [*group.by_unit(metric, unit).values()]
            found = lag_1(values)
            if found is not None and found > worst:
                worst, where, count = found, f"{metric} of {', '.join(group.axes.values())}", len(values)
    if not where:
        return
    text = f"lag-1 autocorrelation between parts is at most {worst:.2f} ({where})"
    remedy = "longer parts: successive ones depend on each other, so there are fewer units than it seems"
    yield Check("clustering", "fail" if worst > 2 / sqrt(count) else "ok", text, remedy)


def baselines(study: Study) -> Iterator[Check]:
    """Whether policies are compared with those that everybody knows, on more than one log."""
    if not study.is_campaign:
        return
    names = {run.scheduler for run in study.runs}
    if len(names) > 1 or not names & {"easy"}:
        if "easy" not in names:
            yield Check("baselines", "fail", "EASY is not among the policies", "add scheduler easy")
        elif not any(_is_sjf_easy(run) for run in study.runs):
            text = "EASY with the shortest job first is not among the policies"
            yield Check("baselines", "warn", text, "add scheduler easy-sjbf")
        else:
            yield Check("baselines", "ok", f"EASY and EASY by run time are among {len(names)} policies")
    logs = {run.axes.get("log") for run in study.runs}
    if len(logs) == 1:
        remedy = "add logs of other machines, or say that it is about this one"
        yield Check("generality", "fail", "one log is no generalisation", remedy)
    else:
        yield Check("generality", "ok", f"{len(logs)} logs")


def _is_sjf_easy(run: StudiedRun) -> bool:
    return run.scheduler == "easy-sjbf" or (run.scheduler.startswith("easy") and "sjf" in run.order)


CHECKS: Final[tuple[Looks, ...]] = (dominance, statistics, baselines)
