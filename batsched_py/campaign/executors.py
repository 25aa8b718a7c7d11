"""Where the runs of a campaign are executed, by name: here, or on a Dask cluster.

Such a cluster is there, or a batch system starts its workers. They need this package with the same code, and
the files under the same paths, as on a shared file system. What a batch system wants to know (queue, project,
walltime, memory) stands in the user's ``~/.config/dask/jobqueue.yaml``, as for every other use of Dask there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from batsched_py.errors import InputError, PeerVanished

if TYPE_CHECKING:
    from batsched_py.campaign.run import Run, RunResult
    from batsched_py.campaign.store import Executor


#: The batch systems that can start workers, with the class of dask-jobqueue for each.
BATCH_SYSTEMS = {"slurm": "SLURMCluster", "oar": "OARCluster", "pbs": "PBSCluster"}

#: How long to look for a cluster, in seconds.
PATIENCE = 30.0

#: Memory of a worker where the user's configuration says nothing: a log of 200,000 jobs takes some 0.5 GB.
MEMORY = "2GB"


class DaskCluster:
    """A Dask cluster whose scheduler listens at an address such as ``tcp://host:8786``."""

    def __init__(self, address: str) -> None:
        _distributed()
        self._address = address

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        """Do all runs; tell of each as soon as it is done."""
        return _run(self._address, runs)


class BatchSystem:
    """Dask workers as jobs of a batch system; they are gone when the last run is done."""

    def __init__(self, kind: str, workers: int) -> None:
        try:
            import dask_jobqueue
        except ImportError:
            raise InputError(
                f"--executor {kind} needs dask-jobqueue: pip install batsched-py[campaign]"
            ) from None
        self._kind = kind
        self._class = getattr(dask_jobqueue, BATCH_SYSTEMS[kind])
        self._workers = workers

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        """Do all runs; tell of each as soon as it is done."""
        with self._cluster() as cluster:
            cluster.scale(min(self._workers, len(runs)))
            yield from _run(cluster, runs)

    def _cluster(self) -> Any:
        """The cluster, without workers yet; each of them will be a process with one thread."""
        import dask.config

        settings = dask.config.get(f"jobqueue.{self._kind}")
        cores = settings["cores"] or 1
        try:
            return self._class(cores=cores, processes=cores, memory=settings["memory"] or MEMORY)
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"--executor {self._kind}: {error} (see ~/.config/dask/jobqueue.yaml)") from None


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError("--executor dask needs Dask: pip install batsched-py[campaign]") from None
    return distributed


def _run(cluster: Any, runs: Sequence[Run]) -> Iterator[RunResult]:
    from batsched_py.campaign.execute import execute
    from batsched_py.campaign.run import RunResult

    distributed = _distributed()
    try:
        client = distributed.Client(cluster, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"there is no Dask cluster at {cluster}: {error}") from None
    with client:
        submitted = {client.submit(execute, run, pure=False): run for run in runs}
        for future in distributed.as_completed(submitted, loop=client.loop):
            if future.cancelled() or future.status == "lost":
                raise PeerVanished("the Dask cluster is gone; what is finished stays, run again to go on")
            fault = future.exception()
            failed = RunResult.failed(submitted[future], f"on its Dask worker: {fault}")
            yield future.result() if fault is None else failed


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
