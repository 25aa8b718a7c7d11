"""Logs: read, described, changed, generated, written, and replayed to calibrate a simulation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from batsched_py.api.simulate import Options, simulate
from batsched_py.api.terminal import as_html, duration
from batsched_py.workload.changes import CHANGES, Change, change_log
from batsched_py.workload.changes.selecting import Action, Part, split
from batsched_py.workload.description.users import DOMINATING_SHARE, FACTOR, SHARE
from batsched_py.workload.recipe import log_from_recipe
from batsched_py.workload.sources import write_log
from batsched_py.workload.swf.log import COLUMNS, SwfLog

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.calibration import Calibration
    from batsched_py.api.result import Result
    from batsched_py.schedulers import Scheduler
    from batsched_py.workload.description import Description


#: The name of a file.
FileName = str | os.PathLike[str]


def read_log(path: FileName, kind: str | None = None) -> Log:
    """Read a log of any kind that `batsched-py convert` knows: SWF, Batsim JSON, sacct, PBS, CSV, Parquet."""
    recipe = {"file": os.fspath(path)} | ({} if kind is None else {"kind": kind})
    return Log(log_from_recipe(recipe), recipe)


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

    def describe(self) -> Description:
        """The log as `batsched-py describe` sees it: load, users, cycles, distributions, burstiness, ..."""
        from batsched_py.workload.description import describe

        return describe(self.columns)

    def save(self, path: FileName, kind: str | None = None) -> None:
        """Write it to a file of any kind that `batsched-py convert` knows."""
        write_log(os.fspath(path), self.columns, kind)

    def _figures(self) -> list[str]:
        submit = self.columns.submit
        return [
            f"{len(self):,} jobs",
            f"{len(set(self.columns.user.tolist())):,} users",
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
        self, rule: Literal["exact", "recorded", "factor", "round"], factor: float = 2.0, seed: int = 0
    ) -> Log:
        """Choose what users estimate, which is the requested time of their jobs."""
        return self._do("estimates", rule=rule, factor=factor, seed=seed)

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
    scheduler: str | type[Scheduler] | Scheduler = "easy",
    *,
    options: Options | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Calibration:
    """Replay a log as it was, and compare the simulated with the recorded waits.

    The scheduler should be like that of the recorded machine. The settings are those of
    :func:`batsched_py.simulate`. ``calibrate(...).verdict`` says how far to trust such simulations of this
    log, and ``calibrate(...).save("page.html")`` writes a page.
    """
    known = log if isinstance(log, Log) else read_log(log)
    return compared(known, simulate(known, scheduler, options=options, progress=progress, **settings))


def compared(log: Log, replay: Result) -> Calibration:
    """A log beside its replay."""
    from batsched_py.analysis.calibration import calibration

    return calibration(log.columns, replay.jobs, replay.overview.hosts, replay.overview.scheduler)
