"""The plan of a search: a plan of one campaign, with a candidate whose settings are searched.

Its tables ``logs``, ``platforms``, ``schedulers`` and ``users`` are those of campaigns, with one entry each,
but for the schedulers: ``today`` is what is compared with, and ``candidate`` what is searched. Platforms may
be these two, as well.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from batsched_py.api.many import LogInPeriods
from batsched_py.campaign.files import digest_of_code, digest_of_file, digest_of_value
from batsched_py.campaign.plan import PlanText, to_toml
from batsched_py.campaign.plan_entries import Entries, PlannedPlugin, compose
from batsched_py.campaign.prepare import make
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment, Scenario
from batsched_py.output_files import write_file
from batsched_py.slurm.changes import with_setting
from batsched_py.slurm.policy.settings import Configuration, read_configuration
from batsched_py.slurm.scenario import configuration_text
from batsched_py.trust import code_named_in
from batsched_py.tuning import space
from batsched_py.tuning.trials import Divided, Division, divided

#: The schedulers of a plan, and its platforms if sizes are searched.
TODAY, CANDIDATE = "today", "candidate"

#: The option of the policy of Slurm that names its configuration.
CONFIGURATION = "configuration_file"


#: What the plan of the best settings begins with.
_NOT_HELD_OUT = """\
# One simulation of the whole log, measured in all of its parts, also in those that were searched: {parts}.
# So its tables are not the result on the parts that were held out, which is in result.json and index.html.

"""


class _Slurm(Struct, forbid_unknown_fields=True):
    """What changes in the configuration of Slurm that the candidate has."""

    lines: list[str]


class _File(Struct, forbid_unknown_fields=True):
    """The file as it is written."""

    logs: dict[str, Any]
    schedulers: dict[str, Any]
    search: dict[str, space.Dimension]
    objectives: Annotated[list[str], Meta(min_length=1)]
    platforms: dict[str, Any] = field(default_factory=lambda: {"recorded": {}})
    users: dict[str, Any] | None = None
    slurm: _Slurm | None = None
    name: str | None = None
    title: str = ""
    trials: Annotated[int, Meta(ge=1, le=100_000)] = 200
    batch: Annotated[int, Meta(ge=1, le=1000)] = 10
    seed: int = 0
    seeds: Annotated[list[int], Meta(min_length=1)] | None = None
    stop: bool = True
    parts: str = Division().parts
    search_parts: int | list[int] | None = None
    held_out_parts: list[int] | None = None
    lead_in: str = Division().lead_in
    lead_out: str = Division().lead_out
    continuous: bool = False


class Source(Struct, frozen=True):
    """What a plan is read from, by any process that sees the same files."""

    file: Path
    text: str
    folder: Path
    log_folders: tuple[Path, ...]
    trusted: bool

    def read(self) -> TuningPlan:
        """The plan."""
        text = PlanText(self.file, self.text, tomllib.loads(self.text))
        return TuningPlan(text, self.folder, self.log_folders, self.trusted)


class TuningPlan:
    """A plan without mistakes, which makes an experiment of the settings of a trial."""

    def __init__(
        self, text: PlanText, folder: Path, log_folders: Sequence[Path] = (), trust: bool = False
    ) -> None:
        self.folder = folder
        """Where the results are."""
        places = tuple(each.absolute() for each in log_folders)
        self.source = Source(text.file.absolute(), text.text, folder.absolute(), places, trust)
        self._text = text
        self._trusted = trust
        self._content = content = text.convert(text.content, _File, ())
        self.name, self.title = text.name, content.title
        self.trials, self.batch, self.seed = content.trials, content.batch, content.seed
        self.search = content.search
        with text.blaming("objectives"):
            self.objectives = [space.Objective.parse(each) for each in content.objectives]
        self.stops = content.stop and len(self.objectives) == 1
        """Whether trials that are clearly worse are given up; of several objectives, none is the one."""
        self._entries = Entries(text, log_folders, trust, text.made(folder))
        self._check()
        with code_named_in(text.file, trust):
            self._read()

    def _check(self) -> None:
        content, fail = self._content, self._text.fail
        if {*content.schedulers} != {TODAY, CANDIDATE}:
            fail(
                ("schedulers",), f"has two entries, `{TODAY}` and `{CANDIDATE}`, whose settings are searched"
            )
        if len(content.logs) != 1:
            fail(("logs",), "settings are searched on one entry; make a plan for each")
        if not self._has_machines and (len(content.platforms) != 1 or space.places_in(content.platforms)):
            fault = f"has one entry, or two, `{TODAY}` and `{CANDIDATE}`, whose sizes are searched"
            fail(("platforms",), fault)
        if content.users is not None and len(content.users) != 1:
            fail(("users",), "settings are searched with one entry; make a plan for each")
        if not content.search:
            fail(("search",), "names no setting")
        for name, dimension in content.search.items():
            with self._text.blaming("search", name):
                dimension.check()
        lines = [] if content.slurm is None else content.slurm.lines
        with self._text.blaming("search"):
            searched = [content.schedulers[CANDIDATE], lines, content.platforms.get(CANDIDATE)]
            space.check_places(content.search, searched)

    @property
    def _has_machines(self) -> bool:
        """Whether the candidate has a platform of its own."""
        return {*self._content.platforms} == {TODAY, CANDIDATE}

    def _read(self) -> None:
        content, entries = self._content, self._entries
        ((log, what),) = content.logs.items()
        self._workloads = entries.log(log, what)
        for missing in entries.missing.values():
            raise InputError(
                f"{missing.path.name} is not here; say where it is by --logs DIR ({missing.url})"
            )
        for unmade in entries.unmade.values():
            make(unmade.path, unmade.recipe)
        platform = TODAY if self._has_machines else next(iter(content.platforms))
        self._platform = entries.platform(platform, content.platforms[platform])
        self._users: PlannedPlugin | None = None
        if content.users is not None:
            ((users, what),) = content.users.items()
            self._users = entries.users(users, what)
            if self._users.is_population and not content.continuous:
                fault = (
                    f"{self._users.choice.name} makes a population of the users of a log, and of each part "
                    "it would be another one; write `continuous = true`, to measure parts of one simulation"
                )
                self._text.fail(("users", users), fault)
        self._today = entries.scheduler(TODAY, content.schedulers[TODAY])
        self.experiments({name: dimension.first for name, dimension in self.search.items()})

    @property
    def division(self) -> Division:
        """How the log is divided."""
        content = self._content
        names = {"search": content.search_parts, "held_out": content.held_out_parts}
        shared = {name: getattr(content, name) for name in Division.__struct_fields__ if name not in names}
        return Division(**(shared | names))

    def divided(self) -> Divided:
        """The parts of the log, which is read here."""
        with self._text.blaming():
            return divided(LogInPeriods(self.today[0]), self.division)

    @property
    def today(self) -> list[Experiment]:
        """Today's settings, with each seed."""
        return self._with_seeds(self._platform, self._today)

    def experiments(self, settings: Mapping[str, float | int | str]) -> list[Experiment]:
        """The candidate with the settings of a trial, with each seed."""
        with code_named_in(self._text.file, self._trusted):
            return self._with_seeds(self._machine(settings), self._candidate(settings))

    def _machine(self, settings: Mapping[str, float | int | str]) -> Scenario:
        """The platform of the candidate."""
        if not self._has_machines:
            return self._platform
        entry = space.filled_with_values(self._content.platforms[CANDIDATE], settings)
        return self._entries.platform(CANDIDATE, entry)

    def _candidate(self, settings: Mapping[str, float | int | str]) -> PlannedPlugin:
        entry = space.filled(self._content.schedulers[CANDIDATE], settings)
        planned = self._entries.scheduler(CANDIDATE, entry)
        if self._content.slurm is None:
            return planned
        choice = planned.choice
        named = choice.options.get(CONFIGURATION)
        configuration = read_configuration(named) if named else Configuration()
        with self._text.blaming("slurm", "lines"):
            for line in space.filled(self._content.slurm.lines, settings):
                configuration = with_setting(configuration, line)
        text = configuration_text(configuration)
        file = (self.folder / "settings" / f"slurm-{digest_of_value(text)[:12]}.toml").resolve()
        if not file.is_file():
            write_file(file, text)
        return replace(planned, choice=Choice(choice.name, choice.options | {CONFIGURATION: str(file)}))

    def _with_seeds(self, platform: Scenario, planned: PlannedPlugin) -> list[Experiment]:
        seeds: Sequence[int | None] = self._content.seeds or [None]
        return [compose(self._workloads, platform, planned, self._users, seed) for seed in seeds]

    @cached_property
    def study(self) -> str:
        """The digest of what trials depend on, but for how many there are."""
        said = {
            name: value for name, value in asdict(self._content).items() if name not in ("trials", "title")
        }
        base = self.today[0]
        candidate = self.experiments({name: each.first for name, each in self.search.items()})[0]
        files = dict.fromkeys([*base.files, *candidate.files])
        digests = [digest_of_file(file) for file in files]
        code = [digest_of_code(base), digest_of_code(candidate)]
        names = ("plan", "search", "space", "trials")
        own = [digest_of_file(Path(__file__).with_name(f"{name}.py")) for name in names]
        return digest_of_value([msgspec.to_builtins(said), digests, code, own])

    def plan_of_best(self, settings: space.Settings, searched: Sequence[int]) -> str:
        """A plan of a campaign that has today's settings and those that were found.

        A campaign measures windows of one simulation of the whole log, which is said at its beginning.
        """
        best = self._candidate(settings).choice
        content = self._text.content
        ((log, entry),) = self._content.logs.items()
        words: dict[str, Any] = {
            "name": f"{self.name}-best",
            "title": f"{self.title or self.name}: today's settings and the best found, on all parts",
            "metrics": [*dict.fromkeys(each.metric for each in self.objectives)],
            "baseline": TODAY,
            "parts": self.division.parts,
            "logs": {log: {**entry, "file": list(self._workloads.files)} if "file" in entry else entry},
        }
        if "changes" in entry or "model" in entry:
            words["logs"] = {log: {"file": list(self._workloads.files)}}
        for table in ("platforms", "users"):
            if table in content:
                words[table] = _absolute(content[table], self._text.file.resolve().parent)
        if self._has_machines:
            machine = space.filled_with_values(words["platforms"].pop(CANDIDATE), settings)
            words["platforms"]["best"] = machine
        words["schedulers"] = {
            name: {**self._kept(name), "name": choice.name, "options": dict(choice.options)}
            for name, choice in ((TODAY, self._today.choice), ("best", best))
        }
        if words["schedulers"]["best"] == words["schedulers"][TODAY]:
            del words["schedulers"]["best"]
            words["baseline"] = f"platform={TODAY}"
        if self._content.seeds:
            words["seeds"] = self._content.seeds
        return _NOT_HELD_OUT.format(parts=", ".join(map(str, searched))) + to_toml(words)

    def _kept(self, name: str) -> dict[str, Any]:
        """What an entry says besides the scheduler and its options."""
        entry = self._content.schedulers[CANDIDATE if name == "best" else name]
        return {key: value for key, value in entry.items() if key not in ("name", "options")}


def _absolute(table: Any, folder: Path) -> Any:
    """A table whose files are found from anywhere."""
    if isinstance(table, dict):
        return {
            key: str(folder / value)
            if key.endswith("file") and isinstance(value, str)
            else _absolute(value, folder)
            for key, value in table.items()
        }
    return table
