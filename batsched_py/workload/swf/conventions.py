"""What the readers of SWF logs agree on: headers, how records become jobs, and how faults are reported."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import ReadOnlyDict
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.workload.lines import SHOWN_BAD_LINES, bad_lines_text
from batsched_py.workload.model import WalltimeRule

#: Speed of a host of the machine that a log was recorded on, in flop/s. It is a convention: a job that ran
#: for t seconds is given t times this many operations on each of its hosts, and so runs for t seconds on a
#: host of this speed, and for t/2 on one that is twice as fast.
LOG_SPEED = 1e9

#: The fields of a record that a job's ``extra`` repeats; -1 means unknown.
EXTRA = ("user", "group", "executable", "queue", "partition")

#: What the status of a job says.
FAILED, COMPLETED, CANCELLED = 0, 1, 5

#: The warning about records that cannot be used: the file, how many there are, of how many, and why.
RECORDS_LEFT_OUT = "%s: %d of %d records left out: %s"

#: The warning about jobs without processors: the file, how many there are, of how many.
UNSIZED_LEFT_OUT = "%s: left out for want of processors: %d of %d jobs"

#: The warning about jobs that were cancelled while they waited and are left out of a simulation: the file,
#: how many there are, of how many.
CANCELLED_LEFT_OUT = (
    "%s: left out because they were cancelled while they waited: %d of %d jobs (--cancelled withdraw keeps "
    "them in the queue until then)"
)

#: No number of a log may be larger, so that a float holds each exactly.
LARGEST = 2**53


#: Times from here on are taken for Unix times. Next to one, a double has no room for more than microseconds;
#: what is left of a fraction is noise.
UNIX_TIMES = 1e8

#: A log with more is refused: its jobs alone would take gigabytes.
MOST_RECORDS = 100_000_000

#: A log with more bytes of comments is refused.
MOST_COMMENTS = 1 << 24


def check_extent(path: Path, nb_records: int, nb_comment_bytes: int) -> None:
    """Refuse a log that is larger than any is."""
    if nb_comment_bytes > MOST_COMMENTS:
        raise InputError(f"{path}: has more than {MOST_COMMENTS:,} bytes of comments, as no log has")
    if nb_records > MOST_RECORDS:
        raise InputError(f"{path}: has more than {MOST_RECORDS:,} records, the most there may be")


def never_started(status: Any, run_time: Any, allocated: Any) -> Any:
    """Whether a job was cancelled while it waited, of numbers or of columns of them.

    >>> never_started(5, 0, 0), never_started(5, -1, 8), never_started(5, 0, 8), never_started(1, 0, 0)
    (True, True, False, False)
    """
    return (status == CANCELLED) & ((run_time == -1) | ((run_time == 0) & (allocated <= 0)))


def extra_fields(values: Iterable[int]) -> dict[str, Any]:
    """The ``extra`` of a job: those of the values for ``EXTRA`` that are known."""
    return ReadOnlyDict((name, value) for name, value in zip(EXTRA, values, strict=True) if value != -1)


def number_text(number: float) -> str:
    """A number as logs and the names of profiles write it."""
    return str(int(number)) if number == int(number) else repr(number)


def profile_name(run_time: float) -> str:
    """The name of the profile of jobs that ran this long."""
    return f"run_{number_text(run_time)}"


def profiles_of(names: Mapping[float, str]) -> dict[str, Profile]:
    """The profiles of jobs, given the name for each run time."""
    return {name: Homogeneous(run_time * LOG_SPEED) for run_time, name in names.items()}


def run_time_factor(rule: WalltimeRule, walltime_factor: float) -> float:
    """A job's walltime is at least this many times its run time."""
    if not (walltime_factor > 0 and isfinite(walltime_factor)):
        raise InputError(f"the walltime factor must be a positive number, not {walltime_factor}")
    return {"at-least-run-time": 1.0, "modelled": 1.0, "max": walltime_factor}.get(rule, 0.0)


_COMMENT = r";\s*(?:([A-Za-z]\w*):(?=\s|$))?\s*(.*)"


class Comments:
    """Collects the comments of a log by their keys; one without a key continues the one before it."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._key = ""
        self.nb_bytes = 0
        """Length of all comments so far."""

    def add(self, comments: Iterable[bytes]) -> None:
        """Add the next comments, each with its ``;``."""
        for comment in comments:
            self.nb_bytes += len(comment)
            parts = re.match(_COMMENT, comment.decode(errors="replace").strip())
            assert parts is not None
            self._key = parts[1] or self._key
            if parts[1] or parts[2]:
                self._lines.setdefault(self._key, []).append(parts[2])

    def header(self) -> dict[str, str]:
        """For each key its text, which has a line for each comment."""
        return {key: "\n".join(lines) for key, lines in self._lines.items()}


def header_lines(header: Mapping[str, str]) -> Iterator[str]:
    """The comments that a header is written as."""
    for key, value in header.items():
        for line in value.split("\n"):
            yield f"; {key}: {line}\n" if key else f"; {line}\n"


def scaled(header: Mapping[str, str]) -> str:
    """The change that scaled the times between arrivals, and nothing else of the jobs; none if none did.

    >>> scaled({"Change": "first: ...\\nload factor=1.2: ..."}), scaled({"Change": "load by=sizes: ..."})
    ('load factor=1.2', '')
    """
    for line in header.get("Change", "").split("\n"):
        change = line.partition(":")[0]
        if change.startswith("load ") and ("by=" not in change or "by=arrivals" in change):
            return change
    return ""


def nb_partitions(header: Mapping[str, str]) -> int:
    """How many partitions the recorded machine had; 0 if the header does not tell."""
    words = header.get("MaxPartitions", "").split()
    return int(words[0]) if words and re.fullmatch("[0-9]{1,6}", words[0]) else 0


def machine_size(header: Mapping[str, str]) -> int | None:
    """Processors of the recorded machine, if the header says so."""
    for key in ("MaxProcs", "MaxNodes"):
        if number := re.match(r"\d{1,18}(?!\d)", header.get(key, "")):
            return int(number[0])
    return None


class BadLines:
    """How many lines are bad, and the first of them; a large log of bad lines only takes no memory."""

    def __init__(self) -> None:
        self.count = 0
        self.kinds: Counter[str] = Counter()
        """How many there are of each kind."""
        self._first: dict[int, str] = {}

    def add(self, faults: Mapping[int, str], count: int | None = None) -> None:
        """Add faults by line; ``count`` says how many there are if these are only the first of them."""
        if faults:
            self.count += len(faults) if count is None else count
            kinds = Counter(map(_kind, faults.values()))
            self.kinds.update(kinds if count is None else dict.fromkeys(kinds, count))
            known = self._first | dict(faults)
            self._first = {line: known[line] for line in sorted(known)[:SHOWN_BAD_LINES]}

    def reasons(self, nb_unknown: int) -> list[str]:
        """Why records are left out: these lines, and so many records whose run time is unknown."""
        reasons = [bad_lines_text(self._first, self.count)] if self.count else []
        return [*reasons, f"{nb_unknown} of unknown run time"] if nb_unknown else reasons


def _kind(fault: str) -> str:
    """A fault without the word or the number that is wrong."""
    fault = re.sub(r"^\d+ fields? instead of", "another number of fields than", fault)
    return re.sub(r"^'.*' is", "a field is", fault)
