"""Reading the plan of a campaign from a TOML file.

Every mistake that can be known without simulating is found here, and named by its line and key. An example of
a plan is in ``docs/campaigns.md``.

Files are looked for beside the plan. The keys of the tables are free: they are the names by which runs are
called. Each seed is one repetition: it is handed to the scheduler and the users as their option ``seed``.
Where all of them set this option themselves or have none, there is nothing to repeat, and one run is planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from batsched_py.analysis.runs.aggregate import Baseline
from batsched_py.analysis.runs.columns import Column
from batsched_py.campaign.allocators import allocating, read_allocators
from batsched_py.campaign.plan import (
    DEFAULT_METRICS,
    MADE,
    MOST_RUNS,
    NAME,
    NUMBERED,
    TABLES,
    Exclusion,
    Plan,
    usual_folder,
)
from batsched_py.campaign.plan_entries import Entries, PlannedPlugin, as_list, compose
from batsched_py.campaign.plan_text import PlanText
from batsched_py.campaign.prepare import inputs_of
from batsched_py.campaign.run import Run
from batsched_py.trust import code_named_in


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
    baseline: str = ""
    seeds: list[int] | None = None
    repetitions: int | None = None
    parts: str | None = None
    loads: list[Annotated[float, Meta(gt=0)]] = field(default_factory=list)


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
    made = (folder or usual_folder(text.file, text.name)) / MADE
    with code_named_in(text.file, trust):
        return _Reader(text, Entries(text, log_folders, trust, made)).plan(trust)


class _Reader:
    """Reads one plan."""

    def __init__(self, text: PlanText, entries: Entries) -> None:
        self._text = text
        self._fail = text.fail
        self._entries = entries

    def plan(self, trusted: bool) -> Plan:
        """The plan, or the first mistake in it."""
        content = self._text.convert(self._text.content, _File, ())
        metrics = self._metrics(content.metrics)
        measures = tuple(column.source for column in metrics.values() if column is not None)
        runs = [
            replace(run, measures=measures)
            for run in self._without_excluded(list(self._cross(content)), content)
        ]
        self._check_baseline(content, runs)
        return Plan(
            self._text.file,
            self._text.text,
            self._text.name,
            content.title,
            list(metrics),
            content.baseline,
            runs,
            list(self._entries.missing.values()),
            list(self._entries.unmade.values()),
            inputs_of(self._entries.files.found),
            trusted,
            {name: column for name, column in metrics.items() if column is not None},
            self._entries.remarks,
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
        """All runs, before any is excluded."""
        for table in TABLES.values():
            self._check_names(table, getattr(content, table))
        if len({f"{load:g}" for load in content.loads}) != len(content.loads):
            self._fail(("loads",), "a load is given twice")
        logs = {
            name: self._entries.cut(name, self._entries.log(name, entry), content.parts, content.loads)
            for name, entry in content.logs.items()
        }
        platforms = {name: self._entries.platform(name, entry) for name, entry in content.platforms.items()}
        schedulers = {
            name: self._entries.scheduler(name, entry) for name, entry in content.schedulers.items()
        }
        deciding = self._deciding(schedulers, content.allocators)
        users = {name: self._entries.users(name, entry) for name, entry in (content.users or {}).items()}
        for name, entry in schedulers.items():
            if users and entry.is_of_pybatsim:
                self._fail(("schedulers", name), "a scheduler of PyBatsim decides without [users]")
        seeds = self._seeds(content)
        variants = [({"log": name} | axes, log) for name, cut in logs.items() for axes, log in cut]
        size = len(variants) * len(platforms) * len(deciding) * max(1, len(users)) * max(1, len(seeds))
        if size > MOST_RUNS:
            self._fail((), f"asks for {size} runs; {MOST_RUNS} are the most")
        seeded = False
        for (place, log), platform, (chosen_axes, scheduler), who in product(
            variants, platforms, deciding, users or [None]
        ):
            axes = {**place, "platform": platform, **chosen_axes}
            if who is not None:
                axes["users"] = who
            actors = scheduler, None if who is None else users[who]
            random = any(each is not None and each.random for each in actors)
            seeded |= random
            for seed in seeds if seeds and random else [None]:
                chosen = axes | ({} if seed is None else {"seed": str(seed)})
                yield Run(
                    name="_".join(axis * (axis in NUMBERED) + name for axis, name in chosen.items()),
                    axes=chosen,
                    experiment=compose(log, platforms[platform], *actors, seed),
                )
        if seeds and not seeded and self._entries.all_here:
            key = "seeds" if content.seeds is not None else "repetitions"
            self._fail(
                (key,), "no option `seed` is left open in this plan, so all repetitions would be the same"
            )

    def _deciding(
        self, schedulers: Mapping[str, PlannedPlugin], table: Mapping[str, Any] | None
    ) -> list[tuple[dict[str, str], PlannedPlugin]]:
        """The schedulers, each with each of the allocators if there are any, and their places on the axes."""
        allocators = {
            name: self._entries.allocator(name, options)
            for name, options in read_allocators(self._text, table).items()
        }
        if not allocators:
            return [({"scheduler": name}, planned) for name, planned in schedulers.items()]
        return [
            (
                {"scheduler": name, "allocator": allocator},
                allocating(self._text, planned, options, (name, allocator)),
            )
            for name, planned in schedulers.items()
            for allocator, options in allocators.items()
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
        if content.seeds is not None and content.repetitions is not None:
            self._fail(("repetitions",), "seeds are given too; give one of the two")
        if content.repetitions is not None and content.repetitions < 1:
            self._fail(("repetitions",), "must be at least 1")
        if content.repetitions is not None and content.repetitions > MOST_RUNS:
            self._fail(("repetitions",), f"must be at most {MOST_RUNS}")
        if content.seeds is not None and len(set(content.seeds)) != len(content.seeds):
            self._fail(("seeds",), "a seed is given twice")
        return content.seeds or list(range(1, (content.repetitions or 0) + 1))

    def _without_excluded(self, runs: list[Run], content: _File) -> list[Run]:
        rules = [
            self._text.convert(entry, Exclusion, ("exclude", number))
            for number, entry in enumerate(content.exclude)
        ]
        kept = runs
        for number, rule in enumerate(rules):
            wanted = {axis: _names(getattr(rule, axis)) for axis in Exclusion.__struct_fields__}
            excluded = {run.name for run in runs if _matches(run, wanted)}
            if self._entries.all_here:
                self._check_exclusion(number, wanted, runs, excluded)
            kept = [run for run in kept if run.name not in excluded]
        if not kept and self._entries.all_here:
            self._fail(("exclude",), "excludes every run")
        return kept

    def _check_exclusion(
        self, number: int, wanted: Mapping[str, Sequence[str]], runs: Sequence[Run], excluded: set[str]
    ) -> None:
        for axis, values in wanted.items():
            for value in values:
                if not any(run.axes.get(axis) == value for run in runs):
                    self._fail(("exclude", number, axis), f"no run has the {axis} {value!r}")
        if not excluded:
            self._fail(("exclude", number), "excludes nothing")


def _matches(run: Run, wanted: Mapping[str, Sequence[str]]) -> bool:
    return all(not values or run.axes.get(axis) in values for axis, values in wanted.items())


def _names(value: Any) -> list[str]:
    """What an exclusion says about an axis; nothing when it does not mention it."""
    return [f"{name:g}" if isinstance(name, float) else str(name) for name in as_list(value)]
