"""The twin against recordings of a real Slurm.

Asked for: on each scenario the mean wait is within 3 % of the mean over its recordings, and starts are no
further from the recorded ones than half as far again as two recordings are from each other, or 30 s.

That holds for four scenarios. It does not for two, plans-1 and tiers-1; the tests say how far they are off.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.scenario import RECORDED, SHARED, fidelity, recorded, recordings, simulated

needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="needs the recordings of ../shared/slurm")


@needs_shared
@pytest.mark.parametrize("name", ["basic-1", "shared-1"])
def test_waits_and_starts_are_those_recorded(name: str) -> None:
    found = fidelity(simulated(SHARED / name), recordings(SHARED / name))
    assert abs(found.deviation) <= 0.03, found
    assert found.difference <= found.most_difference, found


@needs_shared
def test_plans_1_starts_are_those_recorded_but_not_its_mean_wait() -> None:
    """Its two recordings differ by 13 % in the mean wait; the twin follows the second one.

    When its reservation begins depends on when the recorder was started. If it begins some seconds later, a
    job fits in before it, and many others start elsewhere; that is what the first recording shows.
    """
    found = fidelity(simulated(SHARED / "plans-1"), recordings(SHARED / "plans-1"))
    assert found.difference <= found.most_difference, found
    assert 0.03 < found.deviation < 0.09, found
    second = fidelity(simulated(SHARED / "plans-1"), [recordings(SHARED / "plans-1")[1]])
    assert abs(second.deviation) <= 0.03, second
    assert second.difference <= 30, second


@pytest.mark.parametrize("name", ["mixed-2", "linear-1"])
def test_other_scenarios_are_hit(name: str) -> None:
    """Limits on backfilling and favoured small jobs; ``select/linear`` with a small window and few tests.

    They were recorded after the first draft of the policy. The second one led to four corrections of it: on
    ranges of nodes, ``select/linear``, ``--nice``, and cycles that stop early.
    """
    found = fidelity(simulated(RECORDED / name), recordings(RECORDED / name))
    assert abs(found.deviation) <= 0.03, found
    assert found.difference <= found.most_difference, found


def test_tiers_1_does_not_hold() -> None:
    """Partitions of several tiers, ``CR_CPU`` and weights of nodes.

    At 419 s Slurm cuts a task in two, and gives the job 10 processors where it has asked for 12. Here it gets
    12, so the next jobs are elsewhere.
    """
    found = fidelity(simulated(RECORDED / "tiers-1"), recordings(RECORDED / "tiers-1"))
    assert -0.09 < found.deviation < -0.03, found
    assert found.difference > found.most_difference, found


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
    found = fidelity(simulated(SHARED / "basic-1"), [recorded(out)])
    assert abs(found.deviation) <= 0.03, found
    assert found.difference <= found.most_difference, found


@needs_shared
@pytest.mark.parametrize(
    ("name", "scenarios"),
    [
        ("basic-1", SHARED),
        ("plans-1", SHARED),
        ("shared-1", SHARED),
        ("mixed-2", RECORDED),
        ("linear-1", RECORDED),
        ("tiers-1", RECORDED),
    ],
)
def test_the_documentation_has_the_figures(name: str, scenarios: Path) -> None:
    found = fidelity(simulated(scenarios / name), recordings(scenarios / name))
    noise = f"{found.noise:.0f} s" if found.noise else "one recording"
    line = (
        f"| `{name}` | {found.recorded_wait:.0f} s | {found.wait:.0f} s | {found.deviation:+.1%} "
        f"| {found.difference:.0f} s | {noise} |"
    )
    text = (Path(__file__).parents[2] / "docs" / "slurm.md").read_text(encoding="utf-8")
    assert line in text.splitlines(), line
