"""``batsched-py fit``: what a model learns from a log, kept in a file."""

from __future__ import annotations

from pathlib import Path

import click

from batsched_py.api.progress import waiting
from batsched_py.cli.pairs import pairs_option
from batsched_py.errors import InputError


@click.command("fit")
@click.argument("model")
@click.option(
    "--like",
    "source",
    metavar="LOG",
    type=click.Path(path_type=Path),
    required=True,
    help="The log that the model learns from.",
)
@pairs_option("-p", "--parameter", "options", "An option of the model, like run_times=linear.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), required=True, help="Where it goes."
)
def command(model: str, source: Path, options: dict[str, str], output: Path) -> None:
    """Fit the MODEL of this name to a log and save what it learned as JSON, to generate from it later.

    The file has no jobs in it, but distributions, so it may be shared where the log may not.

    \b
    Examples:
      batsched-py fit realistic --like HPC2N.swf.gz -o hpc2n.json
      batsched-py generate realistic --model hpc2n.json -n 1000 -o like-hpc2n.swf
    """
    from batsched_py.workload.models import MODELS, LearningModel
    from batsched_py.workload.recipe import save_model
    from batsched_py.workload.sources import read_log

    learner = MODELS.create(model, options)
    if not isinstance(learner, LearningModel):
        raise InputError(f"the model {model} has its parameters already and learns from no log")
    log = read_log(source)
    with waiting(f"Learning from {source.name}") as moved:
        learner.fit(log, moved)
    save_model(output, learner)
    click.echo(f"{output}: {model} like {source.name}, {output.stat().st_size / 1024:.0f} KB")
