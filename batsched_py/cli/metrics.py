"""``batsched-py metrics``: what a schedule is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from batsched_py.analysis.runs.columns import GROUPINGS, Grouping
from batsched_py.api.quantities import duration, energy
from batsched_py.api.terminal import say
from batsched_py.protocol.shown import harmless

if TYPE_CHECKING:
    from rich.table import Table

#: What is measured, by name; none where it makes no sense.
Figures = dict[str, float | None]

#: What groups of jobs are called in JSON.
_PLURALS: Final = {"class": "classes", "partition": "partitions", "account": "accounts", "user": "users"}


def _explain(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from batsched_py.analysis.metrics import explain

        click.echo(explain())
        ctx.exit()


@click.command("metrics")
@click.argument("schedule_file", metavar="PREFIX_jobs.csv", type=click.Path(path_type=Path))
@click.option(
    "--recorded",
    "log_file",
    metavar="LOG.swf",
    type=click.Path(path_type=Path),
    help="The log that was replayed (.swf, .swf.gz): adds lateness, and tells the users. Not needed for the "
    "schedules of feedback users, who note both with their jobs.",
)
@click.option(
    "--hosts",
    metavar="N",
    type=click.IntRange(min=1),
    help="Size of the machine, for the utilization.  [default: up to the highest host that was used]",
)
@click.option(
    "--by",
    type=click.Choice(GROUPINGS),
    multiple=True,
    help="Measure the jobs of each class (short up to an hour, narrow up to 8 hosts), partition, account or "
    "user as well; may be given several times.",
)
@click.option("--per-user", is_flag=True, help="The same as --by user.")
@click.option(
    "--metric",
    "own",
    metavar="FILE.py:NAME",
    multiple=True,
    help="Measure a metric of your own, too; may be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one JSON object.")
@click.option(
    "--explain",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_explain,
    help="Print the formula of every metric, and exit.",
)
def command(
    schedule_file: Path,
    log_file: Path | None,
    hosts: int | None,
    by: Sequence[Grouping],
    per_user: bool,
    own: Sequence[str],
    as_json: bool,
) -> None:
    """Measure the jobs.csv of a simulation, by this or any other Batsim.

    Times are in seconds. Means are over the jobs that were executed; Batsim's own, in schedule.csv, count
    rejected jobs with 0. `batsched-py metrics --explain` has the formulas.

    \b
    Examples:
      batsched-py metrics out_jobs.csv
      batsched-py metrics out_jobs.csv --by class --metric examples/own_metric.py:P99
      batsched-py metrics out_jobs.csv --recorded KTH-SP2.swf.gz --hosts 100 --per-user --json
    """
    from batsched_py.analysis.carried import carried_beside
    from batsched_py.analysis.job_groups import groups_of
    from batsched_py.analysis.metrics import measure, measure_parts
    from batsched_py.analysis.outcome import Outcome, decisions_beside, read_summary
    from batsched_py.analysis.own_metrics import OWN_METRICS, described, measured, name_of
    from batsched_py.analysis.schedule import read_schedule
    from batsched_py.analysis.user_metrics import noted_submissions, recorded_submissions
    from batsched_py.cli.console import console_for_tables
    from batsched_py.workload.swf.reader import read_swf

    schedule = read_schedule(schedule_file)
    log = read_swf(log_file) if log_file else None
    recorded = noted_submissions(schedule) if log is None else recorded_submissions(log)
    beside = carried_beside(schedule_file), decisions_beside(schedule_file)
    known = Outcome.of(schedule, read_summary(schedule_file), *beside)
    outcome = replace(known, nb_hosts=hosts, recorded=recorded)
    others = 0 if recorded is None else int((~schedule["job_id"].isin(recorded.index)).sum())
    if others:
        say(f"batsched-py: {others:,} jobs are not in {log_file}; they have no lateness", err=True)
    metrics = [OWN_METRICS.create(name, {}) for name in own]
    units = {name_of(metric): described(metric, name).unit for metric, name in zip(metrics, own, strict=True)}

    def ours_and_own(part: Outcome, ours: Figures) -> Figures:
        return ours | {name_of(metric): measured(metric, part) for metric in metrics}

    figures = ours_and_own(outcome, {**measure(outcome)})
    groups: dict[Grouping, dict[str, Figures]] = {}
    users: Sequence[Grouping] = ("user",) if per_user else ()
    for each in dict.fromkeys((*by, *users)):
        parts = groups_of(outcome, each, log)
        ours = measure_parts(parts)
        groups[each] = {name: ours_and_own(part, {**ours[name]}) for name, part in parts.items()}
    if as_json:
        report = {"metrics": figures} | {_PLURALS[each]: found for each, found in groups.items()}
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
        return
    console = console_for_tables()
    console.print(_table(figures, units))
    for each, found in groups.items():
        console.print(_groups_table(each, found, list(units)))


def _table(figures: Figures, own: Mapping[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    from batsched_py.analysis.metrics import METRICS

    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    table.add_column(justify="right", style="dim")
    for name, unit in ({metric.name: metric.unit for metric in METRICS} | dict(own)).items():
        if name in figures:
            value = figures[name]
            table.add_row(name, _number(value), unit, "" if value is None else _in_words(value, unit))
    return table


def _in_words(value: float, unit: str) -> str:
    """A long time in the unit that suits it, and an energy in the one that is paid for."""
    if unit == "J":
        return energy(value)
    if unit != "s" or not abs(value) >= 60:
        return ""
    return ("-" if value < 0 else "") + duration(abs(value))


def _groups_table(by: Grouping, groups: Mapping[str, Figures], own: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

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
    table = Table(by, box=box.SIMPLE)
    for name in known:
        table.add_column(shown[name], justify="right")
    for group, figures in groups.items():
        table.add_row(Text(harmless(group)), *(_number(figures[name]) for name in known))
    return table


def _number(value: float | None) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None or isnan(value) else f"{value:z,.3f}"
