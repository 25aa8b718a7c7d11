"""The quick reader: the jobs of a log in which nothing has to be reported.

It does without numpy, which takes longer to import than a log of some ten thousand jobs takes to read. A
good line needs only commas to be JSON, and the JSON decoder checks the type and the range of every field.
Any other log is left to the complete reader, :mod:`batsched_py.workload.swf.reader`.
The native library holds a log as columns; objects are made of it when somebody looks at them.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, overload

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from batsched_py import native
from batsched_py.protocol.jobs import Job, ReadOnlyDict
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.workload.lines import read_lines
from batsched_py.workload.model import Jobs, Places, WalltimeRule, Workload
from batsched_py.workload.swf import conventions
from batsched_py.workload.swf.conventions import Comments, extra_fields, never_started, profile_name

if TYPE_CHECKING:
    from batsched_py.workload.columns import Numbers

_log = logging.getLogger(__name__)


#: The columns of a log, an object of the library.
Log = Any

if native.library is not None:
    native.library.prepare({"job": Job, "read_only": ReadOnlyDict})


class NativeJobs(Jobs):
    """Jobs that are made of the columns when somebody looks at them."""

    def __init__(self, log: Log) -> None:
        self.log = log

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
        """The jobs as Batsim submits those of a workload file: by time, then by the letters of their ids."""
        return map(self.log.job, self.log.in_submission_order())

    def nb_larger_than(self, hosts: int) -> int:
        """How many jobs ask for more hosts than these."""
        return int(self.log.nb_larger_than(hosts))

    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""
        place = self._places.get(job_id)
        return None if place is None else self.log.job(place)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self.log.id(place): place for place in range(len(self))}

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class RunTimeProfiles(Mapping[str, Profile]):
    """A profile for each run time that jobs of a log have, from the shortest on; made like the others."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        run_times = sorted(set(array("d", bytes(self._log.run_times()))))
        return {
            profile_name(run_time): Homogeneous(run_time * conventions.LOG_SPEED) for run_time in run_times
        }

    def __getitem__(self, name: str) -> Profile:
        return self._profiles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._profiles)

    def __len__(self) -> int:
        return len(self._profiles)


#: A log with more bytes is left to the complete reader, which does not keep all jobs in memory.
LARGE = 1 << 26

#: Bytes that are read at a time; the processor's cache holds them with what is made of them.
PIECE = 1 << 16


#: Jobs, profiles, recorded finishes, comments, how many jobs have no processors, how many were cancelled
#: while they waited, and how many there are.
JobsRead = tuple[Sequence[Job], Mapping[str, Profile], Sequence[float], list[bytes], int, int, int]

#: The characters of numbers and of the space between them.
_CHARACTERS = b"0123456789+-.eE \t\r\n"

_Whole = Annotated[int, Meta(ge=-conventions.LARGEST, le=conventions.LARGEST)]
_Number = Annotated[float, Meta(ge=-conventions.LARGEST, le=conventions.LARGEST)]
_NotNegative = Annotated[float, Meta(ge=0, le=conventions.LARGEST)]


class Record(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A record that can be used."""

    job_number: _Whole
    submit: _NotNegative
    wait: _Number
    run_time: _NotNegative
    allocated_processors: _Whole
    average_cpu_time: _Number
    used_memory: _Number
    requested_processors: _Whole
    requested_time: _Number
    requested_memory: _Number
    status: _Whole
    user: _Whole
    group: _Whole
    executable: _Whole
    queue: _Whole
    partition: _Whole
    preceding_job: _Whole
    think_time: _Number


_decoder = Decoder(list[Record])


def read_quickly(path: Path, name: str, walltime_factor: float, walltime: WalltimeRule) -> Workload | None:
    """The workload of an SWF log, or None if it is large or if there is something to report about it."""
    found = _read_jobs(path, name, conventions.run_time_factor(walltime, walltime_factor))
    if found is None:
        return None
    jobs, profiles, finishes, lines, nb_unsized, nb_cancelled, nb_all = found
    if nb_unsized:
        _log.warning("%s: left out for want of processors: %d of %d jobs", path, nb_unsized, nb_all)
    if nb_cancelled:
        _log.warning(conventions.CANCELLED_LEFT_OUT, path, nb_cancelled, nb_all - nb_unsized)
    comments = Comments()
    comments.add(lines)
    nb_hosts = conventions.machine_size(comments.header())
    return Workload(name, jobs, profiles, nb_hosts, str(path), finishes)


def _read_jobs(path: Path, workload: str, factor: float) -> JobsRead | None:
    """The jobs of a log; as columns of the native library, where that is in use."""
    pieces = read_lines(path, PIECE)
    if native.library is None:
        return read_jobs(pieces, LARGE, workload, factor)
    found = native.library.read_swf(pieces, LARGE, workload, factor, conventions.LOG_SPEED)
    if found is None:
        return None
    log, *rest = found
    return NativeJobs(log), RunTimeProfiles(log), array("d", bytes(log.finishes())), *rest


def read_jobs(pieces: Iterable[bytes], largest: int, workload: str, factor: float) -> JobsRead | None:
    """The jobs of a log that is read in pieces of whole lines.

    None if it has more than ``largest`` bytes or a line that has to be reported, if the numbers of its jobs
    do not ascend, or if their submissions are not in the order of time. A walltime is at least ``factor``
    times the run time.
    """
    jobs: list[Job] = []
    finishes = array("d")
    comments: list[bytes] = []
    names, extra = _ProfileNames(), cache(extra_fields)
    number, submit, first = -conventions.LARGEST - 1, 0.0, None
    nb_unsized, nb_cancelled = 0, 0
    for text in _limited(pieces, largest):
        if (records := _records(text, comments)) is None:
            return None
        for record in records:
            if record.job_number <= number or record.submit < submit:
                return None
            number, submit = record.job_number, record.submit
            if (size := record.allocated_processors) <= 0 and (size := record.requested_processors) <= 0:
                nb_unsized += 1
                continue
            if first is None:
                first = submit
            if never_started(record.status, record.run_time, record.allocated_processors):
                nb_cancelled += 1
                continue
            submission, run_time = submit - first, record.run_time
            walltime, least = record.requested_time, factor * run_time
            limit = (walltime if walltime > least else least) or inf
            known = extra((record.user, record.group, record.executable, record.queue, record.partition))
            jobs.append(Job(f"{workload}!{number}", submission, size, limit, names[run_time], known))
            finishes.append(submission + (record.wait if record.wait > 0 else 0.0) + run_time)
    if not jobs:
        return None
    profiles: dict[str, Profile] = {
        names[run_time]: Homogeneous(run_time * conventions.LOG_SPEED) for run_time in sorted(names)
    }
    nb_all = len(jobs) + nb_unsized + nb_cancelled
    return jobs, profiles, finishes, comments, nb_unsized, nb_cancelled, nb_all


def _limited(pieces: Iterable[bytes], largest: int) -> list[bytes]:
    """All pieces; none if they have more bytes in all, so that no jobs are made for nothing."""
    held = []
    for piece in pieces:
        largest -= len(piece)
        if largest < 0:
            return []
        held.append(piece)
    return held


def _records(text: bytes, comments: list[bytes]) -> list[Record] | None:
    """The records of a text, whose comments are added to ``comments``; None if a line is neither."""
    lines = text.split(b"\n")
    if b";" in text:
        comments += [line for line in lines if line.startswith(b";")]
    lines = [line for line in lines if line and not line.startswith(b";")]
    if b"".join(lines).translate(None, _CHARACTERS):
        return None
    rows = b"],[".join([b",".join(line.split()) for line in lines])
    try:
        return _decoder.decode(b"[[%b]]" % rows) if lines else []
    except DecodeError:
        return None


class _ProfileNames(dict[float, str]):
    """The name of the profile for each run time."""

    def __missing__(self, run_time: float) -> str:
        self[run_time] = name = profile_name(run_time)
        return name
