"""Executions of jobs that were started again, as notes at jobs tell; ``docs/outside.md`` describes these."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

import pandas as pd

_RESTART: Final = re.compile(r"(?:^| )restart=(\d+)(?: |$)")


def ended_by_failures(schedule: pd.DataFrame) -> set[str]:
    """The executions that failures have ended, or a policy has put back, as their notes say."""
    return set(schedule.loc[schedule["metadata"].str.contains(r"(?:^| )(?:failed|requeued)="), "id"])


def before_restarts(row: Any, failed: Collection[str]) -> str:
    """The name of the job of which a row is an execution, if a failure has ended the one before."""
    restart = _RESTART.search(row.metadata)
    name, mark, number = row.id.rpartition("#")
    if restart is None or not mark or number != restart[1]:
        return str(row.id)
    before = name if number == "1" else f"{name}#{int(number) - 1}"
    return name if before in failed else str(row.id)
