"""What the plan of a campaign says, and its text, which can tell where in it a mistake is.

A plan crosses logs, machines, schedulers and users into runs. The parser of the standard library forgets line
numbers once a text is well formed, and writes nothing. Here a text that parses is scanned again for its
headers and keys; a key inside an inline table is found by the line of that table.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec
from msgspec import Struct, field

from batsched_py.analysis.runs.aggregate import Column
from batsched_py.errors import InputError

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

#: The batch systems that can start workers, with the class of dask-jobqueue for each.
BATCH_SYSTEMS = {"slurm": "SLURMCluster", "oar": "OARCluster", "pbs": "PBSCluster"}

#: Where runs are executed: in processes here, on a Dask cluster, or on one that a batch system starts.
EXECUTORS = ("processes", "dask", *BATCH_SYSTEMS)

#: What a campaign's folder has of its plan: the text, and the list of runs.
PLAN_FILE = "plan.toml"
CAMPAIGN_FILE = "campaign.json"

#: Where a campaign keeps the logs that were made for it.
MADE = "made"


def is_name(text: str) -> bool:
    """Whether a text can be the name of one file or folder inside another, and shown on a terminal.

    >>> [is_name(text) for text in ("kth_full_easy", "..", "a/b", "/etc", "", "a\\x1b[2J")]
    [True, False, False, False, False, False]
    """
    return text not in ("", ".", "..") and text.isprintable() and not {"/", "\\"} & set(text)


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
    figures: list[str] = field(default_factory=list)
    """The figures that its page shows besides its own, as the plan names them."""


#: The way to a value: keys, and places in arrays of tables.
KeyPath = tuple[str | int, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")


def line_of(text: str, path: KeyPath) -> int:
    """The number of the line that says most about ``path``: its own, or that of the closest table around it.

    >>> line_of('[hosts]\\nsmall = {count = 4}\\n', ("hosts", "small", "count"))
    2
    """
    best, depth = 1, 0
    for number, found in _keys(text):
        common = _common(found, path)
        if common > depth:
            best, depth = number, common
    return best


def _keys(text: str) -> Iterator[tuple[int, KeyPath]]:
    """Every header and assignment with its line."""
    table: KeyPath = ()
    lengths: dict[KeyPath, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                place = lengths.setdefault(table, 0)
                lengths[table] += 1
                table = (*table, place)
            yield number, table
        elif assignment := _ASSIGNMENT.match(line):
            yield number, (*table, *_parts(assignment[1]))


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))


def _common(first: KeyPath, second: KeyPath) -> int:
    """How many steps two paths have in common."""
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(content: Mapping[str, object]) -> str:
    """A table of values, tables of values, and lists of tables.

    >>> print(to_toml({"title": "both", "seeds": [1, 2], "logs": {"kth": {"file": "kth.swf"}}}), end="")
    title = "both"
    seeds = [1, 2]
    <BLANKLINE>
    [logs]
    kth = { file = "kth.swf" }
    """
    plain = {key: value for key, value in content.items() if not _tables(value)}
    parts = ["".join(_line(key, value) for key, value in plain.items())]
    for key, value in content.items():
        if key in plain:
            continue
        is_one = isinstance(value, Mapping)
        head = f"[{_key(key)}]" if is_one else f"[[{_key(key)}]]"
        tables: Any = [value] if is_one else value
        parts += [f"{head}\n" + "".join(_line(*line) for line in table.items()) for table in tables]
    return "\n".join(filter(None, parts))


def _tables(value: object) -> bool:
    """Whether a value is a table, or a list of some."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, Mapping) for each in value)
    return isinstance(value, Mapping)


def _line(key: str, value: object) -> str:
    return f"{_key(key)} = {_value(value)}\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"{value!r} cannot be written in a plan")


_AT = re.compile(r"^(?P<message>.*?)(?: - at `\$(?P<place>.*)`)?$", re.DOTALL)

#: How many characters a plan may have; the paper's has a thousand.
LONGEST = 1 << 20

Entry = TypeVar("Entry", bound=Struct)


class PlanText:
    """The text of a plan and what it says."""

    def __init__(self, file: Path, text: str, content: dict[str, Any]) -> None:
        self.file = file
        """Where it stands, or would; what it names is looked for beside it."""
        self.text = text
        self.content = content

    @classmethod
    def read(cls, file: Path) -> PlanText:
        """The plan in a TOML file."""
        try:
            with file.open(encoding="utf-8") as stream:
                text = stream.read(LONGEST + 1)
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"{file}: is not text in UTF-8") from None
        if len(text) > LONGEST:
            raise InputError(f"{file}: is longer than the {LONGEST} characters that a plan may have")
        try:
            return cls(file, text, tomllib.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file}: is not TOML: {error}") from None

    @property
    def name(self) -> str:
        """What the results are called: as the plan says, or as its file."""
        name = self.content.get("name") or self.file.stem
        if not (isinstance(name, str) and is_name(name)):
            self.fail(("name",), "must be a text that can be the name of a folder")
        return name

    def fail(self, path: KeyPath, message: str) -> NoReturn:
        """Say what is wrong with the value at ``path``."""
        key = ".".join(str(part) for part in path)
        raise InputError(f"{self._place(path)}: {key}: {message}" if path else f"{self.file}: {message}")

    def _place(self, path: KeyPath) -> str:
        return f"{self.file}:{line_of(self.text, path)}"

    @contextmanager
    def blaming(self, *path: str | int) -> Iterator[None]:
        """Whatever cannot be used meanwhile is a mistake of the value at ``path``."""
        try:
            yield
        except InputError as error:
            self.fail(path, str(error))

    def convert(self, value: Any, kind: type[Entry], path: KeyPath) -> Entry:
        """The value at ``path``, as what it is to be."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            found = _AT.match(str(error))
            assert found is not None
            message = found["message"]
            place: list[str | int] = [
                part for part in re.split(r"[.\[\]]+", found["place"] or "") if part and part != "..."
            ]
            if unknown := re.match(r"Object contains unknown field `(.*)`", message):
                place.append(unknown[1])
                message = f"there is no such key; known are {', '.join(kind.__struct_fields__)}"
            self.fail((*path, *place), message)


class PlanWords(PlanText):
    """A plan that was made in Python, whose mistakes stand on no line."""

    def __init__(self, words: dict[str, Any], name: str) -> None:
        super().__init__(Path(f"{name}.toml"), to_toml(words), words)

    def _place(self, path: KeyPath) -> str:
        return "plan"
