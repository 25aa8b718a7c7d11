"""The rules that hosts which have failed run no jobs, and that failures end the jobs they are said to end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pandas as pd

from batsched_py.analysis.absences import Absence
from batsched_py.analysis.resizes import in_pieces
from batsched_py.analysis.schedule import full_ids, host_sets, started
from batsched_py.analysis.violation import SLACK, Violation
from batsched_py.protocol.hosts import HostSet

_FAILED = re.compile(r"(?:^| )failed=([0-9,-]+)(?: |$)")


def on_failed_hosts(
    schedule: pd.DataFrame, absences: Sequence[Absence], events: Sequence[Absence] = ()
) -> Iterator[Violation]:
    """The jobs that run on hosts while these are away, and those that no failure has ended as they say.

    The absences are those of ``PREFIX_absences.csv``: a failure ends the jobs on its hosts. Where hosts are
    taken away by ``events``, jobs may go on.
    """
    away = [absence for absence in absences if absence.state == "away"]
    executed = started(schedule)
    pieces = in_pieces(executed)
    for job, start, finish, hosts in zip(
        full_ids(pieces), pieces["starting_time"], pieces["finish_time"], host_sets(pieces), strict=True
    ):
        for absence in away:
            if start < absence.until - SLACK and finish > absence.since + SLACK and hosts & absence.hosts:
                text = (
                    f"job {job} runs on hosts {hosts & absence.hosts}, which are away from {absence.since:g} "
                    f"to {absence.until:g}"
                )
                yield Violation("away", (job,), max(start, absence.since), text)
    for job, finish, hosts, note in zip(
        full_ids(executed), executed["finish_time"], host_sets(executed), executed["metadata"], strict=True
    ):
        if (found := _FAILED.search(note)) is not None:
            lost, failing = HostSet.parse(found[1].replace(",", " ")), HostSet()
            for absence in (*away, *events):
                if abs(absence.since - finish) <= SLACK:
                    failing = failing | absence.hosts
            if not (lost <= failing and lost <= hosts):
                text = f"job {job} is ended by a failure of hosts {lost}, of which nothing is known"
                yield Violation("failure", (job,), finish, text)
