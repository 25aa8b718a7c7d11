"""``batsched-py review``: whether a reviewer would accept what a study concludes."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import isfile
from pathlib import Path

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import say, waiting
from batsched_py.campaign.plan import CAMPAIGN_FILE, PlanText, usual_folder
from batsched_py.cli.campaign import trust_option
from batsched_py.cli.options import PATH, option, print_json
from batsched_py.errors import InputError


@click.command("review")
@click.argument("place", metavar="RESULT|CAMPAIGN|PLAN", type=PATH)
@option(
    "--logs DIR",
    "Where to look for logs that are not beside the plan; may be given several times.",
    name="log_folders",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
)
@option(
    "--thorough",
    "Also simulate all of a CAMPAIGN again, with its logs shaken ten times, its loads made in three ways, "
    "and its users' sessions cut by five rules, and tell which differences survive. What was simulated is "
    "kept in the folder of the campaign.",
)
@option(
    "-j, --workers N",
    "How many of these runs to execute at a time.  [default: the number of cores]",
    type=click.IntRange(min=1),
)
@trust_option
@option("--json", "Print all checks as JSON.", name="as_json")
@click.pass_context
def review_command(
    ctx: click.Context,
    place: Path,
    log_folders: Sequence[Path],
    thorough: bool,
    workers: int | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Look for what a reviewer would object to: each check is ok, warn or fail, with its number and a remedy.

    RESULT is the PREFIX_jobs.csv of a simulation, CAMPAIGN the folder of a campaign, and PLAN a plan, whose
    results are reviewed if they are in its usual folder, or else the plan itself. Nothing is simulated
    without --thorough. The exit code is 1 if a check fails. `docs/sound-studies.md` explains the checks.

    \b
    Examples:
      batsched-py review out_jobs.csv
      batsched-py review out/newcomer
      batsched-py review out/newcomer --thorough --logs ~/logs
      batsched-py review examples/plans/newcomer.toml --logs ~/logs
    """
    more = _thorough(place, log_folders, workers, trust) if thorough else []
    with waiting("reviewing"):
        checks = lazy.review.worst_first([*lazy.review.review(_study(place, log_folders)), *more])
    if as_json:
        print_json([{name: getattr(check, name) for name in check.__struct_fields__} for check in checks])
    else:
        for check in checks:
            say(str(check))
    if any(check.verdict == "fail" for check in checks):
        ctx.exit(1)


def _thorough(
    place: Path, log_folders: Sequence[Path], workers: int | None, trust: bool
) -> list[lazy.review.Check]:
    from batsched_py.cli.campaign_view import with_progress

    folder = _folder(place)
    if folder is None:
        raise InputError(f"{place}: --thorough is for a campaign that has run")
    beside = [place.parent] if place.suffix == ".toml" else []
    return lazy.review_thorough.thorough(
        lazy.store.Campaign.open(folder),
        lazy.executors.executor_of("processes", None, workers),
        [*log_folders, *beside],
        trust,
        lambda results, total: with_progress(results, total, err=True),
    )


def _folder(place: Path) -> Path | None:
    """Where the campaign is, if there is one."""
    if place.suffix == ".toml" and isfile(place):
        place = usual_folder(place, PlanText.read(place).name)
    return place if (place / CAMPAIGN_FILE).is_file() else None


def _study(place: Path, log_folders: Sequence[Path]) -> lazy.review.Study:
    facts = lazy.review_facts
    if (folder := _folder(place)) is not None:
        return facts.of_campaign(lazy.store.Campaign.open(folder))
    if place.suffix == ".toml" and isfile(place):
        return facts.of_plan(lazy.plan_file.read_plan(place, log_folders))
    if place.name.endswith("jobs.csv") and isfile(place):
        return facts.of_file(place)
    raise InputError(f"{place}: give a PREFIX_jobs.csv, the folder of a campaign, or a plan (.toml)")
