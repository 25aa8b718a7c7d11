"""The entries of a plan's tables: checked, and composed to experiments.

An entry may say the settings whose declaration names its table, and a few keys more. Whatever can be known
without simulating is found out here: whether files are there and can be read, whether schedulers and users
exist and have the options that they are given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from os.path import isfile
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct, defstruct, field
from msgspec.structs import replace

from batsched_py import __version__
from batsched_py.analysis.runs.columns import Column
from batsched_py.analysis.windows import Window
from batsched_py.campaign.files import digest_of_file
from batsched_py.campaign.plan import MOST_RUNS, KeyPath, MissingLog, PlanText, UnmadeLog
from batsched_py.campaign.prepare import InputFiles, parts_of
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Scenario, Workloads
from batsched_py.experiment.build import new_process, read_machine
from batsched_py.plugins import PYBATSIM, Registry
from batsched_py.schedulers import SCHEDULERS
from batsched_py.schedulers.selection import ALLOCATORS
from batsched_py.settings import Setting, settings_of, struct_from, values_of
from batsched_py.simulator.agenda import read_events
from batsched_py.trust import distrusted_folder
from batsched_py.users import USERS

Base = TypeVar("Base", bound=Struct)


class PlanEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of a table, to which the settings are added that it may give."""


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


def keys_of(table: str) -> dict[str, Setting]:
    """The settings that a table gives, by key; the name of a scheduler or of users is not among them."""
    keys = {setting.plan_key: setting for setting in settings_of(Experiment) if not setting.is_choice}
    return {key: setting for (place, key), setting in keys.items() if place == table}


def as_list(value: Any) -> list[Any]:
    """One or several; nothing when nothing is said."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _entry(name: str, table: str, base: type[Base]) -> type[Base]:
    """An entry with the settings of a table; where several values may be given, one may stand alone."""
    fields: list[tuple[str, Any, Any]] = []
    for key, setting in keys_of(table).items():
        kind = str | list[str] if setting.is_several else setting.annotation
        bounded = kind if setting.bounds is None else Annotated[kind, setting.bounds]
        if key not in base.__struct_fields__:
            fields.append((key, bounded, setting.default))
    made: type[Any] = defstruct(name, fields, bases=(base,), kw_only=True, frozen=True)
    return made


LogEntry = _entry("LogEntry", "logs", LogSource)
PlatformEntry = _entry("PlatformEntry", "platforms", PlanEntry)
SchedulerEntry = _entry("SchedulerEntry", "schedulers", PluginEntry)


#: A log with one of these keys is described by a recipe.
RECIPE = {"model", "changes", "kind"}

#: How walltimes are made, which is no part of a recipe.
RULE = keys_of("logs").keys() - RECIPE - {*LogSource.__struct_fields__}


class PlannedPlugin(Struct, frozen=True):
    """A scheduler or a behaviour of users, as a plan names it."""

    choice: Choice
    random: bool
    """Whether there is an option ``seed``, which the plan leaves open."""
    settings: dict[str, Any] = {}
    """The settings that a scheduler's entry gives."""

    @property
    def is_of_pybatsim(self) -> bool:
        """Whether PyBatsim's code decides."""
        return self.choice.name.startswith(PYBATSIM)

    @property
    def is_population(self) -> bool:
        """Whether users come and go, so that there may be more or fewer of them."""
        return self.choice.name.startswith("resample")

    def with_options(self, options: dict[str, str]) -> PlannedPlugin:
        """The same with some more options."""
        return replace(self, choice=Choice(self.choice.name, self.choice.options | options))

    def seeded(self, seed: int | None) -> Choice:
        """The choice for one repetition."""
        if seed is None or not self.random:
            return self.choice
        return Choice(self.choice.name, self.choice.options | {"seed": str(seed)})


def compose(
    workloads: Workloads,
    platform: Scenario,
    scheduler: PlannedPlugin,
    users: PlannedPlugin | None,
    seed: int | None,
) -> Experiment:
    """The experiment that has one entry of each table."""
    values = values_of(platform) | values_of(workloads) | scheduler.settings
    values["scheduler"] = scheduler.seeded(seed)
    values["users"] = None if users is None else users.seeded(seed)
    return struct_from(Experiment, values)


#: The windows over which a run is measured, by the number of the part of the log that each is.
#: Where the plan has no parts and says what to measure, there is one without a number.
Windows = dict[str, Window]

#: From so many parts on, the first and the last are simulated and not measured.
FEWEST_TO_LEAD = 5


def scaled(window: Window, load: float | None) -> Window:
    """A window of a log whose times between arrivals were divided by a load: it has the same jobs."""
    factor = load or 1.0
    return Window(window.begin / factor, None if window.end is None else window.end / factor)


def _windows_in_words(
    name: str, every: str, parts: Sequence[str], total: int, leads: bool, outside: str
) -> str:
    """What a reader must know of the windows of a log."""
    text = f"{name} is simulated as a whole and measured in {len(parts)} windows of {every}"
    if leads:
        text += f": parts 2 to {total - 1} of {total}, the first leads in and the last leads out"
    elif parts[0] == "1":
        text += "; the first of them begins on an empty machine"
    return text + (f"; {outside}, are in none." if outside else ".")


class Entries:
    """Reads the entries of one plan; what they name is looked for beside it."""

    def __init__(self, plan: PlanText, log_folders: Sequence[Path], trust: bool, made: Path) -> None:
        self._plan = plan
        self._folder = plan.file.resolve().parent
        self._made = made
        self._trusted = trust or distrusted_folder(plan.file) is None
        self._log_folders = log_folders
        self.files = InputFiles(plan.file)
        """The files that the entries name besides logs."""
        self.missing: dict[Path, MissingLog] = {}
        """Logs that are not there, but can be had."""
        self.unmade: dict[Path, UnmadeLog] = {}
        """Logs that were not made yet."""
        self.all_here = True
        """Whether every log is here of which the parts must be known."""
        self.remarks: list[str] = []
        """What a reader of the results must know."""

    def log(self, name: str, content: Any) -> Workloads:
        """Logs that are played together, or one that a recipe describes."""
        path = ("logs", name)
        if isinstance(content, dict) and content.keys() & RECIPE:
            return self._made_log(path, content)
        entry = self._plan.convert(content, LogEntry, path)
        files = as_list(entry.file)
        if not files:
            self._plan.fail((*path, "file"), "a log needs at least one file")
        for key in ("url", "sha256"):
            if len(files) > 1 and getattr(entry, key) is not None:
                self._plan.fail((*path, key), "is for a single file")
        found = tuple(str(self._log_file(path, file, entry)) for file in files)
        return struct_from(Workloads, self._settings(path, entry, "logs") | {"files": found})

    def _settings(self, path: KeyPath, entry: PlanEntry, table: str) -> dict[str, Any]:
        """The settings that an entry gives, with files and code where they are; logs are found elsewhere."""
        values = {}
        for key, setting in keys_of(table).items():
            value = getattr(entry, key)
            if setting.is_several:
                value = tuple(as_list(value))
            if setting.option.names_code:
                code = [file for each in as_list(value) for file in Choice(each).code_files]
                self._check_trust((*path, key), code)
            is_log = setting.name == "files"
            values[setting.name] = value if is_log else setting.renamed(value, self._beside)
        return values

    def _made_log(self, path: KeyPath, content: dict[str, Any]) -> Workloads:
        """A changed or generated log: a file whose name depends on all that it is made of."""
        recipe = dict(content)
        options_of_models = {"processors"} if "model" in recipe else set()
        rule = {key: recipe.pop(key) for key in RULE - options_of_models if key in recipe}
        entry = self._plan.convert(rule | {"file": ""}, LogEntry, path)
        made_of = []
        for key in ("file", "like", "fitted"):
            if key in recipe:
                source = self._source(path, key, str(recipe[key]), entry)
                recipe[key] = str(source)
                made_of.append(digest_of_file(source))
        made_of += self._locate_code(path, recipe)
        rules = self._settings(path, entry, "logs")
        if rules["input_options"]:
            recipe["input_options"] = list(rules["input_options"])
        made = self.to_be_made(str(path[-1]), recipe, made_of)
        return struct_from(Workloads, rules | {"files": (made,), "input_options": ()})

    def _source(self, path: KeyPath, key: str, name: str, entry: LogSource) -> Path:
        """What a log is made of: another log, or a fitted model, which is an input as code is."""
        if key != "fitted":
            return self._log_file(path, name, entry)
        file = self.files.find(name, [folder / Path(name).name for folder in self._log_folders])
        if not isfile(file):
            self._plan.fail((*path, key), f"there is no file {file}")
        return file

    def _locate_code(self, path: KeyPath, recipe: dict[str, Any]) -> list[str]:
        """Give the code that a recipe names its place; the digests of its files."""
        digests: list[str] = []

        def located(name: str) -> str:
            choice = Choice(name)
            self._check_trust(path, choice.code_files)
            found = choice.renamed(self._beside)
            for file in found.code_files:
                if not isfile(file):
                    self._plan.fail(path, f"there is no file {file}")
                digests.append(digest_of_file(file))
            return found.name

        for key in ("model", "kind"):
            if isinstance(recipe.get(key), str):
                recipe[key] = located(recipe[key])
        changes = recipe.get("changes")
        if isinstance(changes, list) and all(isinstance(change, str) for change in changes):
            from batsched_py.workload.changes import rename_changes, words_of

            with self._plan.blaming(*path, "changes"):
                words = [words_of(change) for change in changes]
            recipe["changes"] = [rename_changes(each, located) for each in words]
        return digests

    def to_be_made(
        self, name: str, recipe: dict[str, Any], made_of: Sequence[object], ending: str = ".swf.gz"
    ) -> str:
        """The file of a log, or of sessions, that a recipe describes."""
        key = msgspec.json.encode([{**recipe, "made_of": made_of}, __version__], order="deterministic")
        file = (self._made / f"{name}-{hashlib.sha256(key).hexdigest()[:12]}{ending}").resolve()
        if not isfile(file):
            self.unmade[file] = UnmadeLog(file, recipe)
        return str(file)

    def loaded(
        self,
        name: str,
        whole: Workloads,
        every: str | None,
        measure: str | None,
        loads: Sequence[float],
        by: str,
    ) -> list[tuple[dict[str, str], Workloads, Windows]]:
        """A log with each load: its place on this axis, and the windows over which its runs are measured.

        The windows of a log that is not here yet are unknown; it has its runs all the same, to be counted.
        """
        if every is None and not loads:
            return [({}, whole, self._windows(name, None, None, measure, ()))]
        if len(whole.files) > 1:
            self._plan.fail(("logs", name, "file"), "files that are played together have no parts and loads")
        source = Path(whole.files[0])
        if source in self.missing or source in self.unmade:
            self.all_here = False
            return [({"load": f"{load:g}"}, whole, {}) for load in loads] or [({}, whole, {})]
        variants = []
        options = whole.input_options
        windows = self._windows(name, source, every, measure, options)
        factors: Sequence[float | None] = loads or [None]
        for load in factors:
            axes: dict[str, str] = {}
            changes: list[str] = []
            if load is not None:
                axes["load"] = f"{load:g}"
                changes += [] if load == 1 else [f"load factor={load!r}{f' by={by}' * (by != 'arrivals')}"]
            made = whole
            if changes:
                label = "-".join([name, *(axis + place for axis, place in axes.items())])
                recipe: dict[str, Any] = {"file": str(source), "changes": changes}
                recipe |= {"input_options": list(options)} if options else {}
                file = self.to_be_made(label, recipe, [digest_of_file(source)])
                made = replace(whole, files=(file,), input_options=())
            stretched = load if by == "arrivals" else None
            variants.append((axes, made, {part: scaled(each, stretched) for part, each in windows.items()}))
        return variants

    def _windows(
        self, name: str, source: Path | None, every: str | None, measure: str | None, options: tuple[str, ...]
    ) -> Windows:
        """The windows over which the runs of a log are measured, by the number of the part that each is.

        Of five parts or more, the first leads in and the last leads out, unless the plan says otherwise.
        """
        with self._plan.blaming("measure"):
            wanted = Window.parse(measure or ":")
        if every is None or source is None:
            return {} if measure is None else {"": wanted}
        with self._plan.blaming("parts"):
            bounds, outside = parts_of(source, digest_of_file(source), every, options)
        if not 0 < len(bounds) <= MOST_RUNS:
            number = f"{len(bounds):,}" if bounds else "no"
            self._plan.fail(("parts",), f"{source} covers {number} whole parts of {every}")
        leads = measure is None and len(bounds) >= FEWEST_TO_LEAD
        windows = {
            str(number): Window(max(0.0, begin), end)
            for number, (begin, end) in enumerate(bounds, start=1)
            if wanted.contains(begin, end) and not (leads and number in (1, len(bounds)))
        }
        if not windows:
            self._plan.fail(("measure",), f"{measure!r} contains no whole part of {every} of {source}")
        self.remarks.append(_windows_in_words(name, every, list(windows), len(bounds), leads, outside))
        return windows

    def _log_file(self, path: KeyPath, file: str, entry: LogSource) -> Path:
        places = [self._folder / file, *(folder / Path(file).name for folder in self._log_folders)]
        found = next((place for place in places if isfile(place)), None)
        if found is None:
            if entry.url is None:
                self._plan.fail((*path, "file"), f"there is no file {places[0]}")
            found = (self._log_folders[0] if self._log_folders else self._folder) / Path(file).name
            self.missing[found.resolve()] = MissingLog(found, entry.url, entry.sha256)
        elif entry.sha256 is not None and digest_of_file(found) != entry.sha256:
            self._plan.fail(
                (*path, "sha256"), f"{found} is another file: its checksum is {digest_of_file(found)}"
            )
        return found.resolve()

    def platform(self, name: str, content: Any) -> Scenario:
        """A machine and what happens on it, with the files that describe it under absolute names."""
        path = ("platforms", name)
        entry = self._plan.convert(content, PlatformEntry, path)
        scenario = struct_from(Scenario, self._settings(path, entry, "platforms"))
        machine = scenario.machine
        if machine.file is not None and machine.hosts is not None:
            self._plan.fail((*path, "hosts"), "a platform has either a file or a number of hosts")
        if machine.speed is not None and machine.hosts is None:
            self._plan.fail((*path, "speed"), "is for a number of hosts; those of a file have their own")
        if scenario.energy and machine.file is None:
            self._plan.fail((*path, "energy"), "needs a platform file, which says what each host draws")
        with self._plan.blaming(*path, "events"):
            for file in scenario.events:
                read_events(file, scenario.settings.forward_unknown_events)
        if machine.file is not None or machine.hosts is not None:
            with self._plan.blaming(*path):
                platform = read_machine(replace(machine, mmax_workload=False), ())
            for host in (*platform.hosts, *platform.storages):
                if scenario.energy and not host.has_power:
                    self._plan.fail((*path, "energy"), f"host {host.name!r} does not say what power it draws")
        return scenario

    def scheduler(self, name: str, content: Any) -> PlannedPlugin:
        """A scheduler, ours or PyBatsim's."""
        path = ("schedulers", name)
        entry = self._plan.convert(content, SchedulerEntry, path)
        settings = self._settings(path, entry, "schedulers")
        if settings["profile_reuse"] and not settings["dynamic_jobs"]:
            self._plan.fail((*path, "profile_reuse"), "makes sense with dynamic_jobs only")
        choice = self._choice(path, entry)
        planned = PlannedPlugin(choice, False, settings)
        if planned.is_of_pybatsim:
            with self._plan.blaming(*path):
                new_process(struct_from(Actors, settings | {"scheduler": choice}))
            return planned
        return replace(planned, random=self._leaves_seed_open(path, choice, SCHEDULERS))

    def users(self, name: str, content: Any) -> PlannedPlugin:
        """A behaviour of users."""
        path = ("users", name)
        choice = self._choice(path, self._plan.convert(content, PluginEntry, path))
        sessions = choice.options.get("sessions")
        if sessions and any(Path(folder, sessions).is_dir() for folder in (self._plan.file.parent, "")):
            fault = (
                f"{sessions} is a folder; a plan takes one file, as `sessions --output FILE.json` writes it"
            )
            self._plan.fail((*path, "options", "sessions"), fault)
        return PlannedPlugin(choice, self._leaves_seed_open(path, choice, USERS))

    def allocator(self, name: str, options: dict[str, str]) -> dict[str, str]:
        """The options of an allocator, with its code where it is."""
        path = ("allocators", name)
        found = Choice("", options).renamed(self._beside)
        self._check_trust(path, found.code_files)
        if "allocator" in options:
            with self._plan.blaming(*path, "allocator"):
                ALLOCATORS.find(found.options["allocator"])
        return found.options

    def own_metric(self, name: str, known: Sequence[str]) -> tuple[str, Column]:
        """The name of the column of a metric that is not ours, and what is known of it."""
        from batsched_py.analysis.own_metrics import OWN_METRICS, described, name_of

        path = ("metrics",)
        if ".py:" not in name and name not in OWN_METRICS.all():
            own = "or give path/to/file.py:ClassName"
            self._plan.fail(path, f"there is no metric {name!r}; known are {', '.join(known)}, {own}")
        choice = self._choice(path, PluginEntry(name=name))
        with self._plan.blaming(*path):
            metric = OWN_METRICS.create(choice.name, {})
            return name_of(metric), described(metric, choice.name)

    def figure(self, name: str) -> str:
        """A figure that the page is to show; it must exist."""
        from batsched_py.analysis.plots.figures import KINDS

        choice = self._choice(("figures",), PluginEntry(name=name))
        with self._plan.blaming("figures"):
            KINDS.find(choice.name)
        return name

    def _choice(self, path: KeyPath, entry: PluginEntry) -> Choice:
        name = str(path[-1]) if entry.name is None else entry.name
        choice = Choice.of(name, entry.options).renamed(self._beside)
        self._check_trust(path, choice.files)
        return choice

    def _check_trust(self, path: KeyPath, files: Sequence[str]) -> None:
        if files and not self._trusted:
            self._plan.fail(path, f"this plan was imported; to use {files[0]}, give --trust")

    def _leaves_seed_open(self, path: KeyPath, choice: Choice, registry: Registry[Any]) -> bool:
        """Whether what is chosen has an option ``seed`` that is not set; to be asked, it must exist."""
        try:
            registry.create(choice.name, choice.options)
        except InputError as error:
            wrong = [key for key in choice.options if f"`$.{key}`" in str(error) or f"{key!r}" in str(error)]
            self._plan.fail((*path, "options", wrong[0]) if wrong else path, str(error))
        return "seed" not in choice.options and "seed" in registry.options(choice.name)

    def _beside(self, file: str) -> str:
        return str(self.files.find(file))
