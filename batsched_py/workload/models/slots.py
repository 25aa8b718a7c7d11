"""The generator of AccaSim (Galleguillos and others 2020): the day in slots, and jobs by the work they do.

Arrivals: a day has 48 slots of half an hour, each with the share of the log's jobs that come in it as its
weight. The time to the next job is drawn from those of the log and spent along the slots: to pass one costs
its weight. In the paper this time has a limit, which grows with the jobs that the hour, the weekday and the
month have got so far, so that their shares become those of the log. The limit makes logs denser and shorter
than the one they are like. Here weekdays and months have weights, too, and the times between jobs are learned
as they are spent, in the time of the weights (:class:`SlotCalendar`). So shares and days agree without it.

Jobs: sizes are drawn as in the model of Lublin and Feitelson, with the log's shares. A job's work, in
operations, is drawn from those of the log. Its duration is the work over what its units do in a second: so
another machine can be asked for, with other units (:class:`UnitRequests`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.requests import amount
from batsched_py.workload import models
from batsched_py.workload.description.jobs import requested
from batsched_py.workload.models.lublin import job_sizes
from batsched_py.workload.swf.conventions import LOG_SPEED
from batsched_py.workload.swf.log import DAY, Floats, Integers, SwfLog, local_time, start_of, wall_clock

CORE: Final = "core"
MEMORY: Final = "memory"


@dataclass(frozen=True)
class UnitRequests:
    """The least and the most of each unit on a node, and the speed of those units that compute."""

    limits: dict[str, tuple[int, int]]
    """Memory is in KiB. Without any limits, jobs ask for processors only."""
    speeds: dict[str, float]

    @classmethod
    def read(cls, limits: str, performance: str, speed: float) -> UnitRequests:
        """As options of a model write them.

        >>> UnitRequests.read("core:1-8,gpu:0-2", "gpu:560", 1.5)
        UnitRequests(limits={'core': (1, 8), 'gpu': (0, 2)}, speeds={'core': 1.5, 'gpu': 560.0})
        """
        read = {name: _limit(name, text) for name, text in _pairs("limits", limits)}
        if read and read.get(CORE, (0, 0))[0] < 1:
            raise InputError(f"limits={limits}: give the cores of a node, at least 1, as in core:1-8")
        speeds = {CORE: speed}
        for name, text in _pairs("performance", performance):
            if name == CORE:
                raise InputError(f"performance={performance}: the performance of cores is the option speed")
            if name not in read:
                raise InputError(
                    f"performance={performance}: limits does not say how many {name} jobs ask for"
                )
            try:
                speeds[name] = float(text)
            except ValueError:
                speeds[name] = -1.0
            if not 0 < speeds[name] < 1e12:
                raise InputError(f"performance: {name}:{text}: give a number above 0")
        return cls(read, speeds)

    def draw(
        self, sizes: Integers, machine: int, random: np.random.Generator
    ) -> tuple[Integers, Floats, dict[str, NDArray[Any]]]:
        """What jobs of these sizes ask for: processors, and what else a log says about it.

        Between these two stands how much each job does in a second, relative to one processor of the log.

        Each amount is drawn from all between its limits alike, but no job gets more cores than its size if it
        can be helped. A job has as many nodes as come nearest to its size.
        """
        if not self.limits:
            return sizes, np.multiply(sizes, self.speeds[CORE], dtype=np.float64), {}
        amounts = {
            name: random.integers(least, most, len(sizes), endpoint=True)
            for name, (least, most) in self.limits.items()
        }
        least = self.limits[CORE][0]
        cores = np.minimum(np.clip(amounts.pop(CORE), least, sizes.clip(least)), machine)
        nodes = np.clip(np.rint(sizes / cores).astype(np.int64), 1, np.maximum(machine // cores, 1))
        amounts_of_units = {CORE: cores, **amounts}
        speed = np.sum([amounts_of_units[name] * each for name, each in self.speeds.items()], axis=0)
        columns: dict[str, NDArray[Any]] = {"nodes": nodes, "request": _requests(nodes, cores, amounts)}
        if MEMORY in amounts:
            columns["requested_memory"] = np.ceil(amounts[MEMORY] / cores)
        if "gpu" in amounts:
            columns["gpus"] = nodes * amounts["gpu"]
        return nodes * cores, nodes * speed, columns


def _requests(nodes: Integers, cores: Integers, amounts: Mapping[str, Integers]) -> NDArray[Any]:
    """The requests of jobs in JSON: a task with these cores on each node, beside its share of the rest."""
    made = []
    for row, (node, core) in enumerate(zip(nodes.tolist(), cores.tolist(), strict=True)):
        rest = {name: int(each[row]) for name, each in amounts.items()}
        asked = {name: f"{count} kB" if name == MEMORY else count for name, count in rest.items() if count}
        request = {"tasks": node, "cores": core, "nodes": node} | ({"per_node": asked} if asked else {})
        made.append(msgspec.json.encode(request).decode())
    return np.array(made, dtype=object)


def _pairs(option: str, text: str) -> list[tuple[str, str]]:
    pairs = [each.partition(":") for each in text.split(",")] if text else []
    for name, colon, value in pairs:
        if not (name.strip() and colon and value.strip()):
            raise InputError(f"{option}={text}: write UNIT:VALUE for each unit, with commas between them")
    found = [(name.strip(), value.strip()) for name, _, value in pairs]
    if len(dict(found)) < len(found):
        raise InputError(f"{option}={text}: a unit is given twice")
    return found


def _limit(name: str, text: str) -> tuple[int, int]:
    least, dash, most = text.partition("-")
    try:
        limit = amount(name, least), amount(name, most if dash else least)
    except ValueError as error:
        raise InputError(f"limits: {name}:{text}: {error}") from None
    if limit[0] > limit[1]:
        raise InputError(f"limits: {name}:{text}: the least is more than the most")
    return limit


SLOTS: Final = 48

#: Days until weekdays and months come in the same order again: 400 years.
_CYCLE: Final = 146_097

#: The weekday of 1970-01-01 when Monday is 0.
_THURSDAY: Final = 3


class SlotCalendar:
    """Turns times of the clock, in seconds since the first midnight, into times of the weights and back.

    The weights of the 48 slots of a day, of the weekdays from Monday and of the months from January are
    numbers not below 0, not all of which are 0. A day of weight 1 takes 1 of the time of the weights.

    The time of a calendar whose busy half hours are long: each takes as much of it as jobs come in it.

    Time is spent along half hours of the day, of which each costs its weight, as in the slot weight
    method of Lublin and Feitelson. Here days have weights as well, by their weekdays and months. In this
    time jobs come at all hours alike; turned back into time of the clock, they come when jobs come.
    """

    def __init__(
        self, first_day: int, slots: list[float], weekdays: list[float], months: list[float]
    ) -> None:
        """``first_day`` is counted from 1970-01-01."""
        weekday, month = kinds_of_days(first_day, _CYCLE)
        self._days = np.array(weekdays)[weekday] * np.array(months)[month]
        self._slots = np.array(slots) / max(sum(slots), np.finfo(float).tiny)
        self._ends_of_days, self._ends_of_slots = np.cumsum(self._days), np.cumsum(self._slots)
        if not (self._ends_of_days[-1] > 0 and self._ends_of_slots[-1] > 0):
            raise ValueError("no half hour has a weight")

    def spent(self, clock: Floats) -> Floats:
        """The time of the weights that has passed at some times of the clock."""
        days, seconds = np.divmod(clock, DAY)
        cycles, day = np.divmod(days.astype(np.int64), _CYCLE)
        slot, inside = np.divmod(seconds * SLOTS / DAY, 1)
        slot = slot.astype(np.int64)
        part = self._ends_of_slots[slot] - self._slots[slot] * (1 - inside)
        whole = self._ends_of_days[day] - self._days[day]
        return np.asarray(cycles * self._ends_of_days[-1] + whole + self._days[day] * part)

    def clock(self, spent: Floats) -> Floats:
        """The times of the clock at which so much time of the weights has passed."""
        cycles, rest = np.divmod(spent, self._ends_of_days[-1])
        day = np.minimum(np.searchsorted(self._ends_of_days, rest, side="right"), _CYCLE - 1)
        part = _share_of(rest, self._ends_of_days, self._days, day)
        slot = np.minimum(np.searchsorted(self._ends_of_slots, part, side="right"), SLOTS - 1)
        inside = _share_of(part, self._ends_of_slots, self._slots, slot)
        return np.asarray(((cycles * _CYCLE + day) + (slot + inside) / SLOTS) * DAY)


def kinds_of_days(first_day: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The weekdays, Monday 0, and the months, January 0, of so many days on from one since 1970-01-01."""
    days = np.arange(first_day, first_day + count)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    return (days + _THURSDAY) % 7, months


def _share_of(place: Floats, ends: Floats, lengths: Floats, number: NDArray[np.int64]) -> Floats:
    """How far a place is inside the interval of this number, from 0 to 1."""
    length = lengths[number]
    passed = place - (ends[number] - length)
    return np.clip(np.divide(passed, length, out=np.zeros_like(passed), where=length > 0), 0, 1)


_SLOT: Final = DAY / SLOTS
_LARGE_FROM_TOP: Final = 2.5

#: So many days can be learned from.
_LONGEST: Final = 100_000

#: Where distributions are cut: in equal steps, and towards the end in smaller ones, as the few longest times
#: make up much of all time.
_RANKS: Final = np.concatenate([np.linspace(0, 0.999, 1999), 1 - np.geomspace(1e-3, 1e-7, 161)[1:], [1.0]])

_Weight = Annotated[float, Meta(ge=0, le=1e9)]
_Amount = Annotated[float, Meta(ge=0, le=1e300)]
_Quantiles = Annotated[list[_Amount], Meta(min_length=len(_RANKS), max_length=len(_RANKS))]


class SlotsParameters(models.Parameters):
    """What the model learns of a log."""

    first_day: Annotated[int, Meta(ge=0, le=20_000_000)]
    """The day on which the log began, since 1970-01-01."""
    slots: Annotated[list[_Weight], Meta(min_length=SLOTS, max_length=SLOTS)]
    """Share of the jobs in each half hour of the day."""
    weekdays: Annotated[list[_Weight], Meta(min_length=7, max_length=7)]
    months: Annotated[list[_Weight], Meta(min_length=12, max_length=12)]
    """How many jobs come on a day of each weekday and month, relative to the mean; 1 where it is unknown."""
    gaps: _Quantiles
    """Quantiles of the times between jobs, in days of the calendar of weights."""
    work: _Quantiles
    """Quantiles of the operations of a job."""
    serial: float
    power_of_two: float
    """Shares of the jobs that are serial, and that are parallel on a power of two of processors."""
    low: float
    middle: float
    high: float
    below: float
    """Of the logarithms of parallel sizes: bounds, and the share below the middle."""

    def calendar(self) -> SlotCalendar:
        """The time in which jobs come at all hours alike."""
        return SlotCalendar(self.first_day, self.slots, self.weekdays, self.months)


@dataclass
class Slots(models.LearningModel):
    """AccaSim's generator: submissions by slots of the day, durations by the work of a job.

    Jobs with ``limits`` have requests, which workloads of Batsim (.json) and tables (.csv) keep and SWF does
    not.
    """

    name = "slots"

    processors: Annotated[
        Annotated[int, Meta(ge=1, le=10**7)] | None,
        Meta(description="Size of the machine that is asked for; the log's by default."),
    ] = None
    days: Annotated[
        Annotated[float, Meta(gt=0, le=1e6)] | None,
        Meta(description="How many days there are; as many as so many jobs took in the log by default."),
    ] = None
    speed: Annotated[float, Meta(gt=0, description="Speed of its processors, relative to the log's.")] = 1.0
    limits: Annotated[
        str,
        Meta(
            description="The least and the most that a job asks for on each of its nodes, like "
            "core:1-8,memory:256M-4G,gpu:0-2; without it, jobs ask for processors only."
        ),
    ] = ""
    performance: Annotated[
        str,
        Meta(
            description="Which other units compute, and how many times as fast as a processor of the log, "
            "like gpu:560."
        ),
    ] = ""
    work: Annotated[models.Work, Meta(description=models.WORK_HELP)] = "log"
    parameters: SlotsParameters | None = field(default=None, init=False)

    def machine(self, learned: SlotsParameters) -> int:
        """Processors of the machine that is asked for, else of the recorded one."""
        return self.processors or learned.machine

    def start(self, learned: SlotsParameters) -> int:
        """The midnight before the log that was learned from, so that months are in the same places."""
        return learned.first_day * int(DAY)

    def learn(
        self, jobs: SwfLog, source: str, machine: int, progress: models.Progress | None
    ) -> SlotsParameters:
        """Learn shares and quantiles."""
        sizes = requested(jobs)
        clock = wall_clock(jobs, jobs.submit)
        clock = np.maximum(clock - clock[0] // DAY * DAY, 0)
        if clock.max() > _LONGEST * DAY:
            raise InputError(f"{jobs.path or 'the log'}: covers more than {_LONGEST:,} days, as no log does")
        months_are_known = start_of(jobs) is not None
        first_day = models.START // int(DAY)
        if months_are_known:
            day = local_time(jobs, jobs.submit[:1]).astype("datetime64[D]").astype(np.int64)
            first_day = max(int(day[0]), 0)
        slots = np.bincount((clock % DAY // _SLOT).astype(np.int64), minlength=SLOTS) / len(clock)
        weekdays, months = _rates_of_days(first_day, clock)
        months = months if months_are_known else [1.0] * 12
        calendar = SlotCalendar(first_day, slots.tolist(), weekdays, months)
        return SlotsParameters(
            source=source,
            machine=machine,
            first_day=first_day,
            slots=slots.tolist(),
            weekdays=weekdays,
            months=months,
            gaps=np.quantile(np.maximum(np.diff(calendar.spent(clock)), 0), _RANKS).tolist(),
            work=np.quantile(jobs.run_time * sizes * LOG_SPEED, _RANKS).tolist(),
            **_shares_of_sizes(sizes),
        )

    def draw(self, learned: SlotsParameters, jobs: int, random: np.random.Generator) -> models.Columns:
        """Draw jobs for the machine that is asked for."""
        machine = self.machine(learned)
        units = UnitRequests.read(self.limits, self.performance, self.speed)
        sizes = np.minimum(job_sizes(learned, jobs, random), machine)
        work = np.interp(random.random(jobs), _RANKS, learned.work)
        work = self.stretched(learned, work / LOG_SPEED, np.ones(jobs)) * LOG_SPEED
        spent = np.cumsum(np.interp(random.random(jobs), _RANKS, learned.gaps))
        if self.days is not None and spent[-1] > 0:
            spent *= learned.calendar().spent(np.array([self.days * DAY]))[0] / spent[-1]
        processors, speed, more = units.draw(sizes, machine, random)
        run_times = np.where(work > 0, np.maximum(np.rint(work / (speed * LOG_SPEED)), 1), 0)
        if more:
            more["work"] = run_times * speed
        return {
            "submit": np.floor(learned.calendar().clock(spent)),
            "run_time": run_times,
            "allocated_processors": processors,
            "requested_processors": processors,
            **more,
        }

    def draw_like(self, learned: SlotsParameters, jobs: int, random: np.random.Generator) -> models.Columns:
        """Draw jobs for the machine of the log."""
        return Slots().draw(learned, jobs, random)


def _shares_of_sizes(sizes: Integers) -> dict[str, float]:
    """What the model of Lublin and Feitelson has to know of sizes."""
    parallel = sizes > 1
    logarithms = np.log2(sizes[parallel]) if parallel.any() else np.zeros(1)
    low, high = float(logarithms.min()), float(logarithms.max())
    middle = max(high - _LARGE_FROM_TOP, low)
    return {
        "serial": float(np.mean(sizes == 1)),
        "power_of_two": float(np.mean(parallel & (sizes & (sizes - 1) == 0))),
        "low": low,
        "middle": middle,
        "high": high,
        "below": float(np.mean(logarithms <= middle)),
    }


def _rates_of_days(first_day: int, clock: Floats) -> tuple[list[float], list[float]]:
    """How many jobs come on a day of each weekday, and of each month, relative to the mean of all days.

    The first and the last day count as far as they belong to the log. Kinds of which there are none have 1.
    """
    day = (clock // DAY).astype(np.int64)
    lengths = np.ones(int(day.max()) + 1)
    lengths[0] -= clock.min() % DAY / DAY
    lengths[-1] -= 1 - clock.max() % DAY / DAY
    rates = np.ones(7), np.ones(12)
    for kinds, each in zip(kinds_of_days(first_day, len(lengths)), rates, strict=True):
        jobs = np.bincount(kinds[day], minlength=len(each))
        days = np.bincount(kinds, lengths, minlength=len(each))
        known = days > 0
        each[known] = jobs[known] / days[known] / (jobs.sum() / days.sum())
    return rates[0].tolist(), rates[1].tolist()
