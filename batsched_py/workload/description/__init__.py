"""Describing a log: one family of statistics per file, each figure with its definition."""

from batsched_py.workload.description.describe import Description, describe
from batsched_py.workload.description.selection import characterised, requested

__all__ = ["Description", "characterised", "describe", "requested"]
