"""``batsched-py slurm``: a twin of a Slurm cluster, and questions to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import click

from batsched_py.api.terminal import say, waiting
from batsched_py.cli.options import FILE, FOLDER, PATH, json_option, option, pairs_option, print_json, tell
from batsched_py.errors import InputError

#: So many lines of what is not modelled are printed; the file has all of them.
SHOWN = 40

#: So many mistakes are printed.
MOST_MISTAKES = 100

accounts_option = option(
    "--accounts FILE",
    "What `sacctmgr dump`, `sacctmgr -P show assoc`, `sacctmgr -P show qos` or `sshare -P -a` printed; "
    "may be given several times.",
    name="accounting",
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
      batsched-py slurm backtest jobs.sacct
      batsched-py slurm shadow /etc/slurm/slurm.conf twin
      batsched-py slurm usage jobs.sacct --conf slurm.conf --output usage.html
    """


@slurm_command.command("import")
@click.argument("source", metavar="SLURM.CONF", type=PATH)
@click.argument("folder", metavar="DIR", type=FOLDER)
@option(
    "--jobs FILE",
    "The jobs: a log of `sacct -P --allusers`, or a .csv with the columns at, run and args (of sbatch).",
    type=FILE,
)
@option(
    "--since DATE",
    "The DATE of `sacct -S`. Jobs that ran then are submitted when they started; those that waited start "
    "later than that.",
    default="",
)
@accounts_option
@reservations_option
@zone_option
@option(
    "--no-check",
    "Do not simulate a log in the end to see what the twin is worth.",
    is_flag=True,
)
def import_command(source: Path, folder: Path, no_check: bool, **given: Any) -> None:
    """Make a scenario of the files of a cluster.

    The folder DIR gets platform.toml (the nodes), workload.json (the jobs), slurm.toml (the configuration of
    the policy slurm) and not-modelled.txt: what the simulation leaves out, each with its file and line. All
    of them can be read and edited. In place of SLURM.CONF, a folder with slurm.conf, jobs.csv and perhaps
    setup.sh is taken as a whole. Nothing that these files say is executed.

    A log is simulated in the end, and what comes of it is printed beside what was recorded, with a verdict on
    how far the twin may be trusted; worth.json keeps that.

    \b
    Examples:
      sacct -P -a -D -S 2026-01-01 --delimiter=$'\\x1f' -o JobID,JobIDRaw,JobName,User,Group,Account,QOS,\\
      Partition,Submit,Eligible,Start,End,State,ElapsedRaw,Timelimit,ReqCPUS,AllocCPUS,ReqNodes,NNodes,\\
      NodeList,ReqMem,ReqTRES,AllocTRES,Constraints,Reservation,Priority,Reason,SubmitLine > jobs.sacct
      sacctmgr -P show assoc tree > assoc.txt; sacctmgr -P show qos > qos.txt
      batsched-py slurm import /etc/slurm/slurm.conf twin --jobs jobs.sacct \\
          --accounts assoc.txt --accounts qos.txt --zone Europe/Paris --since 2026-01-01
    """
    from batsched_py.slurm import scenario as twin
    from batsched_py.workload.sources.accounting import zone_named

    zone_named(given["zone"])
    if given["since"] and (given["jobs"] is None or given["jobs"].suffix == ".csv"):
        raise InputError("--since is about a log of sacct; give it by --jobs")
    sources = twin.Sources(conf=source, **given)
    if source.is_dir():
        sources = twin.Sources.of_folder(source, sources)
    with _mistakes_told(), waiting(f"Reading {source.name}"):
        scenario = twin.read_scenario(sources)
    written = twin.write_scenario(scenario, folder)
    findings = scenario.findings
    _tell_unmodelled(list(map(str, findings.unmodelled)), f" in {folder / twin.NOT_MODELLED}")
    if findings.without_effect:
        click.echo(f"{len(findings.without_effect)} settings shape no schedule")
    for path in written:
        click.echo(str(path))
    if not no_check and scenario.jobs and given["jobs"] is not None and given["jobs"].suffix != ".csv":
        from batsched_py.slurm import tables, worth

        click.echo("")
        found = worth.worth_of(folder, given["jobs"], given["zone"], findings.unmodelled, scenario.early)
        tables.worth_tables(found)
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
    from batsched_py.slurm import comparison, prepared, scenario
    from batsched_py.slurm import tables as shown

    is_imported = (simulated / scenario.CONFIGURATION).exists()
    if is_imported or phases is not None or len(recorded) > 1:
        if workload is not None or output is not None:
            raise click.UsageError("--workload and --output go with one recording and one simulation")
        several = PHASES if is_imported and phases is None else phases
        tables = [comparison.read_jobs(path, zone) for path in recorded]
        if several is None:
            spread = prepared.spread(tables, [comparison.read_jobs(simulated, zone)])
        else:
            spread = prepared.spread_of_phases(tables, simulated, several)
        print_json(spread) if as_json else shown.spread_table(spread)
        return
    with waiting(f"Reading {recorded[0].name}"):
        tables = [comparison.read_jobs(path, zone) for path in (*recorded, simulated)]
        if workload is not None:
            tables = [comparison.with_workload(table, workload) for table in tables]
    found = comparison.compare(tables, (recorded[0].name, simulated.name))
    tell(found, as_json, output, comparison.write_comparison_page, shown.comparison_tables)


@slurm_command.command("what-if")
@click.argument("folder", metavar="DIR", type=FOLDER)
@option(
    "--set CHANGE",
    "A line of slurm.conf, like PriorityWeightAge=5000, a field of slurm.toml, like "
    'scheduling.bf_interval=60, a "ReservationName=..." as for `scontrol create`, or "+10 nodes like c1"; '
    "may be given several times.",
    name="changes",
    multiple=True,
)
@option(
    "--longer RULE",
    "What users do about jobs that ask for more time than the change allows: leave them (they wait for "
    "ever), shorten them (what runs for longer is killed), or split them into several, one after another.",
    type=click.Choice(["leave", "shorten", "split"]),
    default="leave",
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
    name="repetitions",
    type=click.IntRange(1, 1000),
    default=5,
)
@option(
    "-e, --export PREFIX",
    "Write both schedules, PREFIX_before_jobs.csv and PREFIX_after_jobs.csv, of the first seed.",
)
@json_option
@page_option
def what_if_command(as_json: bool, output: Path | None, **given: Any) -> None:
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
    if not given["changes"] and given["other"] is None:
        raise InputError("nothing is changed; give --set CHANGE or --other DIR")
    from batsched_py.slurm import tables, what_if

    with _mistakes_told():
        found = what_if.what_if(**given)
    tell(found, as_json, output, what_if.write_what_if_page, tables.what_if_tables)


@slurm_command.command("forecast")
@click.argument("conf", metavar="SLURM.CONF", type=FILE)
@click.argument("listing", metavar="JOBS", type=FILE)
@option("--log FILE", "A log of `sacct -P`: how much of their limits jobs use.", type=FILE)
@option("--job ID", "Ask about this job: what might it ask for instead, to start earlier?")
@option("--time T", "A time limit for --job, like 30 (minutes) or 2:00:00.")
@option("--nodes N", "A number of nodes for --job.", type=click.IntRange(1))
@option(
    "--submit OPTIONS",
    'Ask about a job that is not submitted yet, by options of sbatch, like "-N 4 -t 2:00:00 -p gpu".',
)
@option(
    "--at TIME", "When JOBS was printed, like 2026-05-01T08:00:00.  [default: as it tells]", name="moment"
)
@option(
    "--seeds N",
    "Draw run times from the log N times.",
    "repetitions",
    type=click.IntRange(1, 1000),
    default=20,
)
@accounts_option
@reservations_option
@zone_option
@json_option
@page_option
def forecast_command(as_json: bool, output: Path | None, **asked: Any) -> None:
    """Tell when each waiting job will start.

    And when would one start that is not submitted yet (--submit), or that asked for something else? JOBS is
    what `squeue --json` or `scontrol show job` printed, or a table of `squeue` with its header, such as that
    of `squeue -l`. What a table does not tell is assumed, and said. A start by limits assumes that all jobs
    run as long as they may. With --log, run times are drawn from the shares of their limits that jobs like
    them used, and further jobs from those that came before. A start is then a median with an 80 % interval.
    Both are corrected by what forecasts for earlier moments of the log would have missed; the output tells of
    how many starts that is known, or that it is too little. Priorities are computed again as time passes, by
    what `sshare -P -a` prints (--accounts), or else by the usage that the log tells.

    For the job of --submit, and for a --job without --time and --nodes, there is advice, what gains most
    first: less time, fewer nodes, another partition or QOS, a later begin. OPTIONS may have --uid: whose job
    it is.

    \b
    Examples:
      scontrol show job > jobs.txt
      batsched-py slurm forecast /etc/slurm/slurm.conf jobs.txt --log jobs.sacct
      batsched-py slurm forecast slurm.conf jobs.json --job 1234 --time 2:00:00 --nodes 4
      batsched-py slurm forecast slurm.conf jobs.txt --submit "-N 128 -t 12:00:00 -p gpu -A physics"
    """
    from batsched_py.slurm import tables
    from batsched_py.slurm.forecast import page, question

    asking = question.Question(**asked)
    wishes = asking.time is not None or asking.nodes is not None
    if asking.job is None and wishes:
        raise InputError("--time and --nodes are about a job; give --job ID too")
    if asking.job is not None and asking.submit is not None:
        raise InputError("give --job or --submit, not both")
    with _mistakes_told():
        found = question.answer(asking)
    if not as_json:
        _tell_unmodelled(found.not_modelled, ", which --json lists")
    tell(found, as_json, output, page.write_forecast_page, tables.forecast_table)


@slurm_command.command("backtest")
@click.argument("log", metavar="LOG", type=FILE)
@option("-s, --scheduler NAME", "The policy: easy, slurm, ...", "policy", default="easy")
@pairs_option("-o, --option", "options", "An option of the policy, like configuration_file=slurm.toml.")
@option("--hosts N", "Processors of the machine.  [default: as the log tells]", type=click.IntRange(1))
@option("--moments N", "Ask at N moments.", type=click.IntRange(4, 100_000), default=200)
@option("--draws N", "Draw run times and further jobs N times.", type=click.IntRange(5, 1000), default=30)
@option("--seed N", "For moments and draws.", type=click.IntRange(0), default=0)
@json_option
@page_option
def backtest_command(log: Path, as_json: bool, output: Path | None, **asked: Any) -> None:
    """Tell how good forecasts are.

    The log is replayed by a policy. At many moments the start of every waiting job is forecast by what was
    known then: run times are drawn from what jobs alike have used of their limits, and the jobs of the next
    hours from those that came in the same hours of past weeks. Forecasts of jobs that have started since tell
    how wide intervals must be. The later half of the moments is scored: how many starts are in the 80 %
    interval, and how far medians are from starts, beside forecasts by time limits only and a plan for all
    jobs, such as Slurm's own StartTime. Sizes and limits of jobs count, partitions and nodes do not.

    \b
    Examples:
      batsched-py slurm backtest KTH-SP2-1996-2.1-cln.swf.gz
      batsched-py slurm backtest jobs.sacct -s slurm -o configuration_file=slurm.toml --output page.html
    """
    from batsched_py.slurm import tables
    from batsched_py.slurm.forecast import backtest

    found = backtest.backtest(log, **asked)
    tell(found, as_json, output, backtest.write_backtest_page, tables.backtest_table)


@slurm_command.command("shadow")
@click.argument("conf", metavar="SLURM.CONF", type=FILE)
@click.argument("folder", metavar="DIR", type=FOLDER)
@option("--every SECONDS", "Ask so often.", type=click.FloatRange(1), default=60)
@option(
    "--port N",
    "Show the page on this port of the machine; 0 is a free one.",
    type=click.IntRange(0, 65535),
    default=9817,
)
@option("--polls N", "End after so many times; without it, when it is stopped.", type=click.IntRange(1))
@option(
    "--seeds N",
    "Draw run times N times for each forecast.",
    "repetitions",
    type=click.IntRange(1),
    default=10,
)
@option(
    "--what-if CHANGE",
    "Try a change on the jobs that wait, written as for `what-if --set`; may be given several times.",
    name="changes",
    multiple=True,
)
@option(
    "--log FILE", "A log of `sacct -P`: how much of their limits jobs use.  [default: asks sacct]", type=FILE
)
@accounts_option
def shadow_command(**given: Any) -> None:
    """Keep a twin beside a live Slurm.

    Slurm is asked by `scontrol show`, `squeue`, `sdiag` and `sacct` again and again. Nothing is ever changed
    in it. The twin knows all its jobs, forecasts the start of each that waits, and keeps score: of the jobs
    that have started, how many did so in their 80 % interval, and how far off was the median, beside limits
    alone and beside Slurm's own StartTime. It tries changes on the present queue.

    A page on this machine's loopback shows all that; /metrics has it for Prometheus, /forecast.json the
    forecast. What is known is kept in DIR, so both the twin and Slurm may be restarted.

    \b
    Examples:
      batsched-py slurm shadow /etc/slurm/slurm.conf twin
      batsched-py slurm shadow /etc/slurm/slurm.conf twin --what-if PriorityWeightAge=5000 \\
          --what-if "SchedulerParameters=bf_interval=60"
    """
    from batsched_py.slurm.shadow import shadow

    with _mistakes_told():
        shadow.shadow(shadow.Watch(**given))


def _tell_unmodelled(lines: Sequence[str], where: str) -> None:
    """Print what is not modelled, and where all of it is told."""
    for line in lines[:SHOWN]:
        click.echo(f"not modelled: {line}")
    if len(lines) > SHOWN:
        click.echo(f"not modelled: {len(lines) - SHOWN} more lines{where}")


@contextmanager
def _mistakes_told() -> Iterator[None]:
    """Print the mistakes that are found, one a line; the last one ends the command."""
    from batsched_py.slurm.reading import Mistakes

    try:
        yield
    except Mistakes as mistakes:
        *others, last = mistakes.found[: MOST_MISTAKES + 1]
        for mistake in others:
            say(f"batsched-py: error: {mistake}", err=True)
        more = len(mistakes.found) - MOST_MISTAKES
        raise InputError(str(last) if more <= 1 else f"{more} more mistakes like these") from None


@slurm_command.command("usage")
@click.argument("log", type=FILE)
@option("--conf FILE", "The slurm.conf, which tells how many cores the machine has.", type=FILE)
@option(
    "--events FILE",
    "What `sacctmgr -P show event` printed of the same time: when nodes were down or drained. Needs --conf.",
    type=FILE,
)
@reservations_option
@option(
    "--beside FILE",
    "A simulation of the same jobs: a PREFIX_jobs.csv or a folder with one. Its waits stand beside.",
    type=PATH,
)
@option(
    "--carbon-intensity G",
    "Grams of CO2 for each kWh, where the log has ConsumedEnergyRaw.",
    type=click.FloatRange(0.0),
)
@zone_option
@json_option
@page_option
def usage_command(log: Path, as_json: bool, output: Path | None, **asked: Any) -> None:
    """Tell who used a cluster, how long jobs waited, and what became of the rest of the machine.

    LOG is what `sacct` printed. There are core hours, waits, slowdowns, and how much of the time and memory
    that was asked for was used, by month, partition, account, QOS and user. The hours of the machine are told
    as used, down or drained, reserved and idle, idle while jobs waited, and idle. What the files do not tell
    is a question mark, not a zero.

    \b
    Examples:
      batsched-py slurm usage jobs.sacct --zone Europe/Paris
      sacctmgr -P show event Start=2026-01-01 > events.txt
      batsched-py slurm usage jobs.sacct --conf /etc/slurm/slurm.conf --events events.txt \\
          --reservations reservations.txt --output usage.html
      batsched-py slurm usage jobs.sacct --conf slurm.conf --beside out_jobs.csv
    """
    from batsched_py.slurm import usage, usage_tables

    with _mistakes_told(), waiting(f"Reading {log.name}"):
        found = usage.usage_of(log, usage.Asked(**asked))
    tell(found, as_json, output, usage_tables.write_usage_page, usage_tables.usage_tables)
