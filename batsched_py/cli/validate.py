"""``batsched-py validate``: does a schedule obey the rules? ``calibrate``: how far may it be trusted?

``batsched-py saturation``: which load can the machine bear?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import duration, say, waiting
from batsched_py.cli.options import (
    NAME,
    PATH,
    json_option,
    option,
    pairs_option,
    print_json,
    setting_options,
    struct_options,
    tell,
)
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.protocol.shown import harmless
from batsched_py.schedulers.selection import NodeChoiceName

#: What is checked, for the help of the command.
_RULES = """Check the jobs.csv of a simulation, by this or any other Batsim, for violations of the rules.

\b
Always       overlap     no host runs two jobs at a time
             capacity    as many hosts as the job asked for, all of which exist
             causality   no start before the submission
             walltime    never exceeded; reached exactly by those it stopped
             arithmetic  finish, waiting, turnaround and stretch fit the other times
             state       success flag and final state agree
             twice       no job has two rows
             resize      changes of the hosts of a job fit together (PREFIX_resizes.csv)
With -w      lost, invented, workload
                         every job is there, as the workload describes it, and no other
             profile     jobs ran as long as their profiles say, and those stopped by their
                         walltimes needed longer; not of jobs that communicate or wait for
                         messages, and of jobs that compute with --hosts or -p only
                         (and with the --speed of the simulation)
             dependency  no job starts before what it waits for has happened
             array       no array runs more tasks at once than it may
             sizes       a moldable job has one of the sizes that it gives
             malleable   only malleable jobs grow and shrink, within their bounds
             work        malleable jobs have done all of their work when they end; of jobs that
                         compute, this is known with --hosts or -p
With -w and a machine of nodes
             resources   no node has more cores, memory or GPUs in use than it has
             licences    nor the machine more licences
             exclusive   nobody else is on the nodes of a job that must have them alone
             partition, features
                         the nodes are of the kind that the job asked for
             nodes       neither too few of them nor too many
             tasks       no task is split over nodes, and not too many are on one
With --policy
  fcfs-order             jobs start in the order of submission
  easy-idle              the head of the queue starts as soon as it fits
  easy-reservation       and no later than its first shadow time
  easy-backfill          those who overtake it do not need the hosts reserved for it
  conservative-reservation
                         no job starts later than the reservation it gets on arrival
                         A job that waited for others arrives when it joins the queue
                         (PREFIX_held.csv). Promises of easy and conservative are about hosts
                         that are always there: they are refused where some were away or closed.
With --power-cap
  power                  hosts never draw more, even if those with jobs are fully busy; power
                         states are read from PREFIX_pstate_changes.csv if it is there
With --closures
  closed                 no job is started on hosts that close before its walltime is over, or
                         grows into them
With PREFIX_absences.csv beside it, which simulations with failures write, or with --events
  away                   no job runs on hosts while they are away
  failure                a job that a failure has ended, as its note says, ended when its hosts failed

On a machine of nodes the promises hold in every resource: "fits" means that there is a place.

Times that differ by less than their printing error are the same. The first violation is printed, with
the number of violations of each rule; the exit code is then 1.

\b
Examples:
  batsched-py validate out_jobs.csv
  batsched-py validate out_jobs.csv -w KTH-SP2.swf.gz --hosts 100 --policy easy
  batsched-py validate out_jobs.csv -w jobs.json -p cluster.toml --policy easy
"""


@click.command("validate", help=_RULES)
@click.argument("schedule_file", metavar="PREFIX_jobs.csv", type=PATH)
@struct_options("workloads", Workloads)
@option(
    "-p, --platform FILE",
    "The machine it was made on: a platform of SimGrid (.xml), or nodes (.toml, .conf, .config, .json).",
    name="platform_file",
    type=NAME,
)
@option("--hosts N", "The number of hosts it was made on.", type=int)
@setting_options(Machine, "speed")
@option(
    "--policy",
    "Check what this policy promises as well; easy and conservative need --hosts or -p.",
    type=click.Choice(["fcfs", "easy", "conservative"]),
)
@option(
    "--power-cap WATTS|FILE",
    "Check that no more power is drawn; needs -p with a platform that says what hosts draw. A file "
    "tells the cap over time, as for run.",
)
@option(
    "--closures FILE",
    "Check that no job runs into these closures; needs -p or --hosts, and -w for users who are let in.",
)
@option(
    "--events FILE",
    "The events from outside that the simulation was given, which tell when hosts were away; may be "
    "repeated.",
    multiple=True,
)
@option("--outside-period S", "The cap repeats every S seconds.", type=float)
@option(
    "--nodes",
    "How nodes were chosen, on a machine of nodes: what conservative promises depends on it.",
    type=click.Choice(get_args(NodeChoiceName)),
    default="first-fit",
)
@click.pass_context
def validate_command(
    ctx: click.Context,
    schedule_file: Path,
    workloads: Workloads,
    platform_file: str | None,
    hosts: int | None,
    speed: float,
    policy: lazy.validator.Policy | None,
    power_cap: str | None,
    closures: str | None,
    events: tuple[str, ...],
    outside_period: float | None,
    nodes: NodeChoiceName,
) -> None:
    """Print the first violation in a schedule, and how many there are of each rule."""
    if platform_file is None and hosts is None:
        if power_cap is not None:
            raise click.UsageError("--power-cap needs the platform with -p")
        if closures is not None:
            raise click.UsageError("--closures needs the platform with -p, or --hosts")
    jobs = lazy.build.read_workloads(workloads, words=lazy.build.words_of(Machine(file=platform_file)))
    away = lazy.explained.outages_in(events) if events else None
    if platform_file is None and hosts is None:
        facts = lazy.validator.Facts(events=away)
    else:
        platform = lazy.build.read_machine(Machine(file=platform_file, hosts=hosts, speed=speed), jobs)
        hosts = len(platform.hosts)
        cap = None if power_cap is None else _cap(power_cap, outside_period)
        facts = lazy.validating.facts_of(platform, nodes=nodes, closures=closures, power_cap=cap, events=away)
    facts = facts.with_files(lazy.schedule.tables_beside(schedule_file))
    nb_jobs, found = lazy.validator.validate_file(schedule_file, hosts, jobs, policy, facts)
    if found:
        counts = Counter(violation.rule for violation in found)
        say(f"{schedule_file}: {found[0]}")
        say(", ".join(f"{rule}: {count}" for rule, count in sorted(counts.items())))
        ctx.exit(1)
    say(f"{schedule_file}: {nb_jobs} jobs, no violation")


def _cap(text: str, period: float | None) -> lazy.curve.Curve | None:
    """A number of watts, or a file that tells them over time."""
    try:
        watts = float(text)
    except ValueError:
        return lazy.validating.power_cap(text, period)
    if not watts > 0:
        raise click.UsageError(f"--power-cap must be more than 0, not {text}")
    return lazy.validating.power_cap(None, None, watts)


#: So many users and partitions are printed, the busiest ones; the page and the JSON have all of them.
SHOWN = 12


@click.command("calibrate")
@click.argument("source", metavar="LOG", type=PATH)
@setting_options(Actors, "scheduler")
@struct_options("machine", Machine)
@setting_options(Scenario, "events")
@setting_options(Workloads, "walltime")
@setting_options(Workloads, "cancelled")
@option("--from KIND", "What LOG is, if its name does not tell.", name="kind")
@pairs_option("-i, --input-option", "options", "An option of the kind of LOG, like zone=Europe/Paris.")
@json_option
@option("--output PAGE.html", "Write a page.", type=PATH)
def calibrate_command(
    source: Path,
    scheduler: Choice | None,
    machine: Machine,
    events: tuple[str, ...],
    walltime: lazy.model.WalltimeRule,
    cancelled: lazy.model.CancelledRule,
    kind: str | None,
    options: dict[str, str],
    as_json: bool,
    output: Path | None,
) -> None:
    """Replay a LOG as it was and show simulated beside recorded waits: the first thing to do with a log.

    By partition, class, user and month, with a verdict: how far may a simulation be trusted for this log?
    Without -s the scheduler is easy; give the one that is most like that of the recorded machine. A wait is
    near another one within ten minutes or a factor of two. docs/calibration.md explains the verdict.

    \b
    Examples:
      batsched-py calibrate KTH-SP2.swf.gz
      batsched-py calibrate KTH-SP2.swf.gz -s conservative --output kth.html
      batsched-py calibrate jobs.sacct -i zone=Europe/Paris --hosts 4096 --events outages.txt
    """
    with waiting(f"Reading {source.name}"):
        log = lazy.sources.read_log(source, kind, options)
    workloads = Workloads(files=(str(source),), walltime=walltime, cancelled=cancelled)
    experiment = Experiment(
        scenario=Scenario(workloads=workloads, machine=machine, events=events),
        actors=Actors(scheduler=scheduler or Choice("easy")),
    )
    replay = lazy.simulating.simulate_experiment(experiment, progress=True, logs={0: log})
    found = lazy.log.compared(lazy.log.Log(log), replay)
    text = "\n".join(_lines(found))
    tell(found, as_json, output, lambda page, found: found.save(page), lambda found: click.echo(text))


def _lines(found: lazy.calibration.Calibration) -> Iterator[str]:
    yield f"{harmless(found.log)} under {found.scheduler} on {found.hosts:,} hosts"
    if found.waits is not None:
        yield ""
        yield _row("", "jobs", "mean wait", "", "median wait", "", "rank", "near")
        yield _row("", "", "recorded", "simulated", "recorded", "simulated", "corr.", "")
        yield _waits("all jobs", found.waits)
    for grouping, groups in found.groups.items():
        if len(groups) > 1:
            yield ""
            yield f"by {grouping}"
            shown = list(groups) if grouping == "month" else list(groups)[:SHOWN]
            yield from (_waits(name, groups[name]) for name in shown)
            if len(groups) > len(shown):
                yield f"  and {len(groups) - len(shown):,} more, which --json and --output show"
    if found.waits is not None:
        yield ""
        both = found.utilization_recorded, found.utilization_simulated
        shares = ["unknown" if each is None else f"{each:.1%}" for each in both]
        yield "utilization: {} recorded, {} simulated".format(*shares)
        yield (
            f"waited for long only in the log: {found.waits.only_recorded:.1%} of the jobs, only in the "
            f"simulation: {found.waits.only_simulated:.1%}"
        )
    if found.causes:
        yield ""
        yield "What may explain differences, and how many jobs it concerns:"
        yield from (f"  {count:>9,}  {cause}" for cause, count in found.causes.items())
    yield ""
    yield click.wrap_text(f"Verdict: {found.verdict.trust}. {found.verdict.words}", width=90)
    yield from (f"  {reason}" for reason in found.verdict.reasons)


def _waits(name: str, waits: lazy.calibration.Waits) -> str:
    times = (waits.mean_recorded, waits.mean_simulated, waits.median_recorded, waits.median_simulated)
    correlation = "-" if waits.rank_correlation is None else f"{waits.rank_correlation:.2f}"
    return _row(
        f"  {harmless(name)}", f"{waits.jobs:,}", *map(duration, times), correlation, f"{waits.near:.0%}"
    )


def _row(name: str, jobs: str, *cells: str) -> str:
    *times, correlation, near = cells
    middle = "".join(f"{time:>11}" for time in times)
    return f"{name:<20.20}{jobs:>9}{middle}{correlation:>7}{near:>6}".rstrip()


SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("saturation")
@click.argument("source", metavar="LOG", type=PATH)
@setting_options(Actors, "scheduler")
@struct_options("machine", Machine)
@setting_options(Workloads, "walltime")
@option("--behind SHARE", "More of the work than this is behind when it is.", type=SHARE, default=0.05)
@option("--within SHARE", "Search until the load is known so well.", type=SHARE, default=0.02)
@option("--from KIND", "What LOG is, if its name does not tell.", name="kind")
@pairs_option("-i, --input-option", "options", "An option of the kind of LOG, like zone=Europe/Paris.")
@json_option
def saturation_command(
    source: Path,
    scheduler: Choice | None,
    machine: Machine,
    walltime: lazy.model.WalltimeRule,
    behind: float,
    within: float,
    kind: str | None,
    options: dict[str, str],
    as_json: bool,
) -> None:
    """Search for the load of a LOG at which the machine falls behind.

    The log is simulated at many loads: times between arrivals are divided by a factor. The machine falls
    behind if waiting has kept more than a share of the submitted work, 5 %, from being done by the last
    submission, or if there is more work than it can do at all. docs/metrics.md explains it. Without -s the
    scheduler is easy.

    \b
    Examples:
      batsched-py saturation KTH-SP2.swf.gz
      batsched-py saturation KTH-SP2.swf.gz -s fcfs --within 0.005
    """
    with waiting(f"Reading {source.name}"):
        log = lazy.log.Log(lazy.sources.read_log(source, kind, options))
    experiment = Experiment(
        scenario=Scenario(workloads=Workloads(files=(str(source),), walltime=walltime), machine=machine),
        actors=Actors(scheduler=scheduler or Choice("easy")),
    )

    def try_load(factor: float) -> lazy.saturation.Trial:
        denser = log.load(factor).columns
        result = lazy.simulating.simulate_experiment(experiment, progress=True, logs={0: denser})
        return lazy.saturation.trial(result.jobs, result.overview.hosts, factor)

    found = lazy.saturation.saturation(try_load, behind, within)
    if as_json:
        return print_json(found)
    click.echo(f"{'factor':>8}{'load':>9}{'done':>9}{'behind':>9}{'mean wait':>12}")
    for each in found.trials:
        shares = f"{each.offered:9.1%}{each.done:9.1%}{each.behind:9.2%}"
        click.echo(f"{each.factor:8.3f}{shares}{duration(each.mean_wait):>12}")
    low, high = found.kept_up, found.fell_behind
    click.echo(
        f"The machine falls behind between {low.factor:.3f} and {high.factor:.3f} times the load of the log: "
        f"at a load of {low.offered:.1%} it keeps up, at {high.offered:.1%} it does not.\n"
        f"At no load was more done than {found.capacity:.1%} of what it can do."
    )
