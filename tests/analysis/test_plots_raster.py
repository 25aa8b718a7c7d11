"""Rectangles in pixels, against a slow and obvious painter."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.analysis.plots.kinds.gantt import Floats, paint

COLUMNS, ROWS = 5, 4


def overlap(low: float, high: float, pixel: int) -> float:
    return max(0.0, min(high, pixel + 1) - max(low, pixel))


def slowly(boxes: Floats, colours: Floats) -> Floats:
    image = np.ones((ROWS, COLUMNS, 3))
    for (left, right, bottom, top), colour in zip(boxes, colours, strict=True):
        for row in range(ROWS):
            for column in range(COLUMNS):
                share = overlap(left, right, column) * overlap(bottom, top, row)
                image[row, column] -= share * (1 - colour)
    return image


@st.composite
def tilings(draw: st.DrawFn) -> Floats:
    """Rectangles that do not overlap: some cells between random lines."""
    xs = sorted(draw(st.lists(st.floats(0, COLUMNS), min_size=2, max_size=6)))
    ys = sorted(draw(st.lists(st.floats(0, ROWS), min_size=2, max_size=6)))
    cells = [(*x, *y) for x in pairwise(xs) for y in pairwise(ys)]
    kept = draw(st.lists(st.sampled_from(cells), unique=True, min_size=1))
    return np.array(kept)


@given(tilings(), st.integers(0, 1000))
def test_each_pixel_has_the_mean_colour_of_what_lies_in_it(boxes: Floats, seed: int) -> None:
    colours = np.random.default_rng(seed).random((len(boxes), 3))
    image = paint(*boxes.T, colours, np.arange(len(boxes)), COLUMNS, ROWS)
    np.testing.assert_allclose(image, slowly(boxes, colours).clip(0, 1), atol=1e-9)


def test_the_bottom_row_comes_first() -> None:
    box = np.array([[0.0, COLUMNS, 0.0, 0.5]])
    image = paint(*box.T, np.zeros((1, 3)), np.zeros(1, int), COLUMNS, ROWS)
    assert image[:, 0, 0].tolist() == [0.5, 1, 1, 1]


def test_memory_does_not_grow_with_the_number_of_rectangles() -> None:
    """A year of a large machine has millions of them."""
    box = np.array([[0.25, 1.5, 0.5, 2.0]]).repeat(500_000, axis=0)
    tracemalloc.start()
    try:
        paint(*box.T, np.zeros((1, 1)), np.zeros(len(box), np.int8), COLUMNS, ROWS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * box.nbytes
