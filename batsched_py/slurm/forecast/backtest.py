"""How good forecasts are: a log is replayed, and at many moments the start of every waiting job is asked for.

The log is simulated under a policy; when jobs start there is what forecasts are held against. At a moment,
a forecast knows which jobs run and wait, and of the past what had happened by then. It does not know how long
jobs will run, nor who submits what next: both are drawn (:mod:`.history`). Earlier forecasts, of jobs that
have started since, tell by how much intervals must be stretched (:mod:`.intervals`). The later half of the
moments is scored.
"""

from __future__ import annotations

import gc
import html
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis import pages
from batsched_py.api.log import Log
from batsched_py.api.simulate import simulate
from batsched_py.api.terminal import shown
from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.slurm.forecast.history import History, Past
from batsched_py.slurm.forecast.intervals import TAIL, Stretch
from batsched_py.slurm.jobs import WORKLOAD
from batsched_py.slurm.policy.job import FIELD
from batsched_py.slurm.policy.priorities import age_part
from batsched_py.slurm.policy.settings import Configuration, Priority, read_configuration
from batsched_py.slurm.scenario import CONFIGURATION, WORKLOAD_FILE, configuration_text
from batsched_py.workload.batsim_json import write_batsim_json
from batsched_py.workload.description.jobs import CLASSES, class_numbers
from batsched_py.workload.model import Workload
from batsched_py.workload.sources import read_log
from batsched_py.workload.swf.conventions import profile_name
from batsched_py.workload.swf.log import DAY, HOUR, WEEK, Floats, SwfLog

#: Jobs keep coming in a forecast until all who wait would have started by limits, within these bounds.
LEAST_AHEAD, MOST_AHEAD = 6 * HOUR, 14 * DAY

#: Moments are asked about after this share of the jobs, which are there to learn from.
LEARNED = 1 / 3

#: The conservative plan by limits is what Slurm's backfill loop plans, and shows as StartTime.
PLAN = "conservative"


def settled(configuration: Configuration) -> Configuration:
    """The configuration, under which all jobs that run at a moment are started again at once."""
    scheduling = replace(
        configuration.scheduling,
        default_queue_depth=1 << 30,
        partition_job_depth=0,
        sched_max_job_start=0,
        batch_sched_delay=0.0,
        defer=False,
    )
    return replace(configuration, scheduling=scheduling)


class Score(Struct, frozen=True, kw_only=True):
    """How good some forecasts were; errors are in seconds."""

    asked: int
    """How many: one for each job and moment."""
    covered: float
    """The share of starts within the interval."""
    too_early: float
    """The share of starts before it."""
    too_late: float
    median_width: float
    """The median length of the intervals."""
    median_error: float
    mean_error: float
    median_error_by_limits: float
    """If all jobs ran as long as they may, and nobody came."""
    mean_error_by_limits: float
    median_error_by_plan: float
    """By a plan for all jobs with their limits, like Slurm's own StartTime."""
    mean_error_by_plan: float


class Backtest(Struct, frozen=True, kw_only=True):
    """What came of asking."""

    log: str
    policy: str
    seed: int
    draws: int
    moments: int
    """All of them; the later half is scored."""
    stretch_early: float
    """By how much the early halves of intervals are stretched at the last moment."""
    stretch_late: float
    covered_unstretched: float
    """The share of starts of the later half within intervals as they were drawn."""
    all: Score
    groups: dict[str, Score]
    """By the class of the jobs, those with most forecasts first."""


class _Replay:
    """A log that was simulated, and simulations that begin at a moment of it."""

    def __init__(self, log: SwfLog, policy: str, options: Mapping[str, str], hosts: int | None, room: Path):
        self._policy, self._options, self._file = policy, dict(options), room / WORKLOAD_FILE
        self._age = Priority()
        given = simulate(Log(log), policy, options=self._options, hosts=hosts, progress=False)
        self._hosts = given.overview.hosts
        if policy == "slurm":
            self._configure(room)
        table = given.jobs.dropna(subset=["starting_time"])
        table = table.sort_values("submission_time", kind="stable")
        self.starts: Floats = table["starting_time"].to_numpy()
        limits = np.maximum(table["requested_time"].to_numpy(), 1.0)
        ends = table["finish_time"].to_numpy()
        limits = np.where(np.isfinite(limits), limits, np.maximum(ends - self.starts, 1.0))
        sizes = table["requested_number_of_resources"].to_numpy().astype(np.int64)
        users = np.unique(table["user"].astype(str), return_inverse=True)[1].astype(np.int64)
        submits = table["submission_time"].to_numpy()
        self.history = History(submits, ends, ends - self.starts, limits, sizes, users)

    def _configure(self, room: Path) -> None:
        file = self._options.get("configuration_file")
        configuration = Configuration() if file is None else read_configuration(file)
        if configuration.priority.weight_fairshare:
            raise InputError(
                f"{file}: a back-test does not keep the usage of accounts; give a configuration without "
                "weight_fairshare"
            )
        self._age = configuration.priority
        (room / CONFIGURATION).write_text(configuration_text(settled(configuration)))
        self._options["configuration_file"] = str(room / CONFIGURATION)

    def simulated(
        self, jobs: Sequence[tuple[float, int, float, float, float]], policy: str | None = None
    ) -> Floats:
        """When jobs start, of which each has a submission, a size, a limit, a run time and a wait so far."""
        digits = len(str(len(jobs)))  # names are sorted as text where jobs come together
        made, profiles = [], {}
        for place, (at, size, limit, run_time, waited) in enumerate(jobs):
            profiles[profile_name(run_time)] = Delay(seconds=run_time)
            nice = -round(age_part(self._age, waited)) if self._age.type == "multifactor" else 0
            extra = {FIELD: {"nice": nice}} if nice and policy is None else {}
            name = f"{WORKLOAD}!{place:0{digits}}"
            made.append(Job(name, at, size, limit, profile_name(run_time), extra))
        made.sort(key=lambda job: (job.submission_time, job.id))
        write_batsim_json(self._file, Workload(WORKLOAD, made, profiles, self._hosts))
        table = simulate(
            str(self._file),
            policy or self._policy,
            options={} if policy else self._options,
            hosts=self._hosts,
            progress=False,
        ).jobs
        starts = np.full(len(jobs), inf)
        starts[table["job_id"].astype(int).to_numpy()] = table["starting_time"].to_numpy()
        starts[np.isnan(starts)] = inf
        return starts


def _asked(replay: _Replay, moment: float, draws: int, random: np.random.Generator) -> Floats:
    """The forecasts of all jobs that wait at a moment.

    Columns: which job, its start, what intervals begin with, medians, what they end with, by limits, by plan.
    """
    past, jobs, starts = replay.history.before(moment), replay.history, replay.starts
    running = np.flatnonzero((starts <= moment) & (jobs.end > moment))
    waiting = np.flatnonzero((jobs.submit <= moment) & (starts > moment))
    present = np.concatenate([running, waiting])
    ran = np.maximum(moment - starts[present], 0.0)
    waited = np.where(ran > 0, WEEK, moment - jobs.submit[present])
    left = np.maximum(jobs.limit[present] - ran, 1.0)

    def now(run_times: Floats) -> list[tuple[float, int, float, float, float]]:
        columns = (jobs.size[present], left, np.minimum(run_times, left), waited)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [(0.0, *row) for row in rows]

    def starts_of(drawn: Floats) -> Floats:
        return drawn[len(running) : len(present)]

    by_limits, by_plan = (starts_of(replay.simulated(now(left), policy)) for policy in (None, PLAN))
    finite = by_limits[np.isfinite(by_limits)]
    ahead = min(max(float(finite.max(initial=0.0)), LEAST_AHEAD), MOST_AHEAD)
    drawn = []
    for _ in range(draws):
        run_time = past.drawing(random)
        kinds = zip(jobs.user[present], jobs.size[present], jobs.limit[present], ran, strict=True)
        times = np.array(
            [run_time(int(user), int(size), limit, so_far) for user, size, limit, so_far in kinds]
        )
        coming = _coming(past, jobs, ahead, random, run_time)
        rest = np.maximum(np.round(times - ran), 1.0)
        drawn.append(starts_of(replay.simulated([*now(rest), *coming])))
    quantiles = np.quantile(np.array(drawn), (TAIL, 0.5, 1 - TAIL), axis=0, method="nearest")
    return np.column_stack([waiting, starts[waiting] - moment, *quantiles, by_limits, by_plan])


def _coming(
    past: Past,
    jobs: History,
    ahead: float,
    random: np.random.Generator,
    run_time: Callable[[int, int, float, float], float],
) -> list[tuple[float, int, float, float, float]]:
    """The jobs that are yet to come; run times that are not known yet are drawn."""
    coming: list[tuple[float, int, float, float, float]] = []
    for job, at in zip(*(column.tolist() for column in past.coming(random, ahead)), strict=True):
        user, size, limit = int(jobs.user[job]), int(jobs.size[job]), float(jobs.limit[job])
        ran = float(jobs.run_time[job]) if past.has_ended(job) else run_time(user, size, limit, 0.0)
        coming.append((at, size, limit, max(round(ran), 1), 0.0))
    return coming


def backtest(
    path: Path,
    policy: str,
    options: Mapping[str, str],
    hosts: int | None,
    moments: int,
    draws: int,
    seed: int,
) -> Backtest:
    """Replay a log, ask at some moments at which jobs wait, and score the forecasts of the later half."""
    log = read_log(path)
    log = log.select(~log.never_started)
    if not len(log):
        raise InputError(f"{path}: no job of this log ran")
    random = np.random.default_rng(seed)
    asked: list[Floats] = []
    with (
        TemporaryDirectory(prefix="backtest-") as room,
        shown("moments", lambda: (len(asked), moments)),
    ):
        replay = _Replay(log, policy, options, hosts, Path(room))
        at = _moments(replay, moments, random, path)
        for moment in at:
            asked.append(_asked(replay, moment, draws, random))
            gc.collect()  # many short simulations make much garbage that is searched for rarely
    half, stretch = len(asked) // 2, Stretch()
    intervals = [
        np.column_stack(stretch.intervals(moment, *rows[:, 1:5].T))
        for moment, rows in zip(at, asked, strict=True)
    ]
    late = np.concatenate([np.hstack(both) for both in zip(asked[half:], intervals[half:], strict=True)])
    jobs = late[:, 0].astype(np.int64)
    classes = class_numbers(replay.history.run_time[jobs], replay.history.size[jobs])
    groups = {CLASSES[number]: _score(late[classes == number]) for number in np.unique(classes).tolist()}
    return Backtest(
        log=path.name,
        policy=policy,
        seed=seed,
        draws=draws,
        moments=len(asked),
        stretch_early=stretch.early,
        stretch_late=stretch.late,
        covered_unstretched=_covered(late[:, 1], late[:, 2], late[:, 4])[0],
        all=_score(late),
        groups=dict(sorted(groups.items(), key=lambda item: -item[1].asked)),
    )


def _moments(replay: _Replay, count: int, random: np.random.Generator, path: Path) -> list[float]:
    """Moments at which jobs wait, drawn over all times at which some do, in their order."""
    submits, starts = replay.history.submit, replay.starts
    first = submits[int(len(submits) * LEARNED)]
    waits = np.flatnonzero((starts > submits) & (submits >= first))
    edges = _union(submits[waits], starts[waits])
    lengths = edges[:, 1] - edges[:, 0]
    if not len(edges) or lengths.sum() < count:
        raise InputError(f"{path}: too few jobs wait in the later two thirds of this log")
    places = np.sort(random.uniform(0.0, lengths.sum(), count))
    spans = np.searchsorted(np.cumsum(lengths), places)
    before = np.concatenate([[0.0], np.cumsum(lengths)])[spans]
    found: list[float] = np.round(edges[spans, 0] + places - before, 0).tolist()
    return [moment for moment in found if ((submits <= moment) & (starts > moment)).any()]


def _union(begins: Floats, ends: Floats) -> Floats:
    """The times that are in one of some spans, which are in the order of their begins.

    >>> _union(np.array([0.0, 2.0, 9.0]), np.array([5.0, 3.0, 10.0])).tolist()
    [[0.0, 5.0], [9.0, 10.0]]
    """
    reached = np.maximum.accumulate(ends)
    new = np.concatenate([[True], begins[1:] > reached[:-1]]) if len(begins) else np.empty(0, dtype=bool)
    last = np.flatnonzero(np.concatenate([new[1:], [True]])) if len(begins) else np.empty(0, dtype=np.int64)
    return np.column_stack([begins[new], reached[last]])


def _covered(starts: Floats, early: Floats, late: Floats) -> tuple[float, float, float]:
    """The shares of starts within intervals, before and after them, to the second."""
    before, after = starts < early - 1.0, starts > late + 1.0
    return float(np.mean(~before & ~after)), float(np.mean(before)), float(np.mean(after))


def _score(asked: Floats) -> Score:
    starts, _, median, _, by_limits, by_plan, early, late = asked[:, 1:9].T
    covered, too_early, too_late = _covered(starts, early, late)
    errors = [np.abs(each - starts) for each in (median, by_limits, by_plan)]
    (mid, mean), (mid_limits, mean_limits), (mid_plan, mean_plan) = (
        (float(np.median(each)), float(np.mean(each))) for each in errors
    )
    return Score(
        asked=len(asked),
        covered=covered,
        too_early=too_early,
        too_late=too_late,
        median_width=float(np.median(late - early)),
        median_error=mid,
        mean_error=mean,
        median_error_by_limits=mid_limits,
        mean_error_by_limits=mean_limits,
        median_error_by_plan=mid_plan,
        mean_error_by_plan=mean_plan,
    )


HEADS = (
    "",
    "asked",
    "in the 80 % interval",
    "before it",
    "after it",
    "median length",
    "median (mean) error",
    "by limits",
    "by plan",
)


def score_cells(score: Score) -> list[str]:
    """The cells of a row behind its name."""

    def errors(median: float, mean: float) -> str:
        return f"{pages.time_text(median)} ({pages.time_text(mean)})"

    return [
        f"{score.asked:,}",
        f"{score.covered:.1%}",
        f"{score.too_early:.1%}",
        f"{score.too_late:.1%}",
        pages.time_text(score.median_width),
        errors(score.median_error, score.mean_error),
        errors(score.median_error_by_limits, score.mean_error_by_limits),
        errors(score.median_error_by_plan, score.mean_error_by_plan),
    ]


def explained(found: Backtest) -> str:
    """What was asked, in words."""
    return (
        f"{found.log} was replayed by {found.policy}. At {found.moments} moments, the start of each waiting "
        f"job was forecast by {found.draws} draws. Intervals are stretched by what the starts until then "
        f"tell: {found.stretch_early:.2f} times to the early side and {found.stretch_late:.2f} times to the "
        "late one at the last moment. The later half of the moments is scored. As they were drawn, intervals "
        f"cover {found.covered_unstretched:.1%} of its starts."
    )


def write_backtest_page(path: str | Path, found: Backtest) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"How good forecasts are: {found.log}, {found.policy}"
    score = found.all
    shown = pages.tiles(
        [
            ("in the 80 % interval", f"{score.covered:.1%}", f"of {score.asked:,} forecasts"),
            (
                "median error",
                pages.time_text(score.median_error),
                f"{pages.time_text(score.mean_error)} in the mean",
            ),
            ("by limits", pages.time_text(score.median_error_by_limits), "median error"),
            ("by plan, as StartTime", pages.time_text(score.median_error_by_plan), "median error"),
        ]
    )
    header = f'<h1>{html.escape(title)}</h1>\n<p class="note">{html.escape(explained(found))}</p>'
    rows = [
        [html.escape(name), *score_cells(each)] for name, each in {"all jobs": score, **found.groups}.items()
    ]
    note = "Errors are medians, and means in brackets. Jobs are in classes by run time and size."
    content = pages.section("By class", note, pages.table("", HEADS, rows), layout="wide")
    pages.write_figures_page(path, title, f'{header}\n<div id="tiles">{shown}</div>', content, {})
