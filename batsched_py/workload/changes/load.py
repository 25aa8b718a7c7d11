"""The load of a log, made larger or smaller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from batsched_py.errors import InputError
from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.swf.log import Floats, Integers, SwfLog


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
            scaled: dict[str, Any] = {
                name: _scaled(getattr(log, name), self.factor)
                for name in ("run_time", "requested_time", "average_cpu_time")
            }
            return replace(log, **scaled), "jobs that followed each other may overlap"
        return self._by_sizes(log)

    def _by_sizes(self, log: SwfLog) -> tuple[SwfLog, str]:
        chances = np.random.default_rng(self.seed).random(len(log))
        most = log.machine_size or np.iinfo(np.int64).max
        sizes: dict[str, Any] = {
            name: self._sizes(getattr(log, name), chances, most)
            for name in ("allocated_processors", "requested_processors")
        }
        changed = replace(log, **sizes)
        before, after = (float(each.run_time @ np.maximum(each.processors, 0)) for each in (log, changed))
        reached = after / before if before else 1.0
        return changed, f"the load is {reached:.4g} times what it was; sizes are no powers of two any more"

    def _sizes(self, sizes: Integers, chances: Floats, most: int) -> Integers:
        scaled = np.clip(np.floor(sizes * self.factor + chances), 1, most).astype(np.int64)
        return np.where(sizes > 0, scaled, sizes)


def _scaled(times: Floats, factor: float) -> Floats:
    return np.where(times > 0, times * factor, times)


@dataclass(frozen=True)
class Sizes(Change):
    """Keep the jobs that ran on some numbers of processors."""

    name = "sizes"

    least: Annotated[int, Meta(ge=1, description="The smallest size.")] = 1
    most: Annotated[int | None, Meta(description="The largest size; any by default.")] = None

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The jobs of these sizes."""
        inside = (log.processors >= self.least) & (log.processors <= (self.most or np.inf))
        if not inside.any():
            raise InputError(f"{self}: no job is left")
        changed = log.select(inside)
        return changed, kept(log, changed)


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
