"""Where the runs of a campaign are executed, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batsched_py.campaign.dask_cluster import BATCH_SYSTEMS, BatchSystem, DaskCluster
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.campaign.conduct import Executor

#: All of them: processes here, a Dask cluster that is there, or one that a batch system starts.
EXECUTORS = ("processes", "dask", *BATCH_SYSTEMS)


def executor_of(kind: str, address: str | None, workers: int | None) -> Executor:
    """The executor of this name, with the address of a Dask scheduler or so many workers."""
    from batsched_py.campaign.processes import Processes, usable_cores

    if kind not in EXECUTORS:
        raise InputError(f"there is no executor {kind!r}; known are {', '.join(EXECUTORS)}")
    if kind == "dask":
        if address is None:
            raise InputError(
                "--executor dask needs the --address of a Dask scheduler, such as tcp://host:8786"
            )
        return DaskCluster(address)
    if address is not None:
        raise InputError("--address is for --executor dask")
    return Processes(workers) if kind == "processes" else BatchSystem(kind, workers or usable_cores())
