"""The quick readers: the jobs of a log without numpy, which takes longer to import than many a log to read.

The native library reads any log and holds it as columns; objects are made of it when somebody looks at
them. A line that is not in plain digits is judged here, and what cannot be used is reported as the complete
reader, :mod:`batsched_py.workload.swf.reader`, does.

Without the library, :mod:`batsched_py.workload.swf.records` reads a log in which nothing has to be reported,
unless it is large. Any other log is left to the complete reader.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from msgspec import Struct

from batsched_py import native
from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job, ReadOnlyDict
from batsched_py.protocol.profiles import Profile
from batsched_py.workload.lines import has_more_fields, read_lines
from batsched_py.workload.model import Jobs, Places, PrecedingRule, WalltimeRule, Workload
from batsched_py.workload.swf import conventions
from batsched_py.workload.swf.conventions import BadLines, never_started, profile_name

if TYPE_CHECKING:
    from batsched_py.workload.calendar import Calendar
    from batsched_py.workload.columns import Numbers


#: The columns of a log, an object of the library.
Log = Any

if native.library is not None:
    native.library.prepare({"job": Job, "read_only": ReadOnlyDict})


class NativeJobs(Jobs):
    """Jobs that are made of the columns when somebody looks at them."""

    def __init__(self, log: Log) -> None:
        self.log = log

    @property
    def have_dependencies(self) -> bool:
        """Whether any of the jobs waits for others."""
        return bool(self.log.has_dependencies)

    def __len__(self) -> int:
        return len(self.log)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Job]: ...
    def __getitem__(self, place: int | slice) -> Job | Sequence[Job]:
        if isinstance(place, slice):
            return self.pick(list(range(*place.indices(len(self)))))
        return self.log.job(place + len(self) if place < 0 else place)

    def __iter__(self) -> Iterator[Job]:
        return map(self.log.job, range(len(self)))

    @cached_property
    def submission_times(self) -> Numbers:
        """For each job, when it is submitted."""
        import numpy as np

        return np.frombuffer(self.log.submissions())

    def users(self) -> tuple[list[str | None], Numbers]:
        """The names of the users, and for each job the place of its user's name among them."""
        import numpy as np

        places: dict[str | None, int] = {}
        users = [places.setdefault(user, len(places)) for user in self.log.users()]
        return list(places), np.array(users, dtype=np.int32)

    def by_user(self) -> dict[str | None, Places]:
        """The places of each user's jobs, in the order of submission; those of nobody are under None."""
        users: dict[str | None, array[int]] = {}
        for place, user in enumerate(self.log.users()):
            users.setdefault(user, array("i")).append(place)
        return dict(users)

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs in the order of their submissions."""
        if self.has_usual_ties:
            return map(self.log.job, self.log.in_submission_order())
        return super().in_submission_order()

    def nb_larger_than(self, hosts: int) -> int:
        """How many jobs ask for more hosts than these."""
        return int(self.log.nb_larger_than(hosts))

    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""
        place = self._places.get(job_id)
        return None if place is None else self.log.job(place)

    def finder(self) -> Callable[[Sequence[str]], Iterator[Job | None]]:
        """What finds jobs by their identifiers, without a dictionary of all, which takes a lot of memory."""
        import numpy as np

        from batsched_py.workload.columns import BLOCK, as_bytes

        blocks = (range(first, min(first + BLOCK, len(self))) for first in range(0, len(self), BLOCK))
        ids = np.concatenate([as_bytes([]), *(as_bytes(list(map(self.log.id, block))) for block in blocks)])
        order = np.argsort(ids, kind="stable").astype(np.int32)
        ids = ids[order]

        def find(job_ids: Sequence[str]) -> Iterator[Job | None]:
            wanted = as_bytes(job_ids)
            places = np.searchsorted(ids, wanted, side="right") - 1
            found = ids[places] == wanted if len(ids) else np.zeros(len(wanted), np.bool_)
            for place, is_one in zip(places.tolist(), found.tolist(), strict=True):
                yield self.log.job(int(order[place])) if is_one else None

        return find

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self.log.id(place): place for place in range(len(self))}

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class NativeFinishes(Sequence[float]):
    """When the jobs of a log had finished, computed when it is asked for."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __len__(self) -> int:
        return len(self._log)

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> list[float]: ...
    def __getitem__(self, place: int | slice) -> float | list[float]:
        if isinstance(place, slice):
            return [self._log.finish(each) for each in range(*place.indices(len(self)))]
        return float(self._log.finish(place + len(self) if place < 0 else place))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class RunTimeProfiles(Mapping[str, Profile]):
    """A profile for each run time that jobs of a log have, from the shortest on; made like the others."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        run_times = sorted(set(array("d", bytes(self._log.run_times()))))
        return conventions.profiles_of({run_time: profile_name(run_time) for run_time in run_times})

    def __getitem__(self, name: str) -> Profile:
        return self._profiles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._profiles)

    def __len__(self) -> int:
        return len(self._profiles)


#: Without the library, a log with more bytes is left to the complete reader, which keeps no objects of jobs.
LARGE = 1 << 26

#: Bytes that are read at a time; the processor's cache holds them with what is made of them.
PIECE = 1 << 16


class JobsRead(Struct):
    """The jobs of a log, and what was counted."""

    jobs: Sequence[Job]
    profiles: Mapping[str, Profile]
    finishes: Sequence[float]
    comments: list[bytes]
    nb_all: int
    """How many records could be used."""
    nb_unsized: int
    """How many of them have no processors."""
    nb_cancelled: int
    """How many others were cancelled while they waited."""
    nb_unrequested: int
    """How many jobs requested no time, how many less than their walltime, and exactly their run time."""
    nb_raised: int
    nb_equal: int
    nb_sized_otherwise: int
    """How many have their requested size, as nothing is said to be allocated."""


def read_quickly(
    path: Path,
    name: str,
    walltime_factor: float,
    walltime: WalltimeRule,
    preceding: PrecedingRule = "ignore",
) -> Workload | None:
    """The workload of an SWF log, or None if it is left to the complete reader."""
    factor = conventions.run_time_factor(walltime, walltime_factor)
    pieces = read_lines(path, PIECE)
    if native.library is None:
        from batsched_py.workload.swf.records import read_jobs

        found = read_jobs(pieces, LARGE, name, factor) if preceding == "ignore" else None
    else:
        found = _read_natively(path, pieces, name, factor, preceding == "wait")
    if found is None:
        return None
    if found.nb_unsized:
        _warn(conventions.UNSIZED_LEFT_OUT, path, found.nb_unsized, found.nb_all)
    if found.nb_cancelled:
        nb_sized = found.nb_all - found.nb_unsized
        _warn(conventions.CANCELLED_LEFT_OUT, path, found.nb_cancelled, nb_sized)
    comments = conventions.Comments()
    comments.add(found.comments)
    header = comments.header()
    nb_hosts = conventions.machine_size(header)
    return Workload(
        name,
        found.jobs,
        found.profiles,
        nb_hosts,
        str(path),
        found.finishes,
        late_jobs_stay=walltime == "estimate",
        nb_unrequested=found.nb_unrequested,
        nb_raised=found.nb_raised,
        nb_sized_otherwise=found.nb_sized_otherwise,
        nb_equal=found.nb_equal,
        nb_partitions=conventions.nb_partitions(header),
        calendar=_calendar(path, header, found),
        scaled=conventions.scaled(header),
    )


def _warn(text: str, *facts: object) -> None:
    logging.getLogger(__name__).warning(text, *facts)


def _read_natively(
    path: Path, pieces: Iterable[bytes], workload: str, factor: float, wait: bool
) -> JobsRead | None:
    """The jobs of any log, with a warning about records that cannot be used; None if no record can be."""
    assert native.library is not None
    reader = native.library.SwfReader(workload, conventions.LOG_SPEED, factor, wait)
    bad = BadLines()

    def judge(line: bytes, number: int) -> list[float] | None:
        from batsched_py.workload.swf.records import fields_of

        found = fields_of(line)
        if isinstance(found, list):
            return found
        bad.add({number: found})
        return None

    lacks_allocated = False
    for place, piece in enumerate(pieces):
        lines = piece.split(b"\n") if place == 0 else [piece[: piece.find(b"\n")]]
        lacks_allocated = lacks_allocated or any(map(_is_sized_otherwise, lines))
        reader.read(piece, judge)
        conventions.check_extent(path, reader.nb_records, reader.nb_comment_bytes)
    if bad.count and has_more_fields(path):
        return None
    if (log := reader.finish()) is None:
        return None
    nb_all = len(log) + reader.nb_unsized + reader.nb_cancelled
    total = reader.nb_records + bad.count
    bad.add(dict.fromkeys(reader.first_repeated, "job_number came before"), count=reader.nb_repeated)
    if reasons := bad.reasons(reader.nb_unknown):
        _warn(conventions.RECORDS_LEFT_OUT, path, total - nb_all, total, ", ".join(reasons))
    return JobsRead(
        NativeJobs(log),
        RunTimeProfiles(log),
        NativeFinishes(log),
        reader.comments,
        nb_all,
        reader.nb_unsized,
        reader.nb_cancelled,
        reader.nb_unrequested,
        reader.nb_raised,
        reader.nb_equal,
        min(_count_sized_otherwise(path), len(log)) if lacks_allocated else 0,
    )


def _count_sized_otherwise(path: Path) -> int:
    """How many jobs have no allocated size, which the library does not tell.

    A log is read for it once more, if it lacks one in its first piece or in the first line of another: no
    other log has more than a few.
    """
    return sum(sum(map(_is_sized_otherwise, piece.split(b"\n"))) for piece in read_lines(path, PIECE))


def _is_sized_otherwise(line: bytes) -> bool:
    words = line.split(None, 11)
    if len(words) < 12 or words[4][0] not in b"-0" or line.startswith(b";"):
        return False
    try:
        run_time, allocated, requested, status = (float(words[place]) for place in (3, 4, 7, 10))
    except ValueError:
        return False
    is_job = run_time != -1 and not never_started(status, run_time, allocated)
    return is_job and allocated <= 0 < requested


def _calendar(path: Path, header: Mapping[str, str], found: JobsRead) -> Calendar | None:
    if "UnixStartTime" not in header:
        return None
    from batsched_py.workload.calendar import Calendar

    return Calendar.of(header, _first_submission(path, found))


def _first_submission(path: Path, found: JobsRead) -> float:
    """The time 0 of jobs in the seconds of their file, which the library does not tell: any job knows it."""
    from batsched_py.workload.swf.records import COLUMNS, fields_of

    job = found.jobs[0]
    for piece in read_lines(path, PIECE):
        for line in piece.split(b"\n"):
            words = line.split(None, 1)
            if words and _is_number(words[0], job.name) and isinstance(fields := fields_of(line), list):
                return fields[COLUMNS.index("submit")] - job.submission_time
    raise InputError(f"{path}: was changed while it was read")


def _is_number(word: bytes, number: str) -> bool:
    try:
        return float(word) == int(number)
    except ValueError:
        return False
