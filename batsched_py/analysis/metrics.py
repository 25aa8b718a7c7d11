"""The metrics of a schedule, each with its formula.

They are listed in :data:`METRICS` only: what the command prints and explains, and the documentation, come
from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Final, Literal

import pandas as pd

from batsched_py.analysis import user_metrics
from batsched_py.analysis.outcome import Outcome, nb_restarts, queue_length
from batsched_py.analysis.schedule import INSTANT
from batsched_py.protocol.jobs import JobState

DAY: Final = 86400.0

#: Bound of the bounded slowdown, in seconds: shorter jobs count as if they ran for this long.
TAU: Final = 10.0


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

    @property
    def is_known_of_users(self) -> bool:
        """Whether it is computed for the jobs of each user as well."""
        return self.per_user and self.needs in (None, "recorded")


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _count(state: JobState) -> Callable[[Outcome], float]:
    return lambda outcome: int((outcome.schedule["final_state"] == state).sum())


def _of_decisions(column: str, what: str, scale: float = 1.0) -> Callable[[Outcome], float]:
    def compute(outcome: Outcome) -> float:
        assert outcome.decisions is not None
        return scale * float(outcome.decisions[column].agg(what))

    return compute


def _did(deed: str) -> Callable[[Outcome], float]:
    return lambda outcome: int((user_metrics.noted(outcome.schedule, "sober") == deed).sum())


def _joules(place: int) -> Callable[[Outcome], float]:
    return lambda outcome: (outcome.joules_around_windows or (0.0, 0.0))[place]


def _spent(column: str, outcome: Outcome) -> float:
    """The host seconds of all executions together that were useful, lost or overhead."""
    assert outcome.failed_executions is not None
    return float(outcome.failed_executions[column].sum())


def _sessions(outcome: Outcome) -> pd.DataFrame:
    assert outcome.working_sessions is not None
    return outcome.working_sessions


def _slowdown(jobs: pd.DataFrame) -> pd.Series[float]:
    return jobs["turnaround_time"] / jobs["execution_time"]


def _bounded_slowdown(jobs: pd.DataFrame) -> pd.Series[float]:
    return (jobs["turnaround_time"] / jobs["execution_time"].clip(lower=TAU)).clip(lower=1.0)


def _mean_and_max(
    name: str,
    unit: str,
    term: str,
    column: Callable[[pd.DataFrame], pd.Series[float]],
    counting: str = _EXECUTED,
    remark: str = "",
) -> Iterator[Metric]:
    """The mean of something over executed jobs, and its maximum."""
    yield Metric(
        f"mean_{name}",
        unit,
        f"sum {term} / m{remark}",
        lambda outcome: _ratio(column(outcome.executed).sum(), len(outcome.executed)),
        counting,
    )
    yield Metric(
        f"max_{name}",
        unit,
        f"max {term}",
        lambda outcome: float(column(outcome.executed).max()) if len(outcome.executed) else 0.0,
        counting,
    )


def _quantile(share: float, column: Callable[[pd.DataFrame], pd.Series[float]], outcome: Outcome) -> float:
    return float(column(outcome.executed).quantile(share))


def _percentiles(
    name: str, unit: str, term: str, column: Callable[[pd.DataFrame], pd.Series[float]]
) -> Iterator[Metric]:
    """The median of something over executed jobs, and what 95 % of them do not exceed."""
    for percent, about in ((50, "the median of"), (95, "the 95th percentile of")):
        yield Metric(
            f"p{percent}_{name}",
            unit,
            f"{about} {term}",
            partial(_quantile, percent / 100, column),
            "Rejected jobs are left out, killed jobs count with the times they had.",
        )


_SHORT: Final = f" A job of no length counts with r = {INSTANT:g} s, as in Batsim."
_SUBMITTED: Final = "Rejected and killed jobs count like all others: they were submitted."

_DRAWN: Final = (
    "Rejected jobs draw nothing. What idle hosts draw does not count. Only where energy is accounted for."
)
_SHARED: Final = f"{_EXECUTED} Only where a simulation records what links carry (`--links`)."
_FAILED: Final = "Rejected jobs have used nothing. Only where failures have ended executions of jobs."
_MEASURED: Final = "It is about no job. Only where decisions are measured (`--decisions`)."
_NOTED: Final = "Rejected and killed jobs count."
_WORKED: Final = "Rejected jobs are left out. Only where jobs tell their users."

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "nb_jobs",
        "jobs",
        "n, the number of jobs",
        lambda outcome: len(outcome.schedule),
        "Rejected and killed jobs count.",
    ),
    Metric(
        "nb_jobs_finished",
        "jobs",
        "number of jobs that were executed",
        lambda outcome: len(outcome.executed),
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
        lambda outcome: len(outcome.executed) - _count(JobState.SUCCESS)(outcome),
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
        "makespan",
        "s",
        "max f - min a",
        lambda outcome: outcome.makespan,
        "The submission of a rejected job counts; a killed job finishes when it is killed.",
        per_user=False,
    ),
    *_mean_and_max("waiting_time", "s", "(s - a)", itemgetter("waiting_time")),
    *_mean_and_max("turnaround_time", "s", "(f - a)", itemgetter("turnaround_time")),
    *_mean_and_max("slowdown", "", "((f - a) / r)", _slowdown, _EXECUTED + _SHORT),
    *_mean_and_max("bounded_slowdown", "", f"max(1, (f - a) / max(r, {TAU:g} s))", _bounded_slowdown),
    *_mean_and_max(
        "stretch",
        "",
        "(column stretch)",
        itemgetter("stretch"),
        _EXECUTED + _SHORT,
        remark=", which is the slowdown as Batsim printed it",
    ),
    *_percentiles("waiting_time", "s", "(s - a)", itemgetter("waiting_time")),
    *_percentiles("turnaround_time", "s", "(f - a)", itemgetter("turnaround_time")),
    *_percentiles("slowdown", "", "((f - a) / r)", _slowdown),
    *_percentiles("bounded_slowdown", "", f"max(1, (f - a) / max(r, {TAU:g} s))", _bounded_slowdown),
    Metric(
        "utilization",
        "",
        "sum (r * hosts of the job) / (hosts of the machine * makespan)",
        lambda outcome: _ratio(outcome.host_seconds, outcome.machine_size * outcome.makespan),
        "Rejected jobs use nothing; killed jobs use their hosts until they are killed.",
        per_user=False,
    ),
    Metric(
        "throughput",
        "jobs/day",
        "number of jobs that were executed / makespan",
        lambda outcome: _ratio(len(outcome.executed), outcome.makespan / DAY),
        "Rejected jobs do not count, killed jobs do.",
        per_user=False,
    ),
    Metric(
        "mean_queue_length",
        "jobs",
        "sum (s - a) / makespan, the average over time",
        lambda outcome: _ratio(outcome.executed["waiting_time"].sum(), outcome.makespan),
        "Rejected jobs do not count: nothing tells how long they waited. Killed jobs count.",
        per_user=False,
    ),
    Metric(
        "max_queue_length",
        "jobs",
        "max over time t of the number of jobs with a <= t < s",
        lambda outcome: int(queue_length(outcome.schedule).max()) if len(outcome.executed) else 0,
        "Rejected jobs do not count: nothing tells how long they waited. Killed jobs count.",
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
    Metric(
        "scheduling_time",
        "s",
        "sum over all decisions of their processor time",
        _of_decisions("decision_seconds", "sum"),
        _MEASURED,
        per_user=False,
        needs="decisions",
    ),
    Metric(
        "mean_decision_time",
        "ms",
        "1000 * sum over all decisions of their processor time / number of decisions",
        _of_decisions("decision_seconds", "mean", 1000.0),
        _MEASURED,
        per_user=False,
        needs="decisions",
    ),
    Metric(
        "mean_memory",
        "B",
        "sum over all decisions of the memory of the process / number of decisions",
        _of_decisions("memory_bytes", "mean"),
        _MEASURED,
        per_user=False,
        needs="decisions",
    ),
    Metric(
        "max_memory",
        "B",
        "max over all decisions of the memory of the process",
        _of_decisions("memory_bytes", "max"),
        _MEASURED,
        per_user=False,
        needs="decisions",
    ),
    Metric(
        "mean_slowdown_by_contention",
        "",
        "sum (r / run time alone on the same hosts) / m",
        lambda outcome: _ratio(outcome.slowdown_by_contention.sum(), len(outcome.executed)),
        _SHARED,
        needs="lost_seconds",
    ),
    Metric(
        "max_slowdown_by_contention",
        "",
        "max (r / run time alone on the same hosts)",
        lambda outcome: float(outcome.slowdown_by_contention.max()) if len(outcome.executed) else 0.0,
        _SHARED,
        needs="lost_seconds",
    ),
    Metric(
        "mean_lateness",
        "s",
        "sum over all jobs of (a - recorded a) / n",
        lambda outcome: user_metrics.mean_lateness(outcome.lateness),
        _SUBMITTED,
        needs="recorded",
    ),
    Metric(
        "relative_lateness",
        "",
        "1 + mean_lateness / (last recorded a - first recorded a)",
        lambda outcome: user_metrics.relative_lateness(outcome.lateness),
        _SUBMITTED,
        needs="recorded",
    ),
    Metric(
        "additional_lateness",
        "s",
        "2 * mean_lateness / (n - 1)",
        lambda outcome: user_metrics.additional_lateness(outcome.lateness),
        _SUBMITTED,
        needs="recorded",
    ),
    Metric(
        "nb_sessions",
        "",
        "number of jobs with a > 20 min + the last f before of the same user, and of the first job of each",
        lambda outcome: len(_sessions(outcome)),
        _WORKED,
        needs="working_sessions",
    ),
    Metric(
        "jobs_per_session",
        "jobs",
        "number of jobs that were executed / nb_sessions",
        lambda outcome: _ratio(len(outcome.executed), len(_sessions(outcome))),
        _WORKED,
        needs="working_sessions",
    ),
    Metric(
        "mean_session_length",
        "s",
        "sum over sessions of (last f - first a) / nb_sessions",
        lambda outcome: float((_sessions(outcome)["end"] - _sessions(outcome)["begin"]).mean()),
        _WORKED,
        needs="working_sessions",
    ),
    Metric(
        "nb_departures",
        "",
        "number of jobs whose note says left=..., each a user who lost patience with it",
        lambda outcome: len(user_metrics.noted(outcome.schedule, "left")),
        _NOTED + " Only with users who may lose patience.",
        needs="patient_jobs",
    ),
    Metric(
        "nb_departures_for_good",
        "",
        "number of jobs whose note says left=for-good",
        lambda outcome: int((user_metrics.noted(outcome.schedule, "left") == "for-good").sum()),
        _NOTED + " Only with users who may lose patience.",
        needs="patient_jobs",
    ),
    Metric(
        "nb_jobs_abandoned",
        "jobs",
        "sum of abandoned=... (never submitted) + number of jobs whose note says withdrawn=...",
        lambda outcome: user_metrics.nb_abandoned(outcome.schedule),
        _NOTED + " Only with users who may lose patience.",
        needs="patient_jobs",
    ),
    *(
        Metric(
            name,
            "jobs",
            f"number of jobs whose note says sober={deed}",
            _did(deed),
            _NOTED + " Only with sober users.",
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
    Metric(
        "joules_in_windows",
        "J",
        "sum over jobs of their joules * the share of r that lies inside windows of sober users",
        _joules(0),
        _DRAWN,
        needs="joules_around_windows",
    ),
    Metric(
        "joules_after_windows",
        "J",
        "the same for the day after each window, as far as it lies outside of all windows",
        _joules(1),
        _DRAWN,
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
        lambda outcome: _ratio(_spent("useful", outcome), outcome.machine_size * outcome.makespan),
        _FAILED,
        per_user=False,
        needs="failed_executions",
    ),
    Metric(
        "lost_work",
        "host s",
        "sum over executions that a failure ended of (r - saved - overhead) * hosts",
        partial(_spent, "lost"),
        _FAILED,
        needs="failed_executions",
    ),
    Metric(
        "checkpoint_work",
        "host s",
        "sum of overhead * hosts, the time that was spent on checkpoints",
        partial(_spent, "overhead"),
        _FAILED,
        needs="failed_executions",
    ),
    Metric(
        "nb_restarts",
        "",
        "number of executions whose note says restart=..., each handed in again after a failure",
        lambda outcome: nb_restarts(outcome.schedule),
        _FAILED,
        needs="failed_executions",
    ),
)


def measure(outcome: Outcome) -> dict[str, float]:
    """All metrics for which the outcome has the data, by name."""
    return {
        metric.name: metric.compute(outcome)
        for metric in METRICS
        if metric.needs is None or getattr(outcome, metric.needs) is not None
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
    wanted = [
        metric for metric in METRICS if metric.is_known_of_users and (names is None or metric.name in names)
    ]
    return {
        name: {
            metric.name: metric.compute(part)
            for metric in wanted
            if metric.needs is None or part.recorded is not None
        }
        for name, part in parts.items()
    }


def explain() -> str:
    """The metrics and their formulas, in Markdown."""
    lines = [
        SYMBOLS,
        "",
        "| metric | unit | formula | rejected and killed jobs |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{metric.name}` | {metric.unit} | {metric.formula} | {metric.counting} |" for metric in METRICS
    ]
    return "\n".join(lines)
