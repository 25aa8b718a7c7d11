"""Jobs of a recorded scenario.

Its ``jobs.csv`` has the columns ``at``, ``run`` and ``args``: when a job is submitted, how
long it sleeps, and the options of ``sbatch``, in which ``%3`` is the third job of the file
and ``%%`` is a ``%``.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from batsched_py.protocol.shown import shown
from batsched_py.slurm.reading import Findings, number, read_text
from batsched_py.slurm.sbatch import Submission, in_parts, part_name, read_options

COLUMNS = ("at", "run", "args")

_JOB = re.compile(r"(?<=:)%([0-9]{1,9})")
RECORDER = {"kill_wait": 1.0, "message_timeout": 100.0}
"""What a recorder adds to the ``slurm.conf`` of a scenario, as far as it shapes schedules."""

SUBMITTING = 0.2
"""A recorder submits one job after another, in the order of the file; so long a call of sbatch takes."""

LAUNCHING = 0.9
"""So much longer than it sleeps a job runs when it is recorded at ten times the speed, in the mean."""

USER = "root"
"""Who submits jobs that do not say."""


def read_submissions(path: Path, findings: Findings) -> Iterator[Submission]:
    """The jobs of a file, named by their numbers."""
    rows = csv.reader(StringIO(read_text(path, findings)))
    head = next(rows, [])
    if missing := [name for name in COLUMNS if name not in head]:
        findings.mistake(f"{path}, line 1", f"there is no column {missing[0]}")
        return
    last = 0.0
    for place, row in enumerate(rows, start=1):
        where = f"{path}, line {rows.line_num}"
        if len(row) != len(head):
            findings.mistake(where, f"has {len(row)} fields instead of {len(head)}")
            continue
        values = dict(zip(head, row, strict=True))
        with findings.noting(where):
            parts = list(_submissions(place, values, where, findings))
            last = max(parts[0].at, last) + SUBMITTING
            for submitted in parts:
                submitted.at = last
                yield submitted


def _submissions(place: int, values: dict[str, str], where: str, findings: Findings) -> Iterator[Submission]:
    """The submission of a line; of a heterogeneous job, one for each of its parts."""
    for name in _JOB.findall(values["args"]):
        if not 1 <= int(name) < place:
            raise ValueError(f"{shown('%' + name)} is no job above this line")
    parts = in_parts(shlex.split(_JOB.sub(r"\1", values["args"]).replace("%%", "%")))
    for number_of_part, words in enumerate(parts):
        submission = read_options(words, where, findings)
        submission.name, submission.user = part_name(str(place), number_of_part), submission.user or USER
        submission.run_time, submission.at = number(values["run"]) + LAUNCHING, number(values["at"])
        if len(parts) > 1:
            submission.fields |= {"het": str(place), "het_size": len(parts)}
        yield submission
