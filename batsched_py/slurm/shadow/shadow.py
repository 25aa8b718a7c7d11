"""The shadow: it asks Slurm again and again, keeps the twin in step, forecasts and keeps score."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.slurm.changes import changed
from batsched_py.slurm.conf import Cluster, read_cluster
from batsched_py.slurm.forecast.advice import with_known_usage
from batsched_py.slurm.forecast.forecast import Forecast, by_limits, forecast
from batsched_py.slurm.forecast.likely import Likely
from batsched_py.slurm.forecast.live import with_limit
from batsched_py.slurm.forecast.proof import stretched
from batsched_py.slurm.forecast.queue_log import LoggedJobs, QueueLog
from batsched_py.slurm.reading import Clock, Findings, Mistakes
from batsched_py.slurm.sbatch import Submission
from batsched_py.slurm.scenario import configured
from batsched_py.slurm.shadow.asking import Asking, Poll, Silent, tasks_of, with_down
from batsched_py.slurm.shadow.board import Board, serving
from batsched_py.slurm.shadow.memory import GONE, Foreseen, Memory
from batsched_py.slurm.shadow.queue_changes import Tried, tried

#: How often the log of past jobs is read again, in seconds; and while it has fewer jobs than so many.
DAILY, HOURLY, YOUNG = 86400.0, 3600.0, 1000

#: If `squeue` tells otherwise than `scontrol` did a moment before, both are asked again so many times.
RACES = 3


class Watch(Struct, frozen=True, kw_only=True):
    """What is watched, and how: the options of the command."""

    conf: Path
    folder: Path
    every: float
    port: int
    polls: int | None
    repetitions: int
    changes: tuple[str, ...]
    accounting: tuple[Path, ...]
    log: Path | None


class Shadow:
    """A twin of a live cluster."""

    def __init__(self, watch: Watch, memory: Memory, board: Board) -> None:
        self._watch, self._memory, self._board = watch, memory, board
        self._asking = Asking(watch.folder)
        self._logged: LoggedJobs | None = None
        self._read_log = float("-inf")
        cluster = self._cluster(None)
        for change in watch.changes:
            changed(cluster.configuration, change)  # tells of mistakes before anything begins

    def poll(self) -> None:
        """Ask once, and forecast; if Slurm does not answer, say so and keep what is known."""
        try:
            poll = self._asking.poll()
            for _ in range(RACES):
                if not drift(poll):
                    break
                poll = self._asking.poll()
            self._board.show(self._step(poll))
        except (Silent, Mistakes) as error:
            self._board.silent(str(error))

    def _step(self, poll: Poll) -> Forecast | None:
        """Bring the twin in step with what was told, and forecast; nothing if no job waits or runs."""
        self._memory.note(poll.now, poll.states, poll.started)
        self._ask_for_ended(poll)
        self._board.drift = drift(poll)
        self._board.counts = self._memory.counts()
        found: Forecast | None = None
        if poll.jobs:
            cluster, findings = self._cluster(poll), Findings()
            jobs = [with_limit(job, cluster.configuration) for job in poll.jobs]
            logged, likely, known = self._known_log(cluster), None, cluster
            if logged is not None:
                queue = QueueLog(logged, jobs, poll.now)
                likely, known = Likely.now(queue, jobs), with_known_usage(cluster, queue, findings)
            found = forecast(known, jobs, poll.now, likely, self._watch.repetitions, {}, findings, True)
            drawn, found = found, stretched(found, self._memory.stretch(poll.now), poll.now)
            foreseen = _foreseen(drawn, jobs, poll.now)
            self._memory.foresee(poll.now, foreseen, _intervals(_foreseen(found, jobs, poll.now)))
            self._board.tried = self._tried(cluster, jobs, poll.now, likely)
        self._board.kept = self._memory.kept()
        return found

    def _ask_for_ended(self, poll: Poll) -> None:
        """Ask ``sacct`` for jobs that the controller no longer lists."""
        missing = sorted(self._memory.open_jobs() - poll.states.keys())
        if not missing:
            return
        told: dict[str, tuple[str, float | None]] = {}
        with suppress(Silent):
            told = self._asking.ended(missing)
        states = {name: told[name][0] if name in told else GONE for name in missing}
        starts = {name: start for name, (_, start) in told.items() if start is not None}
        self._memory.note(poll.now, states, starts)

    def _cluster(self, poll: Poll | None) -> Cluster:
        """The cluster as it is now; ``slurm.conf`` is read each time, for it may have changed."""
        findings, now = Findings(), 0.0 if poll is None else poll.now
        cluster = read_cluster(self._watch.conf, findings)
        findings.check()
        reserved: list[Path] = []
        if poll is not None and poll.reservations:
            reserved = [self._watch.folder / "reservations.txt"]
            reserved[0].write_text(poll.reservations)
        made = configured(cluster, reserved, self._watch.accounting, Clock(now, "UTC"), findings)
        findings.check()
        coming = tuple(
            replace(each, start=max(each.start, 0.0)) for each in made.reservations if each.end > 0
        )
        made = replace(made, reservations=coming)
        if poll is not None:
            busy = {node for job in poll.jobs if job.runs for node in job.node_names}
            made = with_down(made, set(poll.down) - busy)
        cluster.configuration = made
        return cluster

    def _known_log(self, cluster: Cluster) -> LoggedJobs | None:
        """The jobs of the given log, or of what ``sacct`` tells now and then.

        A few jobs tell little, so the log of a new cluster is read often.
        """
        known = 0 if self._logged is None else len(self._logged)
        if time.monotonic() - self._read_log >= (DAILY if known >= YOUNG else HOURLY):
            self._read_log = time.monotonic()
            with suppress(Silent, InputError):
                self._logged = LoggedJobs(self._watch.log or self._asking.log(), "UTC", cluster)
        return self._logged

    def _tried(
        self, cluster: Cluster, jobs: Sequence[Submission], now: float, likely: Likely | None
    ) -> list[Tried]:
        run_time = by_limits if likely is None else likely.drawn(0, 0.0)[0]
        return tried(cluster, jobs, now, run_time, self._watch.changes)


def drift(poll: Poll) -> int:
    """How many jobs are told otherwise by ``squeue`` than the twin knows them, or by one of them only."""
    listed = poll.queue
    known = {name: poll.states[name] for job in poll.jobs for name in tasks_of(job.id) if name in poll.states}
    return sum(listed.get(name) != known.get(name) for name in listed.keys() | known.keys())


def _intervals(found: Mapping[str, Foreseen]) -> dict[str, tuple[float, float]]:
    return {
        name: (each.early, each.late)
        for name, each in found.items()
        if each.early is not None and each.late is not None
    }


def _foreseen(found: Forecast, jobs: Sequence[Submission], now: float) -> dict[str, Foreseen]:
    """The forecasts of all starts, of an array that of its first task."""
    planned = {job.id: job.started for job in jobs}

    def at(seconds: float | None) -> float | None:
        return None if seconds is None else now + seconds

    return {
        next(tasks_of(job.id)): Foreseen(
            early=at(job.start.early),
            median=at(job.start.median),
            late=at(job.start.late),
            by_limits=at(job.start.by_limits),
            by_plan=planned[job.id],
        )
        for job in found.jobs
    }


def shadow(watch: Watch) -> None:
    """Watch until it is stopped, or so many times."""
    try:
        watch.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{watch.folder}: cannot be made ({error.strerror})") from None
    board = Board(watch.folder)
    with closing(Memory(watch.folder / "shadow.sqlite")) as memory:
        twin = Shadow(watch, memory, board)
        with serving(board, watch.port):
            left = watch.polls
            while left is None or left > 0:
                begin = time.monotonic()
                twin.poll()
                left = None if left is None else left - 1
                if left != 0:
                    time.sleep(max(watch.every - (time.monotonic() - begin), 0.0))
