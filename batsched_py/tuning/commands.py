"""``batsched-py tune``: search the settings of a scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from batsched_py.api.terminal import say
from batsched_py.cli.campaign import address_option, executor_option, logs_option, trust_option
from batsched_py.cli.options import FILE, FOLDER, json_option, option, print_json


@click.command("tune")
@click.argument("plan_file", metavar="PLAN.toml", type=FILE)
@option("-d, --directory DIR", "Where the results are.  [default: out/NAME]", name="folder", type=FOLDER)
@logs_option
@executor_option
@address_option
@option(
    "-j, --workers N",
    "How many trials to do at a time, here or by a batch system.  [default: the number of cores]",
    type=click.IntRange(min=1),
)
@json_option
@trust_option
def tune_command(
    plan_file: Path,
    folder: Path | None,
    log_folders: Sequence[Path],
    executor: str,
    address: str | None,
    workers: int | None,
    as_json: bool,
    trust: bool,
) -> None:
    """Search the settings of a scheduler that are best for a log, and tell whether they hold.

    The plan is one of a campaign with two schedulers, `today` and `candidate`. Texts of the candidate have
    names in braces, like `order = "-size**{a} * wait"`, and the table [search] says what is tried for each.
    The log is divided by time: settings are searched on some parts, and compared with today's on others.

    Trials are kept as they end. A search that was interrupted goes on where it was, and finds the same. The
    folder then has the page index.html, result.json with all figures, and best.toml, a plan for
    `batsched-py campaign run` that compares both.

    \b
    Examples:
      batsched-py tune examples/plans/tune.toml
      batsched-py tune kth.toml --logs ~/logs -j 8
      batsched-py tune kth.toml --executor dask --address tls://head:8786
    """
    from batsched_py.campaign.executors import executor_of
    from batsched_py.tuning.page import tuned_tables, write_tuned_page
    from batsched_py.tuning.tune import read_plan, tuned

    where = executor_of(executor, address, workers)
    plan, text = read_plan(plan_file, folder, log_folders, trust)
    found = tuned(plan, text, where, True)
    page = plan.folder / "index.html"
    write_tuned_page(page, found)
    if as_json:
        return print_json(found)
    tuned_tables(found)
    say(f"\n{page}")
