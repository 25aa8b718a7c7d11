"""Jobs that belong together: those of a class, a partition, an account or a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from batsched_py.analysis.runs.aggregate import Grouping
from batsched_py.analysis.schedule import INSTANT
from batsched_py.errors import InputError
from batsched_py.workload.sources.accounting import names_of

if TYPE_CHECKING:
    from batsched_py.analysis.outcome import Outcome
    from batsched_py.workload.swf.log import SwfLog


#: Up to how many hosts a job is narrow, and up to how many seconds it is short.
NARROW: Final = 8
SHORT: Final = 3600.0
#: The classes that this makes; in their numbers, a short job counts 2 and a wide one 1.
CLASSES: Final = ("long, narrow", "long, wide", "short, narrow", "short, wide")


def class_numbers(run_times: ArrayLike, sizes: ArrayLike) -> NDArray[np.int8]:
    """The place of each job's class in :data:`CLASSES`."""
    is_short: NDArray[Any] = np.asarray(run_times) <= SHORT
    is_wide: NDArray[Any] = np.asarray(sizes) > NARROW
    return 2 * is_short.astype(np.int8) + is_wide.astype(np.int8)


#: The columns of a log that tell the group of a job.
_COLUMNS: Final = {"partition": "partition", "account": "group"}


def groups_of(outcome: Outcome, by: Grouping, log: SwfLog | None = None) -> dict[str, Outcome]:
    """The outcome for the jobs of each group, by the name of the group.

    A rejected job has no run time, so it is in no class. Partitions and accounts stand in the log that was
    replayed; an account is what the log calls a group, and jobs without one are in the group ``none``. Users
    stand there too, or in the notes of jobs.
    """
    match by:
        case "class":
            jobs = outcome.executed
            ran = jobs["execution_time"].to_numpy()
            numbers = class_numbers(np.where(ran > INSTANT, ran, 0.0), outcome.nb_held)
            labels = pd.Series(np.array(CLASSES, object)[numbers], index=jobs.index)
            labels = labels.reindex(outcome.schedule.index)
            parts = outcome.parts(labels)
            return {name: parts[name] for name in CLASSES if name in parts}
        case "user":
            return outcome.by_user()
        case "partition" | "account":
            if log is None:
                raise InputError(
                    f"the schedule does not tell its {by}s; give the log with --recorded LOG.swf"
                )
            names = pd.Series(names_of(log, _COLUMNS[by]), index=log.job_number.astype(str))
            found = outcome.schedule["job_id"].map(names[~names.index.duplicated()])
            parts = outcome.parts(found.where(found.notna() & (found != ""), "none"))
            return {name: parts[name] for name in sorted(parts, key=lambda name: (len(name), name))}
