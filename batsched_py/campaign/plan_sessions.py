"""Rules for sessions as an axis of a plan: an entry of users for each of several rules."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from batsched_py.campaign.plan import PlanText
from batsched_py.campaign.plan_entries import Entries, PluginEntry
from batsched_py.users import USERS


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
