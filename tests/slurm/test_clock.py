"""When backfill cycles run: after changes only, and again if a cycle has changed something itself."""

from __future__ import annotations

from itertools import pairwise

import pytest

from batsched_py.slurm.policy.clock import LOOKS, WAKES, Clock, Controller
from batsched_py.slurm.policy.settings import Scheduling

NEVER = float("inf")

#: That of the clock below.
CONTROLLER = Controller(60.0, 90.0)


@pytest.fixture
def clock() -> Clock:
    """Of a controller that was started a minute before, and looks at its queue every 90 s from then on."""
    clock = Clock(Scheduling(bf_interval=30, sched_interval=90), 60.0, 0.002)
    clock.happened(1.0)
    clock.has_jobs(1.0, True)
    clock.main_done(CONTROLLER.wakes(1.0), False, False)
    return clock


def next_cycle(clock: Clock) -> float:
    return clock.next_time(NEVER)


def test_the_controller_wakes_once_a_second_and_a_little_more() -> None:
    wakes = [CONTROLLER.wakes(0.0)]
    for _ in range(50):
        wakes.append(CONTROLLER.wakes(wakes[-1] + 0.01))
    assert wakes[0] < WAKES
    assert all(later - sooner == pytest.approx(WAKES) for sooner, later in pairwise(wakes))


def test_the_whole_queue_is_looked_at_once_a_minute() -> None:
    controller = Controller(63.7, 60.0)
    looks = [controller.look(number) for number in range(1, 100)]
    assert all(0 <= look - (60 * number - 64) < WAKES for number, look in enumerate(looks, start=1))
    assert [controller.look_from(look) for look in looks] == list(range(1, 100))


def test_a_cycle_comes_soon_after_a_change(clock: Clock) -> None:
    """The last one was half a minute after the start; half a minute later, a look each second begins."""
    assert next_cycle(clock) == pytest.approx(0.002 + LOOKS)


def test_without_a_change_there_is_no_other_cycle(clock: Clock) -> None:
    clock.backfill_done(2.5, 1, False, 1000.0)
    assert next_cycle(clock) == NEVER
    clock.changed(50.0)
    assert next_cycle(clock) == pytest.approx(32.504 + 18 * LOOKS)


def test_a_change_in_the_second_of_a_cycle_counts(clock: Clock) -> None:
    clock.changed(1.9)
    clock.backfill_done(1.9, 0, False, 1000.0)
    assert next_cycle(clock) == pytest.approx(31.902)


def test_a_cycle_that_changes_something_repeats(clock: Clock) -> None:
    clock.backfill_done(2.5, 0, True, 1000.0)
    clock.changed(100.0)
    assert next_cycle(clock) == pytest.approx(2.5 + 4 * 30.002)


def test_a_look_that_notes_why_jobs_wait_makes_a_cycle_run(clock: Clock) -> None:
    clock.main_done(1.6, False, True)
    clock.backfill_done(2.5, 0, False, 70.0)
    look = CONTROLLER.look(2)
    assert 120 <= look <= next_cycle(clock) < look + 1, "looks are at 30 and 120; nothing is new until 70"


def test_a_cycle_that_takes_back_marks_of_nodes_is_followed_by_another(clock: Clock) -> None:
    clock.backfill_done(2.5, 0, True, 1000.0, True)
    clock.has_jobs(10.0, False)
    clock.happened(80.0)
    clock.has_jobs(80.0, True)
    clock.main_done(CONTROLLER.wakes(80.0), False, False)
    assert next_cycle(clock) == pytest.approx(2.5 + 3 * 30.002), "two others at 32 and 62 found no job"


def test_the_main_loop_looks_when_the_controller_wakes_but_not_within_three_seconds(clock: Clock) -> None:
    clock.happened(2.0)
    assert not clock.is_main_due(3.9)
    assert clock.is_main_due(4.0 + WAKES)


def test_the_main_loop_looks_at_once_when_the_nodes_of_a_killed_job_are_clean(clock: Clock) -> None:
    clock.happened(2.0)
    clock.happened(2.6, at_once=True)
    assert clock.is_main_due(2.6)


def test_a_run_at_once_does_not_count_for_the_controller(clock: Clock) -> None:
    clock.happened(10.0, at_once=True)
    clock.main_done(10.0, False, False)
    clock.happened(11.0)
    assert clock.is_main_due(11.0 + WAKES), "within 3 s"


def test_nodes_that_were_cleaned_while_no_job_waited_are_no_reason_to_look(clock: Clock) -> None:
    clock.has_jobs(5.0, False)
    clock.happened(6.0, at_once=True)
    clock.happened(20.0)
    clock.has_jobs(20.0, True)
    assert not clock.is_main_due(20.0)
