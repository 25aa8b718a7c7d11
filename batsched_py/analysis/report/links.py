"""The most loaded links of each run, as tables of a report."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, Final

from batsched_py.analysis.plots.runs import Run

#: So many links of each run are listed.
MOST: Final = 5

_HEADINGS: Final = ("link", "mean load", "carried", "lost there by jobs")


def most_loaded(run: Run) -> list[dict[str, Any]]:
    """The most loaded links of a run; none if what they carried was not recorded."""
    if run.carried is None:
        return []
    table = run.carried.most_loaded("link", MOST)
    return table[["name", "load", "carried", "lost"]].to_dict("records")


def section(links: Mapping[str, list[dict[str, Any]]]) -> str:
    """The part of the page with these links by the names of runs; nothing if there are none."""
    tables = "".join(_table(name, rows) for name, rows in links.items() if rows)
    if not tables:
        return ""
    about = (
        "The load is the mean share of the bandwidth over the whole run. A job loses time on a link when it "
        "would run faster if it had the link for itself."
    )
    return (
        f'\n<section id="links">\n<h2>Most loaded links</h2>\n<p class="note">{about}</p>\n{tables}</section>'
    )


def _table(name: str, rows: list[dict[str, Any]]) -> str:
    lines = [_row("th", _HEADINGS)]
    lines += [
        _row(
            "td",
            (row["name"], f"{row['load']:.1%}", f"{row['carried'] / 1e9:,.3g} GB", f"{row['lost']:,.0f} s"),
        )
        for row in rows
    ]
    return f"<h3>{html.escape(name)}</h3>\n<table>\n{''.join(lines)}</table>\n"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>\n"
