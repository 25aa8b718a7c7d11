"""Numbers, times and amounts of resources, as the settings have them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Seconds = Annotated[float, Meta(ge=0)]
"""``inf`` where there is no limit."""

Positive = Annotated[float, Meta(gt=0)]

Count = Annotated[int, Meta(ge=0)]

Tres = dict[str, float]
"""Amounts of trackable resources: ``cpu``, ``mem`` (MB), ``node``, ``billing``, ``gres/gpu``."""
