"""Changes of what a log says of its jobs: load, estimates, names, another log beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes import Change
from batsched_py.workload.swf.conventions import EXTRA
from batsched_py.workload.swf.log import COLUMNS, HOUR, Floats, Integers, Random, SwfLog, swf_log


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
            times = {name: getattr(log, name) for name in ("run_time", "requested_time", "average_cpu_time")}
            scaled: dict[str, Any] = {
                name: np.where(time > 0, time * self.factor, time) for name, time in times.items()
            }
            return replace(log, **scaled), "jobs that followed each other may overlap"
        return self._by_sizes(log)

    def _by_sizes(self, log: SwfLog) -> tuple[SwfLog, str]:
        chances = np.random.default_rng(self.seed).random(len(log))
        most = log.machine_size or np.iinfo(np.int64).max
        scaled: dict[str, Any] = {}
        for name in ("allocated_processors", "requested_processors"):
            sizes = getattr(log, name)
            larger = np.clip(np.floor(sizes * self.factor + chances), 1, most).astype(np.int64)
            scaled[name] = np.where(sizes > 0, larger, sizes)
        changed = replace(log, **scaled)
        before, after = (float(each.run_time @ np.maximum(each.processors, 0)) for each in (log, changed))
        reached = after / before if before else 1.0
        return changed, f"the load is {reached:.4g} times what it was; sizes are no powers of two any more"


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


#: The twenty round numbers that people use, in seconds.
ROUND: Final = np.array(
    [minutes * 60.0 for minutes in (5, 10, 15, 20, 30, 45)]
    + [hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 24, 36, 48, 72)]
)
#: How much rarer each next value in the order of popularity is.
_DECAY: Final = 0.18


@dataclass(frozen=True)
class Estimates(Change):
    """Choose what users estimate, which is the requested time of their jobs.

    - exact: the run time.
    - recorded: what the log says, and the run time where it says nothing.
    - factor: a multiple of the run time.
    - round: one of the twenty round numbers that people use, not below the run time. Tsafrir, Etsion and
      Feitelson (2005) found that twenty values make up 90 % of the estimates, that the largest one allowed is
      the most popular, and that popularity falls exponentially with rank; which of the other values are
      popular is up to chance, by the seed.
    """

    name = "estimates"

    rule: Annotated[Literal["exact", "recorded", "factor", "round"], Meta(description="Which estimates.")]
    factor: Annotated[float, Meta(ge=1, description="The multiple of the rule factor.")] = 2.0
    seed: Annotated[int, Meta(ge=0, description="For the rule round.")] = 0

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log with other requested times."""
        match self.rule:
            case "exact":
                estimates = log.run_time
            case "recorded":
                estimates = np.where(log.requested_time > 0, log.requested_time, log.run_time)
            case "factor":
                estimates = log.run_time * self.factor
            case "round":
                estimates = _round(log.run_time, np.random.default_rng(self.seed))
        changed = replace(log, requested_time=estimates)
        ran = log.run_time > 0
        accuracy = float(np.mean(log.run_time[ran] / estimates[ran])) if ran.any() else 1.0
        return changed, f"run times are {accuracy:.1%} of the requested times on average"


def _round(run_times: Floats, random: Random) -> Floats:
    """A round number for each run time, of those that are not below it; whole hours beyond the largest."""
    limit = int(min(np.searchsorted(ROUND, run_times.max()), len(ROUND) - 1))
    values = ROUND[: limit + 1]
    ranks = np.concatenate([random.permutation(np.arange(1, limit + 1)), [0]])
    weights = np.exp(-_DECAY * ranks)
    above = np.concatenate([[0.0], np.cumsum(weights)])
    least = above[np.minimum(np.searchsorted(values, run_times), limit)]
    drawn = least + random.random(len(run_times)) * (above[-1] - least)
    chosen = values[np.clip(np.searchsorted(above, drawn, side="right") - 1, 0, limit)]
    return np.maximum(chosen, np.where(run_times > values[-1], np.ceil(run_times / HOUR) * HOUR, 0.0))


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
