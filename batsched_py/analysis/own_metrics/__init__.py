"""Metrics of your own: one class a file, named ``path/to/file.py:ClassName`` as schedulers are.

To write one, subclass :class:`OwnMetric`. ``examples/own_metric.py`` has two, and ``docs/metrics.md`` says
what they may look at. Other distributions offer theirs in the entry-point group ``batsched_py.metrics``.
"""

from batsched_py.analysis.own_metrics.base import OwnMetric, described, measured, name_of
from batsched_py.plugins import Registry

#: The known ones.
OWN_METRICS = Registry[OwnMetric](
    "metric",
    OwnMetric,  # type: ignore[type-abstract]
    package="batsched_py.analysis.own_metrics",
    group="batsched_py.metrics",
)

__all__ = ["OWN_METRICS", "OwnMetric", "described", "measured", "name_of"]
