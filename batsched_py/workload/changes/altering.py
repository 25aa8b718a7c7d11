"""Changes of what a log says of its jobs: load, names, another log beside it."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes import Change
from batsched_py.workload.swf.conventions import EXTRA
from batsched_py.workload.swf.log import COLUMNS, Integers, Random, SwfLog, swf_log


@dataclass(frozen=True)
class Load(Change):
    """Scale the load by a factor, in one of three ways, each of which distorts something.

    - arrivals: the times between arrivals are divided by the factor. The daily and weekly cycles shrink or
      stretch with them, and users think faster or more slowly.
    - run-times: run times and requested times are multiplied. Jobs that followed each other may overlap.
    - sizes: sizes are multiplied, rounded up or down at random so that their mean is right, and limited to
      the machine. Powers of two, which pack well, are lost.
    """

    name = "load"

    factor: Annotated[float, Meta(gt=0, description="How many times the load there shall be.")]
    by: Annotated[Literal["arrivals", "run-times", "sizes"], Meta(description="What is scaled.")] = "arrivals"
    seed: Annotated[int, Meta(ge=0, description="For the rounding of sizes.")] = 0

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log with another load."""
        if self.by == "arrivals":
            first = log.submit.min()
            submit = first + (log.submit - first) / self.factor
            return replace(log, submit=submit), "the daily and weekly cycles are scaled, too"
        if self.by == "run-times":
            scaled: dict[str, Any] = {}
            for name in ("run_time", "requested_time", "average_cpu_time"):
                times = getattr(log, name)
                scaled[name] = np.where(times > 0, times * self.factor, times)
            return replace(log, **scaled), "jobs that followed each other may overlap"
        chances = np.random.default_rng(self.seed).random(len(log))
        most = log.machine_size or np.iinfo(np.int64).max
        scaled = {}
        for name in ("allocated_processors", "requested_processors"):
            sizes = getattr(log, name)
            larger = np.clip(np.floor(sizes * self.factor + chances), 1, most).astype(np.int64)
            scaled[name] = np.where(sizes > 0, larger, sizes)
        changed = replace(log, **scaled)
        before, after = (float(each.run_time @ np.maximum(each.processors, 0)) for each in (log, changed))
        reached = after / before if before else 1.0
        unlimited = "" if log.machine_size else "; the log tells of no machine, which would limit them"
        text = f"the load is {reached:.4g} times what it was; sizes are no powers of two any more"
        return changed, text + unlimited


@dataclass(frozen=True)
class Shake(Change):
    """Change arrivals and run times a little at random (Tsafrir, Ouaknine and Feitelson 2007).

    A result that differs much between shaken logs is an accident of the log. Each change is uniform between
    its bounds. A job that ran within its requested time still does.
    """

    name = "shake"

    seed: Annotated[int, Meta(ge=0, description="Another seed is another shake.")]
    arrivals: Annotated[float, Meta(ge=0, description="Seconds that a job may come earlier or later.")] = 60.0
    run_times: Annotated[float, Meta(ge=0, lt=1, description="Part that a run time may lose or gain.")] = 0.01

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The shaken log, again in the order of submissions."""
        random = np.random.default_rng(self.seed)
        first = log.submit.min()
        submit = log.submit + random.uniform(-self.arrivals, self.arrivals, len(log))
        factors = random.uniform(1 - self.run_times, 1 + self.run_times, len(log))
        within = (log.requested_time > 0) & (log.run_time <= log.requested_time)
        shaken = np.maximum(np.rint(log.run_time * factors), np.minimum(log.run_time, 1))
        run_time = np.where(within, np.minimum(shaken, log.requested_time), shaken)
        changed = replace(log, submit=np.maximum(np.rint(submit), first), run_time=run_time)
        order = np.argsort(changed.submit, kind="stable")
        return changed.select(order), "the order of jobs may have changed"


#: Parts of the header that may name people, machines or programs.
_TELLING: Final = ("User", "Group", "Executable", "Queue", "Partition")


@dataclass(frozen=True)
class Anonymise(Change):
    """Give users, groups, executables, queues and partitions new numbers, and forget their names.

    New numbers are a random order of 1, 2, 3, ...; who has the seed and the log can undo it, so keep the seed
    to yourself: the log's history does not tell it.
    """

    name = "anonymise"

    seed: Annotated[int, Meta(ge=0, description="The same seed gives the same numbers.")]

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log without names."""
        random = np.random.default_rng(self.seed)
        columns: dict[str, Any] = {name: _renumbered(getattr(log, name), random) for name in EXTRA}
        header = {key: value for key, value in log.header.items() if key not in _TELLING}
        more = {name: column for name, column in log.more.items() if column.dtype.kind in "iuf"}
        return replace(log, **columns, header=header, more=more, path=""), "names and hosts are forgotten"

    def __str__(self) -> str:
        """Without the seed."""
        return self.name


def _renumbered(numbers: Integers, random: Random) -> Integers:
    """Known numbers become 1, 2, 3, ... in a random order; unknown ones stay."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    known = distinct >= 0
    new = distinct.copy()
    new[known] = random.permutation(np.arange(1, known.sum() + 1))
    return new[codes]


@dataclass(frozen=True)
class Merge(Change):
    """Merge another log into this one, as if both machines were one.

    Both begin at the same moment: the first submission of the other log is moved to that of this one. Users,
    groups, executables, queues and partitions of the two stay apart: the numbers of the other log are moved
    beyond those of this one. Jobs get new numbers, and the machine is as large as both together.
    """

    name = "merge"

    file: Annotated[str, Meta(description="The other log, in any format that can be read.")]

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """Both logs."""
        from batsched_py.workload.sources import read_log

        other = read_log(self.file)
        columns = {
            name: np.concatenate([getattr(log, name), _moved(log, other, name)])
            for name in COLUMNS
            if name not in ("job_number", "preceding_job", "think_time")
        }
        header = dict(log.header)
        if log.machine_size and other.machine_size:
            header["MaxProcs"] = str(log.machine_size + other.machine_size)
        merged = swf_log(columns, header=header, path=log.path, left_out=log.left_out, guessed=log.guessed)
        return merged, f"{len(log)} and {len(other)} jobs"


def _moved(log: SwfLog, other: SwfLog, name: str) -> np.ndarray:
    """A column of the other log, with its times and numbers moved for this one."""
    column = getattr(other, name)
    if name == "submit":
        return column - column.min() + log.submit.min()
    if name in EXTRA:
        return np.where(column >= 0, column + max(int(getattr(log, name).max()), 0) + 1, column)
    return column
