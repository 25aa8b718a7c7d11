"""What an entry of a plan may say: the settings whose declaration names its table, and a few keys more."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from msgspec import Struct, defstruct

from batsched_py.campaign.plan import LogSource, PlanEntry, PluginEntry
from batsched_py.experiment import Experiment
from batsched_py.settings import Setting, settings_of

Base = TypeVar("Base", bound=Struct)


def keys_of(table: str) -> dict[str, Setting]:
    """The settings that a table gives, by key; the name of a scheduler or of users is not among them."""
    keys = {setting.plan_key: setting for setting in settings_of(Experiment) if not setting.is_choice}
    return {key: setting for (place, key), setting in keys.items() if place == table}


def settings_in(entry: Struct, table: str) -> dict[str, Any]:
    """The values that an entry of a table gives, by the names of the settings."""
    values = [(setting, getattr(entry, key)) for key, setting in keys_of(table).items()]
    return {each.name: tuple(as_list(value)) if each.is_several else value for each, value in values}


def as_list(value: Any) -> list[Any]:
    """One or several; nothing when nothing is said."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _entry(name: str, table: str, base: type[Base]) -> type[Base]:
    fields = [
        (key, _type(setting), setting.default)
        for key, setting in keys_of(table).items()
        if key not in base.__struct_fields__
    ]
    kind: type[Any] = defstruct(name, fields, bases=(base,), kw_only=True, frozen=True)
    return kind


def _type(setting: Setting) -> Any:
    """The type of a key; where several values may be given, one may stand alone."""
    if setting.is_several:
        return str | list[str]
    return setting.annotation if setting.bounds is None else Annotated[setting.annotation, setting.bounds]


LogEntry = _entry("LogEntry", "logs", LogSource)
PlatformEntry = _entry("PlatformEntry", "platforms", PlanEntry)
SchedulerEntry = _entry("SchedulerEntry", "schedulers", PluginEntry)
