"""Painting rectangles into an image by the exact share of each pixel that they cover.

However many rectangles there are and however small, none is lost and none is shown too large: a pixel has
the mean colour of what lies in it. The cost is a fixed number of additions for each rectangle, whatever its
size, because coverage is first written down as differences and then summed along both axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

#: So many rectangles are painted at once.
PIECE: Final = 100_000


def paint(
    left: Floats,
    right: Floats,
    bottom: Floats,
    top: Floats,
    colours: Floats,
    colour_of: Integers,
    columns: int,
    rows: int,
) -> Floats:
    """A white image with these rectangles on it, as ``rows`` x ``columns`` x channels, all from 0 to 1.

    Rectangles are given in pixels, must lie inside the image and should not overlap; the bottom row comes
    first. ``colours`` has a row for each colour: red, green and blue, or a single shade of grey.
    ``colour_of`` says which row each rectangle has.
    """
    image = np.empty((rows, columns, colours.shape[1]))
    for channel in range(colours.shape[1]):
        change = np.zeros((rows + 2, columns + 2))
        for x, sign_x in ((left, 1.0), (right, -1.0)):
            for next_column in (0, 1):
                for y, sign_y in ((bottom, 1.0), (top, -1.0)):
                    for next_row in (0, 1):
                        for piece in _pieces(len(left)):
                            across, share_x = _edge(x[piece], next_column)
                            along, share_y = _edge(y[piece], next_row)
                            share = sign_x * share_x * sign_y * share_y
                            ink = 1.0 - colours[colour_of[piece], channel]
                            np.add.at(change, (along, across), share * ink)
        cover = change.cumsum(axis=0).cumsum(axis=1)
        image[:, :, channel] = 1.0 - cover[:rows, :columns]
    return image.clip(0.0, 1.0)


def _pieces(count: int) -> Iterator[slice]:
    """Some rectangles after the others, so that memory does not grow with their number."""
    return (slice(first, first + PIECE) for first in range(0, count, PIECE))


def _edge(position: Floats, next_pixel: int) -> tuple[NDArray[np.int64], Floats]:
    """How much coverage grows at the pixel in which something begins (0), or at the next one (1)."""
    pixel = np.floor(position).astype(np.int64)
    fraction = position - pixel
    return pixel + next_pixel, fraction if next_pixel else 1.0 - fraction
