"""What the plan of a campaign says: which logs, machines, schedulers and users are crossed into runs."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from batsched_py.experiment import Experiment
from batsched_py.workload.swf import WalltimeRule

#: The axes of a plan in the order in which they make the name of a run, with the table of each.
AXES = {"log": "logs", "platform": "platforms", "scheduler": "schedulers", "users": "users"}

#: What table columns show when the plan does not say.
DEFAULT_METRICS = ("makespan", "mean_waiting_time", "max_waiting_time", "mean_slowdown", "utilization")


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """A log or workload file, and how walltimes are made of it."""

    file: str
    walltime: WalltimeRule = "max"
    walltime_factor: float = 2.0
    url: str | None = None
    """Where to get the file from if it is missing."""
    sha256: str | None = None
    """What the file must be."""


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """A platform file, or equal hosts; when nothing is said, the log's own machine."""

    file: str | None = None
    hosts: int | None = None
    speed: float | None = None


class Plugin(Struct, frozen=True, forbid_unknown_fields=True):
    """A scheduler or behaviour of users: its name, which is its key unless said otherwise, and options."""

    name: str | None = None
    options: dict[str, str | int | float | bool] = field(default_factory=dict)


class Exclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """Leaves out the runs that match all it says."""

    log: str | list[str] | None = None
    platform: str | list[str] | None = None
    scheduler: str | list[str] | None = None
    users: str | list[str] | None = None
    seed: int | list[int] | None = None


class PlannedRun(Struct, frozen=True):
    """A simulation of the plan."""

    name: str
    axes: dict[str, str]
    """The name chosen on each axis that the plan has; ``seed`` too, where it matters."""
    experiment: Experiment
    """With absolute paths."""


class MissingLog(Struct, frozen=True):
    """A log that is not there, but can be had."""

    path: Path
    url: str
    sha256: str | None


class Plan(Struct, frozen=True):
    """A plan without mistakes."""

    file: Path
    text: str
    name: str
    title: str
    metrics: list[str]
    """What the columns of its tables show."""
    runs: list[PlannedRun]
    missing: list[MissingLog]
