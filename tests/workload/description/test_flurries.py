"""Flurries and dominating users, hidden in a quiet log."""

from __future__ import annotations

import numpy as np

from batsched_py.workload.description.users import find_dominating, find_flurries, flurries
from batsched_py.workload.swf.log import SwfLog
from tests.logs import log_of

WEEK = 7 * 86400


def busy_log() -> SwfLog:
    """Ten weeks with 100 jobs each by ten users; user 99 adds 500 in week 3 and 400 in week 4."""
    quiet = np.arange(1000) * (10 * WEEK / 1000)
    submit = np.concatenate([quiet, np.linspace(3.1, 3.9, 500) * WEEK, np.linspace(4.1, 4.2, 400) * WEEK])
    return log_of(submit=submit, user=np.concatenate([np.arange(1000) % 10 + 1, np.full(900, 99)]))


def test_consecutive_weeks_of_a_user_are_one_flurry() -> None:
    (found,) = find_flurries(busy_log())
    assert (found.user, found.first_week, found.last_week, found.jobs) == (99, 3, 4, 900)
    assert found.share_of_jobs == 900 / 1100


def test_a_flurry_needs_the_share_and_the_factor() -> None:
    assert find_flurries(busy_log(), share=0.9) == []
    assert find_flurries(busy_log(), factor=6) == []
    (shorter,) = find_flurries(busy_log(), factor=4.5)
    assert (shorter.first_week, shorter.last_week) == (3, 3)


def test_jobs_of_nobody_are_no_flurry() -> None:
    log = busy_log()
    log.user[log.user == 99] = -1
    assert find_flurries(log) == []


def test_a_dominating_user_has_a_quarter_of_all_jobs() -> None:
    (found,) = find_dominating(busy_log())
    assert (found.user, found.jobs) == (99, 900)
    assert find_dominating(busy_log(), share=0.5) == []


def test_the_weekly_table_adds_up() -> None:
    weekly = flurries(busy_log()).weekly
    assert next(iter(weekly)) == "99" and list(weekly)[-1] == "others"
    assert weekly["99"] == [0, 0, 0, 500, 400, 0, 0, 0, 0, 0]
    assert np.sum(list(weekly.values()), axis=0).tolist() == [
        100,
        100,
        100,
        600,
        500,
        100,
        100,
        100,
        100,
        100,
    ]
