"""The metrics of a schedule, each with its formula.

They are listed in :data:`METRICS` only: what the command prints and explains, and the documentation, come
from this list.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from operator import attrgetter, methodcaller
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis import user_metrics
from batsched_py.analysis.outcome import TAU, Outcome
from batsched_py.analysis.schedule import INSTANT
from batsched_py.analysis.user_metrics import noted
from batsched_py.protocol.jobs import JobState

DAY: Final = 86400.0

#: What a metric summarises: a number for each executed job.
Values = Callable[[Outcome], NDArray[np.float64]]

SYMBOLS: Final = (
    "For each job, a is its submission, s its start, f its finish and r = f - s its run time. n is the "
    "number of all jobs, rejected ones among them, and m the number of those that were executed. Sums and "
    "maxima go over the jobs that were executed."
)

_EXECUTED: Final = "Rejected jobs do not count, killed jobs with the times they had."


#: The parts of an outcome that it may lack. Of these only the recorded submissions are known for each user.
Part = Literal[
    "recorded",
    "consumed_joules",
    "lost_seconds",
    "energy_cost",
    "carbon",
    "decisions",
    "working_sessions",
    "patient_jobs",
    "pending_jobs",
    "sober_jobs",
    "joules_around_windows",
    "failed_executions",
]


@dataclass(frozen=True)
class Metric:
    """A number that summarises a schedule."""

    name: str
    unit: str
    formula: str
    """For readers, in the symbols of :data:`SYMBOLS`."""
    compute: Callable[[Outcome], float]
    counting: str = _EXECUTED
    """How rejected and killed jobs count."""
    per_user: bool = True
    """Whether it makes sense for the jobs of one user."""
    needs: Part | None = None
    """The part of an outcome that it needs; if that is missing, so is the metric."""


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _count(state: JobState) -> Callable[[Outcome], float]:
    return lambda outcome: int(outcome.rows.ended(state).sum())


def _noting(key: str, value: str) -> Callable[[Outcome], float]:
    return lambda outcome: int((noted(outcome.schedule, key) == value).sum())


def _family(
    counting: str,
    rows: Mapping[str, tuple[str, str, Callable[[Any], float]]],
    per_user: bool = True,
    needs: Part | None = None,
) -> Iterator[Metric]:
    """Metrics that count jobs in the same way, by name: unit, formula, and how each is computed.

    The part of an outcome that they need is there when they are computed.
    """
    return (Metric(name, *row, counting, per_user, needs) for name, row in rows.items())


def _spent(outcome: Any, column: str) -> float:
    """The host seconds of all executions together that were useful, lost or overhead."""
    return float(outcome.failed_executions[column].sum())


def _column(name: str) -> Values:
    return methodcaller("column", name)


_slowdown: Final = attrgetter("slowdown")
_bounded_slowdown: Final = attrgetter("bounded_slowdown")


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those that are numbers: the slowdown of a job that took no time at all is none."""
    return values[~np.isnan(values)]


def _per_processor_slowdown(outcome: Outcome) -> NDArray[np.float64]:
    work = np.maximum(outcome.column("execution_time"), outcome.bound) * np.maximum(outcome.nb_held, 1)
    return np.maximum(outcome.column("turnaround_time") / work, 1.0)


def _area_weighted_turnaround(outcome: Outcome) -> float:
    areas = outcome.column("execution_time") * outcome.nb_held
    return _ratio(float(areas @ outcome.column("turnaround_time")), float(areas.sum()))


def _share_of_top_percent(outcome: Outcome) -> float:
    values = np.sort(outcome.bounded_slowdown)
    return _ratio(values[len(values) - ceil(len(values) / 100) :].sum(), values.sum())


def _means_of_users(outcome: Outcome) -> NDArray[Any]:
    """The mean bounded slowdown of each user, in growing order."""
    import pandas as pd

    users = user_metrics.users_of(outcome.schedule, outcome.recorded_or_refused).to_numpy()
    of_jobs = pd.Series(users, outcome.schedule.index).reindex(outcome.executed.index)
    return np.sort(pd.Series(outcome.bounded_slowdown).groupby(of_jobs.to_numpy()).mean().to_numpy())


def _jain(outcome: Outcome) -> float:
    means = _means_of_users(outcome)
    return _ratio(means.sum() ** 2, len(means) * (means**2).sum())


def _gini(outcome: Outcome) -> float:
    means = _means_of_users(outcome)
    places = 2 * np.arange(1, len(means) + 1) - len(means) - 1
    return _ratio((places * means).sum(), len(means) * means.sum())


def _mean_and_max(
    name: str,
    unit: str,
    term: str,
    values: Values,
    counting: str = _EXECUTED,
    remark: str = "",
) -> Iterator[Metric]:
    """The mean of something over executed jobs, and its maximum."""
    yield Metric(
        f"mean_{name}",
        unit,
        f"sum {term} / m{remark}",
        lambda outcome: _ratio(np.nansum(values(outcome)), len(outcome.ran)),
        counting,
    )
    yield Metric(
        f"max_{name}",
        unit,
        f"max {term}",
        lambda outcome: float(np.fmax.reduce(values(outcome))) if len(outcome.ran) else 0.0,
        counting,
    )


def _quantile(percent: int, values: Values, outcome: Outcome) -> float:
    """Between the two nearest values, as ``numpy.percentile``, of which the first call takes long."""
    known = _known(values(outcome))
    if not len(known):
        return float("nan")
    place = (len(known) - 1) * (percent / 100)
    low = int(place)
    high = min(low + 1, len(known) - 1)
    known.partition((low, high))
    first, second, share = float(known[low]), float(known[high]), place - low
    step = second - first
    return first + step * share if share < 0.5 else second - step * (1 - share)


def _percentiles(name: str, unit: str, term: str, values: Values) -> Iterator[Metric]:
    """The median of something over executed jobs, and what 95 % and 99 % of them do not exceed."""
    abouts = {50: "the median of", 95: "the 95th percentile of", 99: "the 99th percentile of"}
    for percent, about in abouts.items():
        yield Metric(
            f"p{percent}_{name}",
            unit,
            f"{about} {term}",
            partial(_quantile, percent, values),
            "Rejected jobs are left out, killed jobs count with the times they had.",
        )


_SHORT: Final = f" A job of no length counts with r = {INSTANT:g} s, as in Batsim."
_FAILED: Final = "Rejected jobs have used nothing. Only where failures have ended executions of jobs."
_BUSY: Final = "With users who react, over the time until 90 % of the jobs are submitted."
_BOUNDED: Final = f"max(1, (f - a) / max(r, tau)), tau = {TAU:g} s unless told otherwise"
_NOTED: Final = "Rejected and killed jobs count."

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "nb_jobs",
        "jobs",
        "n, the number of jobs",
        lambda outcome: len(outcome.rows),
        _NOTED,
    ),
    Metric(
        "nb_jobs_finished",
        "jobs",
        "number of jobs that were executed",
        lambda outcome: len(outcome.ran),
        "Rejected jobs do not count, killed jobs do.",
    ),
    Metric(
        "nb_jobs_success",
        "jobs",
        "number of jobs that ended COMPLETED_SUCCESSFULLY",
        _count(JobState.SUCCESS),
        "Neither rejected nor killed jobs count.",
    ),
    Metric(
        "nb_jobs_killed",
        "jobs",
        "number of jobs that were executed and did not end COMPLETED_SUCCESSFULLY",
        lambda outcome: len(outcome.ran) - _count(JobState.SUCCESS)(outcome),
        "As in Batsim: those that reached their walltime, were killed by the scheduler, or failed.",
    ),
    Metric(
        "nb_jobs_rejected",
        "jobs",
        "number of jobs that ended REJECTED",
        _count(JobState.REJECTED),
        "Killed jobs do not count.",
    ),
    Metric(
        "nb_jobs_pending",
        "jobs",
        "number of jobs whose note says pending=...",
        lambda outcome: len(noted(outcome.schedule, "pending")),
        "Jobs that wait in the end, for nothing can start them; they are among the rejected ones.",
        needs="pending_jobs",
    ),
    Metric(
        "makespan",
        "s",
        "max f - min a",
        lambda outcome: outcome.makespan,
        "The submission of a rejected job counts; a killed job finishes when it is killed.",
        per_user=False,
    ),
    *_mean_and_max("waiting_time", "s", "(s - a)", _column("waiting_time")),
    *_mean_and_max("turnaround_time", "s", "(f - a)", _column("turnaround_time")),
    *_mean_and_max("slowdown", "", "((f - a) / r)", _slowdown, _EXECUTED + _SHORT),
    *_mean_and_max("bounded_slowdown", "", _BOUNDED, _bounded_slowdown),
    *_mean_and_max(
        "stretch",
        "",
        "(column stretch)",
        _column("stretch"),
        _EXECUTED + _SHORT,
        remark=", which is the slowdown as Batsim printed it",
    ),
    *_percentiles("waiting_time", "s", "(s - a)", _column("waiting_time")),
    *_percentiles("turnaround_time", "s", "(f - a)", _column("turnaround_time")),
    *_percentiles("slowdown", "", "((f - a) / r)", _slowdown),
    *_percentiles("bounded_slowdown", "", _BOUNDED, _bounded_slowdown),
    *_family(
        _EXECUTED,
        {
            "share_of_top_percent": (
                "",
                "the part of the sum of all bounded slowdowns that the 1 % of the jobs with the largest have",
                _share_of_top_percent,
            ),
            "mean_per_processor_slowdown": (
                "",
                "sum max(1, (f - a) / (hosts of the job * max(r, tau))) / m, after Zotkin and Keleher (1999)",
                lambda outcome: _ratio(_per_processor_slowdown(outcome).sum(), len(outcome.ran)),
            ),
            "area_weighted_turnaround_time": (
                "s",
                "sum (r * hosts of the job * (f - a)) / sum (r * hosts of the job), the response time of "
                "Boezennec et al. (2023)",
                _area_weighted_turnaround,
            ),
        },
    ),
    *_family(
        f"{_EXECUTED} Only where users are known.",
        {
            "jain_index": (
                "",
                "(sum x)^2 / (users * sum x^2), x the mean bounded slowdown of each user; 1 if all are equal",
                _jain,
            ),
            "gini_index": (
                "",
                "sum over pairs of users of the difference of their x / (users * sum x); 0 if all are equal",
                _gini,
            ),
        },
        per_user=False,
        needs="recorded",
    ),
    Metric(
        "utilization",
        "",
        "sum (r * hosts of the job) / (hosts of the machine * makespan)",
        lambda outcome: _ratio(outcome.busy.host_seconds, outcome.busy.machine_size * outcome.busy.makespan),
        f"Rejected jobs use nothing; killed jobs use their hosts until they are killed. {_BUSY}",
        per_user=False,
    ),
    Metric(
        "offered_load",
        "",
        "sum over jobs of (r * hosts of the job) / (hosts of the machine * time from the first to the last "
        "submission)",
        lambda outcome: _ratio(outcome.submitted_work, outcome.machine_size * outcome.submitting),
        f"Rejected jobs offer nothing that is known, killed jobs what they had. {_BUSY}",
        per_user=False,
    ),
    Metric(
        "throughput",
        "jobs/day",
        "number of jobs that were executed / makespan",
        lambda outcome: _ratio(outcome.busy.nb_ended, outcome.busy.makespan / DAY),
        f"Rejected jobs do not count, killed jobs do. {_BUSY}",
        per_user=False,
    ),
    *_family(
        f"Rejected jobs do not count: nothing tells how long they waited. Killed jobs count. {_BUSY}",
        {
            "mean_queue_length": (
                "jobs",
                "sum (s - a) / makespan, the average over time",
                lambda outcome: _ratio(outcome.busy.waited_seconds, outcome.busy.makespan),
            ),
            "max_queue_length": (
                "jobs",
                "max over time t of the number of jobs with a <= t < s",
                lambda outcome: outcome.max_queue_length,
            ),
        },
        per_user=False,
    ),
    Metric(
        "consumed_joules",
        "J",
        "sum over all hosts of the power they draw over time, from the first submission to max f",
        lambda outcome: outcome.consumed_joules or 0.0,
        "Idle and sleeping hosts draw power too. Only where energy is accounted for.",
        needs="consumed_joules",
    ),
    *_family(
        "It is about no job. Only where decisions are measured (`--decisions`).",
        {
            "scheduling_time": (
                "s",
                "sum over all decisions of their processor time",
                lambda outcome: float(outcome.decisions["decision_seconds"].sum()),
            ),
            "mean_decision_time": (
                "ms",
                "1000 * sum over all decisions of their processor time / number of decisions",
                lambda outcome: 1000.0 * float(outcome.decisions["decision_seconds"].mean()),
            ),
            "mean_memory": (
                "B",
                "sum over all decisions of the memory of the process / number of decisions",
                lambda outcome: float(outcome.decisions["memory_bytes"].mean()),
            ),
            "max_memory": (
                "B",
                "max over all decisions of the memory of the process",
                lambda outcome: float(outcome.decisions["memory_bytes"].max()),
            ),
        },
        per_user=False,
        needs="decisions",
    ),
    *_family(
        f"{_EXECUTED} Only where a simulation records what links carry (`--links`).",
        {
            "mean_slowdown_by_contention": (
                "",
                "sum (r / run time alone on the same hosts) / m",
                lambda outcome: _ratio(outcome.slowdown_by_contention.sum(), len(outcome.ran)),
            ),
            "max_slowdown_by_contention": (
                "",
                "max (r / run time alone on the same hosts)",
                lambda outcome: float(outcome.slowdown_by_contention.max()) if len(outcome.ran) else 0.0,
            ),
        },
        needs="lost_seconds",
    ),
    *_family(
        "Rejected and killed jobs count like all others: they were submitted.",
        {
            "mean_lateness": (
                "s",
                "sum over all jobs of (a - recorded a) / n",
                lambda outcome: user_metrics.mean_lateness(outcome.lateness),
            ),
            "relative_lateness": (
                "",
                "1 + mean_lateness / (last recorded a - first recorded a)",
                lambda outcome: user_metrics.relative_lateness(outcome.lateness),
            ),
            "additional_lateness": (
                "s",
                "2 * mean_lateness / (n - 1)",
                lambda outcome: user_metrics.additional_lateness(outcome.lateness),
            ),
        },
        needs="recorded",
    ),
    *_family(
        "Rejected jobs are left out. Only where jobs tell their users.",
        {
            "nb_sessions": (
                "",
                "number of jobs with a > 20 min + the last f before of the same user, and of the first job "
                "of each",
                lambda outcome: len(outcome.working_sessions),
            ),
            "jobs_per_session": (
                "jobs",
                "number of jobs that were executed / nb_sessions",
                lambda outcome: _ratio(len(outcome.ran), len(outcome.working_sessions)),
            ),
            "mean_session_length": (
                "s",
                "sum over sessions of (last f - first a) / nb_sessions",
                lambda outcome: float(
                    (outcome.working_sessions["end"] - outcome.working_sessions["begin"]).mean()
                ),
            ),
        },
        needs="working_sessions",
    ),
    *_family(
        f"{_NOTED} Only with users who may lose patience.",
        {
            "nb_departures": (
                "",
                "number of jobs whose note says left=..., each a user who lost patience with it",
                lambda outcome: len(noted(outcome.schedule, "left")),
            ),
            "nb_departures_for_good": (
                "",
                "number of jobs whose note says left=for-good",
                _noting("left", "for-good"),
            ),
            "nb_jobs_abandoned": (
                "jobs",
                "sum of abandoned=... (never submitted) + number of jobs whose note says withdrawn=...",
                lambda outcome: user_metrics.nb_abandoned(outcome.schedule),
            ),
        },
        needs="patient_jobs",
    ),
    *(
        Metric(
            name,
            "jobs",
            f"number of jobs whose note says sober={deed}",
            _noting("sober", deed),
            f"{_NOTED} Only with sober users.",
            needs="sober_jobs",
        )
        for name, deed in (
            ("nb_jobs_put_off", "later"),
            ("nb_jobs_on_fewer_hosts", "fewer"),
            ("nb_jobs_doing_less", "less"),
            ("nb_jobs_shortened", "shorter"),
            ("nb_jobs_given_up", "gave-up"),
        )
    ),
    *_family(
        "Rejected jobs draw nothing. What idle hosts draw does not count. Only where energy is accounted "
        "for.",
        {
            "joules_in_windows": (
                "J",
                "sum over jobs of their joules * the share of r that lies inside windows of sober users",
                lambda outcome: outcome.joules_around_windows[0],
            ),
            "joules_after_windows": (
                "J",
                "the same for the day after each window, as far as it lies outside of all windows",
                lambda outcome: outcome.joules_around_windows[1],
            ),
        },
        needs="joules_around_windows",
    ),
    Metric(
        "energy_cost",
        "",
        "integral over time of power in kW * price of a kWh, from 0 to max f",
        lambda outcome: outcome.energy_cost or 0.0,
        "Idle and sleeping hosts draw power too. Only with --energy and --price.",
        needs="energy_cost",
    ),
    Metric(
        "carbon",
        "g",
        "integral over time of power in kW * grams of CO2 of a kWh, from 0 to max f",
        lambda outcome: outcome.carbon or 0.0,
        "Idle and sleeping hosts draw power too. Only with --energy and --carbon.",
        needs="carbon",
    ),
    Metric(
        "goodput",
        "",
        "(sum over jobs that ended well of (r - overhead) * hosts + sum over executions that a failure ended "
        "of saved * hosts) / (hosts of the machine * makespan)",
        lambda outcome: _ratio(_spent(outcome, "useful"), outcome.machine_size * outcome.makespan),
        _FAILED,
        per_user=False,
        needs="failed_executions",
    ),
    *_family(
        _FAILED,
        {
            "lost_work": (
                "host s",
                "sum over executions that a failure ended of (r - saved - overhead) * hosts",
                lambda outcome: _spent(outcome, "lost"),
            ),
            "checkpoint_work": (
                "host s",
                "sum of overhead * hosts, the time that was spent on checkpoints",
                lambda outcome: _spent(outcome, "overhead"),
            ),
            "nb_restarts": (
                "",
                "number of executions whose note says restart=..., each handed in again after a failure",
                lambda outcome: len(noted(outcome.schedule, "restart")),
            ),
        },
        needs="failed_executions",
    ),
)


#: What says something about a whole run only, and nothing about a window of it.
OF_WHOLE_RUNS: Final = frozenset({"makespan", "goodput"})


def measure(outcome: Outcome) -> dict[str, float]:
    """All metrics for which the outcome has the data, by name.

    Of a window, means and maxima go over the jobs that are submitted in it; utilization, throughput and the
    lengths of the queue are those of the machine between its begin and its end.
    """
    return {
        metric.name: metric.compute(outcome)
        for metric in METRICS
        if (metric.needs is None or getattr(outcome, metric.needs) is not None)
        and (outcome.window is None or metric.name not in OF_WHOLE_RUNS)
    }


def measure_users(outcome: Outcome) -> dict[str, dict[str, float]]:
    """The metrics that make sense for the jobs of one user, by user."""
    return measure_parts(outcome.by_user())


def measure_parts(
    parts: Mapping[str, Outcome], names: Collection[str] | None = None
) -> dict[str, dict[str, float]]:
    """The metrics that make sense for some of the jobs, such as those of one user, by the name of the part.

    With ``names``, only those of them are computed.
    """
    wanted = [metric for metric in METRICS if names is None or metric.name in names]
    return {
        name: {
            metric.name: metric.compute(part)
            for metric in wanted
            if metric.per_user and metric.needs in ((None,) if part.recorded is None else (None, "recorded"))
        }
        for name, part in parts.items()
    }


def explain() -> str:
    """The metrics and their formulas, in Markdown."""
    head = "| metric | unit | formula | rejected and killed jobs |\n| --- | --- | --- | --- |"
    rows = [f"| `{each.name}` | {each.unit} | {each.formula} | {each.counting} |" for each in METRICS]
    return "\n".join([SYMBOLS, "", head, *rows])
