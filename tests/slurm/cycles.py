"""Backfill cycles of a real Slurm, taken from its log, and the same cycles of the twin.

A log with ``DebugFlags=Backfill`` says what happened and, for each cycle, when each job is planned to start
and where. The twin is led through the same events, and asked for its plan at each cycle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.protocol.dependencies import dependency_of
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.jobs import Job
from batsched_py.slurm.policy.job import RunningRecord, WaitingRecord
from batsched_py.slurm.policy.loops import Backfill
from batsched_py.slurm.policy.nodes import Share, places
from batsched_py.slurm.policy.setup import Setup
from tests.slurm.scenario import read_scenario

_LINE = re.compile(r"\[([^\]]+)\] (.*)")
_SUBMITTED = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) ")
_ALLOCATED = re.compile(r"sched: Allocate JobId=(\d+) NodeList=(\S+) #CPUs=\d+ Partition=(\S+)")
_STARTED = re.compile(r"sched/backfill: _start_job: Started JobId=(\d+) in (\S+) on (\S+)")
_DONE = re.compile(r"(?:_job_complete: |Time limit exhausted for )JobId=(\d+)(?: done)?$")
_BEGINS = re.compile(r"sched/backfill: _attempt_backfill: beginning")
_PLANNED = re.compile(
    r"sched/backfill: _dump_job_sched: JobId=(\d+) to start at (\S+), end at \S+ on nodes (\S+) "
    r"in partition (\S+)"
)
_COMPLETED = re.compile(r"sched/backfill: _attempt_backfill: completed testing (\d+)")

#: The lines of a log that are needed.
KEPT = (_SUBMITTED, _ALLOCATED, _STARTED, _DONE, _BEGINS, _PLANNED, _COMPLETED)


class Plan(Struct, frozen=True, order=True):
    """A job's start as a cycle has it: at once, or later."""

    job: str
    start: int
    nodes: tuple[str, ...]
    now: bool = False


def kept_lines(log: Path) -> Iterator[str]:
    """The lines of a log that tell what is needed here."""
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            match = _LINE.fullmatch(line.rstrip("\n"))
            if match and any(kind.match(match[2]) for kind in KEPT):
                yield f"[{match[1]}] {match[2]}"


class Comparison(Struct):
    """What the real one and the twin have planned in one cycle."""

    time: float
    real: list[Plan]
    twin: list[Plan]


def compare_cycles(folder: Path, lines: list[str]) -> Iterator[Comparison]:
    """Lead the twin through a log, and compare each cycle."""
    return _Replay(folder, lines).run()


class _Replay:
    def __init__(self, folder: Path, lines: list[str]) -> None:
        configuration, platform, workload = read_scenario(folder)
        first = next(line for line in lines if _SUBMITTED.match(_LINE.fullmatch(line)[2]))  # type: ignore[index]
        self._zero = _time(first) - _time(first) % 1 - int(workload.jobs[0].submission_time)
        date = datetime.fromtimestamp(self._zero, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        configuration = replace(configuration, start=date)
        self._setup = Setup(configuration, platform.as_protocol()[0])
        self._state = self._setup.state()
        self._priorities = self._setup.priorities()
        self._jobs = {job.name: job for job in workload.jobs}
        self._lines = lines
        self._held: list[Job] = []
        self._over: set[str] = set()
        self._waiting: dict[str, list[WaitingRecord]] = {}
        self._running: dict[str, RunningRecord] = {}

    def run(self) -> Iterator[Comparison]:
        comparison: Comparison | None = None
        for line in self._lines:
            match = _LINE.fullmatch(line)
            assert match is not None
            now, text = _time(line) - self._zero, match[2]
            if found := _SUBMITTED.match(text):
                self._held.append(self._jobs[found[1]])
                self._release(now)
            elif found := _DONE.match(text):
                self._over.add(found[1])
                self._release(now)
                if found[1] in self._running:
                    self._state.ended(self._running.pop(found[1]), int(now))
                    self._state.completing = 0
            elif found := _ALLOCATED.match(text):
                self._start(found[1], found[2], found[3], now)
            elif found := _STARTED.match(text):
                assert comparison is not None
                comparison.real.append(Plan(found[1], int(now), tuple(expand(found[3])), True))
                self._start(found[1], found[3], found[2], now)
            elif _BEGINS.match(text):
                comparison = Comparison(now, [], self._twin(now))
            elif found := _PLANNED.match(text):
                assert comparison is not None
                start = datetime.fromisoformat(found[2]).timestamp() - self._zero
                comparison.real.append(Plan(found[1], round(start), tuple(expand(found[3]))))
            elif comparison is not None and _COMPLETED.match(text):
                yield comparison

    def _release(self, now: float) -> None:
        """Let jobs join the queue that wait for no other one; all jobs of the scenarios succeed."""
        for job in list(self._held):
            depends = dependency_of(job)
            if depends is None or {end.target for end in depends.ends} <= self._over:
                self._held.remove(job)
                records, _ = self._setup.records(job, now)
                self._priorities.enter(records, now)
                self._waiting[job.name] = records
                self._state.add(records)

    def _twin(self, now: float) -> list[Plan]:
        """What the twin plans now; its starts are taken back."""
        plans: list[Plan] = []
        state, begun = self._state, list[tuple[WaitingRecord, RunningRecord]]()
        saved = list(state.waiting)

        def names(nodes: int) -> tuple[str, ...]:
            return tuple(state.machine.nodes[node].name for node in places(nodes))

        def start(record: WaitingRecord, share: Share) -> None:
            plans.append(Plan(record.job.name, int(now), names(share.nodes), True))
            begun.append((record, state.start(record, share, int(now))))

        def planned(record: WaitingRecord, start: int, nodes: int) -> None:
            plans.append(Plan(record.job.name, start, names(nodes)))

        Backfill(state, int(now), start, planned).run()
        for _, running in begun:
            state.ended(running, int(now))
        state.completing = 0
        state.waiting = saved
        return plans

    def _start(self, number: str, nodes: str, partition: str, now: float) -> None:
        records = self._waiting.pop(number)
        record = next(each for each in records if each.partition.name == partition)
        mine = self._state.machine.named(expand(nodes))
        share = self._state.selector.select(record.asked, mine, self._state.usage)
        assert share is not None, (number, nodes, now)
        assert share.nodes == mine, (number, nodes, now)
        self._running[number] = self._state.start(record, share, int(now))


def _time(line: str) -> float:
    return datetime.fromisoformat(line[1 : line.index("]")]).timestamp()
