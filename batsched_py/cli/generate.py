"""``batsched-py generate``, ``fit``, ``resample`` and ``compare``: logs of models, and how real they are."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Final

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import waiting
from batsched_py.cli.options import NAME, PATH, option, output_option, pairs_option
from batsched_py.errors import InputError

_log = logging.getLogger(__name__)

#: A generated log whose load differs by more than this from that of the log it is like is not like it.
SAME_LOAD: Final = 0.05


@click.command("generate")
@click.argument("model")
@option("--like LOG", "The log that a model learns from.", name="source", type=PATH)
@option(
    "--model FILE", "A model that `batsched-py fit` has saved, instead of --like.", name="saved", type=PATH
)
@pairs_option("-p, --parameter", "options", "An option of the model, like types=batch.")
@option("-n, --jobs JOBS", "How many jobs.", type=click.IntRange(min=1), required=True)
@option("--seed S", "Another seed gives another log.", type=click.IntRange(min=0), default=0)
@output_option(
    "OUT",
    "Where the log goes: OUT.swf, OUT.swf.gz, OUT.json, OUT.csv, ...",
    type=PATH,
    required=True,
)
def generate_command(
    model: str,
    source: Path | None,
    saved: Path | None,
    options: dict[str, str],
    jobs: int,
    seed: int,
    output: Path,
) -> None:
    """Generate a log of so many jobs with the MODEL of this name; `batsched-py models` lists them.

    The same seed gives the same log.

    \b
    Examples:
      batsched-py generate realistic --like HPC2N.swf.gz -n 200000 --seed 1 --output hpc2n-1.swf
      batsched-py generate slots --like LOG.swf -p processors=480 -p speed=1.5 -n 50000 --output larger.swf
      batsched-py generate slots --like LOG.swf -p limits=core:1-8,gpu:0-2 -n 50000 --output gpus.csv
      batsched-py generate lublin -p processors=256 -n 10000 --seed 3 --output lublin.json
    """
    lazy.sources.source_of(output)
    if source is not None and saved is not None:
        raise InputError("both --like and --model say what the model learned; give one of them")
    learned = {"like": source, "fitted": saved}
    recipe = options | {"model": model, "jobs": jobs, "seed": seed}
    recipe |= {key: str(file) for key, file in learned.items() if file is not None}
    with waiting(f"Generating {jobs:,} jobs") as moved:
        log = lazy.recipe.log_from_recipe(recipe, progress=moved)
    with waiting(f"Writing {output}"):
        lazy.sources.write_log(output, log)
    days = (log.submit[-1] - log.submit[0]) / 86400
    click.echo(f"{output}: {len(log):,} jobs in {days:.1f} days{_load(log)}")


def _load(log: lazy.swf_log.SwfLog) -> str:
    """The load of a generated log, and what its header says of the log that its model learned from."""
    offered = lazy.over_time.load(log).load
    if offered is None:
        return ""
    note = log.header.get("Note", "")
    learned = re.search(r"a load of ([0-9.]+)%", note)
    if learned is not None and abs(offered - float(learned[1]) / 100) > SAME_LOAD:
        _log.warning(
            "the generated log has a load of %s and the log it is like one of %s%%: waits on both are not "
            "those of one machine; `batsched-py change ... load factor=%s` gives it that load",
            f"{offered:.1%}",
            learned[1],
            f"{float(learned[1]) / 100 / offered:.3g}",
        )
    return f", load {offered:.1%}{f'; {note}' if note else ''}"


@click.command("fit")
@click.argument("model")
@option("--like LOG", "The log that the model learns from.", name="source", type=PATH, required=True)
@pairs_option("-p, --parameter", "options", "An option of the model, like run_times=linear.")
@output_option("FILE", "Where it goes.", type=PATH, required=True)
def fit_command(model: str, source: Path, options: dict[str, str], output: Path) -> None:
    """Fit the MODEL of this name to a log and save what it learned as JSON, to generate from it later.

    The file has no jobs in it, but distributions, so it may be shared where the log may not.

    \b
    Examples:
      batsched-py fit realistic --like HPC2N.swf.gz --output hpc2n.json
      batsched-py generate realistic --model hpc2n.json -n 1000 --output like-hpc2n.swf
    """
    learner = lazy.models.MODELS.create(model, options)
    if not isinstance(learner, lazy.models.LearningModel):
        raise InputError(f"the model {model} has its parameters already and learns from no log")
    log = lazy.sources.read_log(source)
    with waiting(f"Learning from {source.name}") as moved:
        learner.fit(log, moved)
    lazy.recipe.save_model(output, learner)
    click.echo(f"{output}: {model} like {source.name}, {output.stat().st_size / 1024:.0f} KB")


@click.command("resample")
@click.argument("log_file", metavar="LOG.swf", type=NAME)
@option("--weeks N", "How long.  [default: as the log]", type=click.IntRange(1))
@option("--seed S", "Another seed gives another log.", type=click.IntRange(0), default=0)
@option(
    "--load F",
    "How many times the users of the log there are.",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
)
@option(
    "-u, --user-option KEY=VALUE",
    "Another option of `batsched-py users resample`, like long_term=8 or oversample=12:5.",
    name="settings",
    multiple=True,
)
@output_option("OUT.swf", "Where the new log goes.", type=NAME, required=True)
def resample_command(
    log_file: str, weeks: int | None, seed: int, load: float, settings: tuple[str, ...], output: str
) -> None:
    """Write a log in which new users, each with the jobs of one of LOG.swf, come and go.

    Every job keeps its weekday and its time of the day. The same seed gives the same bytes. With feedback,
    the same population is `batsched-py run --users resample`.

    \b
    Examples:
      batsched-py resample KTH-SP2.swf.gz --weeks 520 --seed 1 --output ten-years.swf.gz
      batsched-py resample KTH-SP2.swf.gz --load 1.5 -u oversample=93:10 --output busy.swf
    """
    options = {"weeks": str(weeks or 0), "seed": str(seed), "load": str(load)}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"-u {text}: write KEY=VALUE")
        options[key] = value
    population = lazy.users.USERS.create("resample", options)
    assert isinstance(population, lazy.resample.Resample)
    new = lazy.resample.resampled_log(lazy.swf_reader.read_swf(log_file), population)
    try:
        lazy.swf_log.write_swf(output, new)
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from None
    click.echo(f"{output}: {len(new)} jobs by {len(set(new.user.tolist()))} users")


#: The seed of the first log of each model: one that the trials of fitting do not know.
FIRST_SEED: Final = 200


@click.command("compare")
@click.argument("source", metavar="LOG", type=PATH)
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@option(
    "--seeds N",
    "How many logs of each model are generated and compared.",
    type=click.IntRange(min=1),
    default=3,
)
@option(
    "--rankings",
    "Also simulate six policies on the log and on each generated one, and print how alike they rank: "
    "Kendall's tau by mean wait and by mean bounded slowdown.",
)
@output_option("PAGE.html", "Write a page with figures.", type=PATH)
def compare_command(
    source: Path, models: Sequence[str], seeds: int, rankings: bool, output: Path | None
) -> None:
    """Fit MODELs to a LOG, generate as many jobs as it has, and print how like it they are.

    Without MODELs these are realistic, minh-wolters (the published model) and naive (Poisson arrivals,
    uniform run times and sizes). A cell has the mean over all seeds and the largest distance to the log; a
    cross says that some seed is farther away than is tolerated. KS is the Kolmogorov-Smirnov distance. "Run
    times, 10 jobs apart" is the autocorrelation of the logarithms of run times, at this lag. Work in long
    jobs is of those that ran for more than an hour; wide ones had more than 8 processors. The seeds are 200,
    201 and so on, because fitting tries the first ones.

    \b
    Examples:
      batsched-py compare HPC2N.swf.gz
      batsched-py compare LLNL-Thunder.swf.gz realistic slots --seeds 10
      batsched-py compare HPC2N.swf.gz realistic --output hpc2n.html
      batsched-py compare KTH-SP2.swf.gz realistic minh-wolters --rankings
    """
    log = lazy.sources.read_log(source)
    jobs = len(lazy.description_jobs.jobs_that_ran(log))
    original = lazy.description.traits(log)
    found: dict[str, list[lazy.description.Likeness]] = {}
    copies: dict[str, list[lazy.swf_log.SwfLog]] = {}
    for name in models or ("realistic", "minh-wolters", "naive"):
        model = lazy.models.MODELS.create(name, {})
        if not isinstance(model, lazy.models.LearningModel):
            raise InputError(f"the model {name} learns from no log; there is nothing to compare")
        with waiting(f"{name}: learning") as moved:
            model.fit(log, moved)
        with waiting(f"{name}: generating") as moved:
            found[name], copies[name] = [], []
            for number in range(seeds):
                copy = model.generate(jobs, FIRST_SEED + number)
                found[name].append(lazy.description.likeness(original, lazy.description.traits(copy)))
                copies[name] += [copy] if rankings or not number else []
                moved(number + 1, seeds)
    title = f"{source.name}: {jobs:,} jobs, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    tables = {title: [["", "log", *found, "tolerance"], *_rows(original, found)]}
    tables |= _rankings(log, copies) if rankings else {}
    if output is not None:
        shown = {"log": log, **{name: logs[0] for name, logs in copies.items()}}
        lazy.likeness_page.write_likeness_page(output, tables, shown)
    for name, (heads, *rows) in tables.items():
        lazy.console.print_table(heads, rows, name)
    if output is not None:
        click.echo(output)


def _rankings(
    log: lazy.swf_log.SwfLog, copies: dict[str, list[lazy.swf_log.SwfLog]]
) -> dict[str, list[list[str]]]:
    """A table of how policies rank for each measure, by its title."""
    done, total = 0, len(lazy.rankings.POLICIES) * (1 + sum(map(len, copies.values())))
    with waiting("Ranking policies") as moved:

        def step() -> None:
            nonlocal done
            done += 1
            moved(done, total)

        real = lazy.rankings.values_of(log, step)
        made = {name: [lazy.rankings.values_of(each, step) for each in logs] for name, logs in copies.items()}
    return {
        f"Policies by {title}, with their ranks": [
            ["", "log", *made],
            *lazy.rankings.table_of(measure, real, made),
        ]
        for measure, (title, _) in lazy.rankings.MEASURES.items()
    }


def _rows(
    original: lazy.description.Traits, found: dict[str, list[lazy.description.Likeness]]
) -> list[list[str]]:
    """The cells of the table: each check, the log's value, those of the models, and what is tolerated."""
    failed = {name: lazy.description.failures(original, copies) for name, copies in found.items()}
    rows = []
    for row in (*lazy.description.TOLERANCES, *lazy.description.DISTANCES):
        log = original.quantities.get(row, 0.0)
        cells = []
        for name, copies in found.items():
            values = [(copy.quantities | copy.distances)[row] for copy in copies]
            farthest = max(abs(value - log) for value in values)
            mark = "" if isnan(log) else " ✗" if failed[name][row] else " ✓"
            beside = "" if isnan(log) else f" ({_number(farthest)})"
            cells.append(f"{_number(sum(values) / len(values))}{beside}{mark}")
        if row in lazy.description.DISTANCES:
            rows.append([f"KS, {row}", "0", *cells, f"{lazy.description.DISTANCES[row]:.2f}"])
        else:
            rows.append([row, _number(log), *cells, str(lazy.description.TOLERANCES[row])])
    return rows


def _number(value: float) -> str:
    if isnan(value):
        return "unknown"
    return f"{value:.3f}" if not abs(value) >= 100 else f"{value:,.0f}"
