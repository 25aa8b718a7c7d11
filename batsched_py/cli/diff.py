"""``batsched-py diff``: two executions of one workload, job by job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.api.progress import waiting
from batsched_py.api.quantities import duration
from batsched_py.protocol.shown import harmless

if TYPE_CHECKING:
    from batsched_py.analysis.executions import Executions


@click.command("diff")
@click.argument("first", metavar="[LABEL=]FIRST_jobs.csv")
@click.argument("second", metavar="[LABEL=]SECOND_jobs.csv")
@click.option(
    "-n",
    "--jobs",
    "count",
    metavar="N",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Print so many jobs, those whose starts differ most.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Write a page with both Gantt charts (FILE.html), or a table of all jobs (FILE.csv, FILE.parquet); "
    "may be given several times.",
)
def command(first: str, second: str, count: int, outputs: tuple[Path, ...]) -> None:
    """Compare two executions of one workload: simulated twice, or in reality and in simulation.

    An execution is the jobs.csv of a simulation, by this or any other Batsim, or a log (.swf, .swf.gz, or a
    table with a column submit) as it was recorded. Jobs are known by their names. Differences are those of
    the second execution from the first.

    \b
    Examples:
      batsched-py diff easy_jobs.csv conservative_jobs.csv -o both.html
      batsched-py diff real=KTH-SP2.swf.gz simulated=out_jobs.csv -o differences.csv
    """
    from batsched_py.analysis.executions import compare_executions
    from batsched_py.cli.given_runs import read_runs

    with waiting("Comparing") as moved:
        moved(0, 2 + len(outputs))
        found = compare_executions(*read_runs([first, second]))
        for done, output in enumerate(outputs, 2):
            moved(done, 2 + len(outputs))
            found.save(output)
    for line in _lines(found, count):
        click.echo(line)
    for output in outputs:
        click.echo(output)


def _lines(found: Executions, count: int) -> Iterator[str]:
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
