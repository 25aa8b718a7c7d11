"""The findings of "Resampling with Feedback", looked for on a log by one command.

    python experiments/resampling_with_feedback.py LOG.swf.gz --seeds 30 -o figures.jsonl --plot findings.svg

D. Feitelson, "Resampling with Feedback: A New Paradigm of Using Workload Data for Performance Evaluation",
JSSPP 2021, shows what can be seen when populations are made of the users of a log and these react. For each
seed one population is simulated: without feedback and with it, under EASY, FCFS and the user-aware scheduler,
with the daily and weekly cycle and without; and what was submitted under one scheduler is replayed, without
feedback, under the other. Figures are appended to a file, a line for each simulation, and those that are
there already are not simulated again. All comparisons are paired: a seed is the same population for all.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click
import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track

from batsched_py.analysis.metrics import DAY, measure
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.plots.figures import blank
from batsched_py.analysis.plots.look import PAGE
from batsched_py.analysis.plots.style import PALETTE
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.statistics import Estimate, Paired
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario
from batsched_py.experiment.run import run_experiment
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import LOG_SPEED
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOUR, WEEK = 3600.0, 7 * DAY

#: Behaviour of the users and options of the population, by the name of the setting.
SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "open": ("resample(rigid)", {}),
    "feedback": ("resample(fluid)", {}),
    "cycle": ("resample(patience(fluid))", {}),
    "no cycle": ("resample(patience(fluid))", {"cycles": "false"}),
}

#: Schedulers by name; the more weight on responsiveness, the higher is alpha. EASY is alpha = 0.
SCHEDULERS = {
    "fcfs": Choice("fcfs"),
    "easy": Choice("easy"),
    "user-aware": Choice("user-aware"),
    "user-aware, alpha=1": Choice("user-aware", {"alpha": "1"}),
}

#: Which schedulers are simulated in which setting, and with how many times the users of the log.
RUNS = {
    "open": (("easy", "fcfs"), (1.0,)),
    "feedback": (("easy", "fcfs"), (1.0,)),
    "cycle": (("easy", "user-aware", "user-aware, alpha=1"), (1.0, 1.5, 2.0)),
    "no cycle": (("easy", "user-aware", "user-aware, alpha=1"), (1.0, 1.5, 2.0)),
}

#: Jobs that run for longer than so many seconds are of the next class: short, medium, long.
CLASSES = (60.0, 600.0)


class Figures(Struct, frozen=True):
    """What came out of one simulation."""

    log: str
    weeks: int
    seed: int
    setting: str
    scheduler: str
    load: float
    submitted_per_day: float
    done_per_day: float
    """Jobs that ended while users submitted, by the days of that time."""
    mean_wait: float
    mean_bounded_slowdown: float
    utilization: float
    """While users submitted."""
    jobs_per_session: float
    sessions_per_day: float
    session_length: float
    response: list[float]
    """The mean response time of short, medium and long jobs."""
    queue_by_hour: list[float]
    """The mean number of waiting jobs in each hour of the day, while users submitted."""


class Task(Struct, frozen=True):
    """One simulation, and perhaps another one of what was submitted in it."""

    setting: str
    scheduler: str
    seed: int
    load: float

    @property
    def crossing(self) -> str | None:
        """The scheduler under which the recorded submissions are replayed."""
        return {"easy": "fcfs", "fcfs": "easy"}[self.scheduler] if self.setting == "feedback" else None


@click.command()
@click.argument("log_file", type=click.Path(exists=True, dir_okay=False))
@click.option("--seeds", default=30, show_default=True)
@click.option("--weeks", default=8, show_default=True)
@click.option("--processes", default=1, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default="figures.jsonl", show_default=True)
@click.option("--plot", type=click.Path(), help="Draw what is to be seen into this file, .svg or .png.")
def main(log_file: str, seeds: int, weeks: int, processes: int, output: Path, plot: str | None) -> None:
    """Simulate what is not in the output yet, then print the findings."""
    name = _name(log_file)
    known = [f for f in _read(output) if (f.log, f.weeks) == (name, weeks)]
    done = {Task(f.setting, f.scheduler, f.seed, f.load) for f in known}
    tasks = [Task("log", "easy", 0, 1.0), *_tasks(seeds)]
    todo = [task for task in tasks if task not in done]
    with output.open("ab") as file, ProcessPoolExecutor(processes) as pool:
        running = [pool.submit(_figures_of, log_file, task, weeks) for task in todo]
        for future in track(as_completed(running), total=len(running), console=Console(stderr=True)):
            known.extend(future.result())
            file.writelines(msgspec.json.encode(figures) + b"\n" for figures in future.result())
            file.flush()
    known = [f for f in known if f.seed <= seeds]
    click.echo("\n".join(findings(known)))
    if plot:
        sheet = blank(PAGE)
        with sheet.styled():
            draw(sheet, known)
        sheet.save(plot)


def _name(log_file: str) -> str:
    return Path(log_file).name.split("-")[0]


def _read(path: Path) -> Iterator[Figures]:
    if path.exists():
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=Figures)


def _tasks(seeds: int) -> Iterator[Task]:
    for seed in range(1, seeds + 1):
        for setting, (schedulers, loads) in RUNS.items():
            for load in loads:
                for scheduler in schedulers:
                    yield Task(setting, scheduler, seed, load)


@cache
def _workload(log_file: str) -> Workload:
    """The log, read once in each process, with jobs that are made once and not each time."""
    logging.getLogger("batsched_py").setLevel(logging.ERROR)
    workload = swf_to_workload(read_swf(log_file))
    return replace(workload, jobs=list(workload.jobs))


def _figures_of(log_file: str, task: Task, weeks: int) -> list[Figures]:
    """What comes out of a simulation, and of its recording under the other scheduler."""
    workload, name = _workload(log_file), _name(log_file)
    if task.setting == "log":
        span = max(job.submission_time for job in workload.jobs)
        return [_figures(_replay(workload, "easy"), name, workload, task, weeks, span)]
    behaviour, options = SETTINGS[task.setting]
    options = options | {"seed": str(task.seed), "weeks": str(weeks), "load": str(task.load)}
    schedule = _simulate(workload, SCHEDULERS[task.scheduler], Choice(behaviour, options))
    figures = [_figures(schedule, name, workload, task, weeks, weeks * WEEK)]
    if task.crossing is not None:
        again = _replay(_recorded(schedule, workload), task.crossing)
        crossed = replace(task, setting=f"recorded from {task.scheduler}", scheduler=task.crossing)
        figures.append(_figures(again, name, workload, crossed, weeks, weeks * WEEK))
    return figures


def _simulate(workload: Workload, scheduler: Choice, users: Choice) -> pd.DataFrame:
    experiment = Experiment(
        scenario=Scenario(machine=Machine(hosts=workload.nb_hosts)),
        actors=Actors(scheduler=scheduler, users=users),
    )
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(experiment, [workload], f"{folder}/out")
        return read_schedule(f"{folder}/out_jobs.csv")


def _replay(workload: Workload, scheduler: str) -> pd.DataFrame:
    """A simulation of jobs that are submitted at their times, whoever notes who they were of."""
    return _simulate(workload, SCHEDULERS[scheduler], Choice("rigid"))


def _recorded(schedule: pd.DataFrame, workload: Workload) -> Workload:
    """The jobs of a simulation as a log would have recorded them."""
    jobs, profiles = [], {}
    users = schedule["metadata"].str.extract(r"user=(\S+)", expand=False)
    for number, submit, size, walltime, run_time, user in zip(
        schedule["job_id"],
        schedule["submission_time"],
        schedule["requested_number_of_resources"],
        schedule["requested_time"],
        schedule["execution_time"],
        users,
        strict=True,
    ):
        profile = f"run_{run_time!r}"
        profiles[profile] = Homogeneous(run_time * LOG_SPEED)
        jobs.append(Job(f"w0!{number}", submit, int(size), walltime, profile, {"user": user}))
    return Workload("w0", jobs, profiles, nb_hosts=workload.nb_hosts)


def _figures(
    schedule: pd.DataFrame, name: str, workload: Workload, task: Task, weeks: int, end: float
) -> Figures:
    """What is measured of a schedule; users submitted until ``end``."""
    days = end / DAY
    outcome = Outcome(schedule, workload.nb_hosts)
    metrics = measure(outcome)
    executed = outcome.executed
    overlap = executed["finish_time"].clip(upper=end) - executed["starting_time"].clip(upper=end)
    busy = float((overlap * executed["requested_number_of_resources"]).sum())
    classes = np.searchsorted(CLASSES, executed["execution_time"])
    response = executed["turnaround_time"].groupby(classes).mean()
    return Figures(
        name,
        weeks,
        task.seed,
        task.setting,
        task.scheduler,
        task.load,
        submitted_per_day=len(schedule) / days,
        done_per_day=int((executed["finish_time"] <= end).sum()) / days,
        mean_wait=metrics["mean_waiting_time"],
        mean_bounded_slowdown=metrics["mean_bounded_slowdown"],
        utilization=busy / (outcome.machine_size * end),
        jobs_per_session=metrics["jobs_per_session"],
        sessions_per_day=metrics["nb_sessions"] / days,
        session_length=metrics["mean_session_length"],
        response=[float(response.get(number, np.nan)) for number in range(len(CLASSES) + 1)],
        queue_by_hour=_queue_by_hour(executed, end),
    )


def _queue_by_hour(executed: pd.DataFrame, end: float) -> list[float]:
    """How many jobs wait on average in each hour of the day: job-seconds of waiting by seconds."""
    edges = np.arange(0, end + 1, HOUR)
    waited = np.zeros(len(edges))
    for times, sign in ((executed["submission_time"], 1), (executed["starting_time"], -1)):
        since = np.sort(times.to_numpy())
        sums = np.concatenate([[0.0], np.cumsum(since)])
        nb_before = np.searchsorted(since, edges)
        waited += sign * (nb_before * edges - sums[nb_before])
    by_hour = np.diff(waited)[: int(end // DAY) * 24].reshape(-1, 24)
    return [float(mean) for mean in by_hour.mean(axis=0) / HOUR]


# --- findings ------------------------------------------------------------------------------------

#: What is compared: a title, two times setting and scheduler, and which figures.
_THROUGHPUT = ("submitted_per_day", "done_per_day", "utilization", "mean_wait")
_SESSIONS = ("submitted_per_day", "jobs_per_session", "sessions_per_day", "session_length", "mean_wait")
_WAIT = ("mean_wait", "mean_bounded_slowdown", "utilization")
COMPARISONS = (
    ("without feedback, EASY and FCFS", ("open", "easy"), ("open", "fcfs"), _THROUGHPUT),
    ("with feedback, EASY and FCFS", ("feedback", "easy"), ("feedback", "fcfs"), _THROUGHPUT),
    *(
        (f"{setting}, {scheduler} and EASY", (setting, scheduler), (setting, "easy"), _SESSIONS)
        for setting in ("cycle", "no cycle")
        for scheduler in ("user-aware", "user-aware, alpha=1")
    ),
    ("EASY's workload, under FCFS and EASY", ("recorded from easy", "fcfs"), ("feedback", "easy"), _WAIT),
    ("FCFS's workload, under EASY and FCFS", ("recorded from fcfs", "easy"), ("feedback", "fcfs"), _WAIT),
    ("under EASY, FCFS's workload and its own", ("recorded from fcfs", "easy"), ("feedback", "easy"), _WAIT),
)


def findings(figures: list[Figures]) -> Iterator[str]:
    """What is to be seen, in Markdown."""
    yield f"{figures[0].log}: {figures[0].weeks} weeks."
    yield ""
    yield "| comparison | users | figure | first | second | difference, 95% | confidence in sign | seeds |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    for title, one, two, names in COMPARISONS:
        for load in sorted({f.load for f in figures}):
            first, second = _by_seed(figures, *one, load), _by_seed(figures, *two, load)
            both = [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
            for name in names if len(both) > 1 else ():
                pairs = [(getattr(a, name), getattr(b, name)) for a, b in both]
                yield _row(title, load, name, *zip(*pairs, strict=True))
    waits = [f.mean_wait / HOUR for f in figures if (f.setting, f.scheduler) == ("feedback", "easy")]
    for own in (f.mean_wait / HOUR for f in figures if f.setting == "log"):
        yield ""
        yield (
            f"Mean wait of the log itself under EASY: {own:.2f} h; of resampled populations with "
            f"feedback: {min(waits):.2f} to {max(waits):.2f} h, {sum(wait < own for wait in waits)} of "
            f"{len(waits)} below."
        )


def _by_seed(figures: list[Figures], setting: str, scheduler: str, load: float) -> dict[int, Figures]:
    wanted = (setting, scheduler, load)
    return {f.seed: f for f in figures if (f.setting, f.scheduler, f.load) == wanted}


def _row(title: str, load: float, name: str, first: Sequence[float], second: Sequence[float]) -> str:
    paired = Paired.of(first, second)
    interval = f"{paired.difference.mean:+.4g} ± {paired.difference.half_width or 0:.2g}"
    return (
        f"| {title} | x {load:g} | {name} | {fmean(first):.4g} | {fmean(second):.4g} | {interval} "
        f"| {paired.confidence:.1%} | {paired.nb_pairs} |"
    )


# --- figures -------------------------------------------------------------------------------------


def draw(figure: Figure, figures: list[Figures]) -> None:
    """Figures 17, 15, 20, 19 and 21 of the paper, from these simulations."""
    figure.set_size_inches(PAGE.inches, 9.6)
    axes = figure.subplots(4, 2)
    _histograms(axes[0, 0], figures, "open", "submitted_per_day", "jobs submitted a day, no feedback")
    _histograms(axes[0, 1], figures, "feedback", "submitted_per_day", "jobs submitted a day, feedback")
    _histograms(axes[1, 0], figures, "feedback", "mean_wait", "mean wait [s], feedback", only="easy")
    _classes(axes[1, 1], figures)
    for column, setting in enumerate(("cycle", "no cycle")):
        _against_load(axes[2, column], figures, setting, "submitted_per_day")
        _queues(axes[3, column], figures, setting)


def _histograms(
    axes: Axes, figures: list[Figures], setting: str, name: str, label: str, only: str | None = None
) -> None:
    """How often which value came out, over the seeds; the log itself as a line."""
    values = {
        scheduler: [
            getattr(f, name) for f in figures if (f.setting, f.scheduler, f.load) == (setting, scheduler, 1)
        ]
        for scheduler in ("easy", "fcfs")
        if only in (None, scheduler)
    }
    bins = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=12)
    for (scheduler, each), colour in zip(values.items(), PALETTE, strict=False):
        axes.hist(each, bins=bins, histtype="stepfilled", alpha=0.5, color=colour, label=scheduler)
        axes.hist(each, bins=bins, histtype="step", color=colour)
    for f in figures:
        if f.setting == "log":
            axes.axvline(getattr(f, name), color="black", linestyle="--", label="the log itself, easy")
    axes.set(xlabel=label, ylabel="populations")
    axes.legend()


def _against_load(axes: Axes, figures: list[Figures], setting: str, name: str) -> None:
    """The mean over seeds with its interval of 95%, against the number of users."""
    schedulers, loads = RUNS[setting]
    for scheduler, colour in zip(schedulers, PALETTE, strict=False):
        estimates = [
            Estimate.of([getattr(f, name) for f in _by_seed(figures, setting, scheduler, load).values()])
            for load in loads
        ]
        means, widths = [e.mean for e in estimates], [e.half_width or 0 for e in estimates]
        axes.errorbar(loads, means, widths, color=colour, marker="o", capsize=3, label=scheduler)
    axes.set(xlabel=f"users, as a multiple of the log's, {setting}", ylabel="jobs submitted a day")
    axes.legend()


def _classes(axes: Axes, figures: list[Figures]) -> None:
    """Mean response times of short, medium and long jobs."""
    schedulers, loads = RUNS["cycle"]
    places = np.arange(len(CLASSES) + 1)
    for number, (scheduler, colour) in enumerate(zip(schedulers, PALETTE, strict=False)):
        rows = [f.response for f in _by_seed(figures, "cycle", scheduler, loads[-1]).values()]
        axes.bar(places + 0.27 * number, np.nanmean(rows, axis=0), 0.25, color=colour, label=scheduler)
    axes.set_xticks(places + 0.27, ["up to 1 min", "1 to 10 min", "over 10 min"])
    axes.set(yscale="log", ylabel="mean response [s]", xlabel=f"run time, cycle, users x {loads[-1]:g}")
    axes.legend()


def _queues(axes: Axes, figures: list[Figures], setting: str) -> None:
    """How many jobs wait in each hour of the day."""
    schedulers, loads = RUNS[setting]
    for scheduler, colour in zip(schedulers, PALETTE, strict=False):
        rows = [f.queue_by_hour for f in _by_seed(figures, setting, scheduler, loads[-1]).values()]
        axes.plot(np.arange(24) + 0.5, np.mean(rows, axis=0), color=colour, label=scheduler)
    axes.set(
        xlabel=f"hours since the log's first time of day, {setting}",
        ylabel=f"waiting jobs, users x {loads[-1]:g}",
        xlim=(0, 24),
    )
    axes.legend()


if __name__ == "__main__":
    main()
