"""``batsched-py slurm``: a twin of a Slurm cluster."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from batsched_py.api.terminal import waiting
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
from batsched_py.cli.slurm_questions import forecast_command, what_if_command
from batsched_py.protocol.shown import harmless

if TYPE_CHECKING:
    from batsched_py.slurm.findings import Findings
    from batsched_py.slurm.scenario import Sources


PHASES = 20
"""So often an imported scenario is simulated if nothing is said."""


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
@click.argument("source", metavar="SLURM.CONF", type=click.Path(path_type=Path))
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--jobs",
    metavar="FILE",
    type=FILE,
    help="The jobs: a log of `sacct -P --allusers`, or a .csv with the columns at, run and args (of sbatch).",
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
    from batsched_py.slurm.findings import Mistakes
    from batsched_py.slurm.scenario import (
        CONFIGURATION,
        NOT_MODELLED,
        PLATFORM,
        WORKLOAD_FILE,
        Sources,
        read_scenario,
        write_scenario,
    )
    from batsched_py.workload.sources.accounting import zone_named

    zone_named(zone)
    sources = Sources(conf=source, accounting=accounts, reservations=reservations, jobs=jobs, zone=zone)
    if source.is_dir():
        sources = _folder(source, sources)
    try:
        with waiting(f"Reading {source.name}"):
            scenario = read_scenario(sources)
    except Mistakes as mistakes:
        raise told_one_by_one(mistakes) from None
    written = write_scenario(scenario, folder)
    _tell(scenario.findings, folder / NOT_MODELLED)
    for path in written:
        click.echo(str(path))
    if scenario.jobs:
        workload, platform, configuration = (
            quote(str(folder / name)) for name in (WORKLOAD_FILE, PLATFORM, CONFIGURATION)
        )
        click.echo(
            f"\nNow: batsched-py run -w {workload} -p {platform} -s slurm "
            f"-o configuration_file={configuration}"
        )


@slurm_command.command("compare")
@click.argument("recorded", metavar="RECORDED...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.argument("simulated", metavar="SIMULATED", type=click.Path(path_type=Path))
@click.option(
    "-w",
    "--workload",
    metavar="FILE",
    type=FILE,
    help="The imported workload.json, which tells sizes, partitions, accounts and users of the jobs.",
)
@click.option(
    "--phases",
    metavar="N",
    type=click.IntRange(1, 1000),
    help="Simulate an imported scenario N times, with other phases of Slurm's clocks each time.  "
    f"[default: {PHASES}]",
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
    from batsched_py.cli.slurm_tables import comparison_tables
    from batsched_py.slurm.comparison import compare, write_comparison_page
    from batsched_py.slurm.scenario import CONFIGURATION
    from batsched_py.slurm.schedules import read_jobs, with_workload

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
    from batsched_py.slurm.phases import spread, spread_of_phases
    from batsched_py.slurm.schedules import read_jobs

    tables = [read_jobs(path, zone) for path in recorded]
    if phases is None:
        found = spread(tables, [read_jobs(simulated, zone)])
    else:
        found = spread_of_phases(tables, simulated, phases)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(found)))
        return
    from batsched_py.cli.slurm_tables import spread_table

    spread_table(found)


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


slurm_command.add_command(what_if_command)
slurm_command.add_command(forecast_command)
