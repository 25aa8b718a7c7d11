"""Columns that are as narrow as their values allow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.workload import columns
from batsched_py.workload.columns import Column, distinct, gather, group, narrow, select

NUMBERS = st.integers(-3, 3) | st.integers(-(2**53), 2**53).map(float) | st.floats(allow_nan=False)


@given(st.lists(st.lists(NUMBERS.map(float), max_size=5), max_size=8))
def test_what_comes_in_pieces_comes_out_exactly(pieces: list[list[float]]) -> None:
    column = Column()
    for piece in pieces:
        column.extend(np.array(piece))
    assert column.values.tolist() == [value for piece in pieces for value in piece]


@pytest.mark.parametrize(
    ("values", "bytes_each"),
    [
        ([-128, 127], 1),
        ([-129], 2),
        ([128], 2),
        ([32768], 4),
        ([2**31], 8),
        ([0.5], 8),
        ([2.0**60], 8),
        ([float("inf")], 8),
    ],
)
def test_a_value_takes_no_more_bytes_than_it_needs(values: list[float], bytes_each: int) -> None:
    found = narrow(np.array(values, dtype=np.float64))
    assert (found.tolist(), found.itemsize) == (values, bytes_each)


def test_a_column_widens_when_it_has_to() -> None:
    found = gather([{"x": np.array([1.0])}, {"x": np.array([300.0])}, {"x": np.array([0.5])}])["x"]
    assert (found.tolist(), found.dtype) == ([1, 300, 0.5], np.float64)


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks of three values, so that short columns have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BLOCK", 3)
        yield


VALUES = st.lists(st.integers(0, 4))


@given(VALUES, st.randoms(use_true_random=False))
def test_what_is_kept_stays_in_order(small_blocks: None, values: list[int], random) -> None:
    kept = [random.random() < 0.5 for _ in values]
    found = select(np.array(values, dtype=np.int8), np.array(kept, dtype=bool))
    assert found.tolist() == [value for value, keep in zip(values, kept, strict=True) if keep]


@given(VALUES)
def test_each_value_once_and_in_order(small_blocks: None, values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int8)).tolist() == sorted(set(values))


@given(VALUES)
def test_places_are_grouped_by_code(small_blocks: None, codes: list[int]) -> None:
    found = group(np.array(codes, dtype=np.int8), 5)
    expected = [[place for place, known in enumerate(codes) if known == code] for code in range(5)]
    assert [places.tolist() for places in found] == expected
