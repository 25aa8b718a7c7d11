"""The findings of "Resampling with Feedback", looked for on a log by one command.

    python experiments/resampling_with_feedback.py LOG.swf.gz --seeds 30 --weeks 12 -o figures.jsonl

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
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import click
import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis.metrics import DAY, measure
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.schedule import read_schedule, started
from batsched_py.campaign.statistics import Estimate, t_distribution
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario
from batsched_py.experiment.sides import sides
from batsched_py.simulation import simulate
from batsched_py.workload.model import Workload
from batsched_py.workload.swf import read_swf, swf_to_workload

#: Behaviour of the users and options of the population, by the name of the setting.
SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "open": ("resample(rigid)", {}),
    "feedback": ("resample(fluid)", {}),
    "cycle": ("resample(patience(fluid))", {}),
    "no cycle": ("resample(patience(fluid))", {"cycles": "false"}),
}

#: Which schedulers are simulated in which setting.
RUNS = {
    "open": ("easy", "fcfs"),
    "feedback": ("easy", "fcfs"),
    "cycle": ("easy", "user-aware"),
    "no cycle": ("easy", "user-aware"),
}

#: A user who thinks for longer than this, in seconds, has ended the session.
SESSION_BREAK = 20 * 60.0
WEEK = 7 * DAY


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


@click.command()
@click.argument("log_file", type=click.Path(exists=True, dir_okay=False))
@click.option("--seeds", default=30, show_default=True)
@click.option("--weeks", default=12, show_default=True)
@click.option("--load", default=1.0, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default="figures.jsonl", show_default=True)
def main(log_file: str, seeds: int, weeks: int, load: float, output: Path) -> None:
    """Simulate what is not in the output yet, then print the findings."""
    logging.getLogger("batsched_py").setLevel(logging.ERROR)
    workload = swf_to_workload(read_swf(log_file))
    name = Path(log_file).name.split("-")[0]
    known = list(_read(output))
    done = {(f.log, f.weeks, f.load, f.seed, f.setting, f.scheduler) for f in known}
    with output.open("ab") as file:
        for figures in _simulate_all(name, workload, seeds, weeks, load, done):
            known.append(figures)
            file.write(msgspec.json.encode(figures) + b"\n")
            file.flush()
    mine = [f for f in known if (f.log, f.weeks, f.load) == (name, weeks, load)]
    click.echo("\n".join(findings(mine)))


def _read(path: Path) -> Iterator[Figures]:
    if path.exists():
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=Figures)


def _simulate_all(
    name: str, workload: Workload, seeds: int, weeks: int, load: float, done: set[tuple[object, ...]]
) -> Iterator[Figures]:
    if (name, weeks, load, 0, "log", "easy") not in done:
        yield _figures(_replay(workload, "easy"), name, workload, (weeks, 0, "log", "easy", load), weeks=None)
    for seed in range(1, seeds + 1):
        for setting, schedulers in RUNS.items():
            for scheduler in schedulers:
                other = {"easy": "fcfs", "fcfs": "easy"}.get(scheduler)
                crossed = f"recorded from {scheduler}"
                wanted = (name, weeks, load, seed, setting, scheduler) not in done
                crossing = (
                    setting == "feedback"
                    and other is not None
                    and (name, weeks, load, seed, crossed, other) not in done
                )
                if not (wanted or crossing):
                    continue
                behaviour, options = SETTINGS[setting]
                options = options | {"seed": str(seed), "weeks": str(weeks), "load": str(load)}
                schedule = _simulate(workload, scheduler, Choice(behaviour, options))
                if wanted:
                    yield _figures(schedule, name, workload, (weeks, seed, setting, scheduler, load), weeks)
                if crossing and other is not None:
                    again = _replay(_recorded(schedule, workload), other)
                    yield _figures(again, name, workload, (weeks, seed, crossed, other, load), weeks)


def _simulate(workload: Workload, scheduler: str, users: Choice | None) -> pd.DataFrame:
    hosts = workload.nb_hosts
    experiment = Experiment(
        scenario=Scenario(machine=Machine(hosts=hosts)),
        actors=Actors(scheduler=Choice(scheduler), users=users),
    )
    with tempfile.TemporaryDirectory() as folder:
        simulate(*sides(experiment, [workload], f"{folder}/out"))
        return read_schedule(f"{folder}/out_jobs.csv")


def _replay(workload: Workload, scheduler: str) -> pd.DataFrame:
    """A simulation of jobs that are submitted at their times, whoever notes who they were of."""
    return _simulate(workload, scheduler, Choice("rigid"))


def _recorded(schedule: pd.DataFrame, workload: Workload) -> Workload:
    """The jobs of a simulation as a log would have recorded them."""
    from batsched_py.protocol.jobs import Job
    from batsched_py.protocol.profiles import Homogeneous
    from batsched_py.workload.swf import LOG_SPEED

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
    schedule: pd.DataFrame,
    name: str,
    workload: Workload,
    about: tuple[int, int, str, str, float],
    weeks: int | None,
) -> Figures:
    assert workload.nb_hosts is not None
    end = float(schedule["submission_time"].max()) if weeks is None else weeks * WEEK
    days = end / DAY
    metrics = measure(Outcome(schedule, workload.nb_hosts))
    executed = started(schedule)
    overlap = executed["finish_time"].clip(upper=end) - executed["starting_time"].clip(upper=end)
    busy = float((overlap * executed["requested_number_of_resources"]).sum())
    sessions = _sessions(executed)
    return Figures(
        name,
        *about,
        len(schedule) / days,
        int((executed["finish_time"] <= end).sum()) / days,
        metrics["mean_waiting_time"],
        metrics["mean_bounded_slowdown"],
        busy / (workload.nb_hosts * end),
        len(executed) / sessions,
        sessions / days,
    )


def _sessions(executed: pd.DataFrame) -> int:
    """How many sessions users had: a job opens one that comes 20 minutes after the end of all before it."""
    users = executed["metadata"].str.extract(r"user=(\S+)", expand=False)
    count = 0
    for _, jobs in executed.groupby(users, sort=True):
        jobs = jobs.sort_values("submission_time", kind="stable")
        ends = np.maximum.accumulate(jobs["finish_time"].to_numpy())
        thought = jobs["submission_time"].to_numpy()[1:] - ends[:-1]
        count += 1 + int((thought > SESSION_BREAK).sum())
    return count


# --- findings ------------------------------------------------------------------------------------


def findings(figures: list[Figures]) -> Iterator[str]:
    """What is to be seen, in Markdown."""
    value = {(f.setting, f.scheduler, f.seed): f for f in figures}
    seeds = sorted({f.seed for f in figures if f.seed})
    yield f"{figures[0].log}: {figures[0].weeks} weeks, load {figures[0].load:g}, up to {len(seeds)} seeds."
    yield ""
    yield "| comparison | figure | first | second | difference, 95% | confidence that it is not 0 | seeds |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for title, (one, two), names in (
        ("without feedback, EASY and FCFS", (("open", "easy"), ("open", "fcfs")), _THROUGHPUT),
        ("with feedback, EASY and FCFS", (("feedback", "easy"), ("feedback", "fcfs")), _THROUGHPUT),
        ("cycle, user-aware and EASY", (("cycle", "user-aware"), ("cycle", "easy")), _SESSIONS),
        ("no cycle, user-aware and EASY", (("no cycle", "user-aware"), ("no cycle", "easy")), _SESSIONS),
        (
            "EASY's workload, under FCFS and EASY",
            (("recorded from easy", "fcfs"), ("feedback", "easy")),
            _WAIT,
        ),
        (
            "FCFS's workload, under EASY and FCFS",
            (("recorded from fcfs", "easy"), ("feedback", "fcfs")),
            _WAIT,
        ),
        (
            "under EASY, FCFS's workload and its own",
            (("recorded from fcfs", "easy"), ("feedback", "easy")),
            _WAIT,
        ),
    ):
        both = [seed for seed in seeds if (*one, seed) in value and (*two, seed) in value]
        for name in names if len(both) > 1 else ():
            pairs = [(getattr(value[*one, s], name), getattr(value[*two, s], name)) for s in both]
            yield _row(title, name, pairs)
    waits = [f.mean_wait for f in figures if (f.setting, f.scheduler) == ("feedback", "easy")]
    own = [f.mean_wait for f in figures if f.setting == "log"]
    if waits and own:
        below = sum(wait < own[0] for wait in waits)
        yield ""
        yield (
            f"Mean wait of the log itself under EASY: {own[0] / 3600:.2f} h; of resampled populations with "
            f"feedback: {min(waits) / 3600:.2f} to {max(waits) / 3600:.2f} h, {below} of {len(waits)} below."
        )


_THROUGHPUT = ("submitted_per_day", "done_per_day", "utilization", "mean_wait")
_SESSIONS = ("submitted_per_day", "jobs_per_session", "sessions_per_day", "mean_wait")
_WAIT = ("mean_wait", "mean_bounded_slowdown", "utilization")


def _row(title: str, name: str, pairs: list[tuple[float, float]]) -> str:
    differences = [one - two for one, two in pairs]
    estimate = Estimate.of(differences)
    spread = stdev(differences)
    t = abs(estimate.mean) / (spread / sqrt(len(pairs))) if spread else 0.0
    confidence = 2 * t_distribution(t, len(pairs) - 1) - 1
    first, second = (fmean(column) for column in zip(*pairs, strict=True))
    interval = f"{estimate.mean:+.4g} ± {estimate.half_width or 0:.2g}"
    return f"| {title} | {name} | {first:.4g} | {second:.4g} | {interval} | {confidence:.1%} | {len(pairs)} |"


if __name__ == "__main__":
    main()
