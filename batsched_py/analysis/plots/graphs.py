"""What the users' session graphs look like under one or several ways to cut sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.session_statistics import session_statistics
from batsched_py.workload.sessions import Delimiter, cut_workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def graph_statistics(workload: Workload, delimiters: Sequence[Delimiter]) -> pd.DataFrame:
    """For each delimiter and user the number of sessions, the longest path and the arity of the graph."""
    rows = []
    for delimiter in delimiters:
        for user, sessions in cut_workload(workload, delimiter).items():
            figures = session_statistics([SessionGraph(sessions)])
            rows.append((str(delimiter), user, figures.sessions, figures.longest_path, figures.arity))
    return pd.DataFrame(rows, columns=["delimiter", "user", "sessions", "longest_path", "arity"])


def draw(figure: Figure, statistics: pd.DataFrame) -> None:
    """For each length of the longest path, and for each arity, the share of the users who have no more."""
    figure.set_size_inches(style.WIDTH, 2.9)
    axes = figure.subplots(1, 2, sharey=True)
    names = statistics["delimiter"].unique().tolist()
    for panel, column, label in (
        (axes[0], "longest_path", "longest path of the user's graph (sessions)"),
        (axes[1], "arity", "arity of the user's graph"),
    ):
        for name, colour in zip(names, style.colours(len(names)), strict=True):
            panel.ecdf(statistics.loc[statistics["delimiter"] == name, column], color=colour, label=name)
        panel.set_xscale("symlog", linthresh=1, linscale=0.3)
        panel.set_xlim(left=0)
        panel.set_xlabel(label)
        style.plain_numbers(panel.xaxis)
    axes[0].set_ylabel("share of the users who have no more")
    axes[0].legend(loc="lower right", title="sessions by")
