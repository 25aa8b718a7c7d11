"""The twin against recordings of a real Slurm.

Asked for: on each scenario the mean wait is within 3 % of the mean over its recordings, and starts are no
further from the recorded ones than half as far again as two recordings are from each other, or 30 s.

A recording is one draw out of many, so the twin is simulated with many phases, too, and their mean counts.
Where that does not hold, a test says so. The table of the documentation is computed here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from batsched_py.slurm.comparison import read_jobs
from batsched_py.slurm.policy import clock
from batsched_py.slurm.prepared import Spread, spread
from tests.slurm.scenario import RECORDED, SHARED, compared, recordings, simulated, simulated_often
from tests.slurm.told import read_told, simulated_as_told

needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="needs the recordings of ../shared/slurm")

#: So many simulations are made of each scenario.
PHASES = 40

#: Scenarios that are not hit.
MISSED = ("fresh-1", "fresh-4", "site-7", "site-12")

#: So many guesses are made of how fast the machine of a recording was.
GUESSES = 10

#: Scenarios whose recordings are all alike: a single simulation hits them.
STEADY = ("linear-1", "mixed-2", "parts-1", "fresh-1")

#: Those that come with the project's material; their files are not part of the repository.
GIVEN = ("basic-1", "plans-1", "shared-1")

#: Those that are there for a single question each.
SHORT = ("after-1", "gpus-2", "power-1", "requeue-1", "switches-1", "switches-2", "tasks-1", "tasks-2")

#: Jobs of these were cancelled or put back by hand, by ``acts.csv``; only their logs tell.
BY_HAND = ("bigmem-1",)

OWN = sorted({path.parent.name for path in RECORDED.glob("*/jobs.csv")} - {*SHORT, *BY_HAND})

SCENARIOS = [*(pytest.param(name, marks=needs_shared) for name in GIVEN), *OWN]

DOCUMENT = Path(__file__).parents[2] / "docs" / "slurm.md"


def folder_of(name: str) -> Path:
    """The folder of a scenario."""
    return RECORDED / name if (RECORDED / name / "jobs.csv").exists() else SHARED / name


def spread_of(name: str) -> Spread:
    """How far simulations with many phases are from the recordings of a scenario."""
    return spread(recordings(folder_of(name)), simulated_often(folder_of(name), PHASES))


def allowed(found: Spread) -> float:
    """How far apart starts may be."""
    return max(30.0, 1.5 * found.recordings_apart.mean) if found.recordings_apart is not None else 30.0


def holds(found: Spread) -> bool:
    """Whether simulations are as near as is asked for."""
    assert found.deviation is not None
    return abs(found.deviation) <= 0.03 and found.starts_apart.mean <= allowed(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_waits_and_starts_are_those_recorded_and_the_documentation_has_them(name: str) -> None:
    """Who makes one of those hold that are missed takes it off their list."""
    found = spread_of(name)
    assert holds(found) is (name not in MISSED), found
    row = row_of(name, found)
    assert row in DOCUMENT.read_text(encoding="utf-8").splitlines(), row


@pytest.mark.parametrize("name", [*STEADY, pytest.param("basic-1", marks=needs_shared)])
def test_a_single_simulation_hits_scenarios_whose_recordings_are_alike(name: str) -> None:
    found = spread(recordings(folder_of(name)), [simulated(folder_of(name))])
    assert holds(found), found


@pytest.mark.parametrize(
    ("name", "recording"), [("tuned-1", "d"), ("preempt-1", "d"), ("tiers-1", "c"), ("memory-2", "f")]
)
def test_with_the_phases_that_a_log_tells_each_job_starts_when_it_did(name: str, recording: str) -> None:
    assert apart_as_told(RECORDED / name / f"told-{recording}.json") < 1


def apart_as_told(told: Path, test_time: float = 0.001) -> float:
    """How far starts are from those recorded, in the mean, if the twin has the phases of a log."""
    recorded = read_jobs(told.with_name(told.name.replace("told", "recorded")).with_suffix(".csv"), "UTC")
    simulated = simulated_as_told(folder_of(told.parent.name), read_told(told), test_time)
    return compared(recorded, simulated).start_difference


@pytest.mark.slow
@needs_shared
def test_the_documentation_tells_how_many_recordings_are_hit_to_the_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And how many are by one of some guesses of what a log does not tell: how fast the machine was."""
    every = sorted(RECORDED.glob("*/told-*.json"))
    missed = [told for told in every if apart_as_told(told) >= 1]
    hit = len(every) - len(missed)
    random = Random(1)
    for _ in range(GUESSES):
        monkeypatch.setattr(clock, "WAKES", random.uniform(1.0045, 1.015))
        monkeypatch.setattr(clock, "CYCLE", round(random.uniform(0.001, 0.006), 4))
        test_time = round(random.uniform(0.0005, 0.004), 4)
        missed = [told for told in missed if apart_as_told(told, test_time) >= 1]
    sentences = (
        f"{hit} of {len(every)} recordings",
        f"{len(every) - len(missed)} by the best of {GUESSES} guesses",
    )
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(sentence in text for sentence in sentences), sentences


@needs_shared
@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("slurmctld") is None or shutil.which("faketime") is None,
    reason="needs the packages slurm-wlm and faketime",
)
def test_a_fresh_recording_is_hit(tmp_path: Path) -> None:
    """Record basic-1 anew; this takes about 25 minutes."""
    out = tmp_path / "recorded.csv"
    command = [sys.executable, SHARED / "record.py", SHARED / "basic-1", out, "--speed", "10"]
    subprocess.run(command, check=True, timeout=3 * 3600)
    found = spread([read_jobs(out, "UTC")], [simulated(SHARED / "basic-1")])
    assert holds(found), found


def row_of(name: str, found: Spread) -> str:
    """The row of a scenario in the table of the documentation."""
    single = spread(recordings(folder_of(name)), [simulated(folder_of(name))])
    real, wait = found.recorded_wait, found.wait
    apart = "" if found.recordings_apart is None else f"{found.recordings_apart.mean:.0f} s"
    cells = [
        f"`{name}`",
        f"{found.recordings}",
        f"{real.mean:.0f} s ({real.least:.0f} to {real.most:.0f})",
        f"{wait.mean:.0f} s ({wait.least:.0f} to {wait.most:.0f})",
        f"{found.deviation:+.1%}",
        apart,
        f"{found.starts_apart.mean:.0f} s",
        "yes" if holds(found) else "no",
        f"{single.deviation:+.1%}, {single.starts_apart.mean:.0f} s, {'yes' if holds(single) else 'no'}",
    ]
    return "| " + " | ".join(cells) + " |"
