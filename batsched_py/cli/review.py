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
from batsched_py.cli.options import PATH, option, print_json, setting_options
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Scenario, Workloads
from batsched_py.workload.model import WalltimeRule


@click.command("review")
@click.argument("place", metavar="RESULT|CAMPAIGN|PLAN", type=PATH)
@setting_options(Workloads, "files")
@setting_options(Workloads, "walltime")
@setting_options(Actors, "scheduler")
@setting_options(Actors, "users")
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
    files: tuple[str, ...],
    walltime: WalltimeRule,
    scheduler: Choice | None,
    users: Choice | None,
) -> None:
    """Look for what a reviewer would object to: each check is ok, warn or fail, with its number and a remedy.

    RESULT is the PREFIX_jobs.csv of a simulation, CAMPAIGN the folder of a campaign, and PLAN a plan, whose
    results are reviewed if they are in its usual folder, or else the plan itself. A RESULT does not tell its
    log, policy and users, which many checks are about: -w, -s, --users and --walltime say what `run` was
    given (`run --review` knows it, and the control). Nothing is simulated without --thorough. The exit code
    is 1 if a check fails. `docs/sound-studies.md` explains the checks.

    \b
    Examples:
      batsched-py review out_jobs.csv -w KTH-SP2.swf.gz -s easy --users think-time
      batsched-py review out/newcomer
      batsched-py review out/newcomer --thorough --logs ~/logs
      batsched-py review examples/plans/newcomer.toml --logs ~/logs
    """
    made_of = _experiment(place, files, walltime, scheduler, users)
    more = _thorough(place, log_folders, workers, trust) if thorough else []
    with waiting("reviewing"):
        checks = lazy.review.worst_first([*lazy.review.review(_study(place, log_folders, made_of)), *more])
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


def _experiment(
    place: Path,
    files: tuple[str, ...],
    walltime: WalltimeRule,
    scheduler: Choice | None,
    users: Choice | None,
) -> Experiment | None:
    """What a result is made of, if that is told; an unknown policy may use estimates."""
    if not files:
        if scheduler or users:
            raise InputError("-s and --users say more about a RESULT whose log is given by -w LOG")
        return None
    if place.suffix == ".toml" or not isfile(place):
        raise InputError(f"{place}: -w is for a RESULT; campaigns and plans say what they are made of")
    for file in files:
        if not isfile(file):
            raise InputError(f"there is no file {file}")
    return Experiment(
        scenario=Scenario(workloads=Workloads(files=files, walltime=walltime)),
        actors=Actors(scheduler=scheduler or Choice(""), users=users),
    )


def _study(place: Path, log_folders: Sequence[Path], made_of: Experiment | None) -> lazy.review.Study:
    facts = lazy.review_facts
    if (folder := _folder(place)) is not None:
        return facts.of_campaign(lazy.store.Campaign.open(folder))
    if place.suffix == ".toml" and isfile(place):
        return facts.of_plan(lazy.plan_file.read_plan(place, log_folders))
    if place.name.endswith("jobs.csv") and isfile(place):
        return facts.of_file(place, made_of)
    raise InputError(f"{place}: give a PREFIX_jobs.csv, the folder of a campaign, or a plan (.toml)")
