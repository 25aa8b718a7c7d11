"""What the plan of a campaign says: which logs, machines, schedulers and users are crossed into runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from batsched_py.analysis.runs.columns import Column

if TYPE_CHECKING:
    from batsched_py.campaign.prepare import PlanInput
    from batsched_py.campaign.run import Run

#: The axes of a plan that have tables, with the table of each.
TABLES = {
    "log": "logs",
    "platform": "platforms",
    "scheduler": "schedulers",
    "allocator": "allocators",
    "users": "users",
}

#: The axes whose values are numbers: the repetitions of an experiment, and the load.
NUMBERED = ("part", "load", "seed")

#: What the entries of tables are called. No name is a path, or what a spreadsheet takes for a formula.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")

#: How many runs a plan may ask for.
MOST_RUNS = 100_000

#: What table columns show when the plan does not say.
DEFAULT_METRICS = ("makespan", "mean_waiting_time", "max_waiting_time", "mean_slowdown", "utilization")

#: What simulates when no other simulator is named.
BUILT_IN = "built-in"

#: What a campaign's folder has of its plan: the text, and the list of runs.
PLAN_FILE = "plan.toml"
CAMPAIGN_FILE = "campaign.json"

#: Where a campaign keeps the logs that were made for it.
MADE = "made"


def usual_folder(plan: Path, name: str, simulator: str = BUILT_IN) -> Path:
    """Where the results of a plan are unless told otherwise.

    The plan in the folder of a campaign is about the results in this folder.
    """
    if simulator != BUILT_IN:
        return Path("out") / f"{name}-batsim"
    if plan.name == PLAN_FILE and plan.with_name(CAMPAIGN_FILE).is_file():
        return plan.parent
    return Path("out") / name


class PlanEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of a table; :mod:`~batsched_py.campaign.plan_entries` adds the settings that it may give."""


class LogSource(PlanEntry, frozen=True, kw_only=True):
    """Logs or workload files that are simulated together."""

    file: str | list[str]
    url: str | None = None
    """Where to get the file from if it is missing."""
    sha256: str | None = None
    """What the file must be."""


class PluginEntry(PlanEntry, frozen=True, kw_only=True):
    """A scheduler or behaviour of users: its name, which is its key unless said otherwise, and options."""

    name: str | None = None
    options: dict[str, str | int | float | bool] = field(default_factory=dict)


class Exclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """Leaves out the runs that match all it says."""

    log: str | list[str] | None = None
    platform: str | list[str] | None = None
    scheduler: str | list[str] | None = None
    allocator: str | list[str] | None = None
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
    """The scheduler, or ``AXIS=NAME``, that others are compared with in its tables; empty for none."""
    runs: list[Run]
    missing: list[MissingLog]
    unmade: list[UnmadeLog]
    inputs: list[PlanInput]
    """The files that it names besides its logs."""
    trusted: bool = False
    """Whether its code is executed even if others made it."""
    own: dict[str, Column] = field(default_factory=dict)
    """What is known of those of its metrics that are not ours, by their names."""
    remarks: list[str] = field(default_factory=list)
    """What a reader of its results must know, such as jobs that no part of a log has."""
