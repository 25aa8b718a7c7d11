"""Users at the level of a site: when they come, when they go on, and what they submit."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import JobState
from batsched_py.users import USERS
from batsched_py.users.site_level import DAY, HOUR, SiteLevel, SiteUser
from tests.feedback import Record, replay, rows, workload_of
from tests.processes import call

LOG = [Record(n % 4, 60 * n, 600 * (1 + n % 7), 1 + n % 3) for n in range(40)]


def site(**options: str) -> SiteLevel:
    behaviour = USERS.create("site-level", {"nb_users": "20", "days": "5"} | options)
    assert isinstance(behaviour, SiteLevel)
    return behaviour


def submitted(hosts: int = 60, scheduler: str = "easy", **options: str) -> dict[str, dict[str, str]]:
    return rows(replay(site(**options).users(workload_of(LOG)), hosts, scheduler))


def hours(found: dict[str, dict[str, str]]) -> list[float]:
    return [float(job["submission_time"]) % DAY / HOUR for job in found.values()]


def test_with_a_cycle_users_submit_between_two_hours_of_the_day() -> None:
    assert min(hours(submitted())) >= 8
    assert max(hours(submitted())) < 18
    assert 2 <= min(hours(submitted(first_hour="2", last_hour="3.5"))) <= 3.5


def test_without_a_cycle_users_submit_at_any_time() -> None:
    counts, _ = np.histogram(hours(submitted(cycle="false")), bins=4, range=(0, 24))
    assert min(counts) > 0.5 * max(counts)


def test_each_user_waits_for_one_job_at_a_time() -> None:
    of_user = defaultdict(list)
    for job in submitted(hosts=4).values():
        of_user[job["metadata"].split()[0]].append((float(job["submission_time"]), float(job["finish_time"])))
    assert len(of_user) == 20
    for spans in of_user.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))


def test_the_chance_to_go_on_falls_with_the_response_time() -> None:
    """As often as the formula says, after responses of no time, of 20 minutes and of an hour."""
    rules = site(goes_on="0.8", tolerance="20", cycle="false")
    assert [rules.chance(60 * minutes) for minutes in (0, 20, 60)] == pytest.approx([0.8, 0.4, 0.2])
    user = SiteUser(3, rules, workload_of(LOG))
    for response in (0.0, 1200.0, 3600.0):
        stayed = 0
        for _ in range(2000):
            (submission,) = user.submit(0.0)
            user.job_ended(submission.job, JobState.SUCCESS, response)
            stayed += user._time < DAY
        assert stayed / 2000 == pytest.approx(rules.chance(response), abs=0.04)


def test_users_draw_from_the_jobs_that_are_short_enough_whoever_submitted_them() -> None:
    found = submitted(longest="0.5")
    assert {float(job["execution_time"]) for job in found.values()} == {600, 1200, 1800}
    assert len({job["requested_number_of_resources"] for job in found.values()}) == 3


def test_a_number_is_the_same_job_whatever_the_scheduler() -> None:
    """Of each user, the first, the second and so on; who is answered later has submitted fewer."""
    facts = [
        {
            number: (job["requested_number_of_resources"], job["execution_time"], job["metadata"].split()[0])
            for number, job in submitted(hosts=6, scheduler=scheduler).items()
        }
        for scheduler in ("fcfs", "easy")
    ]
    both = facts[0].keys() & facts[1].keys()
    assert len(both) > 100
    assert all(facts[0][number] == facts[1][number] for number in both)


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InputError, match="must be before the last one"):
        site(first_hour="18", last_hour="8")


@pytest.mark.parametrize(("over", "day"), [(27.0, 1), (36.0, 2), (47.0, 2)])
def test_who_leaves_comes_back_in_the_next_morning(over: float, day: int) -> None:
    """Jobs of the first day are over in the night, at noon and in the evening of the second one."""
    user = SiteUser(0, site(goes_on="0.0"), workload_of(LOG))
    (submission,) = user.submit(user.next_time())
    user.job_ended(submission.job, JobState.SUCCESS, over * HOUR)
    assert day * DAY + 8 * HOUR <= user.next_time() < day * DAY + 18 * HOUR


@pytest.mark.parametrize("users", ["site-level", pytest.param("resample", marks=pytest.mark.slow)])
def test_both_engines_write_the_same_bytes(users: str, root: Path, tmp_path: Path) -> None:
    """Also with shuffled jobs, and sessions that last until their jobs are over."""
    options = {
        "site-level": ["-u", "days=2"],
        "resample": ["-u", "weeks=1", "-u", "shuffle=true", "-u", "session_end=finish", "-u", "long_term=3"],
    }[users]
    run = ["run", "-w", root / "workloads" / "sample.swf", "-s", "user-aware", "--users", users, *options]
    for pure in "01":
        code, _, err = call([*run, "-e", tmp_path / pure], BATSCHED_PY_PURE=pure)
        assert (code, err) == (0, "")
    one, other = ((tmp_path / f"{pure}_jobs.csv").read_bytes() for pure in "01")
    assert one == other
    assert len(one.splitlines()) > 20
