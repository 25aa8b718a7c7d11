"""Metrics of your own: one class a file, named ``path/to/file.py:ClassName`` as schedulers are.

To write one, subclass :class:`OwnMetric`. ``examples/own_metric.py`` has two, and ``docs/metrics.md`` says
what they may look at. Other distributions offer theirs in the entry-point group ``batsched_py.metrics``.
"""

import re
from abc import ABC, abstractmethod
from numbers import Real
from typing import ClassVar, get_args

from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.runs.columns import Better, Column
from batsched_py.blame import culprit
from batsched_py.errors import BatschedError, InputError
from batsched_py.plugins import Registry

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class OwnMetric(ABC):
    """A number that summarises a schedule, or the part of it that one class or user has.

    The first line of the docstring says what it is; the page of a campaign shows it.
    """

    name: ClassVar[str]
    """The name of its column; without it, that of the class in small letters."""
    unit: ClassVar[str] = ""
    """``s`` and ``J`` are shown in larger units where these read better."""
    better: ClassVar[Better] = "lower"
    """Whether ``lower`` or ``higher`` values are better, or ``neither``."""

    @abstractmethod
    def measure(self, outcome: Outcome) -> float | None:
        """Its value; None where it makes no sense."""


def name_of(metric: OwnMetric) -> str:
    """The name of its column, which must not be that of one of our metrics."""
    name = str(getattr(metric, "name", type(metric).__name__.lower()))
    if not _NAME.fullmatch(name):
        raise InputError(f"the name of a metric is made of small letters, digits and _, not {name!r}")
    if any(name == each.name for each in METRICS):
        raise InputError(f"there is a metric {name!r} already; give yours another name")
    return name


def described(metric: OwnMetric, source: str) -> Column:
    """What tables need to know of it; ``source`` is how it is named in a plan."""
    if metric.better not in get_args(Better):
        raise InputError(f"metric {name_of(metric)!r}: `better` is one of {', '.join(get_args(Better))}")
    about = (type(metric).__doc__ or "").strip().split("\n")[0]
    return Column(str(metric.unit), metric.better, about, source)


def measured(metric: OwnMetric, outcome: Outcome) -> float | None:
    """Its value for an outcome; what goes wrong is told in one line, with the line of its code."""
    try:
        value = metric.measure(outcome)
    except BatschedError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"metric {name_of(metric)!r} fails: {error!r} ({culprit(error)})") from error
    if value is None or (isinstance(value, Real) and not isinstance(value, bool)):
        return None if value is None else float(value)
    raise InputError(f"metric {name_of(metric)!r} gives {value!r}, which is no number")


#: The known ones.
OWN_METRICS = Registry[OwnMetric](
    "metric",
    OwnMetric,  # type: ignore[type-abstract]
    package=None,
    group="batsched_py.metrics",
)
