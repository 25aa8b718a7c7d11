"""Logs: read, described, changed, generated, written, and replayed to calibrate a simulation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from batsched_py.api import lazy
from batsched_py.api.simulate import Options, simulate
from batsched_py.api.terminal import as_html, duration
from batsched_py.errors import InputError
from batsched_py.workload.changes import CHANGES, Change, change_log
from batsched_py.workload.changes.selecting import Action, Part, split
from batsched_py.workload.description.users import DOMINATING_SHARE, FACTOR, SHARE
from batsched_py.workload.recipe import log_from_recipe
from batsched_py.workload.sources import write_log
from batsched_py.workload.sources.mapping import UNITS, Mapped, read_mapping
from batsched_py.workload.swf.log import COLUMNS, SwfLog

if TYPE_CHECKING:
    import pandas as pd


#: The name of a file.
FileName = str | os.PathLike[str]


def read_log(
    source: FileName | pd.DataFrame | lazy.sources_table.ArrowStream,
    kind: str | None = None,
    *,
    columns: Mapping[str, str] | str = "",
    units: Mapping[str, str] | None = None,
    zone: str = "",
    preset: str = "",
) -> Log:
    """Read a log of any kind that `batsched-py convert` knows: SWF, Batsim JSON, sacct, PBS, CSV, Parquet.

    A table may also be in memory: a DataFrame of pandas, or whatever gives out an Arrow stream, as tables of
    polars and pyarrow do. What it calls the ``columns`` of a log is said as ``{"submit": "SubmitTime"}`` or
    as for `convert`, their ``units`` as ``{"requested_time": "min"}``; ``zone`` is the time zone of dates
    that have none, ``preset`` the kind of table if its columns do not tell.
    """
    options = _table_options(columns, units or {}, zone=zone, preset=preset)
    if isinstance(source, str | os.PathLike):
        recipe: dict[str, Any] = {"file": os.fspath(source)} | ({} if kind is None else {"kind": kind})
        if options:
            recipe["input_options"] = [f"{key}={value}" for key, value in options.items()]
        return Log(log_from_recipe(recipe), recipe)
    return Log(lazy.sources_table.log_in_memory(source, options))


def _table_options(
    columns: Mapping[str, str] | str, units: Mapping[str, str], **options: str
) -> dict[str, str]:
    """The options of a table, as `convert` takes them."""
    if isinstance(columns, Mapping):
        if wrong := next((name for name in columns.values() if "," in name), None):
            raise InputError(f"columns: {wrong!r} has a comma in its name; rename that column")
        columns = ",".join(f"{ours}:{theirs}" for ours, theirs in columns.items())
    named = {each.ours: each for each in read_mapping(columns)}
    for ours, unit in units.items():
        if unit not in UNITS.get(ours, {}):
            known = ", ".join(UNITS.get(ours, {})) or "none"
            raise InputError(f"units: {ours} cannot be in {unit!r}; it knows {known}")
        named[ours] = replace(named.get(ours, Mapped(ours, ours)), unit=unit)
    options["columns"] = ",".join(map(str, named.values()))
    return {key: value for key, value in options.items() if value}


def generate(
    model: str,
    jobs: int,
    seed: int = 0,
    *,
    like: Log | FileName | None = None,
    fitted: FileName | None = None,
    **options: Any,
) -> Log:
    """Generate a log of so many jobs with a model that `batsched-py models` lists.

    The same seed gives the same log. A model that learns needs a log to be ``like``, or a file with what
    `batsched-py fit` found. The ``options`` are the model's own, such as ``processors=256``.
    """
    source = like if isinstance(like, Log) or like is None else os.fspath(like)
    words = {"like": source, "fitted": None if fitted is None else os.fspath(fitted)}
    recipe = {"model": model, "jobs": jobs, "seed": seed, **options}
    recipe |= {key: word for key, word in words.items() if word is not None}
    if not isinstance(source, Log):
        return Log(log_from_recipe(recipe), recipe)
    made = Log(log_from_recipe(recipe | {"like": source.columns}))
    if source.is_as_read:
        made.recipe = recipe | {"like": source.columns.path}
    return made


class Log:
    """The jobs that were submitted to a machine. It never changes: each change gives another log.

    The methods that change it are the changes that `batsched-py changes` lists, with the same options.
    """

    def __init__(self, columns: SwfLog, recipe: dict[str, Any] | None = None) -> None:
        self.columns = columns
        """The 18 fields of the Standard Workload Format, one numpy array each, and the header."""
        self.recipe = recipe
        """How to make it again, as the ``[logs]`` of a plan say it; None where nobody knows."""

    # --- what it is ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def name(self) -> str:
        """The name of its file, or what generated it, and what was done to it since."""
        recipe = self.recipe or {}
        source = Path(self.columns.path).name or str(recipe.get("model", "log"))
        return ", ".join([source, *recipe.get("changes", ())])

    @property
    def is_as_read(self) -> bool:
        """Whether it is what is in its file, an SWF log."""
        is_swf = self.columns.path.lower().endswith((".swf", ".swf.gz"))
        return is_swf and self.recipe is not None and self.recipe.keys() == {"file"}

    @property
    def header(self) -> dict[str, str]:
        """What the comments of the file say, by key."""
        return self.columns.header

    @property
    def hosts(self) -> int | None:
        """The processors of the recorded machine, if the header tells."""
        return self.columns.machine_size

    @property
    def jobs(self) -> pd.DataFrame:
        """The jobs, one row each, in the order of their submissions; -1 stands for unknown.

        They are found by their numbers as texts, which the results of a simulation call ``job_id``.
        """
        import pandas as pd

        table = {name: getattr(self.columns, name) for name in COLUMNS if name != "job_number"}
        ids = pd.Index(self.columns.job_number.astype(str), dtype="str", name="job_id")
        return pd.DataFrame(table | self.columns.more, index=ids)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table ``jobs`` for other libraries: ``polars.DataFrame(log)``, ``pyarrow.table(log)``."""
        jobs = self.jobs.assign(job_number=self.columns.job_number)
        return lazy.sources_table.arrow_stream(jobs, requested_schema)

    def describe(self, hosts: int | None = None) -> lazy.description.Description:
        """The log as `batsched-py describe` sees it: load, users, cycles, distributions, burstiness, ...

        Load and utilization are known if the header says how large the machine was, or ``hosts`` does.
        """
        return lazy.description.describe(self.columns, hosts)

    def save(self, path: FileName, kind: str | None = None) -> None:
        """Write it to a file of any kind that `batsched-py convert` knows."""
        write_log(os.fspath(path), self.columns, kind)

    def _figures(self) -> list[str]:
        submit = self.columns.submit
        return [
            f"{len(self):,} jobs",
            "unknown users"
            if (users := lazy.over_time.nb_users(self.columns)) is None
            else f"{users:,} users",
            "unknown processors" if self.hosts is None else f"{self.hosts:,} processors",
            duration(float(submit[-1] - submit[0])) if len(self) else "no time",
        ]

    def __repr__(self) -> str:
        return f"<Log {self.name}: {', '.join(self._figures())}>"

    def _repr_html_(self) -> str:
        return as_html([("log", self.name), *(("", text) for text in self._figures())])

    # --- what can be done to it ------------------------------------------------------------------

    def change(self, *changes: str | Change) -> Log:
        """Do changes one after another: written as for `batsched-py change`, or objects of your own."""
        return self._as(change_log(self.columns, changes), changes)

    def parts(self, every: str = "week") -> list[Log]:
        """All parts of one length (week, month, or a span like 28d) that the log covers."""
        cut = split(self.columns, every)
        return [self._as(part, [Part(number, every)]) for number, part in enumerate(cut, start=1)]

    def _do(self, name: str, **options: Any) -> Log:
        return self.change(CHANGES.create(name, options))

    def _as(self, columns: SwfLog, changes: Sequence[str | Change]) -> Log:
        if self.recipe is None:
            return Log(columns)
        done = [*self.recipe.get("changes", ()), *map(str, changes)]
        return Log(columns, self.recipe | {"changes": done})

    def anonymise(self, seed: int) -> Log:
        """Give users, groups, executables, queues and partitions new numbers, and forget their names."""
        return self.change(f"anonymise seed={seed}")

    def dominating(self, action: Action = "remove", share: float = DOMINATING_SHARE) -> Log:
        """Remove the jobs of users who submit a large share of all jobs, or keep nothing else."""
        return self._do("dominating", action=action, share=share)

    def estimates(
        self,
        rule: Literal["exact", "recorded", "factor", "round"],
        factor: float = 2.0,
        seed: int = 0,
        values: int = 0,
        maximum: float = 0.0,
    ) -> Log:
        """Choose what users estimate, which is the requested time of their jobs."""
        return self._do("estimates", rule=rule, factor=factor, seed=seed, values=values, maximum=maximum)

    def first(self, jobs: int) -> Log:
        """Keep the first jobs."""
        return self._do("first", jobs=jobs)

    def flurries(self, action: Action = "remove", share: float = SHARE, factor: float = FACTOR) -> Log:
        """Remove the weeks of single users who flood the log, or keep nothing else."""
        return self._do("flurries", action=action, share=share, factor=factor)

    def load(
        self, factor: float, by: Literal["arrivals", "run-times", "sizes"] = "arrivals", seed: int = 0
    ) -> Log:
        """Scale the load by a factor."""
        return self._do("load", factor=factor, by=by, seed=seed)

    def merge(self, file: FileName) -> Log:
        """Merge another log into this one, as if both machines were one."""
        return self._do("merge", file=os.fspath(file))

    def part(self, number: int, every: str = "week") -> Log:
        """Cut the log into equal parts and keep one of them."""
        return self._do("part", number=number, every=every)

    def partitions(self, keep: Sequence[int] = (), drop: Sequence[int] = ()) -> Log:
        """Keep the jobs of some partitions, or leave them out."""
        return self._do("partitions", keep=keep, drop=drop)

    def period(self, start: str = "", end: str = "") -> Log:
        """Keep the jobs that are submitted in a period, from a date or a span like 28d to another."""
        return self._do("period", start=start, end=end)

    def queues(self, keep: Sequence[int] = (), drop: Sequence[int] = ()) -> Log:
        """Keep the jobs of some queues, or leave them out."""
        return self._do("queues", keep=keep, drop=drop)

    def shake(self, seed: int, arrivals: float = 60.0, run_times: float = 0.01) -> Log:
        """Change arrivals and run times a little at random."""
        return self._do("shake", seed=seed, arrivals=arrivals, run_times=run_times)

    def sizes(self, least: int = 1, most: int | None = None) -> Log:
        """Keep the jobs that ran on some numbers of processors."""
        return self._do("sizes", least=least, most=most)

    def users(self, keep: Sequence[int] = (), drop: Sequence[int] = ()) -> Log:
        """Keep the jobs of some users, or leave them out."""
        return self._do("users", keep=keep, drop=drop)


def calibrate(
    log: Log | FileName,
    scheduler: str | type[lazy.schedulers.Scheduler] | lazy.schedulers.Scheduler = "easy",
    *,
    options: Options | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> lazy.calibration.Calibration:
    """Replay a log as it was, and compare the simulated with the recorded waits.

    The scheduler should be like that of the recorded machine. The settings are those of
    :func:`batsched_py.simulate`. ``calibrate(...).verdict`` says how far to trust such simulations of this
    log, and ``calibrate(...).save("page.html")`` writes a page.
    """
    known = log if isinstance(log, Log) else read_log(log)
    return compared(known, simulate(known, scheduler, options=options, progress=progress, **settings))


def compared(log: Log, replay: lazy.result.Result) -> lazy.calibration.Calibration:
    """A log beside its replay."""
    return lazy.calibration.calibration(
        log.columns, replay.jobs, replay.overview.hosts, replay.overview.scheduler
    )


def saturation(
    log: Log | FileName,
    scheduler: str | type[lazy.schedulers.Scheduler] | lazy.schedulers.Scheduler = "easy",
    *,
    options: Options | None = None,
    behind: float = 0.05,
    within: float = 0.02,
    progress: bool | None = None,
    **settings: Any,
) -> lazy.saturation.Saturation:
    """Search for the load of a log at which the machine falls behind under a scheduler.

    Times between arrivals are divided by a factor. The machine falls behind if waiting has kept more than a
    share ``behind`` of the submitted work from being done by the last submission, or if there is more work
    than it can do at all. The search ends when the factor is known up to a share ``within`` of it. The
    settings are those of :func:`batsched_py.simulate`.
    """
    known = log if isinstance(log, Log) else read_log(log)

    def try_load(factor: float) -> lazy.saturation.Trial:
        result = simulate(known.load(factor), scheduler, options=options, progress=progress, **settings)
        return lazy.saturation.trial(result.jobs, result.overview.hosts, factor)

    return lazy.saturation.saturation(try_load, behind, within)
