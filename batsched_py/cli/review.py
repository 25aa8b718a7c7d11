"""``batsched-py review``: whether a reviewer would accept what a study concludes."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import isfile
from pathlib import Path

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import say, waiting
from batsched_py.campaign.plan import CAMPAIGN_FILE, PlanText, usual_folder
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
@option("--json", "Print all checks as JSON.", name="as_json")
@click.pass_context
def review_command(ctx: click.Context, place: Path, log_folders: Sequence[Path], as_json: bool) -> None:
    """Look for what a reviewer would object to: each check is ok, warn or fail, with its number and a remedy.

    RESULT is the PREFIX_jobs.csv of a simulation, CAMPAIGN the folder of a campaign, and PLAN a plan, whose
    results are reviewed if they are in its usual folder, or else the plan itself. Nothing is simulated.
    The exit code is 1 if a check fails. `docs/sound-studies.md` explains the checks.

    \b
    Examples:
      batsched-py review out_jobs.csv
      batsched-py review out/newcomer
      batsched-py review examples/plans/newcomer.toml --logs ~/logs
    """
    with waiting("reviewing"):
        checks = lazy.review.review(_study(place, log_folders))
    if as_json:
        print_json([{name: getattr(check, name) for name in check.__struct_fields__} for check in checks])
    else:
        for check in checks:
            say(str(check))
    if any(check.verdict == "fail" for check in checks):
        ctx.exit(1)


def _study(place: Path, log_folders: Sequence[Path]) -> lazy.review.Study:
    facts = lazy.review_facts
    if (place / CAMPAIGN_FILE).is_file():
        return facts.of_campaign(lazy.store.Campaign.open(place))
    if place.suffix == ".toml" and isfile(place):
        folder = usual_folder(place, PlanText.read(place).name)
        if (folder / CAMPAIGN_FILE).is_file():
            return facts.of_campaign(lazy.store.Campaign.open(folder))
        return facts.of_plan(lazy.plan_file.read_plan(place, log_folders))
    if place.name.endswith("jobs.csv") and isfile(place):
        return facts.of_file(place)
    raise InputError(f"{place}: give a PREFIX_jobs.csv, the folder of a campaign, or a plan (.toml)")
