"""The records of a log, line by line: what is wrong with one, and the jobs of a log in which nothing is.

A good line needs only commas to be JSON, and the JSON decoder checks the type and the range of every field.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from functools import cache
from math import inf, isfinite, nan
from typing import Annotated

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from batsched_py.protocol.jobs import Job
from batsched_py.workload.swf import conventions
from batsched_py.workload.swf.conventions import never_started, profile_name
from batsched_py.workload.swf.quick_reader import JobsRead

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

COLUMNS = Record.__struct_fields__
_WHOLE = frozenset(name for name, kind in Record.__annotations__.items() if kind == "_Whole")
_WORD = re.compile(rb"[^\x00-\x20]+")


def fields_of(line: bytes) -> list[float] | str:
    """The fields of a record, or what is wrong with it.

    >>> fields_of(b"1 2 3")
    '3 fields instead of 18'
    >>> fields_of(b"1 0 -1 six" + 14 * b" 0")
    "'six' is not a number"
    """
    words = _WORD.findall(line)
    if len(words) != len(COLUMNS):
        return f"{len(words)} field{'s' if len(words) > 1 else ''} instead of {len(COLUMNS)}"
    fields: list[float] = []
    for word in words:
        try:
            fields.append(float(word))
        except ValueError:
            fields.append(nan)
        if not isfinite(fields[-1]):
            return f"{word.decode(errors='replace')[:20]!r} is not a number"
    for name, value in zip(COLUMNS, fields, strict=True):
        if abs(value) > conventions.LARGEST:
            return f"{name} is too large"
        if name in _WHOLE and value != int(value):
            return f"{name} is not a whole number"
    values = dict(zip(COLUMNS, fields, strict=True))
    if values["submit"] < 0:
        return "submit is negative"
    if values["run_time"] < 0 and values["run_time"] != -1:
        return "run_time is negative"
    return fields


def read_jobs(pieces: Iterable[bytes], largest: int, workload: str, factor: float) -> JobsRead | None:
    """The jobs of a log that is read in pieces of whole lines.

    None if it has more than ``largest`` bytes or a line that has to be reported, if the numbers of its jobs
    do not ascend, or if their submissions are not in the order of time. A walltime is at least ``factor``
    times the run time.
    """
    jobs: list[Job] = []
    finishes = array("d")
    comments: list[bytes] = []
    names, extra = _ProfileNames(), cache(conventions.extra_fields)
    number, submit, first = -conventions.LARGEST - 1, 0.0, None
    nb_unsized, nb_cancelled, nb_unrequested, nb_raised, nb_equal, nb_otherwise = 0, 0, 0, 0, 0, 0
    held = []
    for piece in pieces:
        held.append(piece)
        largest -= len(piece)
        if largest < 0:
            return None
    for text in held:
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
            if first > conventions.UNIX_TIMES and submit % 1:
                return None  # the complete reader rounds such times
            if never_started(record.status, record.run_time, record.allocated_processors):
                nb_cancelled += 1
                continue
            submission, run_time = submit - first, record.run_time
            walltime, least = record.requested_time, factor * run_time
            limit = (walltime if walltime > least else least) or inf
            if walltime <= 0:
                nb_unrequested += 1
            else:
                nb_raised += least > walltime
                nb_equal += walltime == run_time
            nb_otherwise += record.allocated_processors <= 0
            known = extra((record.user, record.group, record.executable, record.queue, record.partition))
            jobs.append(Job(f"{workload}!{number}", submission, size, limit, names[run_time], known))
            finishes.append(submission + (record.wait if record.wait > 0 else 0.0) + run_time)
    if not jobs:
        return None
    profiles = conventions.profiles_of(dict(sorted(names.items())))
    nb_all = len(jobs) + nb_unsized + nb_cancelled
    counts = (nb_all, nb_unsized, nb_cancelled, nb_unrequested, nb_raised, nb_equal, nb_otherwise)
    return JobsRead(jobs, profiles, finishes, comments, *counts)


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
