"""Reading what decisions took: ``PREFIX_decisions.csv`` beside the other files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from batsched_py.analysis.beside import beside
from batsched_py.analysis.schedule import open_table
from batsched_py.errors import InputError

_TYPES: Final = {
    "time": float,
    "queue": int,
    "decision_seconds": float,
    "other_seconds": float,
    "memory_bytes": float,
}


def decisions_beside(jobs_file: str | Path) -> pd.DataFrame | None:
    """What each decision took, beside a ``PREFIX_jobs.csv``; nothing if it was not asked for."""
    path = beside(jobs_file, "decisions")
    if not path.is_file():
        return None
    with open_table(path) as file:
        try:
            return pd.read_csv(file, usecols=list(_TYPES), dtype=_TYPES)
        except ValueError:
            raise InputError(
                f"{path}: is not what a simulation with --decisions writes ({','.join(_TYPES)})"
            ) from None
