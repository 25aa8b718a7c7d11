"""Counts of numbers, for medians of long simulations."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.simulator import distribution
from batsched_py.simulator.distribution import Distribution

WHOLE = st.lists(st.integers(0, 100_000), min_size=1)


@pytest.mark.parametrize("few", [3, 1 << 16])
@given(parts=st.lists(WHOLE, min_size=1, max_size=4), share=st.floats(0, 1))
def test_quantiles_are_those_of_all_numbers(few: int, parts: list[list[int]], share: float) -> None:
    """However many different numbers there were, and whenever somebody has asked in between."""
    found, values = Distribution(), np.array([], int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "_FEW", few)
        for part in parts:
            found.add(part)
            values = np.sort(np.append(values, part))
            assert found.quantile(share) == pytest.approx(np.quantile(values, share), rel=1e-9)
            if values.sum():
                top = values[len(values) - ceil(len(values) * share) :].sum() / values.sum()
                assert found.part_of_top(share) == pytest.approx(top, rel=1e-9)
    assert found.count == len(values)


def test_numbers_that_have_many_digits_are_right_to_one_in_130_000() -> None:
    found = Distribution()
    values = np.random.default_rng(1).lognormal(5, 3, 2_000)
    found.add(values.tolist())
    for share in (0.0, 0.1, 0.5, 0.95, 1.0):
        assert found.quantile(share) == pytest.approx(np.quantile(values, share), rel=1 / 130_000)
