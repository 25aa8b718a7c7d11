"""The logs that runs replay, for what a page draws of them beside the runs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from batsched_py.analysis.plots.kinds.graphs import graph_statistics
from batsched_py.analysis.plots.runs import Run, recorded_run
from batsched_py.analysis.report.series import Subject
from batsched_py.workload.sessions import session_rule
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload


class LogFile(NamedTuple):
    """Where a recorded log is, and what must be in it."""

    path: Path
    sha256: str


@lru_cache(maxsize=2)
def _log(file: LogFile) -> SwfLog:
    """What was recorded; rows come log by log, so it is mostly the one that was asked for last."""
    return read_swf(file.path)


@lru_cache(maxsize=8)
def _session_graphs(file: LogFile, delimiter: str) -> pd.DataFrame:
    return graph_statistics(swf_to_workload(_log(file)), [session_rule(delimiter)])


def recorded_subject(file: LogFile) -> Subject:
    """What is drawn of a log as it was recorded."""
    return Subject(recorded_run(_log(file)))


def replaying_subject(run: Run, file: LogFile, delimiter: str | None) -> Subject:
    """What is drawn of a run that replays a log; the delimiter is that of its users' sessions, if any."""
    graphs = None if delimiter is None else _session_graphs(file, delimiter)
    return Subject(replace(run, log=_log(file)), graphs)
