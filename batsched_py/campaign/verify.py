"""Doing finished runs again, to see that they give the same bytes here and now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from batsched_py.campaign.batsim import find_simulator
from batsched_py.campaign.files import digest_of_file, workspace
from batsched_py.campaign.plan import BUILT_IN
from batsched_py.campaign.results import simulate_into
from batsched_py.campaign.run import WORK, Manifest, Run, RunResult, State
from batsched_py.trust import trusting


def sample_of(results: Sequence[RunResult], count: int) -> list[Run]:
    """So many finished runs, the same ones each time; those with measured times are never the same again."""
    runs = [
        result.run
        for result in results
        if result.state is State.DONE and result.run.experiment and not result.run.experiment.decisions
    ]
    return sorted(runs, key=lambda run: run.identity)[:count]


def verified(runs: Sequence[Run]) -> Iterator[tuple[Run, list[str]]]:
    """Each run, done again, with the names of its files that have other bytes now."""
    for run in runs:
        assert run.experiment is not None
        simulator = None if run.simulator == BUILT_IN else find_simulator(run.simulator)
        with (
            workspace(Path(run.campaign) / WORK, run.name) as folder,
            trusting() if run.trusted else nullcontext(),
        ):
            simulate_into(folder, run.experiment, simulator, run.time_limit, run.measures, run.windows)
            again = {file.name: digest_of_file(file) for file in folder.iterdir()}
        results = Manifest.read(run.folder).results
        yield run, [each.path for each in results if again.get(each.path) != each.sha256]
