"""The figure that pages about two schedules share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from batsched_py.analysis.pages.figure import Axis, Figure, Layer, Point
from batsched_py.analysis.pages.parts import time_text


def usage_figure(edges: Sequence[float], levels: Mapping[str, Sequence[float]]) -> Figure:
    """How much jobs have between each two edges, for schedules by their names."""
    middles = [(begin + end) / 2 for begin, end in pairwise(edges)]
    layers = []
    for place, (name, heights) in enumerate(levels.items()):
        points = [
            Point(time, height, time_text(time), f"{name}: {height:.1f}")
            for time, height in zip(middles, heights, strict=True)
        ]
        layers.append(Layer("line", points, place, name))
    highest = max(*map(max, levels.values()), 1.0)
    return Figure(Axis("time", "s", ends=(edges[0], edges[-1])), Axis("in use", ends=(0, highest)), layers)
