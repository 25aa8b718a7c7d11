"""Small logs, written as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from batsched_py.workload.swf.log import SwfLog, swf_log


def log_of(header: dict[str, str] | None = None, **columns: Any) -> SwfLog:
    """A log of some columns; a single number stands for a whole column."""
    count = max(np.size(column) for column in columns.values())
    defaults = {"submit": np.arange(count), "run_time": 60, "requested_processors": 1, "status": 1, "user": 1}
    full = {name: np.broadcast_to(column, count) for name, column in (defaults | columns).items()}
    return swf_log(full, header=header or {}, path="small.swf")
