"""Looks and backfill cycles that are skipped, or go on from the last one, would have found the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import batsched_py.slurm.policy.slurm as policy
from batsched_py.slurm.policy.loops import Backfill, Cancel, MainLoop, Start
from tests.slurm.scenario import RECORDED, SHARED, exact_starts

needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="needs the scenarios of ../shared/slurm")


class EachCycle(Backfill):
    """Runs each cycle from the beginning."""

    def goes_on(self, now: int) -> bool:
        return False

    def _until_when(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    "folder",
    [
        RECORDED / "mixed-2",
        RECORDED / "linear-1",
        pytest.param(SHARED / "basic-1", marks=[needs_shared, pytest.mark.slow]),
        pytest.param(SHARED / "shared-1", marks=[needs_shared, pytest.mark.slow]),
    ],
    ids=lambda folder: folder.name,
)
def test_jobs_start_as_if_each_cycle_were_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the rounding of the times of cycles to milliseconds."""
    some = exact_starts(folder)
    monkeypatch.setattr(policy, "Backfill", EachCycle)
    each = exact_starts(folder)
    assert some == pytest.approx(each, abs=0.2)


class EachLook(MainLoop):
    """Looks at the queue each time, as if something had always changed."""

    def run(self, now: int, start: Start, full: bool, cancel: Cancel | None = None) -> bool:
        self._last = -1, -1
        return super().run(now, start, full, cancel)


@pytest.mark.parametrize("name", ["blind-3", "linear-1", "tiers-1", "walltime-1"])
def test_jobs_start_as_if_the_main_loop_always_looked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In these scenarios it finds the same several times, so that some looks are skipped."""
    some = exact_starts(RECORDED / name)
    monkeypatch.setattr(policy, "MainLoop", EachLook)
    assert some == exact_starts(RECORDED / name)
