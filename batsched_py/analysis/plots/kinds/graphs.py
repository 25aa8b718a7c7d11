"""What the users' session graphs look like under one or several ways to cut sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pandas as pd
from msgspec import Meta

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import SessionGraph, session_statistics
from batsched_py.workload.sessions import SessionRule, cut_workload, session_rule
from batsched_py.workload.swf.workload import swf_to_workload


def graph_statistics(workload: Workload, delimiters: Sequence[SessionRule]) -> pd.DataFrame:
    """For each delimiter and user the number of sessions, the longest path and the arity of the graph."""
    rows = []
    for delimiter in delimiters:
        for user, sessions in cut_workload(workload, delimiter).items():
            figures = session_statistics([SessionGraph(sessions)])
            rows.append((str(delimiter), user, figures.sessions, figures.longest_path, figures.arity))
    return pd.DataFrame(rows, columns=["delimiter", "user", "sessions", "longest_path", "arity"])


@dataclass(frozen=True)
class Graphs(RunsKind):
    """How long and how wide the session graphs of the users of a log are.

    For each length of the longest path, and for each arity, the share of the users who have no more.
    """

    name = "graphs"
    shows = "What the users' session graphs look like under one or several ways to cut sessions."
    use_of_log: ClassVar[str] = "Its users are shown, too."

    delimit: Annotated[
        tuple[str, ...],
        Meta(title="RULE:MINUTES", description="What opens a new session, as in `batsched-py sessions`."),
    ] = ("arrival:0", "arrival:60")

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        rules = [session_rule(text) for text in self.delimit]
        logs = [run for run in (recorded, *runs) if run is not None]
        curves = []
        for each in logs:
            if each.log is None:
                raise InputError(f"{each.label}: session graphs are those of a log; give LOG.swf")
            statistics = graph_statistics(swf_to_workload(each.log), rules)
            curves += [
                (rule if len(logs) == 1 else f"{each.label}, {rule}", users)
                for rule, users in statistics.groupby("delimiter", sort=False)
            ]
        sheet.resize(2.9)
        axes = sheet.subplots(1, 2, sharey=True)
        for panel, column, label in (
            (axes[0], "longest_path", "longest path of the user's graph (sessions)"),
            (axes[1], "arity", "arity of the user's graph"),
        ):
            for (name, users), line in zip(curves, sheet.line_looks(len(curves)), strict=True):
                panel.ecdf(users[column], **line, label=name)
            panel.set_xscale("symlog", linthresh=1, linscale=0.3)
            panel.set_xlim(left=0)
            panel.set_xlabel(label)
            style.plain_numbers(panel.xaxis)
        axes[0].set_ylabel("share of the users who have no more")
        axes[0].legend(loc="lower right", title="sessions by")
