"""What the results of a run are called."""

from __future__ import annotations

#: What is measured of a run.
METRICS_FILE = "metrics.json"

#: How the names of a Batsim's files begin, as they do by default, and how they end.
PREFIX = "out"
_ENDINGS = (".csv", ".json", ".trace")


def is_result(name: str) -> bool:
    """Whether a file of this name can be one of a run's results.

    >>> [is_result(name) for name in ("metrics.json", "out_jobs.csv", "out_jobs.py", "out_/../a.csv")]
    [True, True, False, False]
    """
    is_of_batsim = name.startswith(f"{PREFIX}_") and name.endswith(_ENDINGS)
    return name == METRICS_FILE or (is_of_batsim and name.isprintable() and "/" not in name)
