"""Reading the plan of a campaign from a TOML file.

Every mistake that can be known without simulating is found here, and named by its line and key. An example of
a plan is in ``docs/campaigns.md``.

Files are looked for beside the plan. The keys of the tables are free: they are the names by which runs are
called. Each seed is one repetition: it is handed to the scheduler and the users as their option ``seed``.
Where all of them set this option themselves or have none, there is nothing to repeat, and one run is planned.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from batsched_py.analysis.runs.aggregate import Baseline, Unit
from batsched_py.analysis.runs.columns import Column
from batsched_py.analysis.windows import Window
from batsched_py.campaign import plan_entries
from batsched_py.campaign.plan import MOST_RUNS, NAME, NUMBERED, TABLES, MissingLog, PlanText, UnmadeLog
from batsched_py.campaign.plan_loads import (
    LoadBy,
    remarks_on_loads,
    under_loads,
    with_each_rule,
    with_recorded_sessions,
)
from batsched_py.campaign.prepare import inputs_of
from batsched_py.campaign.run import Run
from batsched_py.campaign.store import Wanted, is_population
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Workloads
from batsched_py.schedulers import SCHEDULERS
from batsched_py.schedulers.selection import NodeChoiceName, SelectionName
from batsched_py.trust import code_named_in


class Plan(Wanted, frozen=True, kw_only=True):
    """A plan without mistakes."""

    file: Path
    text: str
    missing: list[MissingLog]
    unmade: list[UnmadeLog]
    trusted: bool = False
    """Whether its code is executed even if others made it."""
    control: bool = True
    """Whether users on another machine are simulated on that of the log, too."""


#: Options of a scheduler by their names, as texts.
Options = dict[str, str]


class AllocatorEntry(plan_entries.PlanEntry, frozen=True, kw_only=True):
    """What every scheduler decides about the hosts of a job; an empty entry is named after its nodes."""

    allocator: str | None = None
    nodes: NodeChoiceName | None = None
    selection: SelectionName | None = None
    selection_seed: int | None = None


def _allocator(plan: PlanText, name: str, content: Any) -> Options:
    """The options that an entry gives to a scheduler."""
    entry = plan.convert(content, AllocatorEntry, ("allocators", name))
    given = {option: str(value) for option, value in asdict(entry).items() if value is not None}
    if not given and name not in get_args(NodeChoiceName):
        known = ", ".join(get_args(NodeChoiceName))
        plan.fail(
            ("allocators", name), f"there is no choice of nodes {name!r}; known are {known}, or say `nodes`"
        )
    return given or {"nodes": name}


def allocating(
    plan: PlanText, scheduler: plan_entries.PlannedPlugin, allocator: Options, names: tuple[str, str]
) -> plan_entries.PlannedPlugin:
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


#: The place of a run: its choice on each axis.
Axes = dict[str, str]

Entry = TypeVar("Entry")


#: What table columns show when the plan does not say; with users who react, no makespan: the last of them
#: make it what it is.
DEFAULT_METRICS = ("makespan", "mean_waiting_time", "max_waiting_time", "mean_slowdown", "utilization")


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


class _File(Struct, forbid_unknown_fields=True):
    """The file as it is written."""

    logs: dict[str, Any]
    schedulers: dict[str, Any]
    platforms: dict[str, Any] = field(default_factory=lambda: {"recorded": {}})
    allocators: dict[str, Any] | None = None
    users: dict[str, Any] | None = None
    exclude: list[Any] = field(default_factory=list)
    name: str | None = None
    title: str = ""
    metrics: list[str] = field(default_factory=lambda: list(DEFAULT_METRICS))
    figures: list[str] = field(default_factory=list)
    baseline: str = ""
    seeds: list[int] | None = None
    repetitions: int | None = None
    parts: str | None = None
    measure: str | None = None
    units: Unit | None = None
    loads: list[Annotated[float, Meta(gt=0)]] = field(default_factory=list)
    load_by: LoadBy | None = None
    control: bool = True


def _window(content: _File, runs: Sequence[Run]) -> str:
    """What tables say about what is measured."""
    if content.parts is not None:
        text = f"windows of {content.parts} of whole runs"
        logs = {run.axes["log"]: any(not each.begin for each in run.windows.values()) for run in runs}
        empty = [log for log, is_empty in logs.items() if is_empty]
        if empty:
            whose = "" if len(empty) == len(logs) else f" of {', '.join(empty)}"
            text += f", of which the first{whose} begins on an empty machine"
        return text
    return "all jobs of whole runs" if content.measure is None else str(Window.parse(content.measure))


def read_plan(
    file: str | Path, log_folders: Sequence[Path] = (), trust: bool = False, folder: Path | None = None
) -> Plan:
    """Read a plan; a log that is not beside it is looked for in ``log_folders``.

    Code that a plan names is loaded; that of an imported plan, with ``trust`` only. Logs that it describes by
    recipes are made in the ``folder`` of the results, which is the usual one unless it is given.
    """
    return plan_of(PlanText.read(Path(file)), log_folders, trust, folder)


def plan_of(
    text: PlanText, log_folders: Sequence[Path] = (), trust: bool = False, folder: Path | None = None
) -> Plan:
    """The plan that a text says."""
    with code_named_in(text.file, trust):
        return _Reader(text, plan_entries.Entries(text, log_folders, trust, text.made(folder))).plan(trust)


class _Reader:
    """Reads one plan."""

    def __init__(self, text: PlanText, entries: plan_entries.Entries) -> None:
        self._text = text
        self._fail = text.fail
        self._entries = entries

    def plan(self, trusted: bool) -> Plan:
        """The plan, or the first mistake in it."""
        content = self._text.convert(self._text.content, _File, ())
        if content.users:
            content.users = with_each_rule(self._text, content.users, self._entries)
        if content.users and "metrics" not in self._text.content:
            content.metrics.remove("makespan")
        metrics = self._metrics(content.metrics)
        measures = tuple(column.source for column in metrics.values() if column is not None)
        runs = [
            replace(run, measures=measures)
            for run in self._without_excluded(list(self._cross(content)), content)
        ]
        self._check_baseline(content, runs)
        figures = [self._entries.figure(name) for name in content.figures]
        return Plan(
            file=self._text.file,
            text=self._text.text,
            name=self._text.name,
            title=content.title,
            metrics=list(metrics),
            baseline=content.baseline,
            runs=runs,
            missing=list(self._entries.missing.values()),
            unmade=list(self._entries.unmade.values()),
            inputs=inputs_of(self._entries.files.found),
            trusted=trusted,
            control=content.control,
            own={name: column for name, column in metrics.items() if column is not None},
            remarks=[*self._entries.remarks, *self._remarks_on_loads(content, runs)],
            figures=figures,
            window=_window(content, runs),
            units=content.units or "",
        )

    def _metrics(self, names: Sequence[str]) -> dict[str, Column | None]:
        """The names of columns, with what is known of those whose metric is not ours."""
        if "metrics" not in self._text.content:
            return dict.fromkeys(names)
        from batsched_py.analysis.metrics import METRICS

        known = [metric.name for metric in METRICS]
        found: dict[str, Column | None] = {}
        for each in names:
            name, column = (each, None) if each in known else self._entries.own_metric(each, known)
            if name in found:
                self._fail(("metrics",), f"the metric {name!r} is given twice")
            found[name] = column
        return found

    def _check_baseline(self, content: _File, runs: Sequence[Run]) -> None:
        """See that some run makes the choice that others are to be compared with."""
        baseline = Baseline.parse(content.baseline)
        if baseline is None:
            return
        known = {axis: getattr(content, table) or {} for axis, table in TABLES.items()}
        known["load"] = [f"{load:g}" for load in content.loads]
        if baseline.axis not in known:
            self._fail(("baseline",), f"there is no axis {baseline.axis!r}; there are {', '.join(known)}")
        if baseline.name not in known[baseline.axis]:
            self._fail(("baseline",), f"there is no {baseline.axis} {baseline.name!r} in this plan")
        if self._entries.all_here and all(run.axes.get(baseline.axis) != baseline.name for run in runs):
            self._fail(("baseline",), f"no run has the {baseline.axis} {baseline.name!r}")

    def _cross(self, content: _File) -> Iterator[Run]:
        """All runs, before any is excluded: each entry of a table with each of the others."""
        for table in TABLES.values():
            self._check_names(table, getattr(content, table))
        logs = self._logs(content)
        platforms = _placed("platform", content.platforms, self._entries.platform)
        schedulers = self._schedulers(content)
        users = _placed("users", content.users or {}, self._entries.users)
        users = under_loads(self._text, content.loads, content.load_by, users, self._entries)
        seeds = self._seeds(content)
        submitting: list[tuple[Axes, plan_entries.PlannedPlugin | None]] = [*users] or [({}, None)]
        crossed = logs, platforms, schedulers, submitting
        self._check_actors(content, schedulers, users, seeds)
        size = prod(len(entries) for entries in crossed) * max(1, len(seeds))
        if size > MOST_RUNS:
            self._fail((), f"asks for {size} runs; {MOST_RUNS} are the most")
        recorded = {name: self._entries.log(name, entry) for name, entry in content.logs.items()}
        for (place, log, windows), (where, platform), (how, scheduler), (who, behaviour) in product(*crossed):
            if behaviour is not None and place.get("load", "1") != "1":
                log_as_recorded = recorded[place["log"]]
                behaviour, log, windows = self._loaded(place | who, behaviour, log, log_as_recorded, windows)
            random = scheduler.random or (behaviour is not None and behaviour.random)
            for seed in seeds if seeds and random else [None]:
                axes = place | where | how | who | ({} if seed is None else {"seed": str(seed)})
                yield Run(
                    name="_".join(axis * (axis in NUMBERED) + name for axis, name in axes.items()),
                    axes=axes,
                    experiment=plan_entries.compose(log, platform, scheduler, behaviour, seed),
                    windows=windows,
                )

    def _loaded(
        self,
        place: Axes,
        behaviour: plan_entries.PlannedPlugin,
        log: Workloads,
        recorded: Workloads,
        windows: plan_entries.Windows,
    ) -> tuple[plan_entries.PlannedPlugin, Workloads, plan_entries.Windows]:
        """Users under another load, with the log that they replay and its windows."""
        if behaviour.is_population:
            load = float(place["load"])
            more = load * float(behaviour.choice.options.get("load", 1))
            windows = {part: plan_entries.scaled(window, 1 / load) for part, window in windows.items()}
            return behaviour.with_options({"load": f"{more:g}"}), recorded, windows
        if behaviour.choice.name != "rigid" and self._entries.all_here:
            name = f"{place['log']}-{place['users']}"
            behaviour = with_recorded_sessions(name, behaviour, recorded, self._entries)
        return behaviour, log, windows

    def _check_actors(
        self,
        content: _File,
        schedulers: Sequence[tuple[Axes, plan_entries.PlannedPlugin]],
        users: Sequence[tuple[Axes, plan_entries.PlannedPlugin]],
        seeds: Sequence[int],
    ) -> None:
        """Schedulers that know no users have none, and seeds are for somebody."""
        for axes, scheduler in schedulers:
            if users and scheduler.is_of_pybatsim:
                self._fail(
                    ("schedulers", axes["scheduler"]), "a scheduler of PyBatsim decides without [users]"
                )
        if seeds and self._entries.all_here and not any(each.random for _, each in [*schedulers, *users]):
            key = "seeds" if content.seeds is not None else "repetitions"
            self._fail(
                (key,), "no option `seed` is left open in this plan, so all repetitions would be the same"
            )

    def _logs(self, content: _File) -> list[tuple[Axes, Workloads, plan_entries.Windows]]:
        """The logs with their loads, and the windows over which their runs are measured."""
        if len({f"{load:g}" for load in content.loads}) != len(content.loads):
            self._fail(("loads",), "a load is given twice")
        return [
            ({"log": name} | axes, log, windows)
            for name, entry in content.logs.items()
            for axes, log, windows in self._entries.loaded(
                name,
                self._entries.log(name, entry),
                content.parts,
                content.measure,
                content.loads,
                content.load_by if content.load_by in ("run-times", "sizes") else "arrivals",
            )
        ]

    def _remarks_on_loads(self, content: _File, runs: Sequence[Run]) -> Iterator[str]:
        """What other loads mean, for each log and kind of users."""
        found: dict[tuple[str, str], bool] = {}
        for run in runs:
            if run.experiment is not None and run.axes.get("load", "1") != "1":
                is_made, users = is_population(run.experiment), run.experiment.actors.users
                is_told = is_made or (users is not None and users.name != "rigid")
                found[run.axes["log"], run.axes["users"] if is_told else ""] = is_made
        return remarks_on_loads(found, content.load_by)

    def _schedulers(self, content: _File) -> list[tuple[Axes, plan_entries.PlannedPlugin]]:
        """The schedulers, each with each of the allocators if there are any."""
        schedulers = _placed("scheduler", content.schedulers, self._entries.scheduler)
        allocators = {
            name: self._entries.allocator(name, _allocator(self._text, name, entry))
            for name, entry in (content.allocators or {}).items()
        }
        if not allocators:
            return schedulers
        return [
            (
                axes | {"allocator": name},
                allocating(self._text, scheduler, options, (axes["scheduler"], name)),
            )
            for axes, scheduler in schedulers
            for name, options in allocators.items()
        ]

    def _check_names(self, table: str, entries: Mapping[str, Any] | None) -> None:
        if entries is None:
            return
        if not entries:
            self._fail((table,), "is empty; a plan needs at least one")
        for name in entries:
            if not NAME.fullmatch(name):
                self._fail(
                    (table, name), "a name is made of letters, digits and . + - (it becomes part of a path)"
                )

    def _seeds(self, content: _File) -> list[int]:
        seeds, repetitions = content.seeds, content.repetitions
        if seeds is not None and repetitions is not None:
            self._fail(("repetitions",), "seeds are given too; give one of the two")
        if repetitions is not None and not 1 <= repetitions <= MOST_RUNS:
            bound = "least 1" if repetitions < 1 else f"most {MOST_RUNS}"
            self._fail(("repetitions",), f"must be at {bound}")
        if seeds is not None and len(set(seeds)) != len(seeds):
            self._fail(("seeds",), "a seed is given twice")
        return seeds or list(range(1, (repetitions or 0) + 1))

    def _without_excluded(self, runs: list[Run], content: _File) -> list[Run]:
        kept = runs
        for number, entry in enumerate(content.exclude):
            rule = self._text.convert(entry, Exclusion, ("exclude", number))
            wanted = {
                axis: [
                    f"{name:g}" if isinstance(name, float) else str(name)
                    for name in plan_entries.as_list(said)
                ]
                for axis, said in asdict(rule).items()
            }
            parts = wanted.pop("part")
            excluded = {run.name for run in runs if _is_among(run, wanted, parts)}
            if self._entries.all_here:
                self._check_exclusion(number, {**wanted, "part": parts}, runs)
                if not excluded:
                    self._fail(("exclude", number), "excludes nothing")
            kept = [_without(run, parts) if run.name in excluded else run for run in kept]
            kept = [run for run in kept if run.name not in excluded or (parts and run.windows)]
        if not kept and self._entries.all_here:
            self._fail(("exclude",), "excludes every run")
        return kept

    def _check_exclusion(self, number: int, wanted: Mapping[str, Sequence[str]], runs: list[Run]) -> None:
        """What is to be excluded is there."""
        for axis, value in [(axis, value) for axis, values in wanted.items() for value in values]:
            if not any(run.axes.get(axis) == value or value in run.windows for run in runs):
                self._fail(("exclude", number, axis), f"no run has the {axis} {value!r}")


def _is_among(run: Run, wanted: Mapping[str, Sequence[str]], parts: Sequence[str]) -> bool:
    """Whether a run has some of these choices on each axis, and is measured over some of these windows."""
    chosen = all(not values or run.axes.get(axis) in values for axis, values in wanted.items())
    return chosen and not (parts and run.windows.keys().isdisjoint(parts))


def _without(run: Run, parts: Sequence[str]) -> Run:
    """A run that is not measured over some windows."""
    return replace(run, windows={part: each for part, each in run.windows.items() if part not in parts})


def _placed(
    axis: str, table: Mapping[str, Any], read: Callable[[str, Any], Entry]
) -> list[tuple[Axes, Entry]]:
    """The entries of a table, each with its place on an axis."""
    return [({axis: name}, read(name, content)) for name, content in table.items()]
