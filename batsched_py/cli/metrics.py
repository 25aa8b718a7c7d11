"""``batsched-py metrics``, ``diff`` and ``explain``: what a schedule is worth, and why it is as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from batsched_py.analysis.groupings import GROUPINGS, Grouping
from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.terminal import duration, energy, say, waiting
from batsched_py.cli.options import (
    NAME,
    PATH,
    measure_option,
    option,
    output_option,
    print_json,
    read_runs,
    struct_options,
)
from batsched_py.experiment import Machine, Workloads
from batsched_py.protocol.jobs import Host
from batsched_py.protocol.shown import harmless

if TYPE_CHECKING:
    from rich.table import Table


#: What is measured, by name; none where it makes no sense.
Figures = dict[str, float | None]

#: What groups of jobs are called in JSON.
_PLURALS: Final = {"class": "classes", "partition": "partitions", "account": "accounts", "user": "users"}


def _explain(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(lazy.metrics.explain())
        ctx.exit()


@click.command("metrics")
@click.argument("schedule_file", metavar="PREFIX_jobs.csv", type=PATH)
@option(
    "--recorded LOG.swf",
    "The log that was replayed (.swf, .swf.gz): adds lateness, and tells the users. Not needed for the "
    "schedules of feedback users, who note both with their jobs.",
    name="log_file",
    type=PATH,
)
@option(
    "--hosts N",
    "Size of the machine, for the utilization; needed where schedule.csv is not beside the jobs.  [default: "
    "what schedule.csv says, else up to the highest host that was used, with a warning]",
    type=click.IntRange(min=1),
)
@option(
    "--by",
    "Measure the jobs of each class (short up to an hour, narrow up to 8 hosts), partition, account or "
    "user as well; may be given several times.",
    type=click.Choice(GROUPINGS),
    multiple=True,
)
@option("--per-user", "The same as --by user.")
@measure_option
@option(
    "--bound S",
    "The bound of bounded slowdowns: jobs that ran for less count as if they ran so long.",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
)
@option(
    "--metric FILE.py:NAME",
    "Measure a metric of your own, too; may be given several times.",
    name="own",
    multiple=True,
)
@option("--json", "Print all figures as one JSON object.", name="as_json")
@option(
    "--explain",
    "Print the formula of every metric, and exit.",
    is_eager=True,
    expose_value=False,
    callback=_explain,
)
def metrics_command(
    schedule_file: Path,
    log_file: Path | None,
    hosts: int | None,
    by: Sequence[Grouping],
    per_user: bool,
    measure: Window | None,
    bound: float,
    own: Sequence[str],
    as_json: bool,
) -> None:
    """Measure the jobs.csv of a simulation, by this or any other Batsim.

    Times are in seconds. Means are over the jobs that were executed; Batsim's own, in schedule.csv, count
    rejected jobs with 0. `batsched-py metrics --explain` has the formulas.

    \b
    Examples:
      batsched-py metrics out_jobs.csv
      batsched-py metrics out_jobs.csv --measure 7d:300d
      batsched-py metrics out_jobs.csv --by class --metric examples/own_metric.py:P90
      batsched-py metrics out_jobs.csv --recorded KTH-SP2.swf.gz --hosts 100 --per-user --json
    """
    known = lazy.outcome.Outcome.read(schedule_file, hosts)
    log = lazy.swf_reader.read_swf(log_file) if log_file else None
    recorded = known.recorded if log is None else lazy.user_metrics.recorded_submissions(log)
    outcome = whole = replace(known, recorded=recorded, bound=bound)
    if recorded is not None and (others := int((~known.schedule["job_id"].isin(recorded.index)).sum())):
        say(f"batsched-py: {others:,} jobs are not in {log_file}; they have no lateness", err=True)
    told_window = "all jobs of the run, from an empty machine on"
    if measure is not None:
        outcome, told_window = outcome.within(measure), str(measure)
    made = {name: lazy.own_metrics.OWN_METRICS.create(name, {}) for name in own}
    metrics = {lazy.own_metrics.name_of(metric): metric for metric in made.values()}
    units = {
        lazy.own_metrics.name_of(each): lazy.own_metrics.described(each, name).unit
        for name, each in made.items()
    }

    def ours_and_own(part: lazy.outcome.Outcome, ours: Figures) -> Figures:
        return ours | {name: lazy.own_metrics.measured(metric, part) for name, metric in metrics.items()}

    figures = ours_and_own(outcome, {**lazy.metrics.measure(outcome)})
    groups: dict[Grouping, dict[str, Figures]] = {}
    users: Sequence[Grouping] = ("user",) if per_user else ()
    for each in dict.fromkeys((*by, *users)):
        parts = lazy.outcome.groups_of(outcome, each, log)
        ours = lazy.metrics.measure_parts(parts)
        groups[each] = {name: ours_and_own(part, {**ours[name]}) for name, part in parts.items()}
    if as_json:
        return print_json({"metrics": figures} | {_PLURALS[each]: found for each, found in groups.items()})
    say(f"Measured: {told_window}.")
    steady = lazy.steadiness.steadiness(whole)
    if steady is not None and not steady.is_steady:
        say(f"No steady state, so one backlog makes most of the means: {steady}.")
    lazy.console.console_for_tables().print(_table(figures, units))
    for each, found in groups.items():
        _print_groups(each, found, list(units))


def _table(figures: Figures, own: Mapping[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    table.add_column(justify="right", style="dim")
    for name, unit in ({metric.name: metric.unit for metric in lazy.metrics.METRICS} | dict(own)).items():
        if name in figures:
            value = figures[name]
            table.add_row(name, _number(value), unit, "" if value is None else _in_words(value, unit))
    return table


def _in_words(value: float, unit: str) -> str:
    """A long time in the unit that suits it, and an energy in the one that is paid for."""
    if unit == "J":
        return energy(value)
    return _signed(value) if unit == "s" and abs(value) >= 60 else ""


def _print_groups(by: Grouping, groups: Mapping[str, Figures], own: Sequence[str]) -> None:
    shown = {
        "nb_jobs": "jobs",
        "mean_waiting_time": "mean wait",
        "p50_waiting_time": "median wait",
        "p95_waiting_time": "p95 wait",
        "mean_bounded_slowdown": "bounded slowdown",
        "p95_bounded_slowdown": "p95 bounded slowdown",
        "mean_lateness": "mean lateness",
        "relative_lateness": "relative",
        "additional_lateness": "additional",
    } | {name: name for name in own}
    known = [name for name in shown if any(name in figures for figures in groups.values())]
    rows = [
        [harmless(group), *(_number(figures[name]) for name in known)] for group, figures in groups.items()
    ]
    lazy.console.print_table([by, *(shown[name] for name in known)], rows)


def _number(value: float | None) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None or isnan(value) else f"{value:z,.3f}"


@click.command("diff")
@click.argument("first", metavar="[LABEL=]FIRST_jobs.csv")
@click.argument("second", metavar="[LABEL=]SECOND_jobs.csv")
@option(
    "-n, --jobs N",
    "Print so many jobs, those whose starts differ most.",
    name="count",
    type=click.IntRange(min=0),
    default=10,
)
@output_option(
    "FILE",
    "Write a page with both Gantt charts (FILE.html), or a table of all jobs (FILE.csv, FILE.parquet); "
    "may be given several times.",
    name="outputs",
    type=PATH,
    multiple=True,
)
def diff_command(first: str, second: str, count: int, outputs: tuple[Path, ...]) -> None:
    """Compare two executions of one workload: simulated twice, or in reality and in simulation.

    An execution is the jobs.csv of a simulation, by this or any other Batsim, or a log (.swf, .swf.gz, or a
    table with a column submit) as it was recorded. Jobs are known by their names. Differences are those of
    the second execution from the first.

    \b
    Examples:
      batsched-py diff easy_jobs.csv conservative_jobs.csv --output both.html
      batsched-py diff real=KTH-SP2.swf.gz simulated=out_jobs.csv --output differences.csv
    """
    with waiting("Comparing") as moved:
        moved(0, 2 + len(outputs))
        found = lazy.executions.compare_executions(*read_runs([first, second]))
        for done, output in enumerate(outputs, 2):
            moved(done, 2 + len(outputs))
            found.save(output)
    for line in _lines(found, count):
        click.echo(line)
    for output in outputs:
        click.echo(output)


def _lines(found: lazy.executions.Executions, count: int) -> Iterator[str]:
    first, second = (harmless(run.label) for run in found.runs)
    yield f"{'':<24}{first:>16.16}{second:>16.16}"
    for name, both in found.measured().items():
        texts = [f"{each:.2f}" if "slowdown" in name else duration(each) for each in both]
        yield "{:<24}{:>16}{:>16}".format(name, *texts)
    yield f"{'jobs only there':<24}{len(found.only_first):>16,}{len(found.only_second):>16,}"
    yield ""
    yield f"{len(found.jobs):,} jobs ran in both."
    if found.has_other_size.any():
        yield f"{found.has_other_size.sum():,} of them held other numbers of hosts: is this one workload?"
    knows_hosts = all(run.intervals is not None for run in found.runs)
    if found.first_difference is None:
        yield "Each at the same time" + (", on the same hosts." if knows_hosts else ".")
        return
    later, earlier = ((found.is_moved & (sign * found.jobs["later"] > 0)).sum() for sign in (1, -1))
    elsewhere = f", {found.has_other_hosts.sum():,} run on other hosts" if knows_hosts else ""
    yield f"In {second}, {later:,} start later, {earlier:,} start earlier{elsewhere}."
    yield f"The first difference is at {duration(found.first_difference)}."
    if not count:
        return
    yield ""
    starts = f"{'start, ' + first:>22.22}{'start, ' + second:>22.22}"
    yield f"{'job':<20}{starts}{'later by':>12}{'longer run':>12}"
    for job in found.jobs[found.differs].iloc[:count].itertuples():
        times = (duration(job.first_start), duration(job.second_start))
        yield "{:<20}{:>22}{:>22}{:>12}{:>12}".format(
            harmless(str(job.Index)), *times, _signed(job.later), _signed(job.longer_run)
        )


def _signed(seconds: float) -> str:
    return ("-" if seconds < 0 else "") + duration(abs(seconds))


@click.command("explain")
@click.argument("prefix", metavar="PREFIX")
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@option(
    "--hosts N",
    "The number of hosts.  [default: what PREFIX_schedule.csv says, else those that were used]",
    type=click.IntRange(1),
)
@option(
    "--events, --external-events FILE",
    "The events from outside that the simulation was given, which tell what hosts were away when; may "
    "be repeated.  [default: what the manifest of a campaign's run names]",
    multiple=True,
)
@option(
    "-p, --platform FILE",
    "The machine of nodes it was made on; with -w, it is told which resource a job waited for.",
    name="platform_file",
    type=NAME,
)
@struct_options("workloads", Workloads)
def explain_command(
    prefix: str,
    jobs: tuple[str, ...],
    hosts: int | None,
    events: tuple[str, ...],
    platform_file: str | None,
    workloads: Workloads,
) -> None:
    """Tell why jobs waited, from the PREFIX_jobs.csv of this or any other Batsim.

    From the schedule alone: a job's place in the queue over time, how many hosts were free, who held those
    that it got, and who overtook it although it was there first. Where the simulation was run with --remarks,
    PREFIX_remarks.csv tells which reservations there were: how that of the job moved, and why those who
    overtook were allowed to. Hosts that were asleep or switching are known from PREFIX_pstate_changes.csv,
    those that failed or were closed from PREFIX_absences.csv, and those that were away from --events; where
    nothing tells, they count as free, and it is said that they do. A job that waited for others was not in
    the queue until it was eligible, as PREFIX_held.csv tells. Times count from the job's submission.

    Where it was run with --links, it is told how much longer than alone the job ran, and what it shared with
    whom.

    On a machine of nodes (-p) it is told what a job waited for: cores, memory, GPUs, licences, or empty
    nodes, and for how long. What jobs asked for is in the workload (-w).

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s easy -e out/kth --remarks
      batsched-py explain out/kth 1234
      batsched-py explain out/outage 1234 --events outage.txt
      batsched-py explain out/gpu 1234 -w jobs.json -p cluster.toml
    """
    read = lazy.build.read_workloads(workloads)
    machine: Sequence[Host] = ()
    if platform_file is not None:
        machine = lazy.build.read_machine(Machine(file=platform_file), read).as_protocol()[0]
    file = Path(prefix if prefix.endswith("jobs.csv") else f"{prefix}_jobs.csv")
    schedule, summary = lazy.schedule.read_schedule(file), lazy.outcome.read_summary(file)
    tables = lazy.schedule.tables_beside(file)
    absences = lazy.explained.absences_of(
        schedule, tables, events or lazy.explained.events_in_manifest(file.parent), summary.nb_switches != 0
    )
    carried = lazy.conditions.carried_beside(file)
    explain = lazy.explained.explaining(
        schedule, tables, hosts or summary.nb_hosts, absences, carried, machine, read
    )
    for job in jobs:
        say(str(explain(job)))
