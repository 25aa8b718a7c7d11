"""The jobs of a log in the Standard Workload Format, made of a text in which nothing is unusual.

What a log is otherwise read with takes numpy, which is slower to import than a log of some ten thousand jobs
is to read. A usual line needs only commas to be JSON, whose decoder checks the type and the range of every
field. A text with anything in it that has to be reported is left to :mod:`batsched_py.workload.swf`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from math import inf
from typing import Annotated, Any

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.workload.swf_text import LARGEST, extra_of, spelled

#: What the numbers of a log and the space between them are made of.
_LETTERS = b"0123456789+-.eE \t\r\n"

_Whole = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
_Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
_NotNegative = Annotated[float, Meta(ge=0, le=LARGEST)]


class UsualRecord(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """A record that can be used, as nearly all can."""

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


_decoder = Decoder(list[UsualRecord])


def read_jobs(
    pieces: Iterable[bytes],
    largest: int,
    workload: str,
    walltime_factor: float,
    requested_only: bool,
    speed: float,
) -> tuple[list[Job], dict[str, Profile], bytes, list[bytes], int, int] | None:
    """The jobs of a log of ``largest`` bytes at most in which nothing is unusual, else nothing.

    With them come the profiles that last as long on hosts of this ``speed``, when the jobs had finished (the
    bytes of doubles), the comments, and how many jobs have no processors, of how many in all. A piece has
    whole lines. Numbers that do not ascend are unusual, and so are submissions out of the order of time.
    """
    factor = 0.0 if requested_only else walltime_factor
    jobs: list[Job] = []
    finishes = array("d")
    comments: list[bytes] = []
    names, extras = _ProfileNames(), _Extras()
    number, submit, first = -LARGEST - 1, 0.0, None
    nb_unsized = 0
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
            submission, run_time = submit - first, record.run_time
            walltime, least = record.requested_time, factor * run_time
            jobs.append(
                Job(
                    f"{workload}!{number}",
                    submission,
                    size,
                    (walltime if walltime > least else least) or inf,
                    names[run_time],
                    extras[record.user, record.group, record.executable, record.queue, record.partition],
                )
            )
            finishes.append(submission + (record.wait if record.wait > 0 else 0.0) + run_time)
    profiles: dict[str, Profile] = {
        names[run_time]: Homogeneous(run_time * speed) for run_time in sorted(names)
    }
    if not jobs:
        return None
    return jobs, profiles, finishes.tobytes(), comments, nb_unsized, len(jobs) + nb_unsized


def _limited(pieces: Iterable[bytes], largest: int) -> list[bytes]:
    """All pieces, or none if there is more in them; jobs would be made in vain until that is known."""
    held = []
    for piece in pieces:
        largest -= len(piece)
        if largest < 0:
            return []
        held.append(piece)
    return held


def _records(text: bytes, comments: list[bytes]) -> list[UsualRecord] | None:
    """The records of a text, whose comments are added to those before; nothing if a line is neither."""
    lines = text.split(b"\n")
    if b";" in text:
        comments += [line for line in lines if line.startswith(b";")]
    lines = [line for line in lines if line and not line.startswith(b";")]
    if b"".join(lines).translate(None, _LETTERS):
        return None
    rows = b"],[".join([b",".join(line.split()) for line in lines])
    try:
        return _decoder.decode(b"[[%b]]" % rows) if lines else []
    except DecodeError:
        return None


class _ProfileNames(dict[float, str]):
    """The name of its profile for each run time."""

    def __missing__(self, run_time: float) -> str:
        self[run_time] = name = f"run_{spelled(run_time)}"
        return name


class _Extras(dict[tuple[int, ...], dict[str, Any]]):
    """Who submitted what to where, in one dictionary for each combination."""

    def __missing__(self, values: tuple[int, ...]) -> dict[str, Any]:
        self[values] = extra = extra_of(values)
        return extra
