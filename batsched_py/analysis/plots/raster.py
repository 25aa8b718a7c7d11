"""Painting rectangles into an image by the exact share of each pixel that they cover.

However many rectangles there are and however small, none is lost and none is shown too large: a pixel has
the mean colour of what lies in it. The cost is a fixed number of additions for each rectangle, whatever its
size, because coverage is first written down as differences and then summed along both axes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def paint(
    left: Floats, right: Floats, bottom: Floats, top: Floats, colours: Floats, columns: int, rows: int
) -> Floats:
    """A white image with these rectangles on it, as ``rows`` x ``columns`` x channels, all from 0 to 1.

    Rectangles are given in pixels, must lie inside the image and should not overlap; the bottom row comes
    first. ``colours`` has a row for each of them: red, green and blue, or a single shade of grey.
    """
    ink = 1.0 - colours
    image = np.empty((rows, columns, ink.shape[1]))
    corners = [
        (across, along, sign_x * share_x * sign_y * share_y)
        for x, sign_x in ((left, 1.0), (right, -1.0))
        for across, share_x in _edge(x)
        for y, sign_y in ((bottom, 1.0), (top, -1.0))
        for along, share_y in _edge(y)
    ]
    pixel = np.concatenate([along * (columns + 2) + across for across, along, _ in corners])
    for channel in range(ink.shape[1]):
        weight = np.concatenate([share * ink[:, channel] for _, _, share in corners])
        change = np.bincount(pixel, weight, minlength=(rows + 2) * (columns + 2))
        cover = change.reshape(rows + 2, columns + 2).cumsum(axis=0).cumsum(axis=1)
        image[:, :, channel] = 1.0 - cover[:rows, :columns]
    return image.clip(0.0, 1.0)


def _edge(position: Floats) -> tuple[tuple[NDArray[np.int64], Floats], tuple[NDArray[np.int64], Floats]]:
    """How much coverage grows, at the pixel in which something begins and at the next one."""
    pixel = np.floor(position).astype(np.int64)
    fraction = position - pixel
    return (pixel, 1.0 - fraction), (pixel + 1, fraction)
