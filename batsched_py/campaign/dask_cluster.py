"""Runs of a campaign, or trials of a search, on a Dask cluster: one that is there, or a batch system's.

Workers need this package with the same code, and the files under the same paths, as on a shared file system.
What a batch system wants to know (queue, project, walltime, memory) stands in the user's
``~/.config/dask/jobqueue.yaml``, as for every other use of Dask there.

Whoever can talk to a Dask scheduler or worker can run any code as its user. Clusters that are started here
have keys of their own: both ends of every connection must show the certificate that was made for this
campaign. The keys of workers are files for the owner alone, in the folder of the campaign.
"""

import logging
import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

from batsched_py.campaign.executors import execute
from batsched_py.campaign.files import workspace
from batsched_py.campaign.plan import BATCH_SYSTEMS
from batsched_py.campaign.run import WORK, Run, RunResult
from batsched_py.errors import InputError, PeerVanished

#: How long to look for a cluster, in seconds.
PATIENCE = 30.0

#: After how many seconds without a worker that is said.
SECONDS_WITHOUT_WORKERS = 10.0

#: Memory of a worker where the user's configuration says nothing: a log of 200,000 jobs takes some 0.5 GB.
MEMORY = "2GB"

#: Kinds of addresses at which both ends show certificates.
PROTECTED = ("tls://", "wss://")

#: Every server of Dask also speaks HTTP. Nobody needs that here: it is for this host alone, at any port.
LOOPBACK = "127.0.0.1:0"

#: What a task is about, and what comes of it.
Item = TypeVar("Item")
Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class Connection:
    """A Dask cluster that one talks to."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result | Exception]]:
        """What a function comes to for each item, as soon as it is done, or why there is nothing."""
        try:
            submitted = {self._client.submit(function, item, pure=False): item for item in items}
            for future in _distributed().as_completed(submitted, loop=self._client.loop):
                if future.cancelled() or future.status == "lost":
                    raise CancelledError
                yield submitted[future], future.exception() or future.result()
        except (CancelledError, OSError):
            raise _gone() from None


class _OnDask(ABC):
    """An executor whose workers are those of a Dask cluster."""

    @abstractmethod
    def connected(self, folder: Path, nb_tasks: int) -> AbstractContextManager[Connection]:
        """A connection, for so many tasks whose results are in a folder that all workers see."""

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        """Do all runs; tell of each as soon as it is done."""
        if not runs:
            return
        with self.connected(Path(runs[0].campaign), len(runs)) as connection:
            for run, result in connection.each(execute, runs):
                if isinstance(result, Exception):
                    result = RunResult.failed(run, f"on its Dask worker: {result}")
                yield result


class DaskCluster(_OnDask):
    """A Dask cluster whose scheduler listens at an address such as ``tls://host:8786``."""

    def __init__(self, address: str) -> None:
        _distributed()
        self._address = address

    def connected(self, folder: Path, nb_tasks: int) -> AbstractContextManager[Connection]:
        """A connection to it, as it is."""
        if not self._address.startswith(PROTECTED):
            _log.warning(
                "the Dask cluster at %s is open to everyone who reaches it: they can run code as you; "
                "start it with keys, and use tls:// (docs/campaigns.md)",
                self._address,
            )
        return _connected(self._address)


class BatchSystem(_OnDask):
    """Dask workers as jobs of a batch system; they are gone when the last task is done."""

    def __init__(self, kind: str, workers: int) -> None:
        try:
            import cryptography  # noqa: F401
            import dask_jobqueue
        except ImportError:
            raise InputError(
                f"--executor {kind} needs dask-jobqueue and cryptography: pip install batsched-py[campaign]"
            ) from None
        self._kind = kind
        self._class = getattr(dask_jobqueue, BATCH_SYSTEMS[kind])
        self._workers = workers

    @contextmanager
    def connected(self, folder: Path, nb_tasks: int) -> Iterator[Connection]:
        """A connection to a cluster that is started for these tasks."""
        with (
            workspace(folder.absolute() / WORK, "keys") as keys,
            self.cluster(keys) as cluster,
        ):
            cluster.scale(min(self._workers, nb_tasks))
            with _connected(cluster) as connection:
                yield connection

    def cluster(self, keys: Path) -> Any:
        """The cluster, without workers yet; each of them will be a process with one thread.

        The keys are written to a folder, which workers must see under the same path.
        """
        import dask.config

        settings = dask.config.get(f"jobqueue.{self._kind}")
        cores = settings["cores"] or 1
        if shlex.quote(str(keys)) != str(keys):
            raise InputError(
                f"--executor {self._kind}: scripts of jobs cannot name {keys}, where the keys are; "
                "take a path without spaces and other signs that a shell reads"
            )
        try:
            return self._class(
                cores=cores,
                processes=cores,
                memory=settings["memory"] or MEMORY,
                security=_security(keys),
                scheduler_options=_scheduler_options(settings),
                worker_extra_args=[
                    *(settings["worker-extra-args"] or ()),
                    *("--no-dashboard", "--dashboard-address", LOOPBACK),
                ],
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"--executor {self._kind}: {error} (see ~/.config/dask/jobqueue.yaml)") from None


def _security(folder: Path) -> Any:
    """A new key and its certificate, which every part of a cluster shows, as files for the owner alone."""
    folder.chmod(0o700)
    made = _distributed().Security.temporary()
    files = {"cert": made.tls_scheduler_cert, "key": made.tls_scheduler_key}
    for name, content in files.items():
        with open(folder / name, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(content)
    roles = ("client", "scheduler", "worker")
    shown = {f"tls_{role}_{name}": str(folder / name) for role in roles for name in files}
    return _distributed().Security(require_encryption=True, tls_ca_file=str(folder / "cert"), **shown)


def _scheduler_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Listen at one address: that of the interface that the user names, or of the network of this host."""
    options = {"dashboard": False, "dashboard_address": LOOPBACK, **(settings["scheduler-options"] or {})}
    if not settings["interface"] and not {"host", "interface"} & set(options):
        options["host"] = _distributed().utils.get_ip()
    return options


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError("--executor dask needs Dask: pip install batsched-py[campaign]") from None
    return distributed


@contextmanager
def _connected(cluster: Any) -> Iterator[Connection]:
    try:
        client = _distributed().Client(cluster, timeout=PATIENCE, set_as_default=False)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"there is no Dask cluster at {cluster}: {error}") from None
    try:
        with _dask_is_quiet(), client, _telling_that_no_worker_comes(client):
            yield Connection(client)
    except CancelledError:
        raise _gone() from None


def _gone() -> PeerVanished:
    return PeerVanished("the Dask cluster is gone; what is finished stays, run again to go on")


@contextmanager
def _dask_is_quiet() -> Iterator[None]:
    """What the client of Dask logs of a connection that is lost says less than the error that it ends in."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _telling_that_no_worker_comes(client: Any) -> Iterator[None]:
    """Say so once if the cluster has no worker for a while, for then nothing happens."""

    def look() -> None:
        with suppress(Exception):  # the cluster may be gone meanwhile, which is told elsewhere
            if not client.nthreads():
                _log.warning(
                    "the Dask cluster has had no worker for %g s; runs wait until one comes",
                    SECONDS_WITHOUT_WORKERS,
                )

    timer = Timer(SECONDS_WITHOUT_WORKERS, look)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
