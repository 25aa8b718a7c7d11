"""What a table says about the columns of a log: under which name, in which unit, in which words.

``requested_time:time_limit/min`` means that the column ``time_limit`` has requested times, in minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.sources.accounting import duration, for_each, memory
from batsched_py.workload.swf.conventions import CANCELLED, COMPLETED, FAILED
from batsched_py.workload.swf.log import COLUMNS, Floats

if TYPE_CHECKING:
    import pandas as pd

#: Moments; those of the last two are no columns of a log, which has waits and run times.
MOMENTS: Final = ("submit", "start", "end")

#: What a column of a table can be in a log.
MEANINGS: Final = (*COLUMNS, "start", "end")

_TIME: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

#: A log has kilobytes of 1,024 bytes.
_MEMORY: Final = {
    "B": 1 / 1024,
    **{f"{letter}iB": 1024.0**power for power, letter in enumerate("KMGT")},
    **{f"{letter}B": 1000.0 ** (power + 1) / 1024 for power, letter in enumerate("KMGT")},
}

#: Shares of a processor, which count as whole ones.
_SHARES: Final = {"milli": 1e-3}

#: What the numbers of a status are: return codes, of which 0 is a success, those of Slurm, or those of a log.
EXIT: Final = "exit"
SLURM: Final = "slurm"
SWF: Final = "swf"

#: The numbers that Slurm's database has for the states of jobs that are over.
SLURM_STATES: Final = {
    3: "COMPLETED", 4: "CANCELLED", 5: "FAILED", 6: "TIMEOUT", 7: "NODE_FAIL", 8: "PREEMPTED", 9: "BOOT_FAIL",
    10: "DEADLINE", 11: "OUT_OF_MEMORY",
}  # fmt: skip

DURATIONS: Final = ("wait", "run_time", "average_cpu_time", "requested_time", "think_time")
MEMORY: Final = ("used_memory", "requested_memory")
PROCESSORS: Final = ("allocated_processors", "requested_processors")

#: For each column the units that it can be in, each with what one of it is in a log.
UNITS: Final[Mapping[str, Mapping[str, float]]] = {
    **dict.fromkeys((*MOMENTS, *DURATIONS), _TIME),
    **dict.fromkeys(MEMORY, _MEMORY),
    **dict.fromkeys(PROCESSORS, _SHARES),
    "status": dict.fromkeys((EXIT, SLURM, SWF), 1.0),
}

#: What words say about the end of a job. Of several words, the first counts: ``CANCELLED by 1000``.
STATES: Final[Mapping[str, int]] = {
    word: state
    for state, words in {
        COMPLETED: "COMPLETED COMPLETE COMPLETING PASS PASSED SUCCESS SUCCEEDED OK DONE FINISHED TRUE",
        FAILED: "FAILED FAIL FAILURE ERROR TIMEOUT NODE_FAIL OUT_OF_MEMORY OOM KILLED PREEMPTED BOOT_FAIL "
        "DEADLINE REVOKED EXITED ABORTED FALSE",
        CANCELLED: "CANCELLED CANCELED DELETED",
    }.items()
    for word in words.split()
}

#: Words about jobs that were not over when the table was written, and Slurm's numbers for them.
_UNFINISHED: Final = frozenset(
    "RUNNING PENDING QUEUED WAITING HELD SUSPENDED CONFIGURING RESIZING STOPPED".split()
)
_UNFINISHED_OF_SLURM: Final = range(3)

#: Days as Python and pandas write them: ``1 day, 0:00:04`` and ``1 days 00:00:04``.
_DAYS: Final = re.compile(r"^([0-9]{1,15}) days?,? ")

#: No number of a log is larger.
_LARGEST: Final = 2.0**53


class Mapped(Struct, frozen=True):
    """What one column of a table is in a log."""

    ours: str
    theirs: str
    unit: str = ""
    is_named: bool = True
    """Whether somebody said so; otherwise it is taken because of its name."""

    @property
    def factor(self) -> float:
        """What one of its unit is in a log."""
        return UNITS[self.ours][self.unit] if self.unit else 1.0

    def __str__(self) -> str:
        return f"{self.ours}:{self.theirs}{self.unit and f'/{self.unit}'}"


def read_mapping(text: str) -> list[Mapped]:
    """What the option ``columns`` says.

    >>> [str(each) for each in read_mapping("submit:Asked,requested_time:time_limit/min")]
    ['submit:Asked', 'requested_time:time_limit/min']
    """
    found: dict[str, Mapped] = {}
    for pair in filter(None, text.split(",")):
        ours, colon, theirs = pair.partition(":")
        if not (colon and theirs) or ours not in MEANINGS:
            raise InputError(
                f"columns={text}: write NAME:COLUMN or NAME:COLUMN/UNIT, where NAME is one of "
                f"{', '.join(MEANINGS)}"
            )
        if ours in found:
            raise InputError(f"columns={text}: there are two columns for {ours}")
        name, _, unit = theirs.rpartition("/")
        is_unit = bool(name) and unit in UNITS.get(ours, {})
        found[ours] = Mapped(ours, name, unit) if is_unit else Mapped(ours, theirs)
    return list(found.values())


def full_mapping(named: Iterable[Mapped], names: Iterable[str], where: str) -> list[Mapped]:
    """What is said about columns, which must exist, and those that are taken because of their names."""
    names = list(names)
    said = {each.ours: each for each in named}
    for each in said.values():
        if each.theirs not in names:
            base, slash, unit = each.theirs.rpartition("/")
            units = f"; {each.ours} can be in {', '.join(UNITS[each.ours])}" if each.ours in UNITS else ""
            reason = f"no unit {unit!r}{units}" if slash and base in names else f"no column {each.theirs!r}"
            raise InputError(f"{where}: there is {reason} (columns={each})")
    taken = {each.theirs for each in said.values()}
    own = (Mapped(name, name, is_named=False) for name in names if name in MEANINGS and name not in taken)
    return [*said.values(), *(each for each in own if each.ours not in said)]


def numbers(column: pd.Series, mapped: Mapped) -> Floats:
    """The numbers of a column, in the unit of a log; NaN for what is none.

    Durations may be written as ``[DAYS-][HOURS:]MINUTES:SECONDS`` or ``1 days 02:00:00``, and memory as
    ``4GB``.
    """
    import pandas as pd

    if column.dtype.kind == "m":
        return (pd.TimedeltaIndex(column) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64, copy=True)
    if pd.api.types.is_datetime64_any_dtype(column):
        return np.full(len(column), np.nan)
    values = _doubles(column) * mapped.factor
    if not pd.api.types.is_numeric_dtype(column) and mapped.ours in (*DURATIONS, *MEMORY):
        is_text = np.isnan(values) & ~column.isna().to_numpy()
        texts = column[is_text].astype(str).to_numpy()
        values[is_text] = for_each(texts, _duration if mapped.ours in DURATIONS else _memory)
    if mapped.unit == "milli":
        values = np.ceil(np.round(values, 6))
    return np.where(np.abs(values) <= _LARGEST, values, np.nan)


def _doubles(column: pd.Series) -> Floats:
    import pandas as pd

    try:
        found = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # of integers that no double can hold
        found = pd.to_numeric(column.astype(str), errors="coerce")
    values: Floats = found.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _duration(text: str) -> float:
    return duration(_DAYS.sub(r"\1-", text))


def _memory(text: str) -> float:
    kilobytes = memory(text)[0]
    return np.nan if kilobytes < 0 else kilobytes


def states(column: pd.Series, mapped: Mapped, words: Mapping[str, int]) -> tuple[Floats, dict[str, int]]:
    """The status of each job, NaN if it is not over, and how many have which word or number that is unknown.

    Numbers are those of the log format, unless they are return codes: the column says so in its name, or its
    unit is ``exit``. Slurm writes them as ``CODE:SIGNAL``. With the unit ``slurm`` they are Slurm's.
    """
    is_exit = mapped.unit == EXIT or (not mapped.unit and "exit" in mapped.theirs.lower())
    known = {**STATES, **{word.upper(): state for word, state in words.items()}}
    unknown: dict[str, int] = {}

    def state(text: str) -> float:
        word = (text.split() or [""])[0].upper()
        try:
            values = [float(part) for part in word.split(":")] if word else []
        except ValueError:
            if word not in known and word in _UNFINISHED:
                return np.nan
            if word not in known:
                unknown[text] = 0
            return known.get(word, -1)
        if not values:
            return -1
        if is_exit or len(values) > 1:
            return FAILED if any(values) else COMPLETED
        if mapped.unit == SLURM and values[0] in SLURM_STATES:
            return known[SLURM_STATES[int(values[0])]]
        if mapped.unit == SLURM and values[0] in _UNFINISHED_OF_SLURM:
            return np.nan
        if mapped.unit != SLURM and values[0] in range(-1, CANCELLED + 1):
            return values[0]
        unknown[text] = 0
        return -1

    texts = column.astype(object).where(~column.isna(), "").astype(str).to_numpy()
    found = for_each(texts, state)
    for text in unknown:
        unknown[text] = int((texts == text).sum())
    return found, unknown


def are_slurms(column: pd.Series) -> bool:
    """Whether the numbers of a status are rather Slurm's: most are 3, which in a log is a part of a job."""
    values = _doubles(column)
    values = values[np.isfinite(values)]
    return bool(len(values)) and bool((values == 3).mean() > 0.5) and set(values) <= {-1.0, *range(12)}


def are_dates(values: Floats) -> bool:
    """Whether numbers are dates: 20240131, also with hours, minutes and seconds, or 2401311530.

    Few other numbers are: of all with eight digits one in 27, of those with ten one in 200.
    """
    values = values[np.isfinite(values)]
    if not len(values) or (values != np.floor(values)).any():
        return False
    return any(_have_form(values, *form) for form in ((8, 0), (10, 4), (12, 4), (14, 6)))


def _have_form(values: Floats, digits: int, clock: int) -> bool:
    """Whether all have so many digits, of which the last are a time of day."""
    days, times = values // 10.0**clock, values % 10.0**clock * 10.0 ** (6 - clock)
    years, months, day = days // 10000, days // 100 % 100, days % 100
    is_day = (months >= 1) & (months <= 12) & (day >= 1) & (day <= 31)
    is_year = (years < 100) if digits == 10 else (years >= 1980) & (years < 2100)
    is_time = (times // 10000 < 24) & (times // 100 % 100 < 60) & (times % 100 < 60)
    has_length = (values >= 10.0 ** (digits - 1)) & (values < 10.0**digits)
    return bool((has_length & is_year & is_day & is_time).all())
