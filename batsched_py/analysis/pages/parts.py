"""Parts that pages are made of, as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence


def section(title: str, note: str, *content: str, layout: str = "two") -> str:
    """A part of a page under a title."""
    text = f'<p class="note">{html.escape(note)}</p>'
    return f'<section><h2>{title}</h2>{text}<div class="{layout}">{"".join(content)}</div></section>'


def figure(title: str, name: str) -> str:
    """The place where the page's script draws the figure of this name."""
    return f'<figure data-figure="{name}"><figcaption>{html.escape(title)}</figcaption></figure>'


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; its cells are HTML."""
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    empty = '<p class="none">None.</p>'
    content = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else empty
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{content}</figure>"


def tiles(shown: Sequence[tuple[str, str, str]]) -> str:
    """Figures in large letters, each with its label and a note."""
    return "".join(
        f'<div class="tile"><b>{value}</b><span>{label}</span><small>{note}</small></div>'
        for label, value, note in shown
    )


def time_text(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> time_text(90.0), time_text(5400), time_text(0)
    ('1.5 min', '1.5 h', '0 s')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
