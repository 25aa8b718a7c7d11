"""``batsched-py slurm``: a twin of a Slurm cluster, and questions to it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from batsched_py.api.terminal import say, waiting
from batsched_py.cli.options import FILE, FOLDER, PATH, json_option, option, pairs_option, print_json, tell
from batsched_py.errors import InputError
from batsched_py.protocol.shown import harmless

if TYPE_CHECKING:
    from batsched_py.slurm.forecast.forecast import Forecast
    from batsched_py.slurm.reading import Findings, Mistakes
    from batsched_py.slurm.scenario import Sources


#: So many lines of what is not modelled are printed; the file has all of them.
SHOWN = 40

#: So many mistakes are printed.
MOST_MISTAKES = 100

accounts_option = option(
    "--accounts FILE",
    "What `sacctmgr dump`, `sacctmgr -P show assoc`, `sacctmgr -P show qos` or `sshare -P -a` printed; "
    "may be given several times.",
    type=FILE,
    multiple=True,
)
reservations_option = option(
    "--reservations FILE",
    "What `scontrol show reservation` printed, or a script (.sh) with lines `scontrol create "
    "reservation ...`; it is read, not executed.",
    type=FILE,
    multiple=True,
)
zone_option = option("--zone ZONE", "Time zone of all dates.", default="UTC")
page_option = option("--output PAGE.html", "Write a page.", type=FILE)

#: So often an imported scenario is simulated if nothing is said.
PHASES = 20


@click.group("slurm")
def slurm_command() -> None:
    """A twin of a Slurm cluster: its configuration in, its schedule out, compared with the real one.

    \b
    Examples:
      batsched-py slurm import slurm.conf twin --jobs jobs.sacct --accounts assoc.txt --accounts qos.txt
      batsched-py run -w twin/workload.json -p twin/platform.toml -s slurm \\
          -o configuration_file=twin/slurm.toml
      batsched-py slurm compare jobs.sacct out_jobs.csv --output twin.html
      batsched-py slurm what-if twin --set PriorityWeightAge=5000
      batsched-py slurm forecast slurm.conf jobs.txt --log jobs.sacct
    """


@slurm_command.command("import")
@click.argument("source", metavar="SLURM.CONF", type=PATH)
@click.argument("folder", metavar="DIR", type=FOLDER)
@option(
    "--jobs FILE",
    "The jobs: a log of `sacct -P --allusers`, or a .csv with the columns at, run and args (of sbatch).",
    type=FILE,
)
@accounts_option
@reservations_option
@zone_option
def import_command(
    source: Path,
    folder: Path,
    jobs: Path | None,
    accounts: tuple[Path, ...],
    reservations: tuple[Path, ...],
    zone: str,
) -> None:
    """Make a scenario of the files of a cluster.

    The folder DIR gets platform.toml (the nodes), workload.json (the jobs), slurm.toml (the configuration of
    the policy slurm) and not-modelled.txt: what the simulation leaves out, each with its file and line. All
    of them can be read and edited. In place of SLURM.CONF, a folder with slurm.conf, jobs.csv and perhaps
    setup.sh is taken as a whole. Nothing that these files say is executed.

    \b
    Examples:
      sacct -P -a -S 2026-01-01 -o ALL > jobs.sacct
      sacctmgr -P show assoc tree > assoc.txt; sacctmgr -P show qos > qos.txt
      batsched-py slurm import /etc/slurm/slurm.conf twin --jobs jobs.sacct \\
          --accounts assoc.txt --accounts qos.txt --zone Europe/Paris
    """
    from batsched_py.slurm import scenario as twin
    from batsched_py.slurm.reading import Mistakes
    from batsched_py.workload.sources.accounting import zone_named

    zone_named(zone)
    sources = twin.Sources(conf=source, accounting=accounts, reservations=reservations, jobs=jobs, zone=zone)
    if source.is_dir():
        sources = _folder(source, sources)
    try:
        with waiting(f"Reading {source.name}"):
            scenario = twin.read_scenario(sources)
    except Mistakes as mistakes:
        raise told_one_by_one(mistakes) from None
    written = twin.write_scenario(scenario, folder)
    _tell(scenario.findings, folder / twin.NOT_MODELLED)
    for path in written:
        click.echo(str(path))
    if scenario.jobs:
        workload, platform, configuration = (
            quote(str(folder / name)) for name in (twin.WORKLOAD_FILE, twin.PLATFORM, twin.CONFIGURATION)
        )
        click.echo(
            f"\nNow: batsched-py run -w {workload} -p {platform} -s slurm "
            f"-o configuration_file={configuration}"
        )


@slurm_command.command("compare")
@click.argument("recorded", metavar="RECORDED...", nargs=-1, required=True, type=PATH)
@click.argument("simulated", metavar="SIMULATED", type=PATH)
@option(
    "-w, --workload FILE",
    "The imported workload.json, which tells sizes, partitions, accounts and users of the jobs.",
    type=FILE,
)
@option(
    "--phases N",
    "Simulate an imported scenario N times, with other phases of Slurm's clocks each time.  "
    f"[default: {PHASES}]",
    type=click.IntRange(1, 1000),
)
@zone_option
@json_option
@page_option
def compare_command(
    recorded: tuple[Path, ...],
    simulated: Path,
    workload: Path | None,
    phases: int | None,
    zone: str,
    as_json: bool,
    output: Path | None,
) -> None:
    """Compare recorded schedules with a simulated one.

    RECORDED and SIMULATED are compared by waits, starts and utilization. Each is a recording (.csv with
    number, submit, eligible, start and end), a log of `sacct -P`, or a PREFIX_jobs.csv of a simulation or a
    folder with one. A job waits from when it is eligible: not held, not before its --begin, with its
    dependencies fulfilled. Two recordings of the same jobs tell how much a real Slurm differs from itself.

    A real Slurm does not do the same twice: much depends on when its loops wake, which nobody can know. If
    SIMULATED is a folder that `slurm import` has made, it is simulated several times with other phases, and
    means and ranges over these simulations are printed. RECORDED may be several recordings of the same jobs;
    then means and ranges over these are printed, too, and how far they are from each other.

    \b
    Examples:
      batsched-py slurm compare recorded-a.csv out_jobs.csv -w twin/workload.json
      batsched-py slurm compare recorded-a.csv recorded-b.csv twin
      batsched-py slurm compare recorded-a.csv recorded-b.csv
      batsched-py slurm compare jobs.sacct out_jobs.csv --zone Europe/Paris --output twin.html
    """
    from batsched_py.slurm.comparison import compare, read_jobs, with_workload, write_comparison_page
    from batsched_py.slurm.scenario import CONFIGURATION
    from batsched_py.slurm.tables import comparison_tables

    is_imported = (simulated / CONFIGURATION).exists() and not any(simulated.glob("*jobs.csv"))
    if is_imported or phases is not None or len(recorded) > 1:
        if workload is not None or output is not None:
            raise click.UsageError("--workload and --output go with one recording and one simulation")
        several = PHASES if is_imported and phases is None else phases
        _compare_several(recorded, simulated, several, zone, as_json)
        return
    with waiting(f"Reading {recorded[0].name}"):
        tables = [read_jobs(path, zone) for path in (*recorded, simulated)]
        if workload is not None:
            tables = [with_workload(table, workload) for table in tables]
    found = compare(tables, (recorded[0].name, simulated.name))
    tell(found, as_json, output, write_comparison_page, comparison_tables)


def _compare_several(
    recorded: tuple[Path, ...], simulated: Path, phases: int | None, zone: str, as_json: bool
) -> None:
    """Print how far one simulation or more are from recordings."""
    from batsched_py.slurm.comparison import read_jobs
    from batsched_py.slurm.prepared import spread, spread_of_phases
    from batsched_py.slurm.tables import spread_table

    tables = [read_jobs(path, zone) for path in recorded]
    if phases is None:
        found = spread(tables, [read_jobs(simulated, zone)])
    else:
        found = spread_of_phases(tables, simulated, phases)
    print_json(found) if as_json else spread_table(found)


@slurm_command.command("what-if")
@click.argument("folder", metavar="DIR", type=FOLDER)
@option(
    "--set CHANGE",
    "A line of slurm.conf, like PriorityWeightAge=5000, or a field of slurm.toml, like "
    "scheduling.bf_interval=60; may be given several times.",
    name="changes",
    multiple=True,
)
@option("--other DIR", "Another scenario, such as a copy that was edited, with more nodes.", type=FOLDER)
@option(
    "--users NAME",
    "How users react: one that `batsched-py users` lists. With rigid, they do not.",
    default="distribution",
)
@pairs_option("-u, --user-option", "user_options", "An option of the users, like sessions=arrival:60.")
@option(
    "--seeds N",
    "Simulate N times, with other phases of Slurm's clocks and other draws of users, for intervals.",
    type=click.IntRange(1, 1000),
    default=5,
)
@option(
    "-e, --export PREFIX",
    "Write both schedules, PREFIX_before_jobs.csv and PREFIX_after_jobs.csv, of the first seed.",
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
    from batsched_py.slurm.reading import Mistakes
    from batsched_py.slurm.tables import what_if_tables
    from batsched_py.slurm.what_if import what_if, write_what_if_page

    try:
        found = what_if(folder, changes, other, users, user_options, seeds, export)
    except Mistakes as mistakes:
        raise told_one_by_one(mistakes) from None
    tell(found, as_json, output, write_what_if_page, what_if_tables)


@slurm_command.command("forecast")
@click.argument("source", metavar="SLURM.CONF", type=FILE)
@click.argument("listing", metavar="JOBS", type=FILE)
@option("--log FILE", "A log of `sacct -P`: how much of their limits jobs use.", type=FILE)
@option("--job ID", "Ask about this job: what if it asked for less?")
@option("--time T", "A time limit for --job, like 30 (minutes) or 2:00:00.")
@option("--nodes N", "A number of nodes for --job.", type=click.IntRange(1))
@option(
    "--at TIME", "When JOBS was printed, like 2026-05-01T08:00:00.  [default: as it tells]", name="moment"
)
@option("--seeds N", "Draw run times from the log N times.", type=click.IntRange(1, 1000), default=20)
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
    from batsched_py.slurm.forecast.forecast import Question, answer, write_forecast_page
    from batsched_py.slurm.reading import Mistakes
    from batsched_py.slurm.tables import forecast_table

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


def _folder(folder: Path, given: Sources) -> Sources:
    """The files of a recorded scenario, with those that are given beside."""
    from msgspec.structs import replace

    from batsched_py.slurm.scenario import Sources

    found = Sources.of_folder(folder)
    return replace(
        found,
        accounting=given.accounting,
        reservations=(*found.reservations, *given.reservations),
        jobs=given.jobs or found.jobs,
        zone=given.zone,
    )


def _tell(findings: Findings, file: Path) -> None:
    """Print what is not modelled, of which a file has all."""
    for finding in findings.unmodelled[:SHOWN]:
        click.echo(f"not modelled: {harmless(str(finding))}")
    if len(findings.unmodelled) > SHOWN:
        click.echo(f"not modelled: {len(findings.unmodelled) - SHOWN} more lines in {file}")
    if findings.without_effect:
        click.echo(f"{len(findings.without_effect)} settings shape no schedule")


def told_one_by_one(mistakes: Mistakes) -> InputError:
    """Print the mistakes, one a line; the last one ends the command."""
    *others, last = mistakes.found[: MOST_MISTAKES + 1]
    for mistake in others:
        say(f"batsched-py: error: {mistake}", err=True)
    more = len(mistakes.found) - MOST_MISTAKES
    return InputError(str(last) if more <= 1 else f"{more} more mistakes like these")
