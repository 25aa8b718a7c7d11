"""The findings of "Resampling with Feedback", looked for on a log by one command.

    python -m examples.experiments.resampling_with_feedback LOG.swf.gz --seeds 30 --output all.jsonl

D. Feitelson, "Resampling with Feedback: A New Paradigm of Using Workload Data for Performance Evaluation",
JSSPP 2021, shows what can be seen when populations are made of the users of a log and these react. For each
seed one population is simulated: without feedback and with it, under EASY, FCFS and the user-aware scheduler,
with the daily and weekly cycle and without; and what was submitted under one scheduler is replayed, without
feedback, under the other. Figures are appended to a file, a line for each simulation, and those that are
there already are not simulated again. All comparisons are paired: a seed is the same population for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track

from batsched_py.analysis.plots.figures import blank
from batsched_py.analysis.plots.style import PAGE
from examples.experiments.populations import (
    EDGES,
    Figures,
    Setting,
    Task,
    figures,
    log_name,
    read_figures,
    read_workload,
    recorded,
    replay,
    simulate,
)
from examples.experiments.resampling_figures import draw
from examples.experiments.resampling_tables import (
    classes,
    comparisons,
    cycles,
    put_into,
    rooms,
    wait_of_the_log,
)

_RESPONSIVE = ("easy", "user-aware", "user-aware, alpha=1")
_LOADS = (1.0, 1.5, 2.0)
_BOTH = ("easy", "user-aware, alpha=1")
_NO_CYCLES = {"cycles": "false"}
_SHUFFLED = {"shuffle": "true", "longest": "4"}
#: With these, a hundred users load KTH-SP2 to three quarters under EASY.
_SITE = {"goes_on": "1.0", "tolerance": "60", "longest": "8"}
_ALL_DAY = {"cycle": "false"}
_AS_PRINTED = {"ended_before": "start"}

#: Shuffled jobs if batches wait for all that had ended before they ran, as the paper prints it.
PRINTED: dict[str, Setting] = {
    "shuffled, ended_before=start, cycle": Setting(
        "resample(fluid)", _SHUFFLED | _AS_PRINTED, _BOTH, (3.0, 4.0)
    ),
    "shuffled, ended_before=start, no cycle": Setting(
        "resample(fluid)", _SHUFFLED | _AS_PRINTED | _NO_CYCLES, _BOTH, (3.0, 4.0)
    ),
}

#: Users of a site for so long that what starvation does without a night has built up.
YEARS: dict[str, Setting] = {
    "site for 3 years, cycle": Setting("site-level", _SITE, _BOTH, weeks=156),
    "site for 3 years, no cycle": Setting("site-level", _SITE | _ALL_DAY, _BOTH, weeks=156),
}

#: Who submits under which schedulers, by the name of the setting.
SETTINGS: dict[str, Setting] = {
    "open": Setting("resample(rigid)", {}, ("easy", "fcfs")),
    "feedback": Setting("resample(fluid)", {}, ("easy", "fcfs")),
    "cycle": Setting("resample(patience(fluid))", {}, _RESPONSIVE, _LOADS),
    "no cycle": Setting("resample(patience(fluid))", _NO_CYCLES, _RESPONSIVE, _LOADS),
    "shuffled, cycle": Setting("resample(fluid)", _SHUFFLED, _BOTH, (3.0, 4.0)),
    "shuffled, no cycle": Setting("resample(fluid)", _SHUFFLED | _NO_CYCLES, _BOTH, (3.0, 4.0)),
    "site, cycle": Setting("site-level", _SITE, _BOTH, weeks=16),
    "site, no cycle": Setting("site-level", _SITE | _ALL_DAY, _BOTH, weeks=16),
    "open, begin=active": Setting("resample(rigid)", {"begin": "active"}),
    "feedback, begin=active": Setting("resample(fluid)", {"begin": "active"}),
    "feedback, session_end=finish": Setting("resample(fluid)", {"session_end": "finish"}),
    "feedback, ended_before=start": Setting("resample(fluid)", {"ended_before": "start"}),
    **PRINTED,
    **YEARS,
}

#: Under which scheduler the submissions of a setting are replayed that were recorded under another one.
CROSSINGS = {("feedback", "easy"): "fcfs", ("feedback", "fcfs"): "easy"}


@click.command()
@click.argument("log_file", type=click.Path(exists=True, dir_okay=False))
@click.option("--seeds", default=30, show_default=True)
@click.option(
    "--weeks", default=8, show_default=True, help="How long users submit, unless a setting says so."
)
@click.option(
    "--settings",
    "wanted",
    default="",
    callback=lambda context, option, text: _settings(text),
    help="Only these settings, separated by semicolons.",
)
@click.option(
    "--classes",
    "edges",
    default="1,10,720",
    show_default=True,
    callback=lambda context, option, text: _edges(text),
    help="Where classes of run times are cut, in minutes: some of 1, 10, 60, 240, 720.",
)
@click.option("--most", "most", default=4.0, show_default=True, help="No load beyond this one.")
@click.option("--output", type=click.Path(path_type=Path), default="figures.jsonl", show_default=True)
@click.option("--plot", type=click.Path(), help="Draw what is to be seen into this file, .svg or .png.")
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="Put the tables into this page.")
def main(
    log_file: str,
    seeds: int,
    weeks: int,
    wanted: dict[str, Setting],
    edges: tuple[float, ...],
    most: float,
    output: Path,
    plot: str | None,
    page: Path | None,
) -> None:
    """Simulate what is not in the output yet, then print the findings."""
    name = log_name(log_file)
    known = [f for f in read_figures(output) if f.log == name and f.weeks in (0, weeks, *_spans())]
    done = {f.task for f in known}
    todo = [task for task in tasks(wanted, seeds) if task not in done and task.load <= most]
    with output.open("ab") as file:
        for task in track(todo, console=Console(stderr=True)):
            new = figures_of(log_file, task, weeks)
            known += new
            file.writelines(msgspec.json.encode(each) + b"\n" for each in new)
            file.flush()
    shown = {"log", *wanted, *(f"recorded from {name}" for setting, name in CROSSINGS if setting in wanted)}
    known = [f for f in known if f.task.seed <= seeds and f.task.setting in shown]
    parts = {
        "cycles": list(cycles(known, _without(SETTINGS, PRINTED, YEARS))),
        "printed": list(cycles(known, PRINTED)),
        "years": list(cycles(known, YEARS)),
        "classes": list(classes(known, SETTINGS["cycle"], edges)),
        "rooms": list(rooms(known)),
        "comparisons": [*comparisons(known, edges), *wait_of_the_log(known)],
    }
    for part, lines in parts.items():
        click.echo("\n".join([*lines, ""]))
        if page is not None and lines:
            put_into(page, f"{name} {part}", lines)
    if plot:
        sheet = blank(PAGE)
        with sheet.styled():
            draw(sheet, known, SETTINGS, edges)
        sheet.save(plot)


def _settings(text: str) -> dict[str, Setting]:
    """The settings of these names, or all."""
    names = [name.strip() for name in text.split(";") if name.strip()]
    for name in names:
        if name not in SETTINGS:
            raise click.BadParameter(f"there is no setting {name!r}; there are: {'; '.join(SETTINGS)}")
    return {name: SETTINGS[name] for name in names} or SETTINGS


def _edges(text: str) -> tuple[float, ...]:
    """Where classes of run times are cut, in seconds."""
    possible = {f"{edge / 60:g}": edge for edge in EDGES}
    minutes = [each.strip() for each in text.split(",")]
    for each in minutes:
        if each not in possible:
            raise click.BadParameter(f"{each!r}: classes can be cut at {', '.join(possible)} minutes")
    return tuple(sorted({possible[each] for each in minutes}))


def _without(settings: dict[str, Setting], *others: dict[str, Setting]) -> dict[str, Setting]:
    return {name: each for name, each in settings.items() if all(name not in other for other in others)}


def _spans() -> set[int]:
    return {setting.weeks for setting in SETTINGS.values()}


def tasks(settings: dict[str, Setting], seeds: int) -> Iterator[Task]:
    """All simulations, seed by seed."""
    yield Task("log", "easy", 0, 1.0)
    for seed in range(1, seeds + 1):
        for name, setting in settings.items():
            for load in setting.loads:
                for scheduler in setting.schedulers:
                    yield Task(name, scheduler, seed, load)


def figures_of(log_file: str, task: Task, weeks: int) -> list[Figures]:
    """What comes out of a simulation, and of its recording under the other scheduler."""
    workload, name = read_workload(log_file), log_name(log_file)
    if task.setting == "log":
        return [figures(replay(workload, task.scheduler), name, workload, task, 0)]
    setting = SETTINGS[task.setting]
    weeks = setting.weeks or weeks
    schedule = simulate(workload, task.scheduler, setting.users(task.seed, task.load, weeks))
    found = [figures(schedule, name, workload, task, weeks)]
    crossing = CROSSINGS.get((task.setting, task.scheduler))
    if crossing is not None:
        again = replay(recorded(schedule, workload), crossing)
        crossed = replace(task, setting=f"recorded from {task.scheduler}", scheduler=crossing)
        found.append(figures(again, name, workload, crossed, weeks))
    return found


if __name__ == "__main__":
    main()
