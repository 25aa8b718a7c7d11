"""``batsched-py campaign``: a table of simulations, from one file with one command."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from os.path import isfile
from pathlib import Path
from typing import Any

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import duration, say, waiting
from batsched_py.campaign.plan import BUILT_IN, EXECUTORS, MissingLog, PlanText, usual_folder
from batsched_py.cli.options import FILE, FOLDER, PATH, SECONDS, Decorator, option, output_option, print_json
from batsched_py.errors import InputError
from batsched_py.output_files import write_file
from batsched_py.protocol.shown import harmless
from batsched_py.trust import code_named_in

plan_argument = click.argument("plan_file", metavar="PLAN.toml", type=FILE)
campaign_argument = click.argument("place", metavar="CAMPAIGN", type=PATH)
folder_option = option(
    "-d, --directory DIR",
    "Where the results are.  [default: out/NAME, by the name of the plan]",
    name="folder",
    type=FOLDER,
)
logs_option = option(
    "--logs DIR",
    "Where to look for logs that are not beside the plan; may be given several times.",
    name="log_folders",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
)
trust_option = option(
    "--trust",
    "Load the policies and users that others' results or their plan name, and the logs: this executes "
    "their code.",
)
executor_option = option(
    "--executor",
    "Where it is done: here, on a Dask cluster, or by Dask workers that a batch system starts.",
    type=click.Choice(EXECUTORS),
    default="processes",
)
address_option = option("--address ADDRESS", "The scheduler of the Dask cluster, such as tls://host:8786.")
simulator_option = option(
    "--simulator COMMAND", "`batsim`, or another command that starts a Batsim.", default=BUILT_IN
)


def files_option(help: str) -> Decorator[Any]:
    """The files that results are written to."""
    return output_option("FILE", help, name="files", type=FILE, multiple=True)


@click.group("campaign")
def campaign_command() -> None:
    """Run all simulations of a plan, and make tables of their results.

    A plan is a TOML file: logs, platforms, schedulers, users and seeds, which are crossed. What is finished
    is never simulated again unless its inputs, its options or the code have changed, so an interrupted
    campaign goes on where it was when it is run again.

    \b
    Examples:
      batsched-py campaign plan examples/plans/sample.toml
      batsched-py campaign run examples/plans/sample.toml
      batsched-py campaign report out/sample --output out/sample/report.html
    """


@campaign_command.command("plan")
@plan_argument
@folder_option
@logs_option
@trust_option
def plan_command(plan_file: Path, folder: Path | None, log_folders: Sequence[Path], trust: bool) -> None:
    """List the runs of a plan, after checking it, and say how many are done.

    If some are done, those that are left are expected to take as long as the ones that are most like them. If
    none is, EASY is tried on the first jobs of a log; other policies, and users who react, may take longer.
    """
    folder = folder or _usual_folder(plan_file)
    plan = lazy.plan_file.read_plan(plan_file, log_folders, trust, folder)
    for run in plan.runs:
        say(run.name)
    with code_named_in(plan_file, trust):
        _say_estimate(plan.runs, folder)
    _remark(plan.remarks)
    for log in plan.missing:
        say(f"{log.path.name} is not here; `campaign run` offers to get it from {log.url}", err=True)
    if plan.unmade:
        names = ", ".join(log.path.name for log in plan.unmade[:3]) + ", ..." * (len(plan.unmade) > 3)
        say(f"not made yet: {names} ({len(plan.unmade)}); `campaign run` makes them", err=True)


@campaign_command.command("run")
@plan_argument
@folder_option
@logs_option
@option("-y, --yes", "Download missing logs without asking.")
@executor_option
@address_option
@option(
    "-j, --workers N",
    "How many runs to execute at a time, here or by a batch system.  [default: the number of cores]",
    type=click.IntRange(min=1),
)
@simulator_option
@option(
    "--time-limit S",
    "Give a run up after S seconds.  [default: never; with another simulator, one hour]",
    type=SECONDS,
)
@option("--only RUN", "Do this run only; may be given several times.", multiple=True)
@option(
    "--verify N",
    "In the end, do N finished runs again, and compare their files byte by byte: another machine, Python or "
    "numpy must give the same.",
    type=click.IntRange(min=1),
)
@option("--live", "Show on the terminal how far all is, and each run that is done here.")
@trust_option
@click.pass_context
def run_command(
    ctx: click.Context,
    plan_file: Path,
    folder: Path | None,
    log_folders: Sequence[Path],
    yes: bool,
    executor: str,
    address: str | None,
    workers: int | None,
    simulator: str,
    time_limit: float | None,
    only: Sequence[str],
    verify: int | None,
    live: bool,
    trust: bool,
) -> None:
    """Do the runs of a plan that are not done yet.

    A run that fails is reported in the end, and the others go on; the exit code is then 1. Where the
    simulator is a Batsim, both sides are started for each run, and its files are checked.

    \b
    Examples:
      batsched-py campaign run examples/plans/sample.toml -j 2 --live
      batsched-py campaign run examples/plans/sample.toml --simulator batsim
      batsched-py campaign run examples/plans/replay-with-feedback.toml --logs ~/logs
      batsched-py campaign run examples/plans/sample.toml --executor dask --address tls://head:8786
      batsched-py campaign run examples/plans/sample.toml --executor slurm -j 32
    """
    from batsched_py.cli.campaign_view import print_tables, with_live_view, with_progress

    where = lazy.executors.executor_of(executor, address, workers)
    folder = folder or _usual_folder(plan_file, simulator)
    plan = lazy.prepare.prepared(
        lambda: lazy.plan_file.read_plan(plan_file, log_folders, trust, folder),
        lambda log: yes or _agrees(log),
        lambda: waiting("making logs"),
    )
    campaign = lazy.store.planned_campaign(plan, folder, simulator, time_limit)
    runs = lazy.store.runs_to_do(plan, campaign, only)
    _remark(plan.remarks)
    say(f"{plan.name}: {len(plan.runs)} runs in {campaign.folder}, {len(runs)} to do")
    results = lazy.store.conduct(campaign, runs, where)
    shown = with_live_view(results, campaign, runs, where) if live else with_progress(results, len(runs))
    failed = [result for result in shown if result.state is lazy.campaign_run.State.FAILED]
    for result in failed:
        say(f"batsched-py: {result.name} failed: {harmless(str(result.error))}", err=True)
    if failed:
        say(f"batsched-py: error: {len(failed)} of {len(runs)} runs failed", err=True)
        ctx.exit(1)
    if verify is not None:
        from batsched_py.campaign.verify import verify as do_again

        do_again(campaign, verify, lambda line: say(line, err=True))
    if not only:
        _make_controls(campaign, where, log_folders, trust)
    print_tables(lazy.tables.tables_of(campaign.aggregated()))
    _say_review(campaign)


@campaign_command.command("status")
@campaign_argument
@folder_option
@logs_option
@simulator_option
@trust_option
def status_command(
    place: Path, folder: Path | None, log_folders: Sequence[Path], simulator: str, trust: bool
) -> None:
    """Say which runs of a campaign are done, stale, failed or missing.

    CAMPAIGN is the plan, or the folder with the results. A stale run was finished with other inputs, options
    or code than it would have now, and what is another is told; which of the two engines did it, and how that
    was built, makes no difference. Of a folder, only those are told that were done before its last plan.
    """
    from batsched_py.campaign.finished import why_stale

    if place.is_dir():
        results = _open(place).results()
    else:
        folder = folder or _usual_folder(place, simulator)
        plan = lazy.plan_file.read_plan(place, log_folders, trust, folder)
        if plan.missing:
            raise InputError(f"{plan.missing[0].path.name} is not here; say where it is by --logs DIR")
        if plan.unmade:
            raise InputError(f"{plan.unmade[0].path.name} is not made yet; `campaign run` makes it")
        results = lazy.store.planned_campaign(plan, folder, simulator).results()
    for result in results:
        reason = result.error or (why_stale(result.folder, result.run) if result.state == "stale" else "")
        say(f"{result.state:8}{result.name}{f': {harmless(reason)}' if reason else ''}")
    counts = Counter(result.state for result in results)
    say(", ".join(f"{counts[state]} {state}" for state in lazy.campaign_run.State if counts[state]))


@campaign_command.command("show")
@campaign_argument
@click.argument("run")
def show_command(place: Path, run: str) -> None:
    """Print the manifest of a RUN: what it was made of, and the command that makes it again."""
    finished = {each.name: each for each in _open(place).finished()}
    if run not in finished:
        raise InputError(f"{place}: there is no finished run {run!r}; see `batsched-py campaign status`")
    print_json(finished[run].manifest)


@campaign_command.command("report")
@campaign_argument
@files_option(
    "Write a page with tables and figures (.html), tables as Markdown (.md) or LaTeX (.tex), or all "
    "metrics of all runs as data (.csv or .parquet); may be given several times."
)
@trust_option
def report_command(place: Path, files: Sequence[Path], trust: bool) -> None:
    """Make tables and figures of the results of a campaign.

    The page needs neither the network nor other files: it has the results, figures to zoom into, Gantt charts
    and the plan, and links to the files of the runs.

    CAMPAIGN is the folder with the results, or the plan when they are in its usual folder.

    \b
    Examples:
      batsched-py campaign report out/sample
      batsched-py campaign report out/sample --output out/sample/report.html
      batsched-py campaign report examples/plans/sample.toml --output results.tex --output results.parquet
    """
    from batsched_py.cli.campaign_view import print_tables

    campaign = _open(place)
    tables = lazy.tables.tables_of(campaign.aggregated())
    wanted = campaign.wanted
    pairs = lazy.comparisons.compare(
        campaign.measured(), wanted.metrics, wanted.baseline, wanted.own, wanted.units
    )
    compared = lazy.comparisons.comparisons_markdown(pairs)
    reviewed = "".join(f"* {check}\n" for check in _review(campaign)) + "\n"
    for file in files:
        if file.suffix == ".html":
            with waiting("drawing rows") as moved:
                lazy.html_report.write_html(file, campaign, moved, trust)
        elif not _write_results(file, tables, campaign.table, compared, reviewed):
            raise InputError(f"{file}: a report is written as .html, .md, .tex, .csv or .parquet")
    if not files:
        _say_review(campaign)
        print_tables(tables)
        say(compared, nl=False)
    _remark(campaign.remarks)


@campaign_command.command("table")
@campaign_argument
@option(
    "--rows, --by AXIS",
    "What tells rows apart: log, part, load, platform, scheduler, users or seed, and one of class, "
    "partition, account and user, of jobs; may be given several times.  [default: all on which runs differ, "
    "but for parts and seeds]",
    name="rows",
    multiple=True,
)
@option(
    "--columns AXIS",
    "Put the choices on this axis, such as load or users, into columns: one compact table for a paper, with "
    "stars where a mean differs from the baseline.",
    default="",
)
@option(
    "--baseline [AXIS=]NAME",
    "The scheduler, or the choice on another axis, that the others are compared with in pairs.  "
    "[default: the plan's]",
    default="",
)
@option(
    "--metric NAME",
    "What columns show; may be given several times.  [default: the metrics of the plan]",
    name="metrics",
    multiple=True,
)
@files_option(
    "Write the table as Markdown (.md), as one table in LaTeX (.tex), or as data (.csv or .parquet); "
    "may be given several times."
)
def table_command(
    place: Path,
    rows: Sequence[str],
    columns: str,
    baseline: str,
    metrics: Sequence[str],
    files: Sequence[Path],
) -> None:
    """Aggregate the results of a campaign over parts of logs and seeds.

    For each combination of choices there is the mean of each metric with its 95 % confidence interval, and if
    there is a baseline, the mean difference to it over pairs of runs that have all else in common, with its
    interval, Student's t-test for pairs by Holm's method, the sign test and Cohen's d. Seeds are averaged
    within parts. Data files have a row for each combination and metric.

    If --rows leaves out an axis on which runs differ, such as the load, different experiments are pooled in a
    row. They are no repetitions: the table names them, and has means, but neither intervals nor tests.

    \b
    Examples:
      batsched-py campaign table out/newcomer --output table.tex --output table.parquet
      batsched-py campaign table out/newcomer --rows log --rows scheduler --columns load --output table.tex
      batsched-py campaign table out/sample --rows scheduler --rows class --metric p95_waiting_time
      batsched-py campaign table out/sample --baseline users=rigid
    """
    from batsched_py.cli.campaign_view import print_tables

    campaign = _open(place)
    with waiting("reading runs") as moved:
        by = campaign.axes_by(rows, columns)
        results = campaign.aggregated(by, lazy.aggregate.Baseline.parse(baseline), metrics, moved)
    tables = lazy.pivot.pivoted(results, columns) if columns else lazy.tables.tables_of(results)
    for file in files:
        if not _write_results(file, tables, results.frame):
            raise InputError(f"{file}: a table is written as .md, .tex, .csv or .parquet")
    if not files:
        print_tables(tables)
    _remark(campaign.remarks)


@campaign_command.command("figures")
@campaign_argument
@option(
    "--metric NAME",
    "What to draw; may be given several times.  [default: the metrics of the plan]",
    name="metrics",
    multiple=True,
)
@output_option("DIR", "Where the figures go.  [default: figures, among the results]", type=FOLDER)
def figures_command(place: Path, metrics: Sequence[str], output: Path | None) -> None:
    """Draw the means of a campaign for a paper: a PDF for each metric, and figures.tex that shows them all.

    There is a panel for each log, machine, load and kind of users, and a row for each scheduler, which has
    the same colour in all figures. Captions say over how many parts or seeds means are, what the intervals
    are, and how tests are corrected.

    \b
    Examples:
      batsched-py campaign figures out/newcomer
      batsched-py campaign figures out/newcomer --metric mean_bounded_slowdown --output paper/figures
    """
    from batsched_py.analysis.plots.means import MeanFigures

    campaign = _open(place)
    results = campaign.aggregated((), None, metrics)
    folder, figures = output or campaign.folder / "figures", MeanFigures(results)
    for metric in results.metrics:
        figures.draw(metric).save(folder / f"{metric}.pdf")
    write_file(folder / "figures.tex", figures.captions(results.metrics).encode())
    say(f"{folder}: {len(results.metrics)} figures, and figures.tex")
    _remark(campaign.remarks)


@campaign_command.command("export")
@campaign_argument
@click.argument("archive", metavar="FILE.zip", type=FILE)
def export_command(place: Path, archive: Path) -> None:
    """Write the plan, all finished runs and their manifests into one zip file.

    The policies, users, models, platforms and events that the plan names are in it, too. Logs are not: the
    manifests have their checksums.

    CAMPAIGN is the folder with the results, or the plan when they are in its usual folder.
    """
    say(f"{archive}: {lazy.archive.export_campaign(_open(place), archive)} runs")


@campaign_command.command("import")
@click.argument("archive", metavar="FILE.zip", type=FILE)
@click.argument("folder", metavar="DIR", type=FOLDER)
@option(
    "--trust",
    "Trust those who made it: all commands may execute the code in it, and read the logs that it names.",
)
def import_command(archive: Path, folder: Path, trust: bool) -> None:
    """Check an exported campaign and unpack it into a new folder.

    Nothing of it is executed now. The policies, users and models in it are executed later only if you trust
    those who made them: say so here, or to `campaign run` and `campaign report`, by --trust.

    \b
    Examples:
      batsched-py campaign import artifact.zip theirs
      batsched-py campaign report theirs --output report.html
      batsched-py campaign run theirs/plan.toml --logs ~/logs --trust
    """
    campaign = lazy.archive.import_campaign(archive, folder, trust)
    say(f"{folder}: {len(campaign.finished())} runs, all as they were exported")


def _say_estimate(runs: Sequence[lazy.campaign_run.Run], folder: Path) -> None:
    """Say how many runs there are, and how long those take that are not done."""
    found = lazy.estimate.estimated(runs, folder)
    told, left = f"{found.wanted} runs, {found.done} of them done", found.wanted - found.done
    cores = min(left, lazy.executors.usable_cores())
    if found.done and left:
        told += f"; by these, the others take about {duration(found.seconds / cores)} with -j {cores}"
    elif left and (seconds := lazy.estimate.guessed(runs)) is not None:
        told += f"; as quick as EASY, they take about {duration(seconds / cores)} with -j {cores}"
    elif left:
        told += "; when some are, this says how long the others take"
    say(told, err=True)


def _review(campaign: lazy.store.Campaign) -> list[lazy.review.Check]:
    return lazy.review.review(lazy.review_facts.of_campaign(campaign))


def _make_controls(
    campaign: lazy.store.Campaign,
    executor: lazy.store.Executor,
    log_folders: Sequence[Path],
    trust: bool,
) -> None:
    """Simulate the same users on the machines of their logs, where they react to others, and say so."""
    from batsched_py.campaign.review.controlling import make_controls
    from batsched_py.cli.campaign_view import with_progress

    _remark(make_controls(campaign, executor, log_folders, trust, with_progress).remarks)


def _say_review(campaign: lazy.store.Campaign) -> None:
    """Say what a reviewer would object to."""
    for check in _review(campaign):
        if check.verdict != "ok":
            say(f"batsched-py: review: {check}", err=True)


def _remark(remarks: Sequence[str]) -> None:
    """Say what a reader of the results must know."""
    for remark in remarks:
        say(f"batsched-py: {remark}", err=True)


def _agrees(log: MissingLog) -> bool:
    """Ask whether to download a log, if there is somebody to ask."""
    question = f"{log.path.name} is not here. Download it from {log.url} to {log.path.parent}?"
    return sys.stdin.isatty() and click.confirm(question, err=True)


def _usual_folder(plan_file: Path, simulator: str = BUILT_IN) -> Path:
    return usual_folder(plan_file, PlanText.read(plan_file).name, simulator)


def _open(place: Path) -> lazy.store.Campaign:
    """The campaign in a folder, or in the usual folder of a plan; what the plan names is not looked for."""
    is_plan = place.suffix == ".toml" and isfile(place)
    return lazy.store.Campaign.open(_usual_folder(place) if is_plan else place)


def _write_results(
    file: Path,
    tables: Sequence[lazy.tables.ResultTable],
    frame: Callable[[], Any],
    remarks: str = "",
    review: str = "",
) -> bool:
    """Write tables for people, or data for programs, by the ending of the file; whether that is known."""
    match file.suffix:
        case ".md":
            write_file(file, (review + lazy.tables.markdown(tables) + remarks).encode())
        case ".tex":
            write_file(file, lazy.tables.latex(tables).encode())
        case ".csv" | ".parquet":
            lazy.store.write_frame(file, frame())
        case _:
            return False
    return True
