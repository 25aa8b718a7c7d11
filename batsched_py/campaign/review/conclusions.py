"""Checks of what is concluded: dominance of few jobs, statistics, baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, Final

from batsched_py.analysis.runs import FEWEST, SIGNIFICANT, aggregate, dependence, sign_test
from batsched_py.analysis.runs.comparisons import UNITS, Comparison, compare
from batsched_py.analysis.windows import Window
from batsched_py.campaign.review import Check, LogFacts, Looks, StudiedRun, Study, Verdict

if TYPE_CHECKING:
    import pandas as pd

#: The jobs that may dominate a mean: those of its highest percent.
TOP: Final = 0.01

#: From this share of a mean on, these jobs are worth a word.
LARGE: Final = 0.25

#: With fewer units than this a test hardly ever shows anything.
ENOUGH: Final = 5

#: From this lag-1 autocorrelation of parts on, a test finds more than it should: at 0.3 in 14 % of noise
#: where 5 % are allowed, at 0.5 in 25 % (``python -m benchmarks.conclusions DIR dependent``).
DEPENDENT: Final = 0.3
VERY_DEPENDENT: Final = 0.5

#: Figures beside a mean that may say the opposite, and how much that matters.
_OTHERWISE: Final[tuple[tuple[str, float, Verdict], ...]] = (
    ("by the median", 0.5, "fail"),
    ("by the 95th percentile", 0.95, "warn"),
)

#: What the arrivals of a log decide, unless users react or the machine is saturated.
OF_THE_LOAD: Final = frozenset({"makespan", "utilization", "throughput", "offered_load"})

#: Two logs that have more of their jobs in common than this, by user, size and request, are one.
SAME_JOBS: Final = 0.8

#: What a mean of each metric goes over; of others, single jobs are not known.
OF_JOBS: Final = ("mean_waiting_time", "mean_turnaround_time", "mean_bounded_slowdown", "mean_slowdown")


def _values(run: StudiedRun, metric: str) -> pd.DataFrame:
    """The value of each executed job that is measured, and its user if the log has it (else -1)."""
    import numpy as np
    import pandas as pd

    assert run.outcome is not None
    outcome = run.outcome()
    if run.windows:
        ends = [window.end for window in run.windows.values()]
        last = None if None in ends else max(end for end in ends if end is not None)
        outcome = outcome.within(Window(min(window.begin for window in run.windows.values()), last))
    match metric:
        case "mean_waiting_time":
            values = outcome.column("waiting_time")
        case "mean_turnaround_time":
            values = outcome.column("turnaround_time")
        case "mean_slowdown":
            values = outcome.slowdown
        case _:
            values = outcome.bounded_slowdown
    jobs = outcome.executed["job_id"].astype(str)
    known = {} if run.log is None else run.log.users
    users = jobs.map(known).fillna(-1).to_numpy(np.int64)
    return pd.DataFrame({"value": values, "job": jobs.to_numpy(), "user": users})


def dominance(study: Study) -> Iterator[Check]:
    """Whether few jobs make the means, and conclusions hold without them and for other figures."""
    metrics = [metric for metric in study.metrics if metric in OF_JOBS] or ["mean_waiting_time"]
    known = [run for run in study.runs if run.outcome is not None]
    if not known:
        return
    shares = {}
    for run in known:
        values = _values(run, metrics[0])["value"].sort_values(ascending=False)
        total = float(values.sum())
        shares[run.name] = float(values.iloc[: _top(len(values))].sum()) / total if total > 0 else 0.0
    name, share = max(shares.items(), key=lambda each: each[1])
    about = f"1% of the jobs carry up to {share:.0%} of {metrics[0]} ({name})"
    remedy = "show medians and p95 beside means, and the result without these jobs"
    fallen = list(_fallen(study, metrics)) if study.is_campaign else []
    if not fallen:
        yield Check("dominance", "warn" if share > LARGE else "ok", about, remedy)
    for verdict in dict.fromkeys(each[0] for each in fallen):
        found = {how: text for its, how, text in reversed(fallen) if its == verdict}
        texts = "; ".join(f"{how}, {text}" for how, text in reversed(found.items()))
        yield Check("dominance", verdict, f"{about}; {texts}", remedy)


def _top(count: int) -> int:
    """How many jobs are the highest percent."""
    return max(1, int(TOP * count))


def _fallen(study: Study, metrics: Sequence[str]) -> Iterator[tuple[Verdict, str, str]]:
    """The differences that are shown and turn round: how much it matters, how, and what is then said."""
    by_place = {
        tuple(sorted(aggregate.place_without(run_of(run), "seed"))): run for run in study.runs if run.outcome
    }
    axis = (aggregate.Baseline.parse(study.baseline) or aggregate.Baseline("")).axis
    for each in _conclusions(study):
        if each.metric not in metrics:
            continue
        better, worse = (
            next((run for run in by_place.values() if _is_at(run, each.where | {axis: name})), None)
            for name in (each.better, each.worse)
        )
        if better is None or worse is None:
            continue
        for verdict, how in _turned(_values(better, each.metric), _values(worse, each.metric)):
            where = ", ".join(each.where.values())
            text = f"{each.worse} is better than {each.better} in {each.metric}, and not the other way round"
            yield verdict, how, f"{text} ({where})"


def _turned(better: pd.DataFrame, worse: pd.DataFrame) -> Iterator[tuple[Verdict, str]]:
    """How the better mean of two runs is not the better one; that a tail is worse is worth a word only."""
    import pandas as pd

    top = {job for table in (better, worse) for job in table.nlargest(_top(len(table)), "value")["job"]}
    rest = [table.loc[~table["job"].isin(top), "value"].mean() for table in (better, worse)]
    if rest[0] > rest[1]:
        yield "fail", "without these"
    sums = pd.concat([better, worse]).groupby("user")["value"].sum().drop(-1, errors="ignore")
    if len(sums) > 1:
        user = int(sums.idxmax())
        others = [table.loc[table["user"] != user, "value"].mean() for table in (better, worse)]
        if others[0] > others[1]:
            yield "fail", f"without the jobs of user {user}"
    for name, share, verdict in _OTHERWISE:
        found = [table["value"].quantile(share) for table in (better, worse)]
        if found[0] > found[1]:
            yield verdict, name


def run_of(run: StudiedRun) -> aggregate.MeasuredRun:
    """What is measured first of a run."""
    return run.measured[0]


def _is_at(run: StudiedRun, place: dict[str, str]) -> bool:
    return all(run.axes.get(axis) == name for axis, name in place.items())


def _conclusions(study: Study) -> list[Comparison]:
    """The differences that the tests of the tables show."""
    return [each for each in _compared(study) if each.is_shown]


def _compared(study: Study) -> list[Comparison]:
    measured = [each for run in study.runs for each in run.measured]
    return compare(measured, list(study.metrics), study.baseline, study.own, study.unit)


#: What is to be done where there are too few units.
_REMEDY = "measure at least five parts of each log (`parts`), or name other `units`"


def statistics(study: Study) -> Iterator[Check]:
    """Whether there are enough units, independent of each other, to tell a difference from chance."""
    if not study.is_campaign:
        return
    measured: list[aggregate.MeasuredRun] = [each for run in study.runs for each in run.measured]
    planned = [run.axes | {"part": part} for run in study.runs for part in [*run.windows] or [""]]
    axes = [dict(each.axes) for each in measured] or planned
    unit = study.unit or next((axis for axis in ("part", "seed") if len(_choices(axes, axis)) > 1), "")
    if not unit:
        text = "there is one run of each kind: nothing can be told from chance"
        yield Check("statistics", "fail", text, _REMEDY)
        return
    count = _count(axes, unit)
    yield _of_units(study, axes, unit, count)
    if measured and count >= FEWEST:
        yield from _tests(study)
    if unit == "part" and measured and count >= FEWEST:
        yield from _clustering(study, measured)


def _choices(axes: Sequence[Mapping[str, str]], axis: str) -> set[str]:
    """The choices that there are on an axis."""
    return {each.get(axis, "") for each in axes} - {""}


def _count(axes: Sequence[Mapping[str, str]], unit: str) -> int:
    """How many units there are, of the log with the fewest."""
    logs = {each.get("log") for each in axes}
    if unit == "log":
        return len(logs)
    return min(len(_choices([each for each in axes if each.get("log") == log], unit)) for log in logs)


def _of_units(study: Study, axes: Sequence[Mapping[str, str]], unit: str, count: int) -> Check:
    """Whether so many units are enough, and what they are about."""
    if unit == "seed" and all(run.is_population for run in study.runs) and count >= FEWEST:
        text = f"{count} seeds, each another population of the users of a log"
        return Check("statistics", "ok" if count >= ENOUGH else "warn", text, "more seeds")
    if unit == "seed":
        text = f"{count} seeds on one workload are about chance in the policy, not about workloads"
        return Check("statistics", "fail", text, _REMEDY)
    if count < FEWEST:
        return Check("statistics", "fail", f"{count} {unit}s are too few for any test", _REMEDY)
    seeds = len({each.get("seed") for each in axes})
    within = f", {seeds} seeds averaged within each" if seeds > 1 else ""
    if count >= ENOUGH:
        return Check("statistics", "ok", f"{count} {unit}s{within}", _REMEDY)
    return Check("statistics", "warn", f"only {count} {unit}s{within}", _REMEDY)


def _tests(study: Study) -> Iterator[Check]:
    """Whether the differences that are shown are so in most units, and not large in a few of them only."""
    tested = _compared(study)
    shown = [each for each in tested if each.is_shown]
    skewed = [
        each
        for each in shown
        if each.paired.sign_p_value >= SIGNIFICANT > sign_test([1.0] * each.paired.nb_units)
    ]
    about = f"{len(shown)} of {len(tested)} tested differences are shown"
    if skewed:
        first = skewed[0]
        text = (
            f"{about}; in {len(skewed)} of them the sign test does not agree, so a few {UNITS[first.units]} "
            f"make them ({first.better} and {first.worse}, {first.metric}: {first.paired.sign_p_value:.2g})"
        )
        yield Check("tests", "warn", text, "show these differences one by one, or measure more of them")
    elif tested:
        yield Check("tests", "ok", f"{about}, and the sign test contradicts none")


def _clustering(study: Study, measured: Sequence[aggregate.MeasuredRun]) -> Iterator[Check]:
    """Whether successive parts depend on each other: in each log, over all rows and metrics."""
    baseline = aggregate.Baseline.parse(study.baseline)
    unit = aggregate.unit_of(measured, "part")
    partners = aggregate.partners_of(measured, baseline) if baseline else {}
    groups: list[aggregate.Group[aggregate.MeasuredRun]] = aggregate.grouped(
        measured, lambda run: aggregate.place_without(run, *aggregate.repeated_axes(unit))
    )
    series: dict[str, list[list[float]]] = {}
    for group in groups:
        if group.unstable or (baseline and baseline.is_of(group.runs[0])):
            continue
        for metric in study.metrics:
            if baseline:
                pairs = aggregate.pairs_of(metric, group.runs, partners)
                values = [
                    *aggregate.means_by_unit(((run, mine - its) for run, mine, its in pairs), unit).values()
                ]
            else:
                values = [*group.by_unit(metric, unit).values()]
            series.setdefault(group.runs[0].axes.get("log", ""), []).append(values)
    known = {log: found for log, values in series.items() if (found := dependence(values)) is not None}
    if not known:
        return
    log, worst = max(known.items(), key=lambda each: each[1])
    text = f"the lag-1 autocorrelation between parts is {worst:.2f} in {log}, over its rows and metrics"
    remedy = "longer parts: successive ones depend on each other, so there are fewer units than it seems"
    yield Check("clustering", clustered(series[log]), text, remedy)


def clustered(series: Sequence[Sequence[float]]) -> Verdict:
    """What to say of series that depend so much on what was before; a few short ones do so by chance."""
    found = dependence(series)
    if found is None or found <= DEPENDENT:
        return "ok"
    chance = 2 / sqrt(sum(map(len, series)))
    return "fail" if found > max(VERY_DEPENDENT, chance) else "warn"


def baselines(study: Study) -> Iterator[Check]:
    """Whether policies are compared with those that everybody knows, on more than one log."""
    if not study.is_campaign:
        return
    names = {run.scheduler for run in study.runs}
    if len(names) > 1 or not names & {"easy"}:
        if "easy" not in names:
            text = f"EASY is not among the {len(names)} policies"
            yield Check("baselines", "fail", text, "add scheduler easy")
        elif not any(_is_sjf_easy(run) for run in study.runs):
            text = f"EASY with the shortest job first is not among the {len(names)} policies"
            yield Check("baselines", "warn", text, "add scheduler easy-sjbf")
        else:
            yield Check("baselines", "ok", f"EASY and EASY by run time are among {len(names)} policies")
    yield from _generality({run.axes.get("log", ""): run.log for run in study.runs})


def _generality(logs: Mapping[str, LogFacts | None]) -> Iterator[Check]:
    """Whether there are several logs, and they are not one under several names."""
    remedy = "add logs of other machines, or say that it is about this one"
    if len(logs) == 1:
        yield Check("generality", "fail", "one log is no generalisation", remedy)
        return
    for (one, its), (other, others) in combinations(logs.items(), 2):
        if its is None or others is None or its.model or others.model:
            continue
        both = sum(min(count, others.kinds.get(kind, 0)) for kind, count in its.kinds.items())
        share = both / max(1, min(sum(its.kinds.values()), sum(others.kinds.values())))
        if share > SAME_JOBS:
            text = f"{one} and {other} are one log under two names: {share:.0%} of their jobs are the same"
            yield Check("generality", "fail", text, remedy)
            return
    yield Check("generality", "ok", f"{len(logs)} logs")


def _is_sjf_easy(run: StudiedRun) -> bool:
    return run.scheduler == "easy-sjbf" or (run.scheduler.startswith("easy") and run.order == "shortest")


def metrics(study: Study) -> Iterator[Check]:
    """Whether what is measured depends on who decides."""
    if not study.is_campaign or not study.metrics or any(run.users for run in study.runs):
        return
    given = [metric for metric in study.metrics if metric in OF_THE_LOAD]
    if len(given) == len(study.metrics):
        text = (
            f"{' and '.join(given)} of users who do not react tell what was submitted, not who decided, and "
            f"there are no metrics but these {len(given)}"
        )
        yield Check("metrics", "fail", text, "measure waits or slowdowns, too")
    else:
        yield Check("metrics", "ok", f"{len(study.metrics) - len(given)} metrics that depend on the policy")


def robustness(study: Study) -> Iterator[Check]:
    """Whether what is concluded in one place, such as one rule for sessions, is the opposite in another."""
    if not study.is_campaign:
        return
    shown = _conclusions(study)
    users = {run.axes.get("users", ""): run.users for run in study.runs}
    found: dict[tuple[str, frozenset[str]], tuple[Comparison, Comparison, bool]] = {}
    for one, other in combinations(shown, 2):
        key = one.metric, frozenset((one.better, one.worse))
        if one.better == other.better or key != (other.metric, frozenset((other.better, other.worse))):
            continue
        axes = [axis for axis, name in one.where.items() if other.where.get(axis) != name]
        is_rule = axes == ["users"] and users[one.where["users"]] == users[other.where["users"]]
        if key not in found or (is_rule and not found[key][2]):
            found[key] = one, other, is_rule
    for one, other, is_rule in found.values():
        here, there = (", ".join(each.where.values()) for each in (one, other))
        text = f"{one.better} is better than {one.worse} in {one.metric} with {here}, and worse with {there}"
        remedy = "say for which it holds; a conclusion that depends on a rule of the study is none"
        yield Check("robustness", "fail" if is_rule else "warn", text, remedy)
    rules = max(Counter(filter(None, users.values())).values(), default=0)
    if rules > 1 and not any(is_rule for *_, is_rule in found.values()):
        text = (
            f"none of {len(shown)} differences that are shown is the opposite under another of {rules} rules"
        )
        few = _under_few_rules(shown, users)
        remedy = "say for which rules it holds"
        yield Check("robustness", "warn" if few else "ok", "; ".join([text, *few]), remedy)


def _under_few_rules(shown: Sequence[Comparison], users: Mapping[str, str]) -> list[str]:
    """The differences that are shown under less than half of the rules for sessions of the same users."""
    rules = Counter(users.values())
    found: dict[tuple[str, ...], list[str]] = {}
    for each in shown:
        behaviour = users.get(each.where.get("users", ""), "")
        place = [name for axis, name in each.where.items() if axis != "users"]
        if behaviour:
            key = each.better, each.worse, each.metric, ", ".join(place), behaviour
            found.setdefault(key, []).append(each.where["users"])
    return [
        f"{better} better than {worse} in {metric} ({where}): shown with {', '.join(names)} only, not under "
        f"the other {rules[behaviour] - len(names)}"
        for (better, worse, metric, where, behaviour), names in found.items()
        if 2 * len(names) < rules[behaviour]
    ]


CHECKS: Final[tuple[Looks, ...]] = (dominance, statistics, baselines, metrics, robustness)
