"""HTML pages that need no other file and no network: the style and the scripts that all of them share."""

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from batsched_py.output_files import write_file


@dataclass(frozen=True)
class Axis:
    """What lies along a side of a figure."""

    label: str
    unit: str = ""
    """``s`` and ``/s`` are shown in the unit of time that fits, ``week`` as its days, others as they are."""
    scale: Literal["linear", "log", "symlog"] = "linear"
    ends: tuple[float, float] | None = None
    """Without them, the axis covers what is drawn."""
    ticks: Sequence[tuple[float, str]] | None = None
    """The page shows as many of them as there is room for; without any it chooses round numbers."""
    names: Sequence[str] | None = None
    """The values of an axis of names, which are at 0, 1, 2 and so on."""


class Point(NamedTuple):
    """A point of a line, or a dot."""

    x: float
    y: float
    heading: str = ""
    text: str = ""
    """What it tells under its heading when the pointer is near; nothing without a heading."""


class Bar(NamedTuple):
    """A rectangle."""

    left: float
    right: float
    base: float
    top: float
    heading: str
    text: str
    """What it tells under its heading when the pointer is on it."""
    shade: float = 1.0
    """How full its colour is, from 0 to 1."""


@dataclass(frozen=True)
class Layer:
    """Marks of one kind and one colour."""

    kind: Literal["line", "steps", "area", "dots", "bars", "rule"]
    """``steps`` rise from 0, an ``area`` lies below a line, a ``rule`` is a horizontal line at one point."""
    marks: Sequence[Point] | Sequence[Bar]
    colour: int | None = 0
    """A place in the palette; None is grey."""
    name: str = ""
    """Its name in the legend, or what is written on a rule."""


@dataclass(frozen=True)
class Figure:
    """Layers over two axes, the last one on top."""

    x: Axis
    y: Axis
    layers: Sequence[Layer]


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


def or_unknown(value: float | None, form: str) -> str:
    """A figure in this form, or a question mark where it is not known."""
    return "?" if value is None else f"{value:{form}}"


_ASSETS: Final = files("batsched_py.analysis.pages") / "assets"

#: The scripts that all pages share, in the order in which they build on each other.
_SCRIPTS: Final = tuple(_ASSETS / f"{part}.js" for part in ("tools", "scale", "plot"))


def write_page(
    path: str | Path, title: str, body: str, data: Any, style: Traversable, scripts: Sequence[Traversable]
) -> None:
    """Write a page with this HTML in its body.

    ``data`` is what the scripts draw. The page's own style and scripts come after the shared ones.
    """
    parts = {
        "title": html.escape(title),
        "style": "\n".join(map(_text, (_ASSETS / "page.css", style))),
        "body": body,
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "script": "\n".join(map(_text, (*_SCRIPTS, *scripts))),
    }
    content = fill(_ASSETS / "page.html", parts)
    write_file(path, content)


def write_figures_page(
    path: str | Path, title: str, header: str, sections: str, figures: Mapping[str, Figure | None]
) -> None:
    """Write a page with a header and sections, in whose places the figures are drawn."""
    body = f"<header>\n{header}\n</header>\n<main>\n{sections}\n</main>"
    data = msgspec.to_builtins(figures)
    write_page(path, title, body, data, _ASSETS / "figures.css", [_ASSETS / "figures.js"])


def fill(template: Traversable, parts: Mapping[str, str]) -> str:
    """A text with ``{{name}}`` replaced by the part of that name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _text(template))


def _text(file: Traversable) -> str:
    return file.read_text(encoding="utf-8")
