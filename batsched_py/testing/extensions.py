"""Try what you have written besides policies: a session rule, a log reader, a figure.

Monitors and additional data are tried with :class:`~batsched_py.testing.Workbench` and
:func:`~batsched_py.testing.schedule_of`. Each may be an object, a class or ``path/to/file.py:ClassName``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from batsched_py.testing.runs import JobSpec, workload_of
from batsched_py.workload.sessions import SessionRule, cut_sessions, session_rule
from batsched_py.workload.sources import SOURCES, Source
from batsched_py.workload.swf.log import SwfLog

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.plots.figures import Kind
    from batsched_py.analysis.plots.sheet import Sheet


def sessions_of(rule: str | SessionRule, jobs: Sequence[JobSpec]) -> list[list[str]]:
    """The jobs of one user, by their names, in the sessions into which a rule cuts them.

    >>> short = [JobSpec("a", 0, 1, 60), JobSpec("b", 120, 1, 60), JobSpec("c", 9000, 1, 60)]
    >>> sessions_of("arrival:60", short)
    [['a', 'b'], ['c']]
    """
    found = session_rule(rule) if isinstance(rule, str) else rule
    finishes = [job.submission + job.duration for job in jobs]
    sessions = cut_sessions(workload_of(jobs).jobs, finishes, found)
    return [[job.name for job in session.jobs] for session in sessions]


def log_of(reader: str | type[Source] | Source, text: str) -> SwfLog:
    """The log that a reader finds in a file with this text."""
    source = SOURCES.instance(reader)
    with TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_text(text, encoding="utf-8")
        return source.read(path)


def figure_of(kind: str | type[Kind] | Kind, *schedules: pd.DataFrame) -> Sheet:
    """The figure of one or more schedules, as :func:`schedule_of` gives them, in the order of their runs."""
    from batsched_py.analysis.plots.figures import KINDS, draw
    from batsched_py.analysis.plots.runs import run_of

    runs = [run_of(schedule, f"run {number}") for number, schedule in enumerate(schedules, 1)]
    return draw(KINDS.instance(kind), runs)
