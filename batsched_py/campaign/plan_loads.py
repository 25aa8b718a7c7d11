"""What the loads of a plan mean: other times between arrivals, more users of a kind, or more work of each.

Sessions and think times of users who react are those of the recorded arrivals and waits. Other arrivals with
the same waits would make sessions of a schedule that never was. So with users, other loads are more or fewer
of them, or the same users with longer or larger jobs, who think as long as recorded. Rules for sessions are
an axis of a plan as well: an entry of users for each of several rules.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from batsched_py.campaign.files import digest_of_file
from batsched_py.campaign.plan import PlanText
from batsched_py.campaign.plan_entries import Entries, PlannedPlugin, PluginEntry, as_list
from batsched_py.experiment import Workloads
from batsched_py.users import USERS
from batsched_py.users.think_time import ThinkTime


class SessionsEntry(PluginEntry, frozen=True, kw_only=True):
    """Users whose work is cut into sessions in several ways."""

    sessions: Annotated[list[str], Meta(min_length=1)]


def with_each_rule(plan: PlanText, users: Mapping[str, Any], entries: Entries) -> dict[str, Any]:
    """The table of users, where an entry with ``sessions`` stands once for each rule, named after it."""
    found: dict[str, Any] = {}
    for name, content in users.items():
        if not isinstance(content, dict) or "sessions" not in content:
            found[name] = content
            continue
        path = ("users", name, "sessions")
        entry = plan.convert(content, SessionsEntry, ("users", name))
        said = {"name": entry.name or name, "options": entry.options}
        planned = entries.users(name, said)
        if "sessions" not in USERS.options(planned.choice.name):
            plan.fail(path, f"{said['name']} users have no sessions")
        if "sessions" in entry.options:
            plan.fail(path, "the options say it, too; leave out one")
        for rule in entry.sessions:
            called = f"{name}-{re.sub('[^A-Za-z0-9.+-]+', '', Path(rule).name)}"
            if called in found or called in users:
                plan.fail(path, f"there are users {called!r} already")
            with plan.blaming(*path):
                one = said | {"options": entry.options | {"sessions": rule}}
                entries.users(name, one)
            found[called] = one
    return found


#: What is changed for another load than the recorded one.
LoadBy = Literal["arrivals", "users", "run-times", "sizes"]

#: Users of a log of whom a population can be made.
_REPLAYED = ("think-time", "adjusted", "fluid", "distribution")

#: What other loads mean, in a sentence.
_MEANING: dict[str, str] = {
    "arrivals": "other times between arrivals, not other run times or sizes",
    "run-times": "longer or shorter jobs, not other times between arrivals or sizes",
    "sizes": "larger or smaller jobs, not other times between arrivals or run times",
}


def under_loads(
    plan: PlanText,
    loads: Sequence[float],
    by: LoadBy | None,
    users: Sequence[tuple[dict[str, str], PlannedPlugin]],
    entries: Entries,
) -> list[tuple[dict[str, str], PlannedPlugin]]:
    """The users of a plan, as its loads want them: with loads that mean more users, a population of them."""
    if by is not None and not loads:
        plan.fail(("load_by",), "says how loads are made, but the plan has no loads")
    if by == "users" and not users:
        plan.fail(("load_by",), "there are no [users] of whom there may be more or fewer")
    found = []
    for axes, planned in users:
        name = axes["users"]
        if {1.0, *loads} - _excluded(plan, name) > {1.0}:
            found.append((axes, _under_other_loads(plan, name, by, planned, entries)))
        else:
            found.append((axes, planned))
    return found


def _excluded(plan: PlanText, users: str) -> set[float]:
    """The loads that these users do not have in any run, other than the recorded one."""
    rules = [rule for rule in as_list(plan.content.get("exclude")) if isinstance(rule, Mapping)]
    return {
        load
        for rule in rules
        if {"load"} <= rule.keys() <= {"users", "load"} and users in as_list(rule.get("users", users))
        for load in as_list(rule["load"])
        if load != 1
    }


def _under_other_loads(
    plan: PlanText, name: str, by: LoadBy | None, planned: PlannedPlugin, entries: Entries
) -> PlannedPlugin:
    """The users who have a load other than the recorded one; refused by name where that means nothing."""
    choice, path = planned.choice, ("users", name)
    if choice.name == "rigid":
        if by == "users":
            plan.fail(path, 'rigid users come as recorded; load_by = "users" needs users who react')
        return planned
    if planned.is_population:
        if by not in (None, "users"):
            plan.fail(path, f'{choice.name} is a population, of which more or fewer come: load_by = "users"')
        return planned
    if by == "arrivals":
        plan.fail(
            path,
            f"{choice.name} users have the sessions and think times of the recorded arrivals, so other ones "
            'mean nothing for them: load_by = "users" has more or fewer of them, "run-times" and "sizes" '
            "give them longer or larger jobs",
        )
    if by in (None, "users"):
        if choice.code_files or USERS.layers(choice.name)[-1] not in _REPLAYED:
            plan.fail(path, f"{choice.name} users are not made of a log's, so there is no population of them")
        made = entries.users(name, {"name": f"resample({choice.name})", "options": dict(choice.options)})
        entries.remarks.append(f"{name}: because of the loads, a population: {made.choice.name}.")
        return made
    if choice.name != "think-time":
        plan.fail(path, f'{choice.name} users have no sessions in a file; load_by = "{by}" is for think-time')
    return planned


def with_recorded_sessions(
    name: str, planned: PlannedPlugin, recorded: Workloads, entries: Entries
) -> PlannedPlugin:
    """Users with the sessions and think times of a log as it was recorded, for one with other jobs."""
    options = planned.choice.options
    rule = options.get("sessions", ThinkTime.sessions)
    if rule.endswith(".json"):
        return planned
    recipe = {
        "sessions": rule,
        "edges": options.get("edges", ThinkTime.edges),
        "workloads": msgspec.to_builtins(recorded),
    }
    digests = [digest_of_file(Path(file)) for file in (*recorded.files, *planned.choice.code_files)]
    return planned.with_options({"sessions": entries.to_be_made(name, recipe, digests, ".json")})


def remarks_on_loads(populations: Mapping[tuple[str, str], bool], by: LoadBy | None) -> Iterator[str]:
    """What other loads mean, for each log and users: whether they are a population."""
    for (log, users), is_population in sorted(populations.items()):
        if is_population:
            yield f"{log}: other loads are more or fewer users ({users}), of the same kind."
        else:
            same = f" ({users}: the same users, who think as long as recorded)" * bool(users)
            yield f"{log}: other loads are {_MEANING[by or 'arrivals']}{same}."
