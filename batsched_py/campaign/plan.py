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
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec import Struct

from batsched_py.errors import InputError

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

AXES = (*TABLES, *NUMBERED)

#: What the entries of tables are called. No name is a path, or what a spreadsheet takes for a formula.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")

#: How many runs a plan may ask for.
MOST_RUNS = 100_000

#: What simulates when no other simulator is named.
BUILT_IN = "built-in"

#: The batch systems that can start workers, with the class of dask-jobqueue for each.
BATCH_SYSTEMS = {"slurm": "SLURMCluster", "oar": "OARCluster", "pbs": "PBSCluster"}

#: Where runs are executed: in processes here, on a Dask cluster, or on one that a batch system starts.
EXECUTORS = ("processes", "dask", *BATCH_SYSTEMS)

#: What a campaign's folder has of its plan: the text, and the list of runs.
PLAN_FILE = "plan.toml"
CAMPAIGN_FILE = "campaign.json"

#: Among these is the policy of a control: the one whose mean wait is nearest to the recorded one.
CONTROL_POLICIES = ("fcfs", "easy", "easy-sjbf", "conservative")

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
        common = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(found, path, strict=False))))
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
    parts = [_lines(plain)]
    for key, value in content.items():
        if key in plain:
            continue
        is_one = isinstance(value, Mapping)
        head = f"[{_key(key)}]" if is_one else f"[[{_key(key)}]]"
        tables: Any = [value] if is_one else value
        parts += [f"{head}\n{_lines(table)}" for table in tables]
    return "\n".join(filter(None, parts))


def _tables(value: object) -> bool:
    """Whether a value is a table, or a list of some."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, Mapping) for each in value)
    return isinstance(value, Mapping)


def _lines(table: Mapping[str, object]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items())


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

    def made(self, folder: Path | None) -> Path:
        """Where logs are made that it describes by recipes: in the folder of its results."""
        return (folder or usual_folder(self.file, self.name)) / MADE

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
