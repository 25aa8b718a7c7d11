"""The meaning of single fields of Slurm's accounting, dependencies and arrays included.

``sacct`` has no field for these but the command that submitted a job, in ``SubmitLine``. A field
``Dependency``, as ``squeue`` has it, goes first where a file has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.protocol.dependencies import read_dependency
from batsched_py.workload.sources import accounting
from batsched_py.workload.sources.accounting import Account
from batsched_py.workload.swf.conventions import CANCELLED, COMPLETED, FAILED
from batsched_py.workload.swf.log import Integers

if TYPE_CHECKING:
    import pandas as pd


Texts = NDArray[Any]
Numbers = NDArray[np.float64]

#: The states of jobs that are over, and the status that the log gives them.
STATES: Final = {
    "COMPLETED": COMPLETED,
    **dict.fromkeys(("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"), FAILED),
    **dict.fromkeys(("LAUNCH_FAILED", "PREEMPTED", "REQUEUED"), FAILED),
    **dict.fromkeys(("CANCELLED", "REVOKED"), CANCELLED),
}
UNFINISHED: Final = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED")
_UNKNOWN_TIMES: Final = ("", "Unknown", "None", "N/A", "NONE", "0")
_NOTHING: Final = ("", "Unknown", "None", "(null)")
_TYPED: Final = "gres/gpu:"
_NO_HOSTS: Final = ("None assigned", "(null)")
#: How many nodes must have a feature, as in ``ib*4``.
_COUNT_OF_NODES: Final = re.compile(r"\*[0-9]+")
#: Alternatives stand in square brackets, too.
_PARENTHESES: Final = str.maketrans("[]", "()")
#: Numbers are not longer.
_LONGEST: Final = 16
_LENGTH_WITHOUT_ZONE: Final = len("2023-05-01T08:00:00")


class Records:
    """Records of jobs, and what their fields say; -1 means that they do not say it."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> Records:
        return Records(self.table[chosen])

    def text(self, name: str) -> Texts:
        """What a field says, literally; nothing where the file does not have it."""
        if name in self.table:
            return self.table[name].to_numpy(dtype=object)
        return np.full(len(self.table), "", dtype=object)

    def known_text(self, name: str) -> Texts:
        """What a field says; nothing where it says that it is unknown."""
        text = self.text(name)
        return np.where(np.isin(text, _NOTHING), "", text)

    def number(self, name: str) -> Numbers:
        """A whole number."""
        return accounting.for_each(
            self.text(name), lambda text: -1.0 if (number := accounting.whole(text)) is None else number
        )

    def duration(self, name: str) -> Numbers:
        """A time in seconds."""
        return np.nan_to_num(accounting.for_each(self.text(name), accounting.duration), nan=-1.0)

    def states(self) -> Texts:
        """The first word of each state: it may be ``CANCELLED by 1001``, and ``COMPLETED+`` when cut off."""
        return accounting.for_each(
            self.text("State"), lambda text: (text.split() or [""])[0].rstrip("+"), str
        )

    def processors(self, tres: str, *names: str) -> Numbers:
        """What the first of some fields says that says anything, else the trackable resources."""
        return first_known(*(self.number(name) for name in names), self.counted(tres, "cpu"))

    def counted(self, tres: str, name: str) -> Numbers:
        """How much of something is among the trackable resources of a field."""
        return accounting.for_each(self.text(tres), lambda text: resources(text).get(name, -1.0))

    def gpus(self) -> Integers:
        """GPUs of any type, as allocated, else as requested."""
        allocated, requested = self.text("AllocTRES"), self.text("ReqTRES")
        return accounting.for_each(np.where(allocated == "", requested, allocated), _gpus).astype(np.int64)

    def hosts(self) -> Texts:
        """The hosts that a job ran on, if it ran."""
        hosts = self.text("NodeList")
        return np.where(np.isin(hosts, _NO_HOSTS), "", hosts)

    def nodes(self) -> Numbers:
        """How many they are."""
        return first_known(self.number("NNodes"), accounting.for_each(self.hosts(), accounting.count_hosts))

    def requested_nodes(self) -> Numbers:
        """How many nodes a job asked for at least."""
        return first_known(self.number("ReqNodes"), self.counted("ReqTRES", "node"))

    def features(self) -> Texts:
        """What the nodes of a job had to have, without how many of them had to."""
        texts = self.known_text("Constraints")
        return accounting.for_each(
            texts, lambda text: _COUNT_OF_NODES.sub("", text).translate(_PARENTHESES), object
        )

    def gpu_type(self) -> Texts:
        """The type of the GPUs that a job asked for, if it asked for one type."""

        def only(text: str) -> str:
            types = [key for key in resources(text) if key.startswith(_TYPED)]
            return types[0].removeprefix(_TYPED) if len(types) == 1 else ""

        return accounting.for_each(self.text("ReqTRES"), only, object)

    def limit(self) -> Numbers:
        """The longest time that a job may run."""
        minutes = self.number("TimelimitRaw")
        return first_known(self.duration("Timelimit"), np.where(minutes >= 0, 60 * minutes, -1.0))

    def elapsed(self, start: Numbers, end: Numbers) -> Numbers:
        """How long each job ran: what is said, else from its start to its end."""
        said = first_known(self.number("ElapsedRaw"), self.duration("Elapsed"))
        return np.where(said >= 0, said, np.nan_to_num(end - start, nan=0.0))

    def memory_each(self, sizes: Numbers) -> Numbers:
        """Kilobytes requested for each processor."""
        texts = self.text("ReqMem")
        amounts = accounting.for_each(texts, lambda text: accounting.memory(text)[0])
        kinds = accounting.for_each(texts, lambda text: "cn".find(accounting.memory(text)[1] or " "))
        kinds = np.where(amounts > 0, kinds, -1)
        for tres in ("ReqTRES", "AllocTRES"):
            amounts = np.where(amounts > 0, amounts, self.counted(tres, "mem"))
        total = np.where(kinds == 1, amounts * np.maximum(self.nodes(), 1), amounts)
        each = np.where(kinds == 0, amounts, np.round(total / np.maximum(sizes, 1)))
        return np.where(amounts > 0, each, -1.0)

    def cpu_time_each(self, sizes: Numbers) -> Numbers:
        """Seconds that each processor of a job was busy."""
        total = self.duration("TotalCPU")
        known = (total >= 0) & (sizes > 0)
        return np.where(known, total / np.where(known, sizes, 1), -1.0)

    def moments(self, name: str, zone: str, account: Account) -> Numbers:
        """Unix times; NaN for none. A number is one already; others may have a zone of their own."""
        import pandas as pd

        series = pd.Series(self.text(name), dtype=object)
        known = series.where(~series.isin(_UNKNOWN_TIMES), "").to_numpy()
        found = pd.to_numeric(pd.Series(known), errors="coerce").to_numpy(dtype=np.float64, copy=True)
        texts = np.isnan(found)
        zoned = texts & (series.str.len().to_numpy() > _LENGTH_WITHOUT_ZONE)
        if zoned.any():
            found[zoned] = accounting.unix_times(
                pd.to_datetime(known[zoned], utc=True, errors="coerce", format="ISO8601")
            )
        naive = texts & ~zoned
        if naive.any():
            local = _local(known[naive])
            account.guessed[accounting.TWICE] += accounting.nb_twice(local, zone)
            found[naive] = accounting.unix_times(accounting.in_zone(local, zone))
        return found


def first_known(*columns: Numbers) -> Numbers:
    """For each job the first value that is not negative, else -1."""
    known = columns[-1]
    for column in columns[-2::-1]:
        known = np.where(column >= 0, column, known)
    return known


def resources(text: str) -> dict[str, float]:
    """The numbers in ``cpu=8,mem=4G,gres/gpu:a100=2``; memory is in kilobytes.

    >>> resources("cpu=8,mem=4G,gres/gpu:a100=2")
    {'cpu': 8.0, 'mem': 4194304.0, 'gres/gpu:a100': 2.0}
    """
    found = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        plain = len(value) <= _LONGEST and value.replace(".", "", 1).isdecimal()
        found[key] = float(value) if plain else accounting.memory(value)[0]
    return found


def _gpus(text: str) -> float:
    """GPUs of any type; if there are also counts by type, none is counted twice."""
    found = resources(text)
    if "gres/gpu" in found:
        return found["gres/gpu"]
    return sum(value for key, value in found.items() if key.startswith(_TYPED))


def _local(texts: NDArray[Any]) -> pd.DatetimeIndex:
    """Moments of some local time. One that has a zone, though it is too short for that, is none."""
    import pandas as pd

    try:
        moments = pd.to_datetime(texts, errors="coerce", format="ISO8601")
    except ValueError:
        moments = None
    if not isinstance(moments, pd.DatetimeIndex) or moments.tz is not None:
        plain = pd.Series(texts, dtype=object).where(~pd.Series(texts).str.contains("Z|T.*[+-]"), "")
        moments = pd.to_datetime(plain.to_numpy(), errors="coerce", format="ISO8601")
    return moments


_DEPENDENCY = re.compile(r"(?:^|\s)(?:--dependency[=\s]\s*|-d\s*)[\"']?([^\s\"']+)")
_LIMIT = re.compile(r"(?:^|\s)(?:--array[=\s]\s*|-a\s*)[\"']?[0-9,:-]+%([1-9][0-9]{0,8})")
_TASK = re.compile(r"([0-9]+)_([0-9]+)")
_MINUTES = re.compile(r"\+([0-9]{1,9})(?=:|$)")
_NOT_KNOWN = "dependency of a kind that is not simulated: left out"


def dependencies(records: Records, account: Account) -> dict[str, Texts]:
    """The columns ``after`` and ``array``, each if any job has something in it; jobs have Slurm's names."""
    ids = records.text("JobID").tolist()
    lines = records.known_text("SubmitLine").tolist()
    told = records.known_text("Dependency").tolist()
    texts = [text or _found(_DEPENDENCY, line) for text, line in zip(told, lines, strict=True)]
    after = [_after(text, name, account) if text else "" for text, name in zip(texts, ids, strict=True)]
    columns = {"after": after, "array": _arrays(ids, lines)}
    return {name: np.array(column, dtype=object) for name, column in columns.items() if any(column)}


def _after(text: str, name: str, account: Account) -> str:
    """A dependency of Slurm, without what is not simulated, such as ``expand``.

    Jobs of a log succeed when they are simulated, even those that failed. So what was to come after a failure
    comes after any end.
    """
    task = _TASK.fullmatch(name)
    separator = "?" if "?" in text else ","
    kept = []
    for part in re.split("[,?]", re.sub(r"\([^)]*\)|_\*", "", text).replace("afternotok", "afterany")):
        kind, *targets = part.split(":")
        if kind == "aftercorr" and task is not None:
            part = ":".join(["afterok", *(f"{target}_{task[2]}" for target in targets)])
        part = in_seconds(part)
        try:
            read_dependency(part)
            kept.append(part)
        except ValueError:
            account.guessed[_NOT_KNOWN] += 1
    return separator.join(kept)


def in_seconds(part: str) -> str:
    """A part of a dependency with delays in seconds; Slurm has them in minutes.

    >>> in_seconds("after:12+5:13")
    'after:12+300s:13'
    """
    return _MINUTES.sub(lambda match: f"+{int(match[1]) * 60}s", part)


def _arrays(ids: Iterable[str], lines: Iterable[str]) -> list[str]:
    """For each task of an array of which only some may run at once, the array and how many."""
    found = ((_TASK.fullmatch(name), _found(_LIMIT, line)) for name, line in zip(ids, lines, strict=True))
    return [f"{task[1]}%{limit}" if task is not None and limit else "" for task, limit in found]


def _found(pattern: re.Pattern[str], line: str) -> str:
    match = pattern.search(line)
    return match[1] if match else ""
