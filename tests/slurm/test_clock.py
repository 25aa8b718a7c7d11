"""When backfill cycles run: after changes only, and again if a cycle has changed something itself."""

from __future__ import annotations

import pytest

from batsched_py.schedulers.slurm.clock import Clock
from batsched_py.schedulers.slurm.settings.scheduling import Scheduling

NEVER = float("inf")


@pytest.fixture
def clock() -> Clock:
    """Of a controller that was started a minute before, and looks at its queue each minute from then on."""
    clock = Clock(Scheduling(bf_interval=30, sched_interval=60), 60.0)
    clock.happened(1.0)
    clock.has_jobs(1.0, True)
    clock.main_done(1.5, False, False)
    return clock


def next_cycle(clock: Clock) -> float:
    return clock.next_time(NEVER)


def test_a_cycle_comes_soon_after_a_change(clock: Clock) -> None:
    assert next_cycle(clock) == 1.5


def test_without_a_change_there_is_no_other_cycle(clock: Clock) -> None:
    clock.backfill_done(2.5, 1, False, 1000.0)
    assert next_cycle(clock) == NEVER
    clock.changed(50.0)
    assert next_cycle(clock) == 50.5


def test_a_change_in_the_second_of_a_cycle_counts(clock: Clock) -> None:
    clock.changed(1.9)
    clock.backfill_done(1.9, 0, False, 1000.0)
    assert next_cycle(clock) == pytest.approx(31.91)


def test_a_cycle_that_changes_something_repeats(clock: Clock) -> None:
    clock.backfill_done(2.5, 0, True, 1000.0)
    clock.changed(100.0)
    assert next_cycle(clock) == pytest.approx(2.5 + 4 * 30.01)


def test_a_look_that_notes_why_jobs_wait_makes_a_cycle_run(clock: Clock) -> None:
    clock.main_done(1.6, False, True)
    clock.backfill_done(2.5, 0, False, 70.0)
    assert next_cycle(clock) == 120.5, "looks are at 60 and 120, and cycles find the same until 70"


def test_the_main_loop_looks_at_once_when_nodes_are_clean(clock: Clock) -> None:
    clock.happened(2.0)
    assert not clock.is_main_due(2.5), "not within 3 s of its last run"
    clock.cleaned(2.6)
    assert clock.is_main_due(2.6)
