"""``batsched-py slurm what-if`` and ``forecast``: questions to a twin of a Slurm cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.cli.options import pairs_option
from batsched_py.cli.slurm_options import (
    FILE,
    FOLDER,
    SHOWN,
    accounts_option,
    json_option,
    page_option,
    reservations_option,
    tell,
    told_one_by_one,
    zone_option,
)
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.slurm.forecast.forecast import Forecast


@click.command("what-if")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--set",
    "changes",
    metavar="CHANGE",
    multiple=True,
    help="A line of slurm.conf, like PriorityWeightAge=5000, or a field of slurm.toml, like "
    "scheduling.bf_interval=60; may be given several times.",
)
@click.option(
    "--other",
    metavar="DIR",
    type=FOLDER,
    help="Another scenario, such as a copy that was edited, with more nodes.",
)
@click.option(
    "--users",
    metavar="NAME",
    default="distribution",
    show_default=True,
    help="How users react: one that `batsched-py users` lists. With rigid, they do not.",
)
@pairs_option("-u", "--user-option", "user_options", "An option of the users, like sessions=arrival:60.")
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Simulate N times, with other phases of Slurm's clocks and other draws of users, for intervals.",
)
@click.option(
    "-e",
    "--export",
    metavar="PREFIX",
    help="Write both schedules, PREFIX_before_jobs.csv and PREFIX_after_jobs.csv, of the first seed.",
)
@json_option
@page_option
def what_if_command(
    folder: Path,
    changes: tuple[str, ...],
    other: Path | None,
    users: str,
    user_options: dict[str, str],
    seeds: int,
    export: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Tell who gains and who loses by a change.

    The scenario in DIR, made by `batsched-py slurm import`, is simulated before and after the change, with
    users who react to what they get. Mean waits are compared by class, partition, account and user. Both are
    repeated with other phases of Slurm's clocks, which nobody can know, and other draws of users who draw at
    random. A difference has a 95 % interval over these repetitions.

    \b
    Examples:
      batsched-py slurm what-if twin --set "SchedulerParameters=bf_interval=60"
      batsched-py slurm what-if twin --set "PartitionName=short MaxTime=30" --users think-time
      batsched-py slurm what-if twin --set associations.physics.shares=20 --seeds 10 --output page.html
      batsched-py slurm what-if twin --other twin-with-more-nodes
    """
    if not changes and other is None:
        raise InputError("nothing is changed; give --set CHANGE or --other DIR")
    from batsched_py.cli.slurm_tables import what_if_tables
    from batsched_py.slurm.findings import Mistakes
    from batsched_py.slurm.what_if import what_if, write_what_if_page

    try:
        found = what_if(folder, changes, other, users, user_options, seeds, export)
    except Mistakes as mistakes:
        raise told_one_by_one(mistakes) from None
    tell(found, as_json, output, write_what_if_page, what_if_tables)


@click.command("forecast")
@click.argument("source", metavar="SLURM.CONF", type=FILE)
@click.argument("listing", metavar="JOBS", type=FILE)
@click.option(
    "--log", metavar="FILE", type=FILE, help="A log of `sacct -P`: how much of their limits jobs use."
)
@click.option("--job", metavar="ID", help="Ask about this job: what if it asked for less?")
@click.option("--time", metavar="T", help="A time limit for --job, like 30 (minutes) or 2:00:00.")
@click.option("--nodes", metavar="N", type=click.IntRange(1), help="A number of nodes for --job.")
@click.option(
    "--at",
    "moment",
    metavar="TIME",
    help="When JOBS was printed, like 2026-05-01T08:00:00.  [default: as it tells]",
)
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Draw run times from the log N times.",
)
@accounts_option
@reservations_option
@zone_option
@json_option
@page_option
def forecast_command(
    source: Path,
    listing: Path,
    log: Path | None,
    job: str | None,
    time: str | None,
    nodes: int | None,
    moment: str | None,
    seeds: int,
    accounts: tuple[Path, ...],
    reservations: tuple[Path, ...],
    zone: str,
    as_json: bool,
    output: Path | None,
) -> None:
    """Tell when each waiting job will start.

    And when would one start that asked for less time, or for fewer nodes? JOBS is what `squeue --json` or
    `scontrol show job` printed, or a table of `squeue` with its header, such as that of `squeue -l`. What a
    table does not tell is assumed, and said. A start by limits assumes that all jobs run as long as they may.
    With --log, run times are drawn from the shares of their limits that jobs of the same user used (of all
    users, if the user has few), and a start is a median with an 80 % interval. Nobody submits further jobs in
    a forecast.

    \b
    Examples:
      scontrol show job > jobs.txt
      batsched-py slurm forecast /etc/slurm/slurm.conf jobs.txt --log jobs.sacct
      batsched-py slurm forecast slurm.conf jobs.json --job 1234 --time 2:00:00 --nodes 4
    """
    from batsched_py.cli.slurm_tables import forecast_table
    from batsched_py.slurm.findings import Mistakes
    from batsched_py.slurm.forecast.forecast import Question, answer, write_forecast_page

    if job is None and (time is not None or nodes is not None):
        raise InputError("--time and --nodes are about a job; give --job ID too")
    if job is not None and time is None and nodes is None:
        raise InputError("--job needs --time or --nodes: what it might ask for instead")
    question = Question(source, listing, log, job, time, nodes, moment, seeds, accounts, reservations, zone)
    try:
        found = answer(question)
    except Mistakes as mistakes:
        raise told_one_by_one(mistakes) from None

    def print_table(found: Forecast) -> None:
        for line in found.not_modelled[:SHOWN]:
            click.echo(f"not modelled: {line}")
        if len(found.not_modelled) > SHOWN:
            click.echo(f"not modelled: {len(found.not_modelled) - SHOWN} more lines, which --json lists")
        forecast_table(found)

    tell(found, as_json, output, write_forecast_page, print_table)
