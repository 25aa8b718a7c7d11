"""Normalised entropy: 1 for an even spread, 0 for one burst."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.workload.description.over_time import burstiness, spatial_entropy, temporal_entropy
from tests.logs import log_of


def test_even_arrivals_have_a_temporal_entropy_of_1() -> None:
    assert temporal_entropy(np.arange(0, 6000, 60.0), 60) == pytest.approx(1)


def test_arrivals_in_two_of_four_intervals_have_half_the_entropy() -> None:
    assert temporal_entropy(np.array([0.0, 1, 301, 302]), 100) == pytest.approx(0.5)


def test_sizes_with_the_same_run_time_have_a_spatial_entropy_of_1() -> None:
    assert spatial_entropy(log_of(requested_processors=[1, 2, 3, 4], run_time=100)) == pytest.approx(1)


def test_spatial_entropy_counts_run_time_and_all_sizes_up_to_the_largest() -> None:
    log = log_of(requested_processors=[1, 1, 4], run_time=[10, 20, 30])
    assert spatial_entropy(log) == pytest.approx(np.log(2) / np.log(4))


def test_poisson_arrivals_and_uniform_sizes_are_nearly_even() -> None:
    random = np.random.default_rng(1)
    log = log_of(
        submit=np.cumsum(random.exponential(20, 100_000)),
        run_time=random.uniform(0, 1000, 100_000),
        requested_processors=random.integers(1, 201, 100_000),
    )
    found = burstiness(log)
    assert found.spatial == pytest.approx(1, abs=0.002)
    assert [found.temporal[scale] for scale in ("15 min", "30 min", "1 h")] == pytest.approx(
        [1] * 3, abs=0.005
    )


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=50), st.integers(1, 10**5))
def test_an_entropy_lies_between_0_and_1(submit: list[int], scale: int) -> None:
    assert -1e-9 <= temporal_entropy(np.array(submit, dtype=float), scale) <= 1 + 1e-9
