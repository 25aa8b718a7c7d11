"""What the extension module gives to the classes that derive from its classes."""

from collections.abc import Iterable, Sequence
from typing import Any

from batsched_py.ledger import free, names, running
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile
from batsched_py.simulator import agenda
from batsched_py.users import think_time

class FreeHosts(free.FreeHosts): ...

class RunningJob(running.RunningJob):
    @property
    def executed(self) -> Job: ...
    @property
    def begun(self) -> float: ...
    @property
    def agenda_number(self) -> int: ...
    @property
    def reaches_walltime(self) -> bool: ...

class JobQueue:
    users: Any

class Names(names.Names): ...

class QueueBook:
    queue: Any

class Running: ...

class RunningBook:
    _running: Any

class Ledger:
    queue: Any
    queue_book: Any
    running: Any
    running_book: Any
    free: Any
    registry: Any
    estimate: Any
    _for_files_only: Any
    _plain_estimate: Any
    _collects: bool

class Cluster: ...

class Broker:
    _on_leave: Any

class SessionReplay(think_time.SessionReplay): ...

class SubmissionDesk:
    _registry: Any
    _names: Any
    _profiles: Any
    _rule_broken: type[Exception]
    _reuses_profiles: bool

class Agenda(agenda.Agenda): ...
class Machines: ...
class Results: ...

class Outputs:
    _sums: Results
    _writes: bool
    def _append(self, row: str) -> None: ...
    def _take(self) -> str: ...

class Submitter: ...

class World:
    ledger: Any
    runner: Any
    machines: Any
    _exact: Any
    _mail: Any
    _profiles: Any
    _end_action: Any
    _native_machines: Machines
    _native_outputs: Outputs
    _speed: float
    def _start(self, started: Any) -> None: ...
    def _end(self, running: RunningJob) -> None: ...
    def hand_over(self) -> None: ...
    def write_down(self) -> None: ...
    def _listen_to(self, process: Any, *parts: Any) -> None: ...
    def _go_on(self, process: Any, on_decisions: Any) -> None: ...

def by_user(jobs: Sequence[Job]) -> dict[str | None, list[int]]: ...
def in_submission_order(jobs: Sequence[Job]) -> list[Job]: ...
def read_jobs(
    pieces: Iterable[bytes],
    largest: int,
    workload: str,
    walltime_factor: float,
    requested_only: bool,
    speed: float,
) -> tuple[list[Job], dict[str, Profile], bytes, list[bytes], int, int] | None: ...
