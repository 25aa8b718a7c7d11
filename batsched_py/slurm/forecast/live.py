"""The jobs of a live cluster, as ``squeue --json`` or ``scontrol show job`` shows them."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Literal

from msgspec import Struct

from batsched_py.slurm.findings import Findings
from batsched_py.slurm.texts import read_text

State = Literal["running", "waiting"]

#: What Slurm calls the states that count here; a job in any other one is over.
STATES: dict[str, State] = {
    "PENDING": "waiting",
    "RUNNING": "running",
    "CONFIGURING": "running",
    "COMPLETING": "running",
    "SUSPENDED": "running",
    "REQUEUED": "waiting",
    "REQUEUE_HOLD": "waiting",
}


class LiveJob(Struct, frozen=True, kw_only=True):
    """A job that waits or runs; moments are in Unix time."""

    id: str
    state: State
    where: str
    """Where it stands in the file."""
    user: str = ""
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    priority: int = 0
    """A job of priority 0 is held."""
    time_limit: float = inf
    started: float | None = None
    """Of a running job; of a waiting one, when Slurm plans to start it."""
    eligible: float | None = None
    nodes: int = 1
    tasks: int = 1
    cpus_per_task: int = 1
    node_list: str = ""
    memory_per_cpu: int = 0
    """In MB."""
    memory_per_node: int = 0
    gpus_per_node: int = 0
    features: str = ""
    dependency: str = ""
    reservation: str = ""
    exclusive: bool = False
    name: str = ""
    array_id: str = ""
    array: str = ""
    """Which tasks of the array it is, with how many of these may run at once, like ``4-9%2``."""


class Live(Struct):
    """All jobs that wait or run, and the moment at which they were listed."""

    jobs: list[LiveJob]
    now: float | None
    """In Unix time; unknown if the listing does not tell."""


def task_id(array: str, tasks: str) -> str:
    """How Slurm calls some tasks of an array."""
    return f"{array}_{tasks}" if tasks.isdigit() else f"{array}_[{tasks}]"


def read_live(path: Path, zone: str, findings: Findings) -> Live:
    """The jobs that a file lists."""
    text = read_text(path, findings)
    if text.lstrip().startswith("{"):
        from batsched_py.slurm.forecast.squeue_json import read_squeue

        live = read_squeue(path, text, findings)
    else:
        from batsched_py.slurm.forecast.scontrol import read_scontrol

        live = read_scontrol(path, text, zone, findings)
    if not live.jobs and not findings.mistakes:
        findings.mistake(str(path), "there is no job that waits or runs")
    names = [job.id for job in live.jobs]
    if len(set(names)) != len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        findings.mistake(str(path), f"there are two jobs {twice}")
    return live
