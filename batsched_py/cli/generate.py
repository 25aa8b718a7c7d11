"""``batsched-py generate``: a log that never was."""

from __future__ import annotations

from pathlib import Path

import click

from batsched_py.api.progress import waiting
from batsched_py.cli.pairs import pairs_option
from batsched_py.errors import InputError


@click.command("generate")
@click.argument("model")
@click.option(
    "--like",
    "source",
    metavar="LOG",
    type=click.Path(path_type=Path),
    help="The log that a model learns from.",
)
@click.option(
    "--model",
    "saved",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A model that `batsched-py fit` has saved, instead of --like.",
)
@pairs_option("-p", "--parameter", "options", "An option of the model, like types=batch.")
@click.option(
    "-n", "--jobs", metavar="JOBS", type=click.IntRange(min=1), required=True, help="How many jobs."
)
@click.option(
    "--seed",
    metavar="S",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Another seed gives another log.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(path_type=Path),
    required=True,
    help="Where the log goes: OUT.swf, OUT.swf.gz, OUT.json, OUT.csv, ...",
)
def command(
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
      batsched-py generate realistic --like HPC2N.swf.gz -n 200000 --seed 1 -o hpc2n-1.swf
      batsched-py generate slots --like LOG.swf -p processors=480 -p speed=1.5 -n 50000 -o larger.swf
      batsched-py generate slots --like LOG.swf -p limits=core:1-8,gpu:0-2 -n 50000 -o gpus.csv
      batsched-py generate lublin -p processors=256 -n 10000 --seed 3 -o lublin.json
    """
    from batsched_py.workload.recipe import log_from_recipe
    from batsched_py.workload.sources import source_of, write_log

    source_of(output)
    if source is not None and saved is not None:
        raise InputError("both --like and --model say what the model learned; give one of them")
    learned = {"like": source, "fitted": saved}
    recipe = options | {"model": model, "jobs": jobs, "seed": seed}
    recipe |= {key: str(file) for key, file in learned.items() if file is not None}
    with waiting(f"Generating {jobs:,} jobs") as moved:
        log = log_from_recipe(recipe, progress=moved)
    with waiting(f"Writing {output}"):
        write_log(output, log)
    days = (log.submit[-1] - log.submit[0]) / 86400
    click.echo(f"{output}: {len(log):,} jobs in {days:.1f} days")
