"""What the plan of a campaign says: which logs, machines, schedulers and users are crossed into runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, field

from batsched_py.experiment import Machine, Workloads
from batsched_py.workload.model import WalltimeRule

if TYPE_CHECKING:
    from batsched_py.campaign.run import Run

#: The axes of a plan that have tables, with the table of each.
TABLES = {"log": "logs", "platform": "platforms", "scheduler": "schedulers", "users": "users"}

#: The axes whose values are numbers: the repetitions of an experiment, and the load.
NUMBERED = ("part", "load", "seed")

#: How many runs a plan may ask for.
MOST_RUNS = 100_000

#: What table columns show when the plan does not say.
DEFAULT_METRICS = ("makespan", "mean_waiting_time", "max_waiting_time", "mean_slowdown", "utilization")

#: What simulates when no other simulator is named.
BUILT_IN = "built-in"

#: What lies beside the plan of a campaign that came out of an archive, and says out of which.
IMPORTED_FILE = "imported.json"


class LogEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Logs or workload files that are played together, and how walltimes are made of them."""

    file: str | list[str]
    walltime: WalltimeRule = Workloads().walltime
    walltime_factor: float = Workloads().walltime_factor
    url: str | None = None
    """Where to get the file from if it is missing."""
    sha256: str | None = None
    """What the file must be."""


class PlatformEntry(Machine, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine, what is accounted for on it, and what happens to it."""

    energy: bool = False
    events: str | list[str] = field(default_factory=list)
    """Files that tell when hosts go and come back."""
    forward_unknown_events: bool = False
    compute_sharing: bool = False
    storage_sharing: bool = True
    ignore_communication: bool = False
    machine_states: bool | None = None


class PluginEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scheduler or behaviour of users: its name, which is its key unless said otherwise, and options."""

    name: str | None = None
    options: dict[str, str | int | float | bool] = field(default_factory=dict)


class SchedulerEntry(PluginEntry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scheduler, how long it takes to decide, and what it asks of the simulator."""

    delay: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    """In seconds, for each reply."""
    remarks: bool = False
    """Whether it is written down what it remarks on jobs."""
    config: str = ""
    """A text that the simulator hands over."""
    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False


class Exclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """Leaves out the runs that match all it says."""

    log: str | list[str] | None = None
    platform: str | list[str] | None = None
    scheduler: str | list[str] | None = None
    users: str | list[str] | None = None
    part: int | list[int] | None = None
    load: float | list[float] | None = None
    seed: int | list[int] | None = None


class MissingLog(Struct, frozen=True):
    """A log that is not there, but can be had."""

    path: Path
    url: str
    sha256: str | None


class UnmadeLog(Struct, frozen=True):
    """A log that a recipe describes and that was not made yet."""

    path: Path
    recipe: dict[str, Any]
    """As :func:`~batsched_py.workload.recipe.log_from_recipe` wants it."""


class Plan(Struct, frozen=True):
    """A plan without mistakes."""

    file: Path
    text: str
    name: str
    title: str
    metrics: list[str]
    """What the columns of its tables show."""
    baseline: str
    """The scheduler that the others are compared with in its tables; empty for none."""
    runs: list[Run]
    missing: list[MissingLog]
    unmade: list[UnmadeLog]
