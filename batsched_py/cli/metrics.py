"""``batsched-py metrics``: what a schedule is worth."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from batsched_py.api.quantities import duration, energy

if TYPE_CHECKING:
    from rich.table import Table


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
@click.option("--per-user", is_flag=True, help="Measure the jobs of each user as well.")
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
    schedule_file: Path, log_file: Path | None, hosts: int | None, per_user: bool, as_json: bool
) -> None:
    """Measure the jobs.csv of a simulation, by this or any other Batsim.

    Times are in seconds. Rejected jobs count with a waiting time of 0, as they do in Batsim's own means;
    `batsched-py metrics --explain` has the formulas.

    \b
    Examples:
      batsched-py metrics out_jobs.csv
      batsched-py metrics out_jobs.csv --recorded KTH-SP2.swf.gz --hosts 100 --per-user --json
    """
    from rich.console import Console

    from batsched_py.analysis.lateness import noted_submissions, recorded_submissions
    from batsched_py.analysis.metrics import measure, measure_users
    from batsched_py.analysis.outcome import Outcome
    from batsched_py.analysis.schedule import read_schedule
    from batsched_py.analysis.summary import read_summary
    from batsched_py.workload.swf.reader import read_swf

    schedule = read_schedule(schedule_file)
    recorded = recorded_submissions(read_swf(log_file)) if log_file else noted_submissions(schedule)
    outcome = Outcome(schedule, hosts, recorded, read_summary(schedule_file).consumed_joules)
    figures = measure(outcome)
    others = 0 if recorded is None else int((~schedule["job_id"].isin(recorded.index)).sum())
    if others:
        click.echo(f"batsched-py: {others:,} jobs are not in {log_file}; they have no lateness", err=True)
    users = measure_users(outcome) if per_user else {}
    if as_json:
        report = {"metrics": figures} | ({"users": users} if per_user else {})
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
        return
    console = Console()
    console.print(_table(figures))
    if users:
        console.print(_users_table(users))


def _table(figures: dict[str, float]) -> Table:
    from rich import box
    from rich.table import Table

    from batsched_py.analysis.metrics import METRICS

    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    table.add_column(justify="right", style="dim")
    for metric in METRICS:
        if metric.name in figures:
            value = figures[metric.name]
            table.add_row(metric.name, _number(value), metric.unit, _in_words(value, metric.unit))
    return table


def _in_words(value: float, unit: str) -> str:
    """A long time in the unit that suits it, and an energy in the one that is paid for."""
    if unit == "J":
        return energy(value)
    if unit != "s" or not abs(value) >= 60:
        return ""
    return ("-" if value < 0 else "") + duration(abs(value))


def _users_table(users: dict[str, dict[str, float]]) -> Table:
    from rich import box
    from rich.table import Table

    shown = {
        "nb_jobs": "jobs",
        "mean_waiting_time": "mean wait",
        "mean_bounded_slowdown": "bounded slowdown",
        "mean_lateness": "mean lateness",
        "relative_lateness": "relative",
        "additional_lateness": "additional",
    }
    table = Table("user", box=box.SIMPLE)
    for heading in shown.values():
        table.add_column(heading, justify="right")
    for user, figures in users.items():
        table.add_row(user, *(_number(figures[name]) for name in shown))
    return table


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if isnan(value) else f"{value:,.3f}"
