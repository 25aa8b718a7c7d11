"""How good forecasts are: a log is replayed, and at many moments the start of every waiting job is asked for.

The log is simulated under a policy; when jobs start there is what forecasts are held against. At a moment,
a forecast knows which jobs run and wait, and of the past what had happened by then. It does not know how long
jobs will run, nor who submits what next: both are drawn (:mod:`.history`). Earlier forecasts, of jobs that
have started since, tell by how much intervals must be stretched (:mod:`.intervals`). The later half of the
moments is scored.
"""

import gc
import html
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct

from batsched_py.analysis import pages
from batsched_py.api.log import Log
from batsched_py.api.simulate import simulate
from batsched_py.api.terminal import shown
from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.slurm.forecast.forecast import settled
from batsched_py.slurm.forecast.history import History
from batsched_py.slurm.forecast.intervals import TAIL, Stretch
from batsched_py.slurm.forecast.likely import ahead, coming
from batsched_py.slurm.forecast.proof import moments_of
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
from batsched_py.workload.swf.log import WEEK, Floats, SwfLog

#: The conservative plan by limits is what Slurm's backfill loop plans, and shows as StartTime.
PLAN = "conservative"


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
    """How many halves before the median that was drawn intervals begin at the last moment."""
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
        self.history = History(
            submit=submits,
            start=self.starts,
            end=ends,
            limit=limits,
            size=sizes,
            user=users,
            name=np.zeros(len(users), dtype=np.int64),
            ran=ends - self.starts,
        )

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
    length = ahead(by_limits)
    kinds = [(jobs.kind(job), so_far) for job, so_far in zip(present.tolist(), ran.tolist(), strict=True)]
    drawn = []
    for _ in range(draws):
        numbers, at, known = coming(past, jobs, length, random)
        shares = past.drawn(random, [*kinds, *((jobs.kind(number), 0.0) for number in numbers.tolist())])
        rest = np.maximum(np.round(np.array(shares[: len(present)]) * jobs.limit[present] - ran), 1.0)
        further = [
            (later, size, limit, max(round(limit * (other if share is None else share)), 1), 0.0)
            for later, size, limit, share, other in zip(
                at.tolist(), jobs.size[numbers].tolist(), jobs.limit[numbers].tolist(), known,
                shares[len(present) :], strict=True,
            )
        ]  # fmt: skip
        drawn.append(starts_of(replay.simulated([*now(rest), *further])))
    quantiles = np.quantile(np.array(drawn), (TAIL, 0.5, 1 - TAIL), axis=0, method="nearest")
    return np.column_stack([waiting, starts[waiting] - moment, *quantiles, by_limits, by_plan])


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
        at = moments_of(replay.history.submit, replay.starts, moments, random)
        if not at:
            raise InputError(f"{path}: too few jobs wait in the later two thirds of this log")
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
    classes = class_numbers(replay.history.ran[jobs], replay.history.size[jobs])
    groups = {CLASSES[number]: _score(late[classes == number]) for number in np.unique(classes).tolist()}
    return Backtest(
        log=path.name,
        policy=policy,
        seed=seed,
        draws=draws,
        moments=len(asked),
        stretch_early=-stretch.early,
        stretch_late=stretch.late,
        covered_unstretched=_covered(late[:, 1], late[:, 2], late[:, 4])[0],
        all=_score(late),
        groups=dict(sorted(groups.items(), key=lambda item: -item[1].asked)),
    )


def _covered(starts: Floats, early: Floats, late: Floats) -> tuple[float, float, float]:
    """The shares of starts within intervals, before and after them, to the second."""
    before, after = starts < early - 1.0, starts > late + 1.0
    return float(np.mean(~before & ~after)), float(np.mean(before)), float(np.mean(after))


def _score(asked: Floats) -> Score:
    starts, _, _, _, by_limits, by_plan, early, median, late = asked[:, 1:10].T
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
        f"job was forecast by {found.draws} draws. Intervals are moved and stretched by what the starts "
        f"until then tell: at the last moment they begin {found.stretch_early:.2f} halves before the median "
        f"that was drawn and end {found.stretch_late:.2f} behind it. The later half of the moments is "
        "scored. As they were drawn, intervals "
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
