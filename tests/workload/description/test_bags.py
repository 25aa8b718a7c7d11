"""Bags of tasks, on logs that can be read at a glance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.workload.description.jobs import (
    ATTRIBUTES,
    bag_statistics,
    bags_of_tasks,
    contiguous_bags,
    per_key_bags,
    zipf_exponent,
)
from tests.logs import log_of


def test_a_bag_goes_on_while_jobs_come_within_delta() -> None:
    log = log_of(submit=[0, 100, 200, 301, 350])
    assert contiguous_bags(log, delta=100).sizes.tolist() == [3, 2]


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_jobs_of_a_bag_agree_in_six_attributes(attribute: str) -> None:
    log = log_of(submit=[0, 1, 2, 3], **{attribute: [7, 7, 8, 8]})
    assert contiguous_bags(log).sizes.tolist() == [2, 2]


def test_a_job_of_somebody_else_ends_a_contiguous_bag_but_not_one_per_key() -> None:
    log = log_of(submit=[0, 10, 20, 30], user=[1, 1, 2, 1])
    assert contiguous_bags(log).sizes.tolist() == [2, 1, 1]
    assert sorted(per_key_bags(log).sizes.tolist()) == [1, 3]
    described = bags_of_tasks(log)
    assert described.contiguous.share_of_jobs == 0.5
    assert described.per_key.share_of_jobs == 0.75


def test_the_statistics_are_about_bags_of_two_or_more() -> None:
    log = log_of(submit=[0, 50, 5000, 9000, 9010, 9020], run_time=[10, 30, 7, 2000, 2000, 2300])
    found = bag_statistics(log, contiguous_bags(log))
    assert found.bags == 2
    assert found.share_of_jobs == pytest.approx(5 / 6)
    assert found.sizes is not None and found.run_times is not None and found.submission_durations is not None
    assert found.sizes.percentiles[-1] == 3
    assert found.run_times.percentiles[0] == 20
    assert found.submission_durations.percentiles[-1] == 50
    assert found.share_of_short_submissions == 1
    by_class = {each.run_time_from: each for each in found.variability}
    assert by_class[0].variability == 10
    assert by_class[1e3].variability == pytest.approx(np.std([2000, 2000, 2300]))
    assert by_class[1e5].variability is None


def test_how_many_similar_jobs_follow_each_other_within_delta() -> None:
    log = log_of(submit=[0, 10, 500, 510, 520], user=[1, 1, 1, 2, 2])
    assert bags_of_tasks(log).share_within_delta == pytest.approx(2 / 3)


@pytest.mark.parametrize("exponent", [1.5, 2.5, 3.5])
def test_the_exponent_of_a_zipf_distribution_is_found(exponent: float) -> None:
    sizes = np.arange(1, 1001)
    weights = sizes**-exponent
    drawn = np.random.default_rng(0).choice(sizes, 50_000, p=weights / weights.sum())
    assert zipf_exponent(drawn) == pytest.approx(exponent, abs=0.05)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 3)), min_size=1, max_size=60))
def test_every_job_is_in_one_bag(jobs: list[tuple[int, int]]) -> None:
    gaps, users = zip(*jobs, strict=True)
    log = log_of(submit=np.cumsum(gaps), user=users)
    for bags in (contiguous_bags(log), per_key_bags(log)):
        assert sorted(bags.order.tolist()) == list(range(len(jobs)))
        assert bags.sizes.sum() == len(jobs)
        for start, size in zip(bags.starts.tolist(), bags.sizes.tolist(), strict=True):
            members = bags.order[start : start + size]
            assert len(set(log.user[members].tolist())) == 1
            assert (np.diff(log.submit[members]) <= 100).all()


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 3)), min_size=2, max_size=60))
def test_a_contiguous_bag_is_part_of_one_per_key(jobs: list[tuple[int, int]]) -> None:
    gaps, users = zip(*jobs, strict=True)
    log = log_of(submit=np.cumsum(gaps), user=users)
    described = bags_of_tasks(log)
    assert described.contiguous.share_of_jobs <= described.per_key.share_of_jobs
