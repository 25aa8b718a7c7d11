"""Reading the plan of a campaign from a TOML file.

Every mistake that can be known without simulating is found here, and named by its line and key::

    seeds = [1, 2, 3]                # or: repetitions = 3

    [logs]
    kth = { file = "KTH-SP2-1996-2.1-cln.swf.gz" }

    [platforms]
    half = { hosts = 50 }
    fast = { hosts = 100, speed = 2 }
    power = { file = "power16.xml" }

    [schedulers]
    easy = {}
    mine = { name = "mine.py:Mine", options = { depth = 10 } }

    [users]                          # without this table the simulator submits jobs at their recorded times
    rigid = {}
    a60 = { name = "think-time", options = { sessions = "arrival:60" } }

    [[exclude]]
    scheduler = "mine"
    platform = ["half", "power"]

Files are looked for beside the plan. The keys of the tables are free: they are the names by which runs are
called. Each seed is one repetition: it is handed to the scheduler and the users as their option ``seed``.
Where all of them set this option themselves or have none, there is nothing to repeat, and one run is planned.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec import Struct, field

from batsched_py.campaign.digest import digest_of_file, plugin_file
from batsched_py.campaign.plan import (
    AXES,
    DEFAULT_METRICS,
    Exclusion,
    Log,
    Machine,
    MissingLog,
    Plan,
    PlannedRun,
    Plugin,
)
from batsched_py.campaign.toml_lines import Path as KeyPath
from batsched_py.campaign.toml_lines import line_of
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment
from batsched_py.plugins import Registry
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.users import USERS

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
_AT = re.compile(r"^(?P<message>.*?)(?: - at `\$(?P<place>.*)`)?$", re.DOTALL)

Entry = TypeVar("Entry", bound=Struct)


class _File(Struct, forbid_unknown_fields=True):
    """The file as it is written."""

    logs: dict[str, Any]
    schedulers: dict[str, Any]
    platforms: dict[str, Any] = field(default_factory=lambda: {"recorded": {}})
    users: dict[str, Any] | None = None
    exclude: list[Any] = field(default_factory=list)
    name: str | None = None
    title: str = ""
    metrics: list[str] = field(default_factory=lambda: list(DEFAULT_METRICS))
    seeds: list[int] | None = None
    repetitions: int | None = None


class _Choice(Struct, frozen=True):
    """A scheduler or a behaviour of users, as its registry knows it."""

    name: str
    options: dict[str, str]
    random: bool
    """Whether it has an option ``seed`` that the plan leaves open."""

    def seeded(self, seed: int | None) -> dict[str, str]:
        """The options for one repetition."""
        return self.options | ({"seed": str(seed)} if self.random and seed is not None else {})


def read_plan(file: str | Path, log_folders: Sequence[Path] = ()) -> Plan:
    """Read a plan; a log that is not beside it is looked for in ``log_folders``."""
    return _Reader(Path(file), log_folders).plan()


class _Reader:
    """Reads one plan; remembers its text to say where a mistake is."""

    def __init__(self, file: Path, log_folders: Sequence[Path]) -> None:
        self._file = file
        self._folder = file.resolve().parent
        self._log_folders = log_folders
        try:
            self._text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"{file}: is not text in UTF-8") from None
        try:
            self._content = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file}: is not TOML: {error}") from None
        self._missing: dict[Path, MissingLog] = {}

    def plan(self) -> Plan:
        """The plan, or the first mistake in it."""
        content = self._convert(self._content, _File, ())
        if "metrics" in self._content:
            self._check_metrics(content.metrics)
        runs = self._without_excluded(list(self._cross(content)), content)
        return Plan(
            self._file,
            self._text,
            content.name or self._file.stem,
            content.title,
            content.metrics,
            runs,
            list(self._missing.values()),
        )

    # --- saying what is wrong ------------------------------------------------------------------

    def _fail(self, path: KeyPath, message: str) -> NoReturn:
        key = ".".join(str(part) for part in path)
        where = f"{self._file}:{line_of(self._text, path)}: {key}: " if path else f"{self._file}: "
        raise InputError(where + message)

    def _convert(self, value: Any, kind: type[Entry], path: KeyPath) -> Entry:
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
            self._fail((*path, *place), message)

    def _check_metrics(self, names: Sequence[str]) -> None:
        from batsched_py.analysis.metrics import METRICS

        known = [metric.name for metric in METRICS]
        for name in names:
            if name not in known:
                self._fail(("metrics",), f"there is no metric {name!r}; known are {', '.join(known)}")

    # --- the axes ------------------------------------------------------------------------------

    def _cross(self, content: _File) -> Iterator[PlannedRun]:
        """All runs, before any is excluded."""
        for table in AXES.values():
            self._check_names(table, getattr(content, table))
        logs = {name: self._log(name, entry) for name, entry in content.logs.items()}
        machines = {name: self._machine(name, entry) for name, entry in content.platforms.items()}
        schedulers = self._plugins("schedulers", content.schedulers, SCHEDULERS)
        users = self._plugins("users", content.users or {}, USERS)
        seeds = self._seeds(content)
        seeded = False
        for log, platform, scheduler, who in product(logs, machines, schedulers, users or [None]):
            axes = {"log": log, "platform": platform, "scheduler": scheduler}
            if who is not None:
                axes["users"] = who
            random = schedulers[scheduler].random or (who is not None and users[who].random)
            seeded |= random
            for seed in seeds if seeds and random else [None]:
                yield PlannedRun(
                    name="_".join([*axes.values(), *([] if seed is None else [f"seed{seed}"])]),
                    axes=axes | ({} if seed is None else {"seed": str(seed)}),
                    experiment=Experiment(
                        workload=logs[log].file,
                        walltime=logs[log].walltime,
                        walltime_factor=logs[log].walltime_factor,
                        platform=machines[platform].file,
                        hosts=machines[platform].hosts,
                        speed=machines[platform].speed,
                        scheduler=schedulers[scheduler].name,
                        scheduler_options=schedulers[scheduler].seeded(seed),
                        users=None if who is None else users[who].name,
                        user_options={} if who is None else users[who].seeded(seed),
                    ),
                )
        if seeds and not seeded:
            key = "seeds" if content.seeds is not None else "repetitions"
            self._fail(
                (key,), "no option `seed` is left open in this plan, so all repetitions would be the same"
            )

    def _check_names(self, table: str, entries: Mapping[str, Any] | None) -> None:
        if entries is None:
            return
        if not entries:
            self._fail((table,), "is empty; a plan needs at least one")
        for name in entries:
            if not _NAME.fullmatch(name):
                self._fail(
                    (table, name), "a name is made of letters, digits and . + - (it becomes part of a path)"
                )

    def _log(self, name: str, entry: Any) -> Log:
        log = self._convert(entry, Log, ("logs", name))
        places = [self._folder / log.file, *(f / Path(log.file).name for f in self._log_folders)]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            if log.url is None:
                self._fail(("logs", name, "file"), f"there is no file {places[0]}")
            path = (self._log_folders[0] if self._log_folders else self._folder) / Path(log.file).name
            self._missing[path] = MissingLog(path, log.url, log.sha256)
        elif log.sha256 is not None and digest_of_file(path) != log.sha256:
            self._fail(
                ("logs", name, "sha256"), f"{path} is another file: its checksum is {digest_of_file(path)}"
            )
        return msgspec.structs.replace(log, file=str(path.resolve()))

    def _machine(self, name: str, entry: Any) -> Machine:
        path = ("platforms", name)
        machine = self._convert(entry, Machine, path)
        if machine.file is not None and machine.hosts is not None:
            self._fail((*path, "hosts"), "a platform has either a file or a number of hosts")
        if machine.speed is not None and machine.hosts is None:
            self._fail((*path, "speed"), "is for a number of hosts; those of a file have their own")
        try:
            if machine.file is not None:
                file = str((self._folder / machine.file).resolve())
                read_platform(file)
                return msgspec.structs.replace(machine, file=file)
            if machine.hosts is not None:
                Platform.homogeneous(machine.hosts, 1.0 if machine.speed is None else machine.speed)
        except InputError as error:
            self._fail(path, str(error))
        return machine

    def _plugins(self, table: str, entries: Mapping[str, Any], registry: Registry[Any]) -> dict[str, _Choice]:
        """What the entries of a table ask the registry for."""
        return {name: self._choice((table, name), entry, registry) for name, entry in entries.items()}

    def _choice(self, path: KeyPath, entry: Any, registry: Registry[Any]) -> _Choice:
        plugin = self._convert(entry, Plugin, path)
        name = str(path[-1]) if plugin.name is None else plugin.name
        if file := plugin_file(name):
            name = name.replace(file, str((self._folder / file).resolve()))
        options = {key: _as_text(value) for key, value in plugin.options.items()}
        try:
            created = registry.create(name, options)
        except InputError as error:
            wrong = [key for key in options if f"`$.{key}`" in str(error) or f"{key!r}" in str(error)]
            self._fail((*path, "options", wrong[0]) if wrong else path, str(error))
        fields = dataclasses.fields(created) if dataclasses.is_dataclass(created) else ()
        random = "seed" not in options and any(f.init and f.name == "seed" for f in fields)
        return _Choice(name, options, random)

    def _seeds(self, content: _File) -> list[int]:
        if content.seeds is not None and content.repetitions is not None:
            self._fail(("repetitions",), "seeds are given too; give one of the two")
        if content.repetitions is not None and content.repetitions < 1:
            self._fail(("repetitions",), "must be at least 1")
        if content.seeds is not None and len(set(content.seeds)) != len(content.seeds):
            self._fail(("seeds",), "a seed is given twice")
        return content.seeds or list(range(1, (content.repetitions or 0) + 1))

    def _without_excluded(self, runs: list[PlannedRun], content: _File) -> list[PlannedRun]:
        rules = [
            self._convert(entry, Exclusion, ("exclude", number))
            for number, entry in enumerate(content.exclude)
        ]
        kept = runs
        for number, rule in enumerate(rules):
            wanted = {axis: _as_list(getattr(rule, axis)) for axis in Exclusion.__struct_fields__}
            for axis, values in wanted.items():
                for value in values:
                    if not any(run.axes.get(axis) == value for run in runs):
                        self._fail(("exclude", number, axis), f"no run has the {axis} {value!r}")
            excluded = {run.name for run in runs if _matches(run, wanted)}
            if not excluded:
                self._fail(("exclude", number), "excludes nothing")
            kept = [run for run in kept if run.name not in excluded]
        if not kept:
            self._fail(("exclude",), "excludes every run")
        return kept


def _matches(run: PlannedRun, wanted: Mapping[str, Sequence[str]]) -> bool:
    return all(not values or run.axes.get(axis) in values for axis, values in wanted.items())


def _as_list(value: Any) -> list[str]:
    """What an exclusion says about an axis; nothing when it does not mention it."""
    if value is None:
        return []
    return [str(part) for part in (value if isinstance(value, list) else [value])]


def _as_text(value: str | int | float | bool) -> str:
    """An option as the command line would give it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
