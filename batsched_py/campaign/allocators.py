"""The table ``[allocators]`` of a plan: which nodes and hosts jobs get, crossed with its schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from msgspec.structs import asdict, replace

from batsched_py.campaign.plan import PlanEntry, PlanText
from batsched_py.campaign.plan_entries import PlannedPlugin
from batsched_py.errors import InputError
from batsched_py.experiment import Choice
from batsched_py.schedulers import SCHEDULERS
from batsched_py.schedulers.selection import NodeChoiceName, SelectionName

#: Options of a scheduler by their names, as texts.
Options = dict[str, str]


class AllocatorEntry(PlanEntry, frozen=True, kw_only=True):
    """What every scheduler decides about the hosts of a job; an empty entry is named after its nodes."""

    allocator: str | None = None
    nodes: NodeChoiceName | None = None
    selection: SelectionName | None = None
    selection_seed: int | None = None


def read_allocators(plan: PlanText, table: Mapping[str, Any] | None) -> dict[str, Options]:
    """The options that each entry gives to a scheduler."""
    return {name: _options(plan, name, content) for name, content in (table or {}).items()}


def _options(plan: PlanText, name: str, content: Any) -> Options:
    entry = plan.convert(content, AllocatorEntry, ("allocators", name))
    given = {option: str(value) for option, value in asdict(entry).items() if value is not None}
    if given:
        return given
    if name not in get_args(NodeChoiceName):
        known = ", ".join(get_args(NodeChoiceName))
        plan.fail(
            ("allocators", name), f"there is no choice of nodes {name!r}; known are {known}, or say `nodes`"
        )
    return {"nodes": name}


def allocating(
    plan: PlanText, scheduler: PlannedPlugin, allocator: Options, names: tuple[str, str]
) -> PlannedPlugin:
    """A scheduler that gives hosts to jobs as an allocator says; ``names`` are those of both entries."""
    path = ("schedulers", names[0])
    if scheduler.is_of_pybatsim:
        plan.fail(path, "a scheduler of PyBatsim decides without [allocators]")
    choice = scheduler.choice
    for option in allocator:
        if option in choice.options:
            plan.fail((*path, "options", option), f"the allocator {names[1]!r} says it, too; leave out one")
    merged = Choice(choice.name, choice.options | allocator)
    try:
        SCHEDULERS.create(merged.name, merged.options)
    except InputError as error:
        plan.fail(("allocators", names[1]), f"scheduler {names[0]!r}: {error}")
    return replace(scheduler, choice=merged)
