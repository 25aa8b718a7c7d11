"""Doing finished runs again, to see that they give the same bytes here and now."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from batsched_py.campaign.batsim import find_simulator
from batsched_py.campaign.files import digest_of_file, workspace
from batsched_py.campaign.plan import BUILT_IN
from batsched_py.campaign.results import simulate_into
from batsched_py.campaign.run import WORK, Manifest, Run, RunResult, State
from batsched_py.campaign.store import Campaign
from batsched_py.errors import RunsFailed
from batsched_py.trust import trusting


def verify(campaign: Campaign, count: int, tell: Callable[[str], None] = lambda line: None) -> None:
    """Do so many finished runs again, the same ones each time, and refuse those whose bytes differ now."""
    differing, runs = 0, _sample(campaign.results(), count)
    with campaign.lock():
        for run in runs:
            files = _other_files(run)
            differing += bool(files)
            told = f"other bytes in {', '.join(files)}" if files else "the same bytes"
            tell(f"verified {run.name}: {told}")
    if differing:
        raise RunsFailed(f"{differing} of {len(runs)} runs give other bytes now")


def _sample(results: Sequence[RunResult], count: int) -> list[Run]:
    """The first finished runs by their identities; those with measured times are never the same again."""
    runs = [
        result.run
        for result in results
        if result.state is State.DONE and result.run.experiment and not result.run.experiment.decisions
    ]
    return sorted(runs, key=lambda run: run.identity)[:count]


def _other_files(run: Run) -> list[str]:
    """The names of a run's files that have other bytes when it is done again."""
    assert run.experiment is not None
    simulator = None if run.simulator == BUILT_IN else find_simulator(run.simulator)
    with (
        workspace(Path(run.campaign) / WORK, run.name) as folder,
        trusting() if run.trusted else nullcontext(),
    ):
        simulate_into(folder, run.experiment, simulator, run.time_limit, run.measures, run.windows)
        again = {file.name: digest_of_file(file) for file in folder.iterdir()}
    results = Manifest.read(run.folder).results
    return [each.path for each in results if again.get(each.path) != each.sha256]
