"""The settings of an experiment, as the fields of its structs declare them.

A field with an :class:`~batsched_py.option.Option` is a setting; any other field is a struct with settings
of its own. The name of a setting, which is the name of its field, is unique in an experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args

from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from batsched_py.experiment.choice import Choice, Rename
from batsched_py.option import Option

Whole = TypeVar("Whole", bound=Struct)


class Setting(Struct, frozen=True):
    """One setting."""

    name: str
    annotation: Any
    """The type of its values."""
    default: Any
    """``NODEFAULT`` if it must be given."""
    option: Option
    bounds: Meta | None = None
    """The least and the largest value."""

    @property
    def type(self) -> Any:
        """The type of the values that are not ``None``."""
        kinds = get_args(self.annotation)
        return next(kind for kind in kinds if kind is not NoneType) if NoneType in kinds else self.annotation

    @property
    def is_several(self) -> bool:
        """Whether it takes any number of values."""
        return isinstance(self.default, tuple)

    @property
    def is_choice(self) -> bool:
        """Whether it chooses a scheduler or a behaviour."""
        return self.type is Choice

    @property
    def turns_off(self) -> bool:
        """Whether its flag means no, because yes is the default."""
        return self.default is True

    @property
    def plan_key(self) -> tuple[str, str]:
        """The table of a plan, and the key in its entries."""
        table, _, key = self.option.plan.partition(".")
        return table, key or self.name

    def renamed(self, value: Any, rename: Rename) -> Any:
        """A value of this setting with other names for the files in it."""
        if isinstance(value, Choice):
            return value.renamed(rename)
        if value is None or not self.option.names_files:
            return value
        return tuple(map(rename, value)) if self.is_several else rename(value)


def settings_of(kind: type[Struct]) -> list[Setting]:
    """All settings of a struct and of the structs in it, in the order of their declaration."""
    found: list[Setting] = []
    for part in _parts(kind).values():
        found += [part] if isinstance(part, Setting) else settings_of(part)
    return found


def values_of(whole: Struct) -> dict[str, Any]:
    """The values of all settings of a struct, by name."""
    values: dict[str, Any] = {}
    for name, part in _parts(type(whole)).items():
        value = getattr(whole, name)
        values |= {name: value} if isinstance(part, Setting) else values_of(value)
    return values


def struct_from(kind: type[Whole], values: Mapping[str, Any]) -> Whole:
    """The struct with these values; the other settings have their defaults."""
    parts = {}
    for name, part in _parts(kind).items():
        if not isinstance(part, Setting):
            parts[name] = struct_from(part, values)
        elif name in values:
            parts[name] = values[name]
    return kind(**parts)


@cache
def _parts(kind: type[Struct]) -> dict[str, Setting | type[Struct]]:
    return {field.name: _part(field) for field in fields(kind)}


def _part(field: FieldInfo) -> Setting | type[Struct]:
    """A setting, or a struct with several."""
    annotation, *notes = get_args(field.type) if hasattr(field.type, "__metadata__") else [field.type]
    option = next((note for note in notes if isinstance(note, Option)), None)
    if option is not None:
        bounds = next((note for note in notes if isinstance(note, Meta)), None)
        return Setting(field.name, annotation, field.default, option, bounds)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation
    raise TypeError(
        f"the field {field.name!r} is neither a setting, with an Option, nor a struct of settings"
    )
