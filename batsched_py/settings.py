"""Settings: declared once, as fields of structs, and read from there by everything that gives or shows them.

A field of a struct becomes a setting when its type is annotated with an :class:`Option`::

    hosts: Annotated[int | None, Option("--hosts N", "A machine of N equal hosts.", "platforms")] = None

Any other field is a struct with settings of its own. The name of a setting, which is the name of its field,
is unique in the whole. :mod:`batsched_py.experiment.value` declares the settings of an experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args

from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from batsched_py.errors import InputError

Whole = TypeVar("Whole", bound=Struct)

#: Changes the name of a file.
Rename = Callable[[str], str]


@cache
def _flags_in(usage: str) -> tuple[str, ...]:
    words = usage.partition(" / ")[0].split()
    return tuple(word.rstrip(",") for word in words if word.startswith("-"))


class Option(Struct, frozen=True):
    """What a user writes to give a value to a setting, and what it means.

    >>> platform = Option("-p, --platform FILE", "A platform of SimGrid.", "platforms.file")
    >>> platform.flags, platform.metavar, platform.word
    (['-p', '--platform'], 'FILE', 'platform')
    >>> Option("--with-colours / --without-colours", "Whether there are colours.").off
    '--without-colours'
    """

    usage: str
    """The flags, and what stands for the value, as the help shows them. A ``FILE`` is the name of a file."""
    help: str
    plan: str = ""
    """The table of a plan, such as ``logs``, or ``logs.file`` if the key is not the name of the field.

    Without it, this is the ``table`` that the struct around the field names, if it does.
    """
    usual: str = ""
    """What happens by default, in words, where the default value does not tell."""
    pairs: Option | None = None
    """Gives the options of what is chosen, as ``KEY=VALUE``."""
    short: Option | None = None
    """Gives one of these options, the one that has the name of this flag."""
    from_file: Option | None = None
    """Gives a text by the name of its file."""

    @property
    def flags(self) -> list[str]:
        """The flags, without the one for no; a manifest has the first of them."""
        return list(_flags_in(self.usage))

    @property
    def off(self) -> str:
        """The flag for no, if neither yes nor no is the default."""
        return self.usage.partition(" / ")[2]

    @property
    def metavar(self) -> str | None:
        """What stands for the value in the help."""
        last = self.usage.split()[-1]
        return None if last.startswith("-") else last

    @property
    def word(self) -> str:
        """The name in Python: the first long flag."""
        return next(flag[2:] for flag in _flags_in(self.usage) if flag.startswith("--")).replace("-", "_")

    @property
    def names_files(self) -> bool:
        """Whether a value is the name of a file."""
        return self.metavar == "FILE"

    @property
    def names_code(self) -> bool:
        """Whether values may name a class in a file, as ``path/to/file.py:ClassName``."""
        return (self.metavar or "").endswith("CODE")

    @property
    def further(self) -> Iterator[Option]:
        """The options that give parts of the same setting."""
        return (option for option in (self.pairs, self.short, self.from_file) if option is not None)


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
    table: str = ""
    """The table of a plan, where the option names none."""
    group: str = ""
    """Under which heading the help shows it: the ``group`` of the struct that it is in."""

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
        """Whether it chooses something that has options of its own, a scheduler or users."""
        return self.option.pairs is not None

    @property
    def turns_off(self) -> bool:
        """Whether its flag means no, because yes is the default."""
        return self.default is True

    @property
    def plan_key(self) -> tuple[str, str]:
        """The table of a plan, and the key in its entries."""
        table, _, key = self.option.plan.partition(".")
        return table or self.table, key or self.name

    def renamed(self, value: Any, rename: Rename) -> Any:
        """A value of this setting with other names for the files in it."""
        if value is not None and self.is_choice:
            return value.renamed(rename)
        if value is not None and self.option.names_code:
            if not self.is_several:
                return _renamed_code(value, rename)
            return tuple(_renamed_code(each, rename) for each in value)
        if value is None or not self.option.names_files:
            return value
        return tuple(map(rename, value)) if self.is_several else rename(value)


def _renamed_code(value: str, rename: Rename) -> str:
    """A class in a file under its new name; anything else stays as it is.

    >>> _renamed_code("mine.py:Mine", str.upper), _renamed_code("watts", str.upper)
    ('MINE.PY:Mine', 'watts')
    """
    file, colon, name = value.rpartition(":")
    return f"{rename(file)}{colon}{name}" if file.endswith(".py") else value


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
    table, group = getattr(kind, "table", ""), getattr(kind, "group", "")
    return {field.name: _part(field, table, group) for field in fields(kind)}


def pairs_in(texts: Iterable[str], flag: str) -> dict[str, str]:
    """What texts like ``KEY=VALUE`` say, each given behind a flag.

    >>> pairs_in(["zone=Europe/Paris", "columns=submit:Queued"], "-i")
    {'zone': 'Europe/Paris', 'columns': 'submit:Queued'}
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{flag} {text!r} is not of the form KEY=VALUE")
        if key in pairs:
            raise InputError(f"{flag} {key}=... is given twice")
        pairs[key] = value
    return pairs


def _part(field: FieldInfo, table: str, group: str) -> Setting | type[Struct]:
    """A setting, or a struct with several."""
    annotation, *notes = get_args(field.type) if hasattr(field.type, "__metadata__") else [field.type]
    option = next((note for note in notes if isinstance(note, Option)), None)
    if option is not None:
        bounds = next((note for note in notes if isinstance(note, Meta)), None)
        return Setting(field.name, annotation, field.default, option, bounds, table, group)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation
    raise TypeError(
        f"the field {field.name!r} is neither a setting, with an Option, nor a struct of settings"
    )
